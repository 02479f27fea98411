package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rollcall/internal/sandbox"
	"rollcall/store"
)

// page is the sum of a page in the books of the tests.
const page, otherPage = "aa", "bb"

// drilledBooks are the vendor's books of four URLs: two completed, one failed, and one page of a crawl.
func drilledBooks() sandbox.Books {
	return sandbox.Books{Jobs: []sandbox.JobRecord{
		{ID: "b1", Kind: "batch", Status: "completed", Submitted: []string{"u1", "u2", "u3"}, Outcomes: []sandbox.Outcome{
			{URL: "u1", Status: "completed", MarkdownSHA256: page, Charged: 1},
			{URL: "u2", Status: "completed", MarkdownSHA256: page, Charged: 1},
			{URL: "u3", Status: "failed", Code: "GONE"},
		}},
		{ID: "b2", Kind: "batch", Status: "completed", Submitted: []string{"u1"}, Outcomes: []sandbox.Outcome{{URL: "u1", Status: "completed", MarkdownSHA256: page, Charged: 1}}},
		{ID: "c1", Kind: "crawl", Status: "completed", Submitted: []string{"s"}, Outcomes: []sandbox.Outcome{{URL: "s", Status: "completed", MarkdownSHA256: page, Charged: 1}}},
	}}
}

// drilledAnswers are rows as they must be for drilledBooks.
func drilledAnswers() []answer {
	return []answer{
		{url: "u1", state: "stored", markdown: page, jobs: []string{"b1"}},
		{url: "u2", state: "stored", markdown: page, jobs: []string{"b1"}},
		{url: "u3", state: "failed", code: "GONE", jobs: []string{"b1"}},
		{url: "s", state: "stored", markdown: page, jobs: []string{"c1"}},
	}
}

// mistake is something wrong that is put into rows and books that are right, and what must be found of it.
type mistake struct {
	doctor func(*[]answer, *sandbox.Books, *store.Batch)
	want   findings
}

// mistakes are of each kind.
func mistakes() map[string]mistake {
	return map[string]mistake{
		"OK":                   {func(*[]answer, *sandbox.Books, *store.Batch) {}, findings{}},
		"a row is gone":        {func(a *[]answer, _ *sandbox.Books, _ *store.Batch) { *a = (*a)[1:] }, findings{Lost: 1}},
		"a row is there twice": {func(a *[]answer, _ *sandbox.Books, _ *store.Batch) { *a = append(*a, (*a)[1]) }, findings{Doubled: 1}},
		"a row nobody submitted": {func(a *[]answer, _ *sandbox.Books, _ *store.Batch) {
			*a = append(*a, answer{url: "u9", state: "failed"})
		}, findings{Doubled: 1}},
		"other bytes":          {func(a *[]answer, _ *sandbox.Books, _ *store.Batch) { (*a)[0].markdown = otherPage }, findings{WrongContent: 1}},
		"other bytes in books": {func(_ *[]answer, b *sandbox.Books, _ *store.Batch) { b.Jobs[0].Outcomes[1].MarkdownSHA256 = otherPage }, findings{WrongContent: 1}},
		"failed, and was brought": {func(a *[]answer, _ *sandbox.Books, _ *store.Batch) {
			(*a)[1] = answer{url: "u2", state: "failed", code: "GAVE_UP", jobs: []string{"b1"}}
		}, findings{Lost: 1}},
		"outstanding": {func(a *[]answer, _ *sandbox.Books, _ *store.Batch) { (*a)[1].state = "outstanding" }, findings{Stuck: 1}},
		"a crawled page is gone": {func(_ *[]answer, b *sandbox.Books, _ *store.Batch) {
			b.Jobs[2].Outcomes = append(b.Jobs[2].Outcomes, sandbox.Outcome{URL: "s/2", Status: "completed"})
		}, findings{Lost: 1}},
		"two jobs brought it": {func(a *[]answer, _ *sandbox.Books, b *store.Batch) {
			(*a)[0].jobs, b.ChargedTwice = []string{"b1", "b2"}, 1
		}, findings{charges: charges{Twice: 1}}},
		"two jobs brought it, nobody counted": {func(a *[]answer, _ *sandbox.Books, _ *store.Batch) {
			(*a)[0].jobs = []string{"b1", "b2"}
		}, findings{Imbalance: 1, charges: charges{Twice: 1}}},
		"counted, and never was": {func(_ *[]answer, _ *sandbox.Books, b *store.Batch) { b.ChargedTwice = 1 }, findings{Imbalance: 1}},
		"a counter is off":       {func(_ *[]answer, _ *sandbox.Books, b *store.Batch) { b.Outstanding = 1 }, findings{Imbalance: 1}},
		"a line is missing": {func(_ *[]answer, _ *sandbox.Books, b *store.Batch) {
			b.Submitted, b.Invalid = 5, 0
		}, findings{Imbalance: 1}},
	}
}

