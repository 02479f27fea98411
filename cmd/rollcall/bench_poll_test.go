package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rollcall/internal/geonode"
	"rollcall/internal/geonode/contracttest"
	"rollcall/store/storetest"
)

// TestBenchPoll runs a small round on a server that is there, prints one object whose aims follow from its rows, and
// leaves nothing behind.
func TestBenchPoll(t *testing.T) {
	t.Parallel()
	dsn := storetest.EmptyDSN(t)
	got := rollcall(t, envOf(map[string]string{"DATABASE_URL": dsn}), "bench", "poll", "--json", "--jobs", "30", "--seed", "3")
	var report benchReport[pollRow]
	dec := json.NewDecoder(strings.NewReader(got.out))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&report); err != nil {
		t.Fatalf("exit %d, %q: %v\n%s", got.code, got.out, err, got.errOut)
	}
	if report.Name != "poll" || report.Machine.CPUs < 1 || !strings.HasPrefix(report.Machine.Go, "go1.") || report.Machine.Postgres == "" {
		t.Errorf("got %s on %+v", report.Name, report.Machine)
	}
	var ways []string
	for _, r := range report.Rows {
		ways = append(ways, r.Way)
		if r.Jobs != 30 || r.ResultCalls != 30 || r.TotalCalls != r.StatusCalls+r.ListCalls+30 || r.MedianDelay < 0 || r.P95Delay < r.MedianDelay {
			t.Errorf("got %+v", r)
		}
	}
	if want := []string{wayEverySecond, wayBackoff, wayRollcall}; !slices.Equal(ways, want) {
		t.Fatalf("got the ways %v, want %v", ways, want)
	}
	if own := report.Rows[2]; own.ListCalls == 0 || own.StatusCalls > 30 {
		t.Errorf("got %+v, want lists to answer for nearly all", own)
	}
	if diff := cmp.Diff(report.Aims, pollAims(report.Rows)); diff != "" {
		t.Errorf("the aims are not those of the rows:\n%s", diff)
	}
	held := !slices.ContainsFunc(report.Aims, func(a aim) bool { return !a.Held })
	if (got.code == 0) != held || got.code > 1 {
		t.Errorf("exit %d with aims %+v", got.code, report.Aims)
	}
	if n := benchDatabases(t, dsn); n != 0 {
		t.Errorf("%d databases of the measurement are left", n)
	}
}

