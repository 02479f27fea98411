package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rollcall/internal/sandbox"
	"rollcall/store/storetest"
)

// demoOnce runs demo --once and reads the last line of its standard output.
func demoOnce(t *testing.T, code int, args ...string) summary {
	t.Helper()
	args = append([]string{"demo", "--once", "--json", "--listen", "127.0.0.1:0", "--log-level", "error"}, args...)
	got := rollcall(t, emptyEnv, args...)
	if got.code != code {
		t.Fatalf("%v: exit %d, want %d:\n%s", args, got.code, code, got.errOut)
	}
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	var sum summary
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &sum); err != nil {
		t.Fatalf("%v: %q: %v", args, got.out, err)
	}
	return sum
}

func TestDemoOnceBalances(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		args []string
		nets func(byNet) bool
	}{
		{"batch", []string{"--kind", "batch"}, func(byNet) bool { return true }},
		{"extract", []string{"--kind", "extract"}, func(byNet) bool { return true }},
		{"mixed", []string{"--kind", "mixed"}, func(byNet) bool { return true }},
		{"crawl", []string{"--kind", "crawl", "--faults", "drop=0.3,dup=0.3,late_rows=0.5"}, func(byNet) bool { return true }},
		{"a kind vendor", []string{"--faults", "none", "--nets", "webhook"}, func(n byNet) bool { return n.Webhook == 30 }},
		{"no delivery arrives", []string{"--faults", "drop=1"}, func(n byNet) bool { return n.Webhook == 0 }},
		{"webhook and reconcile", []string{"--kind", "mixed", "--nets", "webhook,reconcile"}, func(n byNet) bool { return n.Poll == 0 }},
		{"reconcile alone", []string{"--kind", "mixed", "--nets", "reconcile"}, func(n byNet) bool { return n.Webhook+n.Poll == 0 }},
		{"poll alone", []string{"--kind", "mixed", "--nets", "poll"}, func(n byNet) bool { return n.Webhook+n.Reconcile == 0 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sum := demoOnce(t, 0, append([]string{"--urls", "30"}, tt.args...)...)
			if sum.Accepted != 30 || sum.Stored+sum.Failed != 30 || sum.Outstanding != 0 || !tt.nets(sum.ByNet) {
				t.Errorf("got %+v", sum)
			}
		})
	}
}

// TestDemoSummaryKeys pins the names that programs read.
func TestDemoSummaryKeys(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(summary{})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"":             "accepted by_net cancelled duplicate failed invalid outstanding refused_secret_lost refused_valid rotations sandbox seconds seed stored submitted vendor_calls",
		"by_net":       "poll reconcile replay sync webhook",
		"vendor_calls": "list results status submit total",
		"sandbox":      "charged completed delivered dropped duplicated failed jobs",
	}
	for part, names := range want {
		object := got
		if part != "" {
			object, _ = got[part].(map[string]any)
		}
		if diff := cmp.Diff(strings.Fields(names), slices.Sorted(maps.Keys(object))); diff != "" {
			t.Errorf("%q: %s", part, diff)
		}
	}
}

func TestDemoTellsWhatIsOutstanding(t *testing.T) {
	t.Parallel()
	sum := demoOnce(t, 1, "--urls", "60", "--faults", "drop=1", "--nets", "webhook", "--timeout", "3s")
	if sum.Outstanding != 60 {
		t.Errorf("got %+v, want all outstanding", sum)
	}
}

func TestDemoRealPages(t *testing.T) {
	t.Parallel()
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<!doctype html><title>" + r.URL.Path + "</title><h1>Page " + r.URL.Path + "</h1><p>Größe: 5 €</p>"))
	}))
	defer pages.Close()
	file := filepath.Join(t.TempDir(), "urls.txt")
	lines := []string{pages.URL + "/a", "", pages.URL + "/b", pages.URL + "/a", "javascript:alert(1)", pages.URL + "/c d"}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\r\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	sum := demoOnce(t, 0, "--urls-file", file, "--allow-private", "--faults", "none")
	if sum.Submitted != 5 || sum.Invalid != 1 || sum.Duplicate != 1 || sum.Stored != 3 {
		t.Errorf("got %+v", sum)
	}
	if sum := demoOnce(t, 0, "--urls-file", file, "--faults", "none"); sum.Failed != 3 {
		t.Errorf("private pages without the flag: got %+v, want three failed", sum)
	}
}

// TestDemoKeepsItsFolder runs twice on one folder: what the first demo registered, the second one's vendor doesn't know.
func TestDemoKeepsItsFolder(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("/tmp", "rollcall-demo-test-") //nolint:usetesting // t.TempDir may be too long for the path of a socket.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o711); err != nil { // Root runs Postgres as another user, who must pass.
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	for range 2 {
		if sum := demoOnce(t, 0, "--urls", "20", "--data", data, "--faults", "none", "--nets", "webhook"); sum.ByNet.Webhook != 20 {
			t.Errorf("got %+v, want all by webhook", sum)
		}
	}
}

func TestDemoRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		args []string
		code int
		want string
	}{
		{"an address others can reach", []string{"--listen", ":8080"}, 1, "must be a loopback address"},
		{"an unknown fault", []string{"--faults", "gremlins=1"}, 1, `there is no fault "gremlins"`},
		{"an unknown net", []string{"--nets", "pigeon"}, 2, "pigeon"},
		{"an unknown kind", []string{"--kind", "map"}, 2, "kind"},
		{"no pages", []string{"--urls", "0"}, 1, "--urls=0"},
		{"no time", []string{"--timeout", "0s"}, 1, "--timeout=0s"},
		{"no net", []string{"--nets="}, 1, "--nets"},
		{"two mistakes", []string{"--timeout=-1s", "--faults", "drop=2"}, 1, "the rate 2 is not in 0 to 1\n--timeout=-1s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := rollcall(t, emptyEnv, append([]string{"demo", "--once"}, tt.args...)...)
			if got.code != tt.code || !strings.Contains(got.errOut, tt.want) {
				t.Errorf("got %+v, want %d and %q", got, tt.code, tt.want)
			}
			if strings.Contains(got.errOut, "Starting") {
				t.Error("a database was started for a command that can't be carried out")
			}
		})
	}
}

// TestDemoStaysUp shows the dashboard until it is told to end.
func TestDemoStaysUp(t *testing.T) {
	t.Parallel()
	taken := freeAddress(t)
	holder := httptest.NewUnstartedServer(http.NotFoundHandler())
	_ = holder.Listener.Close() // Another address is wanted.
	listener, err := listenNear(t.Context(), taken)
	if err != nil {
		t.Fatal(err)
	}
	holder.Listener = listener
	holder.Start()
	defer holder.Close()
	run := start(t, nil, "demo", "--urls", "20", "--listen", listener.Addr().String())
	base := run.log.match(t, regexp.MustCompile(`Open  (\S+)`))
	password := run.log.match(t, regexp.MustCompile(`alice +(\S+)`))
	if !strings.Contains(run.log.String(), listener.Addr().String()+" is taken") {
		t.Error("it isn't said that the port was taken")
	}
	signIn(t, base, "alice", password).token(base + "/batches/new")
	run.log.match(t, regexp.MustCompile("(Serving until Ctrl-C)"))
	run.signal(os.Interrupt)
	run.signal(terminated) // As a group that is ended together may have it: still one wish.
	if code := run.exit(patience); code != 0 {
		t.Errorf("exit %d, want 0", code)
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	const url = "https://shop.sandbox.test/item/1"
	good := sandbox.Outcome{URL: url, Status: "completed", MarkdownSHA256: "aa", HTMLSHA256: "bb"}
	bad := sandbox.Outcome{URL: url, Status: "failed", Code: "TIMEOUT"}
	books := truth{"good": {url: good}, "bad": {url: bad}, "invalid": {url: {URL: url, Status: "invalid"}}}
	stored := answer{url: url, state: "stored", markdown: "aa", htmlText: "bb"}
	failed := answer{url: url, state: "failed", code: "TIMEOUT"}
	with := func(a answer, jobs ...string) answer { a.jobs = jobs; return a }
	tests := []struct {
		name string
		a    answer
		want string
	}{
		{"stored as the vendor says", with(stored, "bad", "good"), ""},
		{"stored by an earlier job", with(stored, "good", "bad"), ""},
		{"stored without a job", stored, "other content"},
		{"stored with other content", with(answer{url: url, state: "stored", markdown: "ax", htmlText: "bb"}, "good"), "other content"},
		{"failed as the vendor says", with(failed, "bad"), ""},
		{"failed with another code", with(answer{url: url, state: "failed", code: "OTHER"}, "bad"), "failed with OTHER"},
		{"failed although a result was there", with(failed, "good", "bad"), "failed with TIMEOUT"},
		{"failed since the vendor would not have it", with(failed, "invalid"), ""},
		{"failed before any job", failed, ""},
		{"outstanding", with(answer{url: url, state: "outstanding"}, "good"), "is outstanding"},
		{"cancelled although it failed", with(answer{url: url, state: "cancelled"}, "bad"), "is cancelled"},
	}
	for _, tt := range tests {
		if got := books.judge(tt.a); (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestDemoSeesASecondSubmission: a job at the vendor that nobody here knows is a second charge for what it carries.
func TestDemoSeesASecondSubmission(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	books := sandbox.Books{Jobs: []sandbox.JobRecord{
		{ID: "orphan", Kind: "extract", Status: "completed", Submitted: []string{"https://shop.sandbox.test/item/1"}},
		{ID: "tried", Kind: "sync", Status: "completed", Submitted: []string{"https://shop.sandbox.test/item/1"}},
		{ID: "forgotten", Kind: "extract", Status: "forgotten", Submitted: []string{"https://shop.sandbox.test/item/1"}},
		{ID: "another's", Kind: "extract", Status: "completed", Submitted: []string{"https://shop.sandbox.test/item/2"}},
	}}
	got, err := unknownJobs(t.Context(), st, books, []answer{{url: "https://shop.sandbox.test/item/1"}})
	if err != nil || len(got) != 1 || got[0].ID != "orphan" {
		t.Errorf("got %+v, %v, want the orphan alone", got, err)
	}
}
