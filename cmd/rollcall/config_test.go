package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

// readConfig reads settings as run does, without running a command.
func readConfig(t *testing.T, vars map[string]string, args ...string) *Config {
	t.Helper()
	var cli commands
	parser, err := kong.New(&cli, kong.Writers(io.Discard, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	env := envOf(vars)
	if err := kong.Resolvers(newEnvResolver(parser.Model, env, &cli.Config)).Apply(parser); err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(append([]string{"version"}, args...)); err != nil {
		t.Fatal(err)
	}
	if cli.Config.DataDir == "" {
		cli.Config.DataDir = defaultDataDir(1000, env)
	}
	return &cli.Config
}

func TestDefaultsAreValid(t *testing.T) {
	t.Parallel()
	config := readConfig(t, nil)
	if err := config.Check(); err != nil {
		t.Errorf("got %v", err)
	}
	if got, want := config.Listen, "127.0.0.1:8080"; got != want {
		t.Errorf("listen: got %q, want %q", got, want)
	}
	if got, want := config.MaxBody, size(32<<20); got != want {
		t.Errorf("max body: got %v, want %v", got, want)
	}
	if got, want := config.FieldJobID, (fieldPaths{"data.job_id", "job_id"}); !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	if got, want := config.PostgresDir(), "/home/alice/.local/share/rollcall/postgres"; got != want {
		t.Errorf("postgres: got %q, want %q", got, want)
	}
}

func TestEnvironmentAndFlags(t *testing.T) {
	t.Parallel()
	config := readConfig(t, map[string]string{
		"ROLLCALL_POLL_FIRST":       "3s",
		"ROLLCALL_POLL_CAP":         "1m",
		"ROLLCALL_MAX_BODY":         "1 MiB",
		"ROLLCALL_TRUSTED_PROXIES":  "10.1.2.3/8, 192.0.2.7",
		"ROLLCALL_SIGNATURE_PREFIX": "v1,",
		"ROLLCALL_MODE":             "", // Empty is unset.
	}, "--poll-cap=2m")
	if err := config.Check(); err != nil {
		t.Fatal(err)
	}
	if config.PollFirst != 3*time.Second || config.PollCap != 2*time.Minute || config.MaxBody != 1<<20 {
		t.Errorf("got %+v", config)
	}
	want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.7/32")}
	if got := config.Proxies(); !slices.Equal(got, want) {
		t.Errorf("proxies: got %v, want %v", got, want)
	}
	if config.SignaturePrefix != "v1," || config.Mode != "auto" {
		t.Errorf("got prefix %q, mode %q", config.SignaturePrefix, config.Mode)
	}
}

func TestCheckTellsOfAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	err := readConfig(t, map[string]string{
		"ROLLCALL_POLL_FIRST":  "soon",
		"ROLLCALL_MAX_BODY":    "big",
		"ROLLCALL_MODE":        "pigeon",
		"ROLLCALL_VENDOR_RPS":  "-1",
		"ROLLCALL_SESSION_MAX": "1m",
		"ROLLCALL_SECRET_KEY":  "topsecret",
		"DATABASE_URL":         "mysql://bob:hunter2@db/x",
	}).Check()
	if err == nil {
		t.Fatal("got no error")
	}
	want := []string{
		`DATABASE_URL: must start with postgres://`,
		`ROLLCALL_MAX_BODY="big": must be a size such as 32MiB`,
		`ROLLCALL_MODE="pigeon": must be one of auto, webhook, poll`,
		`ROLLCALL_POLL_FIRST="soon": must be a duration such as 30s, 10m or 72h`,
		"ROLLCALL_SECRET_KEY: must be 32 bytes written as base64 or hex; `openssl rand -base64 32` makes one",
		`ROLLCALL_SESSION_MAX="1m0s": must not be below ROLLCALL_SESSION_IDLE (12h0m0s)`,
		`ROLLCALL_VENDOR_RPS="-1": must be above 0 and at most 10000`,
	}
	got := strings.Split(err.Error(), "\n")
	slices.Sort(got)
	if !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "topsecret") {
		t.Errorf("a secret is shown: %v", err)
	}
	if _, ok := errors.AsType[*SettingError](err); !ok {
		t.Errorf("%v is no SettingError", err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	key := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{250}, 32))
	tests := []struct {
		name, env, value string
		want             string // Part of the complaint; empty when the value is good.
	}{
		{"listen on every interface", "ROLLCALL_LISTEN", ":80", ""},
		{"listen without port", "ROLLCALL_LISTEN", "localhost", "an address and a port"},
		{"listen on a word", "ROLLCALL_LISTEN", "localhost:http", "must be a number"},
		{"public URL", "ROLLCALL_PUBLIC_URL", "https://rollcall.example.org/", ""},
		{"public URL with path", "ROLLCALL_PUBLIC_URL", "https://example.org/desk", "must end after the host"},
		{"public URL with password", "ROLLCALL_PUBLIC_URL", "https://bob:hunter2@example.org", "must not hold a user name"},
		{"public URL without scheme", "ROLLCALL_PUBLIC_URL", "example.org", "an http or https URL"},
		{"vendor over https", "SCRAPER_API_BASE_URL", "https://example.org/api", ""},
		{"vendor over http to loopback", "SCRAPER_API_BASE_URL", "http://[::1]:9000", ""},
		{"vendor over http", "SCRAPER_API_BASE_URL", "http://example.org", "only to loopback"},
		{"vendor over ftp", "SCRAPER_API_BASE_URL", "ftp://example.org", "an https URL"},
		{"API key with a newline", "GEONODE_SCRAPER_API_KEY", "a\nb", "a header can't carry"},
		{"secret key in base64", "ROLLCALL_SECRET_KEY", key, ""},
		{"secret key in base64url without padding", "ROLLCALL_SECRET_KEY", base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{250}, 32)), ""},
		{"secret key in hex", "ROLLCALL_SECRET_KEY", hex.EncodeToString(bytes.Repeat([]byte{250}, 32)), ""},
		{"secret key too short", "ROLLCALL_SECRET_KEY", key[:20], "must be 32 bytes"},
		{"database", "DATABASE_URL", "postgres://rollcall@db/rollcall", ""},
		{"database with a raw percent", "DATABASE_URL", "postgres://a:100%@db/x", "percent-encoded"},
		{"webhook mode without public URL", "ROLLCALL_MODE", "webhook", "ROLLCALL_PUBLIC_URL: must be set when ROLLCALL_MODE is webhook"},
		{"poll cap below the first gap", "ROLLCALL_POLL_CAP", "10ms", "must not be below ROLLCALL_POLL_FIRST"},
		{"gives up before it is overdue", "ROLLCALL_GIVE_UP_AFTER", "10m", "must exceed ROLLCALL_POLL_MAX_WAIT"},
		{"call longer than a task", "ROLLCALL_VENDOR_TIMEOUT", "20s", "must be below 20s"},
		{"lease shorter than the call", "ROLLCALL_CLAIM_LEASE", "15s", "must exceed ROLLCALL_VENDOR_TIMEOUT"},
		{"reconcile window too short", "ROLLCALL_RECONCILE_WINDOW", "10m", "jobs fall between two runs"},
		{"rows gone before their bodies", "ROLLCALL_KEEP_BODIES", "3000h", "must not be below ROLLCALL_KEEP_BODIES"},
		{"log shorter than what is read of it", "ROLLCALL_KEEP_LOG", "24h", "must not be below ROLLCALL_RECONCILE_WINDOW"},
		{"deliveries for ever", "ROLLCALL_KEEP_DELIVERIES", "0s", ""},
		{"bodies for ever, their deliveries not", "ROLLCALL_KEEP_BODIES", "0s", "must not be below ROLLCALL_KEEP_BODIES"},
		{"batches gone before their deliveries", "ROLLCALL_KEEP_BATCHES", "720h", "must not be below ROLLCALL_KEEP_DELIVERIES"},
		{"batches for half a year", "ROLLCALL_KEEP_BATCHES", "4380h", ""},
		{"events forgotten too soon", "ROLLCALL_KEEP_EVENTS", "48h", "must exceed ROLLCALL_RECONCILE_WINDOW"},
		{"audit log for ever", "ROLLCALL_KEEP_AUDIT", "0s", ""},
		{"body above what is held", "ROLLCALL_MAX_BODY", "256MiB", "must not be below ROLLCALL_MAX_BODY"},
		{"no signature age limit", "ROLLCALL_SIGNATURE_MAX_AGE", "0s", ""},
		{"negative grace", "ROLLCALL_SECRET_GRACE", "-1h", "must not be negative"},
		{"zero gap", "ROLLCALL_RECONCILE_EVERY", "0s", "must be above zero"},
		{"jobs of no URLs", "ROLLCALL_URLS_PER_JOB", "0", "from 1 to 1000"},
		{"jobs of half a URL", "ROLLCALL_URLS_PER_JOB", "0.5", "must be a whole number"},
		{"rate of NaN", "ROLLCALL_VENDOR_RPS", "NaN", "must be above 0"},
		{"proxy by name", "ROLLCALL_TRUSTED_PROXIES", "10.0.0.0/8,proxy", `"proxy" is not a network`},
		{"header with a space", "ROLLCALL_EVENT_HEADER", "X Event", "is not the name of a header"},
		{"same header twice", "ROLLCALL_EVENT_HEADER", "x-webhook-signature", "is the same header as ROLLCALL_SIGNATURE_HEADER"},
		{"field path with a gap", "ROLLCALL_FIELD_JOB_ID", "data..id", "is not a dotted path"},
		{"unknown signature form", "ROLLCALL_SIGNATURE_KEY", "rot13", "must be one of auto, whole"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := readConfig(t, map[string]string{tt.env: tt.value}).Check()
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("got %v, want no complaint", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			case err != nil && strings.Contains(err.Error(), "hunter2"):
				t.Errorf("a password is shown: %v", err)
			}
		})
	}
}