// TestDrillFindsWhatIsWrong: a drill that could not fail would show nothing, so each kind of wrong is put into rows and
// books that are right, and must be counted as what it is.
func TestDrillFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	want := drillBatch{id: 1, urls: []string{"u1", "u2", "u3", "s"}, lines: 6, invalid: 1, duplicate: 1}
	batch := store.Batch{ID: 1, Submitted: 6, Invalid: 1, Duplicate: 1, Accepted: 4, StoredWebhook: 3, Failed: 1}
	for name, tt := range mistakes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers, books, b, got := drilledAnswers(), drilledBooks(), batch, findings{}
			tt.doctor(&answers, &books, &b)
			got.counters(&want, &b)
			got.present(&want, answers)
			got.charges.known(newTruth(books), &b, answers)
			got.judge(books, answers)
			got.Imbalance += got.charges.miscounted
			if got.Lost != tt.want.Lost || got.Doubled != tt.want.Doubled || got.WrongContent != tt.want.WrongContent ||
				got.Imbalance != tt.want.Imbalance || got.Stuck != tt.want.Stuck || got.charges.Twice != tt.want.charges.Twice {
				t.Errorf("found %+v, want %+v", got, tt.want)
			}
			var r drillReport
			r.take(&got, nil, 0, nil)
			r.Accepted = 4
			r.judge()
			if r.OK != (name == "OK") {
				t.Errorf("ok is %v", r.OK)
			}
		})
	}
}

