package main

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// taskLimit is how long one background task may run; a call to the vendor must end before it.
const taskLimit = 20 * time.Second

// maxURLsPerJob is the vendor's limit for one batch job.
const maxURLsPerJob = 1000

// Check returns every mistake in the settings, joined, or nil. Each is a *SettingError. (It is not called Validate
// because kong would call that for every command, and version and health must work with wrong settings.)
func (c *Config) Check() error {
	checks := [][]error{
		c.problems,
		c.checkWords(),
		c.checkDatabase(),
		c.checkServer(),
		c.checkVendor(),
		c.checkNumbers(),
		c.checkDurations(),
		c.checkPairs(),
		c.checkHeaders(),
	}
	return errors.Join(slices.Concat(checks...)...)
}

// requireVendor returns an error when the settings that a call to the vendor needs are missing.
func (c *Config) requireVendor() error {
	if c.GeonodeScraperAPIKey == "" {
		return wrong("GEONODE_SCRAPER_API_KEY", "", "not set; the vendor can't be called without it")
	}
	return nil
}

func wrong(name, value, reason string) error {
	return &SettingError{Name: name, Value: value, Reason: reason}
}

// checkWords checks the fields that accept only certain words.
func (c *Config) checkWords() []error {
	var errs []error
	for _, s := range settings(c) {
		if s.words != nil && !slices.Contains(s.words, s.value.String()) {
			errs = append(errs, wrong(s.env, s.value.String(), "must be one of "+strings.Join(s.words, ", ")))
		}
	}
	return errs
}

func (c *Config) checkDatabase() []error {
	var errs []error
	if dsn := c.DatabaseURL; dsn != "" && !strings.HasPrefix(dsn, "postgres://") && !strings.HasPrefix(dsn, "postgresql://") {
		errs = append(errs, wrong("DATABASE_URL", "", "must start with postgres://"))
	} else if _, err := url.Parse(dsn); err != nil {
		// The parser's own text would repeat the URL with its password.
		errs = append(errs, wrong("DATABASE_URL", "", "is not a URL; special characters in the password must be percent-encoded"))
	}
	if c.DataDir == "" {
		errs = append(errs, wrong("ROLLCALL_DATA_DIR", "", "must be set, since no home folder is known"))
	}
	return errs
}

func (c *Config) checkServer() []error {
	var errs []error
	if err := checkListen(c.Listen); err != nil {
		errs = append(errs, err)
	}
	if err := checkPublicURL(c.PublicURL); err != nil {
		errs = append(errs, err)
	}
	if c.SecretKey != "" {
		if _, err := decodeSecretKey(c.SecretKey); err != nil {
			errs = append(errs, wrong("ROLLCALL_SECRET_KEY", "", err.Error()))
		}
	}
	return errs
}

func checkListen(listen string) error {
	const name = "ROLLCALL_LISTEN"
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		return wrong(name, listen, "must be an address and a port, such as 127.0.0.1:8080")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return wrong(name, listen, "the port must be a number up to 65535")
	}
	return nil
}

func checkPublicURL(text string) error {
	const name = "ROLLCALL_PUBLIC_URL"
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return wrong(name, text, "must be an http or https URL with a host")
	case u.User != nil:
		return wrong(name, "", "must not hold a user name or password")
	case u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return wrong(name, text, "must end after the host and port")
	}
	return nil
}

func (c *Config) checkVendor() []error {
	var errs []error
	if err := checkBaseURL(c.ScraperAPIBaseURL); err != nil {
		errs = append(errs, err)
	}
	if strings.ContainsFunc(c.GeonodeScraperAPIKey, func(r rune) bool { return r <= ' ' || r > '~' }) {
		errs = append(errs, wrong("GEONODE_SCRAPER_API_KEY", "", "holds a space or a character that a header can't carry"))
	}
	return errs
}

func checkBaseURL(text string) error {
	const name = "SCRAPER_API_BASE_URL"
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return wrong(name, text, "must be an https URL with a host")
	case u.User != nil:
		return wrong(name, "", "must not hold a user name or password")
	case u.RawQuery != "" || u.Fragment != "":
		return wrong(name, text, "must not hold a query or a fragment")
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return wrong(name, text, "plain http is accepted only to loopback, since it would show the API key to the network")
	}
	return nil
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || (err == nil && addr.IsLoopback())
}