func TestRequireVendor(t *testing.T) {
	t.Parallel()
	if err := readConfig(t, nil).requireVendor(); err == nil || !strings.Contains(err.Error(), "GEONODE_SCRAPER_API_KEY") {
		t.Errorf("got %v", err)
	}
	if err := readConfig(t, map[string]string{"GEONODE_SCRAPER_API_KEY": "x"}).requireVendor(); err != nil {
		t.Error(err)
	}
}

func TestSecretFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good, empty := filepath.Join(dir, "key"), filepath.Join(dir, "empty")
	for path, text := range map[string]string{good: "s3cret\n", empty: "\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const name = "GEONODE_SCRAPER_API_KEY"
	if got := readConfig(t, map[string]string{name + "_FILE": good}); got.GeonodeScraperAPIKey != "s3cret" || got.Check() != nil {
		t.Errorf("got %q, %v", got.GeonodeScraperAPIKey, got.Check())
	}
	for want, vars := range map[string]map[string]string{
		"keep one of them":          {name: "x", name + "_FILE": good},
		"the file is empty":         {name + "_FILE": empty},
		"no such file or directory": {name + "_FILE": filepath.Join(dir, "none")},
	} {
		if err := readConfig(t, vars).Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]size{"0": 0, "17": 17, "2kB": 2000, "2KiB": 2048, "3 mib": 3 << 20, "1GB": 1e9, "5B": 5} {
		var got size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q: got %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5MiB", "9999999999GiB"} {
		if err := new(size).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestDefaultDataDir(t *testing.T) {
	t.Parallel()
	tests := []struct {
		uid  int
		env  map[string]string
		want dataPath
	}{
		{0, nil, "/var/lib/rollcall"},
		{1000, map[string]string{"XDG_DATA_HOME": "/data"}, "/data/rollcall"},
		{1000, nil, "/home/alice/.local/share/rollcall"},
		{1000, map[string]string{"HOME": ""}, ""},
	}
	for _, tt := range tests {
		if got := defaultDataDir(tt.uid, envOf(tt.env)); got != tt.want {
			t.Errorf("%d %v: got %q, want %q", tt.uid, tt.env, got, tt.want)
		}
	}
}

func TestSecretKeyIsMadeOnce(t *testing.T) {
	t.Parallel()
	config := readConfig(t, map[string]string{"ROLLCALL_DATA_DIR": filepath.Join(t.TempDir(), "a", "b")})
	var wg sync.WaitGroup
	keys := make([][]byte, 8)
	for i := range keys {
		wg.Go(func() {
			key, err := config.loadSecretKey()
			if err != nil {
				t.Error(err)
			}
			keys[i] = key
		})
	}
	wg.Wait()
	for _, key := range keys {
		if len(key) != 32 || !bytes.Equal(key, keys[0]) {
			t.Fatalf("keys differ: %x", keys)
		}
	}
	path := filepath.Join(string(config.DataDir), "secret.key")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want mode 0600", info, err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := config.loadSecretKey(); err == nil || !strings.Contains(err.Error(), "can be read by others") {
		t.Errorf("got %v", err)
	}
}