// TestDrillChargesAreURLs: what a job that nobody here knows was charged counts by the URL, and only a URL that was called
// for again after a lost answer is excused, as often as that was.
func TestDrillChargesAreURLs(t *testing.T) {
	t.Parallel()
	paid := func(urls ...string) []sandbox.Outcome {
		var all []sandbox.Outcome
		for _, url := range urls {
			all = append(all, sandbox.Outcome{URL: url, Status: "completed", Charged: 1})
		}
		return append(all, sandbox.Outcome{URL: "failed", Status: "failed"})
	}
	jobs := []*sandbox.JobRecord{
		{ID: "batch", Kind: "batch", Submitted: []string{"a", "b", "c", "failed"}, Outcomes: paid("a", "b", "c")},
		{ID: "extract", Kind: "extract", Submitted: []string{"a"}, Outcomes: paid("a")},
		{ID: "crawl", Kind: "crawl", Submitted: []string{"s"}, Outcomes: paid("s", "s/1")},
	}
	for name, tt := range map[string]struct {
		again   map[string]int
		excused int
	}{
		"nothing was called again": {nil, 0},
		"the batch":                {map[string]int{"a": 1, "b": 1, "c": 1, "failed": 1}, 3},
		"a in two jobs":            {map[string]int{"a": 2}, 2},
		"the crawl":                {map[string]int{"s of s": 1, "s/1 of s": 1}, 2},
	} {
		var c charges
		c.unknown(jobs, nil, tt.again, func(time.Time) bool { return true })
		if c.Twice != 6 || c.LostAnswer != tt.excused {
			t.Errorf("%s: %d charged twice, %d excused, want 6 and %d: %q", name, c.Twice, c.LostAnswer, tt.excused, c.told)
		}
		c = charges{}
		if c.unknown(jobs, nil, tt.again, func(time.Time) bool { return false }); c.Twice != 6 || c.LostAnswer != 0 {
			t.Errorf("%s, with all clocks right: %d charged twice, %d excused, want 6 and none", name, c.Twice, c.LostAnswer)
		}
	}
	var c charges
	if c.unknown(jobs, map[string]int{"a": 1, "s/1": 1}, nil, func(time.Time) bool { return false }); c.Twice != 4 || c.GivenUp != 2 {
		t.Errorf("of two URLs that nothing else was charged for: %d charged twice, %d given up, want 4 and 2", c.Twice, c.GivenUp)
	}
	start := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	mix := happening{From: start, To: start.Add(6 * time.Second), Kind: actVendor, Detail: "clock_skew=0.2,drop=0.3"}
	for made, want := range map[time.Duration]bool{2*time.Minute + 3*time.Second: true, 2*time.Minute + 20*time.Second: false, 3 * time.Second: false} {
		if got := mix.clockJumped(start.Add(made)); got != want {
			t.Errorf("made %s after the mix began: jumped is %v, want %v", made, got, want)
		}
	}
	for detail, want := range map[string]bool{"server-1 19.9s": false, "server-2 -2s": false, "server-1 20s": true, "server-1 -41.5s": true, "server-1": false} {
		step := happening{From: start, To: start.Add(4 * time.Second), Kind: actClock, Detail: detail}
		if got := step.clockJumped(start.Add(5 * time.Second)); got != want {
			t.Errorf("made after the step %q: jumped is %v, want %v", detail, got, want)
		}
		if step.clockJumped(start.Add(time.Minute)) {
			t.Errorf("made long after the step %q, and jumped", detail)
		}
	}
}

// TestDrillTellsWhatNeverCame: a drill that left out what it was asked for is no proof.
func TestDrillTellsWhatNeverCame(t *testing.T) {
	t.Parallel()
	a := asked{batches: 4, kills: 5, acts: map[string]int{actStep: 3, actDisk: 2, actRotate: 60}, compiled: true}
	whole := func() come {
		c := come{batches: 4, kills: 5, rotations: 3}
		c.acts.count(actStep, "")
		c.acts.count(actStep, errNoStep)
		c.acts.count(actStep, errNoStep)
		c.acts.count(actDisk, "")
		return c
	}
	c := whole()
	if told := a.missing(c); len(told) > 0 {
		t.Errorf("all came, and it tells %q", told)
	}
	if told := a.omissions(c); len(told) != 1 || !strings.Contains(told[0], `2 of 3 acts "step" were left out: 2 times the server came to no step`) {
		t.Errorf("two steps were left out, and it tells %q", told)
	}
	for want, change := range map[string]func(*come){
		"3 of 4 batches":                          func(c *come) { c.batches = 3 },
		"4 of 5 kills":                            func(c *come) { c.kills = 4 },
		`3 acts "step" was carried out: 2 times`:  func(c *come) { delete(c.acts.done, actStep) },
		`2 acts "disk" was carried out: its time`: func(c *come) { delete(c.acts.done, actDisk) },
		"the last error: a 500":                   func(c *come) { c.rotations, c.rotationFailed = 0, "a 500" },
	} {
		c := whole()
		change(&c)
		if told := a.missing(c); len(told) != 1 || !strings.Contains(told[0], want) {
			t.Errorf("got %q, want one with %q", told, want)
		}
	}
	a.compiled = false
	c.acts = tally{}
	if told := a.missing(c); len(told) > 0 {
		t.Errorf("without hooks no disk is full, and it tells %q", told)
	}
}