// benchDatabases counts the databases that measurements made beside the one that they were given.
func benchDatabases(t *testing.T, dsn string) int {
	t.Helper()
	given, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	err = storetest.Open(t, dsn).SQL().QueryRowContext(t.Context(), `SELECT count(*) FROM pg_database WHERE starts_with(datname, $1)`, benchPrefix(given)).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestBenchPollRefusesSillyRounds(t *testing.T) {
	t.Parallel()
	for _, jobs := range []string{"0", "10001"} {
		if got := rollcall(t, emptyEnv, "bench", "poll", "--jobs", jobs); got.code != 1 || !strings.Contains(got.errOut, "--jobs="+jobs) {
			t.Errorf("%s: got %+v", jobs, got)
		}
	}
}

// TestPollSimply: a call each second learns of an end after 2.4 s with the third, of which two were in vain.
func TestPollSimply(t *testing.T) {
	t.Parallel()
	got := pollSimply([]time.Duration{2400 * time.Millisecond, 5 * time.Second}, "w", everySecond)
	want := pollRow{
		Jobs: 2, Way: "w", StatusCalls: 6, ResultCalls: 2, TotalCalls: 8, Minutes: 0.08, CallsPerMinute: 72, MedianDelay: 0.6, P95Delay: 0.6,
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Error(diff)
	}
	for call := range 50 {
		if gap := backoff(uint64(call))(call); gap < 0 || gap > 30*time.Second {
			t.Errorf("call %d: got a gap of %s", call, gap)
		}
	}
}

// TestPollAims holds each aim against rows that miss it.
func TestPollAims(t *testing.T) {
	t.Parallel()
	rows := func(calls, delay float64) []pollRow {
		return []pollRow{
			{Jobs: 7, Way: wayEverySecond, CallsPerMinute: 1000, MedianDelay: 0.5},
			{Jobs: 7, Way: wayBackoff, CallsPerMinute: 50, MedianDelay: 9},
			{Jobs: 7, Way: wayRollcall, CallsPerMinute: calls, MedianDelay: delay},
		}
	}
	for _, tt := range []struct {
		calls, delay float64
		want         []bool
	}{
		{10, 2, []bool{true, true, true, true}},
		{11, 2.1, []bool{false, false, true, true}},
		{50, 9, []bool{false, false, false, false}},
	} {
		var held []bool
		for _, a := range pollAims(rows(tt.calls, tt.delay)) {
			held = append(held, a.Held)
		}
		if !slices.Equal(held, tt.want) {
			t.Errorf("%g calls, %g s: got %v, want %v", tt.calls, tt.delay, held, tt.want)
		}
	}
}

// TestConcludeTellsWhatIsNotHeld, in its exit code and to a person.
func TestConcludeTellsWhatIsNotHeld(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	report := benchReport[pollRow]{
		Machine: machine{2, "go1.26", "15.4"}, Rows: []pollRow{{Jobs: 7, Way: wayRollcall}},
		Aims: []aim{atLeast("calls", 3, 2), atMost("delay", 3, 2), below("both", 2, 2)},
	}
	err := conclude(&app{out: &out}, false, report, func(w io.Writer) error { return pollTable(w, report.Rows) })
	if code, ok := errors.AsType[exitError](err); !ok || code != 1 {
		t.Errorf("got %v, want exit 1", err)
	}
	for _, want := range []string{"rollcall", "at least 2", "at most 2", "less than 2", "On 2 CPUs with go1.26 and Postgres 15.4."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q isn't in\n%s", want, out.String())
		}
	}
	if got := strings.Count(out.String(), "NOT HELD"); got != 2 {
		t.Errorf("got %d aims not held, want 2:\n%s", got, out.String())
	}
	report.Aims = report.Aims[:1]
	if err := conclude(&app{out: io.Discard}, true, report, nil); err != nil {
		t.Errorf("got %v with all aims held", err)
	}
}

// TestBenchVendorKeepsTheContract, and tells calls that bring a result from those that don't.
func TestBenchVendorKeepsTheContract(t *testing.T) {
	t.Parallel()
	clock := &benchClock{at: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
	vendor := newBenchVendor(clock.now, []time.Duration{30 * time.Second, 40 * time.Second})
	client, err := geonode.New(geonode.Config{
		BaseURL: "http://127.0.0.1", APIKey: "bench-key", Now: clock.now, Transport: contracttest.Transport(t, vendor),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	var ids []string
	for _, url := range vendor.urls() {
		got, err := client.SubmitExtract(t.Context(), geonode.ExtractRequest{URL: url, Options: geonode.Options{Formats: []geonode.Format{geonode.FormatMarkdown}}})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, got.JobID)
	}
	look := func(listed int, statuses ...geonode.Status) {
		t.Helper()
		window := geonode.ListParams{Status: geonode.StatusProcessing, Start: clock.now().Add(-time.Hour), End: clock.now(), PageSize: 1}
		list, err := client.ListExtracts(t.Context(), geonode.ExtractListParams{ListParams: window})
		if err != nil || list.PageCount.Or(-1) != int64(listed) || len(list.Jobs) != min(1, listed) {
			t.Errorf("got %+v, %v, want %d running, one a page", list, err, listed)
		}
		for i, want := range statuses {
			if got, err := client.GetExtract(t.Context(), ids[i]); err != nil || got.Status != want {
				t.Errorf("got %+v, %v, want %s", got, err, want)
			}
		}
	}
	look(0, geonode.StatusQueued, geonode.StatusQueued)
	clock.forward(20 * time.Second)
	look(2, geonode.StatusProcessing)
	clock.forward(11 * time.Second)
	look(1, geonode.StatusCompleted)
	if vendor.left() != 1 || vendor.status != 3 || vendor.results != 1 || vendor.lists != 3 {
		t.Errorf("got %d left after %d status, %d result and %d list calls, want 1, 3, 1, 3", vendor.left(), vendor.status, vendor.results, vendor.lists)
	}
	if _, err := client.Usage(t.Context()); err == nil {
		t.Error("got an answer to a call that the measurement doesn't know")
	}
}