func (c *Config) checkNumbers() []error {
	var errs []error
	between := func(name string, got, least, most int) {
		if got < least || got > most {
			errs = append(errs, wrong(name, strconv.Itoa(got), fmt.Sprintf("must be from %d to %d", least, most)))
		}
	}
	between("ROLLCALL_DATABASE_CONNECTIONS", c.DatabaseConnections, 6, 1000)
	between("ROLLCALL_VENDOR_CONCURRENCY", c.VendorConcurrency, 1, 1000)
	between("ROLLCALL_URLS_PER_JOB", c.URLsPerJob, 1, maxURLsPerJob)
	between("ROLLCALL_QUARANTINE_ROWS", c.QuarantineRows, 10, 100_000)
	if !(c.VendorRPS > 0 && c.VendorRPS <= 10_000) { // Written so that NaN is refused.
		errs = append(errs, wrong("ROLLCALL_VENDOR_RPS", fmt.Sprint(c.VendorRPS), "must be above 0 and at most 10000"))
	}
	if !(c.ReplayRPS >= 0.01 && c.ReplayRPS <= 10_000) {
		errs = append(errs, wrong("ROLLCALL_REPLAY_RPS", fmt.Sprint(c.ReplayRPS), "must be from 0.01 to 10000"))
	}
	if c.QuarantineBytes < 1<<20 {
		errs = append(errs, wrong("ROLLCALL_QUARANTINE_BYTES", c.QuarantineBytes.String(), "must be at least 1MiB"))
	}
	if c.ExportSpace < 1<<20 {
		errs = append(errs, wrong("ROLLCALL_EXPORT_SPACE", c.ExportSpace.String(), "must be at least 1MiB"))
	}
	if c.MaxBody < 1<<10 || c.MaxBody > 1<<30 {
		errs = append(errs, wrong("ROLLCALL_MAX_BODY", c.MaxBody.String(), "must be from 1KiB to 1GiB"))
	}
	return errs
}

// checkDurations refuses times that are negative, or zero where that means nothing.
func (c *Config) checkDurations() []error {
	mayBeZero := []string{
		"ROLLCALL_SIGNATURE_MAX_AGE", "ROLLCALL_SECRET_GRACE", "ROLLCALL_WEBHOOK_FALLBACK", "ROLLCALL_RECONCILE_OLDER_THAN",
		"ROLLCALL_KEEP_BODIES", "ROLLCALL_KEEP_DELIVERIES", "ROLLCALL_KEEP_LOG", "ROLLCALL_KEEP_BATCHES", "ROLLCALL_KEEP_EVENTS",
		"ROLLCALL_KEEP_RUNS", "ROLLCALL_KEEP_STATS", "ROLLCALL_KEEP_AUDIT",
	}
	var errs []error
	for _, s := range settings(c) {
		d, ok := reflect.TypeAssert[time.Duration](s.value)
		switch {
		case !ok || d > 0:
		case d < 0:
			errs = append(errs, wrong(s.env, d.String(), "must not be negative"))
		case !slices.Contains(mayBeZero, s.env):
			errs = append(errs, wrong(s.env, d.String(), "must be above zero"))
		}
	}
	return errs
}

// keeps is a time to keep something for, where zero is for ever.
func keeps(d time.Duration) time.Duration {
	if d == 0 {
		return math.MaxInt64
	}
	return d
}