// TestDrillErrors: a logged error is explained only by a fault that brings such about, while it lasts and a little after;
// what is no log line and looks like the end of a program is an error too.
func TestDrillErrors(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	dir := t.TempDir()
	at := func(seconds int) string {
		return start.Add(time.Duration(seconds) * time.Second).Format(time.RFC3339Nano)
	}
	lines := []string{
		`{"time":"` + at(5) + `","level":"ERROR","msg":"delivery not taken up","error":"FATAL: (SQLSTATE 57P01)"}`,
		`{"time":"` + at(6) + `","level":"INFO","msg":"ready"}`,
		`{"time":"` + at(200) + `","level":"ERROR","msg":"delivery not taken up","error":"FATAL: (SQLSTATE 57P01)"}`,
		`{"time":"` + at(5) + `","level":"ERROR","msg":"delivery not taken up","error":"duplicate key (SQLSTATE 23505)"}`,
		`{"time":"` + at(5) + `","level":"ERROR","msg":"settle","error":"Get \"http://127.0.0.1:9/v1\": dial tcp: connect: connection refused"}`,
		`{"time":"` + at(6) + `","level":"ERROR","msg":"producer","err":"dial unix /tmp/r/.s.PGSQL.5432: connect: connection refused","times":9}`,
		`{"time":"` + at(6) + `","level":"ERROR","msg":"producer","err":"dial unix /tmp/r/.s.PGSQL.5432: connect: connection refused","times":999}`,
		"panic: runtime error: index out of range",
		"goroutine 1 [running]:",
	}
	if err := os.WriteFile(filepath.Join(dir, "server-1.log"), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := readErrors(dir)
	if err != nil {
		t.Fatal(err)
	}
	explained, unexplained := sortErrors(all, []happening{{From: start, To: start.Add(3 * time.Second), Kind: actCut}})
	if explained != 2 || len(unexplained) != 5 {
		t.Fatalf("%d explained, want 2; unexplained: %+v, want 5: later, no such error, another's connection, a storm, a panic", explained, unexplained)
	}
	if !slices.ContainsFunc(unexplained, func(l logError) bool { return strings.HasPrefix(l.text, "panic:") }) {
		t.Errorf("the panic is not told: %+v", unexplained)
	}
	ending := []happening{{From: start, To: start.Add(3 * time.Second), Kind: actTerm, Detail: "server-1"}}
	said := `notifier.Notifier: Error unlistening on topic "river_insert": conn closed`
	for l, want := range map[logError]int{
		{at: start.Add(time.Second), process: "server-1", text: said}:      1,
		{at: start.Add(time.Second), process: "server-2", text: said}:      0,
		{at: start.Add(10 * time.Second), process: "server-1", text: said}: 0,
	} {
		if got, _ := sortErrors([]logError{l}, ending); got != want {
			t.Errorf("that server-1 was told to end explains %d of %+v, want %d", got, l, want)
		}
	}
}

// TestDrillScript: the script is the same for the same seed, another for another, and has what was asked for.
func TestDrillScript(t *testing.T) {
	t.Parallel()
	cmd := drillCmd{URLs: 20_000, Processes: 3, Kills: 120, Rotate: 20 * time.Second, Seed: 7}
	acts := cmd.script(len(cmd.load()))
	same := cmd.script(len(cmd.load()))
	cmd.Seed = 8
	other := cmd.script(len(cmd.load()))
	text := func(acts []act) string {
		var b bytes.Buffer
		for _, a := range acts {
			if err := json.NewEncoder(&b).Encode([]any{a.at, a.kind, a.server, a.faults, a.step}); err != nil {
				t.Fatal(err)
			}
		}
		return b.String()
	}
	if text(acts) != text(same) || text(acts) == text(other) {
		t.Error("a seed must decide the script, and nothing else")
	}
	d := &drill{demo: &demo{stack: newStack(readConfig(t, nil), slog.New(slog.DiscardHandler), time.Now)}, cmd: &cmd, balancer: "http://127.0.0.1:1"}
	d.config.VendorTimeout = drillVendorTimeout
	d.config.SecretKey = strings.Repeat("ab", 32)
	if err := readConfig(t, d.serverVars("127.0.0.1:2")).Check(); err != nil {
		t.Errorf("no server would start: %v", err)
	}
	kinds, faults := map[string]int{}, map[string]bool{}
	for _, a := range acts {
		kinds[a.kind]++
		for name := range a.faults {
			faults[name] = true
		}
	}
	if n := kinds[actKill] + kinds[actTerm] + kinds[actStep]; n != 120 {
		t.Errorf("%d kills, want 120", n)
	}
	for _, kind := range []string{actKill, actTerm, actStep, actRestart, actPGKill, actCut, actDisk, actClock, actRotate, actSubmit, actVendor} {
		if kinds[kind] == 0 {
			t.Errorf("the script has no %s", kind)
		}
	}
	for _, name := range sandbox.FaultNames() {
		if !faults[name] {
			t.Errorf("the vendor never does %s", name)
		}
	}
}

// TestDrillSeeds repeats drills, small ones, whose seed once failed. Each is a whole drill with processes of its own.
func TestDrillSeeds(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{1} {
		dir := t.TempDir()
		cmd := drillCmd{
			URLs: 40, Processes: 1, Kills: 2, Seed: seed, Deadline: 4 * time.Minute, Faults: "none",
			HTML: filepath.Join(dir, "drill.html"), JSON: true, extra: []string{asProgram + "=1"},
		}
		var out, errOut bytes.Buffer
		a := &app{config: readConfig(t, nil), log: slog.New(slog.DiscardHandler), now: time.Now, out: &out, err: &errOut}
		if err := cmd.Run(t.Context(), a); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, &errOut)
		}
		drilledWell(t, out.Bytes(), cmd)
		if html, err := os.ReadFile(cmd.HTML); err != nil || !bytes.Contains(html, []byte("all is well")) {
			t.Errorf("the page of the report doesn't say that all is well: %v", err)
		}
	}
}

// drilledWell looks for the names that programs read, and for what such a drill must show.
func drilledWell(t *testing.T, line []byte, cmd drillCmd) {
	t.Helper()
	var got map[string]any
	if err := json.Unmarshal(line, &got); err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(`submitted invalid duplicate accepted stored failed cancelled outstanding lost doubled wrong_content
		imbalance stuck kills rotations refused_valid refused_secret_lost charged_twice recovery_seconds seconds seed vendor_calls by_net sandbox ok leaks`) {
		if _, ok := got[name]; !ok {
			t.Errorf("the report has no %s", name)
		}
	}
	if got["kills"] != float64(cmd.Kills) || got["ok"] != true {
		t.Errorf("kills %v, ok %v", got["kills"], got["ok"])
	}
}

// TestDrillSearchesForSecrets: a secret in a file is a leak, but for the one that the file is there to tell; and a search
// that didn't find what is known to be there counts for nothing.
func TestDrillSearchesForSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"server-1.log": "listens on 127.0.0.1:9\n", "sandbox.log": "takes key-key-key\n", "deep/seen": "a secret-secret-secret"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	s := &leakSearch{
		secrets: map[string]string{"key": "key-key-key", "other": "secret-secret-secret"}, canary: "127.0.0.1:9",
		sung: map[string]bool{}, tells: map[string]string{"sandbox.log": "key"},
	}
	if err := s.files(dir); err != nil {
		t.Fatal(err)
	}
	if s.alive("logs"); s.report.Found != 1 || s.report.told[0] != "LEAK: seen holds the other" {
		t.Errorf("got %q, want the other in the file seen", s.report.told)
	}
	if s.alive("pages"); s.report.Found != 2 {
		t.Errorf("no pages were searched, and it tells only %q", s.report.told)
	}
}

// TestDrillIsCutOff: when nobody reads its progress a drill is to end, and to know why.
func TestDrillIsCutOff(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = write.Close() }() // Nobody reads it.
	ctx, out, stop := untilCutOff(t.Context(), write)
	defer stop()
	if _, err := out.Write([]byte("progress")); err != nil || ctx.Err() != nil {
		t.Fatalf("somebody reads, and it ends: %v, %v", err, ctx.Err())
	}
	if err := read.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Write([]byte("progress")); err == nil || !errors.Is(context.Cause(ctx), errUnread) {
		t.Errorf("got %v, and it ends because %v", err, context.Cause(ctx))
	}
}