// checkPairs checks what must hold between two settings.
func (c *Config) checkPairs() []error {
	pairs := []struct {
		ok           bool
		name, value  string
		reasonFormat string
		other        any
	}{
		{c.Mode != "webhook" || c.PublicURL != "", "ROLLCALL_PUBLIC_URL", "", "must be set when ROLLCALL_MODE is %v", c.Mode},
		{c.PollCap >= c.PollFirst, "ROLLCALL_POLL_CAP", c.PollCap.String(), "must not be below ROLLCALL_POLL_FIRST (%v)", c.PollFirst},
		{c.PollMaxWait >= c.PollCap, "ROLLCALL_POLL_MAX_WAIT", c.PollMaxWait.String(), "must not be below ROLLCALL_POLL_CAP (%v)", c.PollCap},
		{c.GiveUpAfter > c.PollMaxWait, "ROLLCALL_GIVE_UP_AFTER", c.GiveUpAfter.String(), "must exceed ROLLCALL_POLL_MAX_WAIT (%v)", c.PollMaxWait},
		{c.GiveUpAfter > c.ReconcileOlderThan, "ROLLCALL_GIVE_UP_AFTER", c.GiveUpAfter.String(), "must exceed ROLLCALL_RECONCILE_OLDER_THAN (%v)", c.ReconcileOlderThan},
		{c.ReconcileWindow > c.ReconcileEvery, "ROLLCALL_RECONCILE_WINDOW", c.ReconcileWindow.String(), "must exceed ROLLCALL_RECONCILE_EVERY (%v), or jobs fall between two runs", c.ReconcileEvery},
		{c.VendorTimeout < taskLimit, "ROLLCALL_VENDOR_TIMEOUT", c.VendorTimeout.String(), "must be below %v, the limit of one task", taskLimit},
		{c.ClaimLease > c.VendorTimeout, "ROLLCALL_CLAIM_LEASE", c.ClaimLease.String(), "must exceed ROLLCALL_VENDOR_TIMEOUT (%v), or a call could be made twice", c.VendorTimeout},
		{c.SessionMax >= c.SessionIdle, "ROLLCALL_SESSION_MAX", c.SessionMax.String(), "must not be below ROLLCALL_SESSION_IDLE (%v)", c.SessionIdle},
		{keeps(c.KeepDeliveries) >= keeps(c.KeepBodies), "ROLLCALL_KEEP_DELIVERIES", c.KeepDeliveries.String(), "must not be below ROLLCALL_KEEP_BODIES (%v)", c.KeepBodies},
		{keeps(c.KeepLog) >= c.ReconcileWindow, "ROLLCALL_KEEP_LOG", c.KeepLog.String(), "must not be below ROLLCALL_RECONCILE_WINDOW (%v), which the log is read for", c.ReconcileWindow},
		{keeps(c.KeepBatches) >= keeps(c.KeepDeliveries), "ROLLCALL_KEEP_BATCHES", c.KeepBatches.String(), "must not be below ROLLCALL_KEEP_DELIVERIES (%v): a delivery leads to its job", c.KeepDeliveries},
		{keeps(c.KeepBatches) >= keeps(c.KeepLog), "ROLLCALL_KEEP_BATCHES", c.KeepBatches.String(), "must not be below ROLLCALL_KEEP_LOG (%v): an attempt leads to its job", c.KeepLog},
		{keeps(c.KeepBatches) > c.ReconcileWindow, "ROLLCALL_KEEP_BATCHES", c.KeepBatches.String(), "must exceed ROLLCALL_RECONCILE_WINDOW (%v): the vendor's lists still hold their jobs", c.ReconcileWindow},
		{keeps(c.KeepBatches) > c.GiveUpAfter, "ROLLCALL_KEEP_BATCHES", c.KeepBatches.String(), "must exceed ROLLCALL_GIVE_UP_AFTER (%v): a result may come late", c.GiveUpAfter},
		{keeps(c.KeepEvents) > c.ReconcileWindow, "ROLLCALL_KEEP_EVENTS", c.KeepEvents.String(), "must exceed ROLLCALL_RECONCILE_WINDOW (%v), or jobs would be foreign that are not", c.ReconcileWindow},
		{c.MaxInFlight >= c.MaxBody, "ROLLCALL_MAX_IN_FLIGHT", c.MaxInFlight.String(), "must not be below ROLLCALL_MAX_BODY (%v)", c.MaxBody},
	}
	var errs []error
	for _, p := range pairs {
		if !p.ok {
			errs = append(errs, wrong(p.name, p.value, fmt.Sprintf(p.reasonFormat, p.other)))
		}
	}
	return errs
}

// checkHeaders checks the three webhook headers, which must be names and differ.
func (c *Config) checkHeaders() []error {
	var errs []error
	seen := map[string]string{}
	headers := [][2]string{
		{"ROLLCALL_SIGNATURE_HEADER", c.SignatureHeader},
		{"ROLLCALL_DELIVERY_HEADER", c.DeliveryHeader},
		{"ROLLCALL_EVENT_HEADER", c.EventHeader},
	}
	for _, header := range headers {
		name, value := header[0], header[1]
		key := http.CanonicalHeaderKey(value)
		if !isToken(value) {
			errs = append(errs, wrong(name, value, "is not the name of a header"))
		} else if other, taken := seen[key]; taken {
			errs = append(errs, wrong(name, value, "is the same header as "+other))
		}
		seen[key] = name
	}
	return errs
}

// isToken tells whether RFC 9110 accepts the text as a header name.
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// decodeSecretKey reads 32 bytes written as hex or base64 (either alphabet, padded or not).
func decodeSecretKey(text string) ([]byte, error) {
	if key, err := hex.DecodeString(text); err == nil && len(key) == 32 {
		return key, nil
	}
	alphabet := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	key, err := base64.RawStdEncoding.DecodeString(alphabet)
	if err != nil || len(key) != 32 {
		return nil, errors.New("must be 32 bytes written as base64 or hex; `openssl rand -base64 32` makes one")
	}
	return key, nil
}
