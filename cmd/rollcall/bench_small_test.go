package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rollcall/store/storetest"
)

// TestBenchesMeasureRealWork makes a tiny run of each measurement that starts processes. Each holds what is in the
// database against what it sent, and fails when the two differ; here its report is held against its own rows. Whether
// the aims hold is not asked: that depends on the machine.
func TestBenchesMeasureRealWork(t *testing.T) {
	t.Parallel()
	dsn := storetest.EmptyDSN(t)
	receiver := benchOf[receiverRow](t, dsn, "receiver", "--quick", "--runs", "1", "--deliveries", "192")
	for i, want := range []struct {
		way  string
		sent int
	}{{wayVerify, 768}, {wayPlain, 64}, {wayGroup, 192}} {
		r := receiver.Rows[i]
		if r.Way != want.way || r.Deliveries != want.sent || r.PerSecond <= 0 || r.P99 < r.P50 || (r.Statements > 0) != (want.way != wayVerify) {
			t.Errorf("got %+v", r)
		}
	}
	if diff := cmp.Diff(receiver.Aims, receiverAims(receiver.Rows)); diff != "" {
		t.Errorf("the aims are not those of the rows:\n%s", diff)
	}
	pipe := benchOf[pipelineRow](t, dsn, "pipeline", "--urls", "60", "--extracts", "12", "--runs", "1")
	for i, want := range []struct {
		load string
		urls int
	}{{loadBatch, 60}, {loadDrained, 12}, {loadWhole, 12}, {loadHalf, 12}} {
		r := pipe.Rows[i]
		if r.Load != want.load || r.URLs != want.urls || r.Statements <= 0 || r.Calls <= 0 {
			t.Errorf("got %+v", r)
		}
	}
	if pipe.Rows[0].Vendor <= 0 || pipe.Rows[0].Seconds < pipe.Rows[0].Vendor {
		t.Errorf("got %+v, want an end after the vendor's own", pipe.Rows[0])
	}
	if diff := cmp.Diff(pipe.Aims, pipelineAims(pipe.Rows)); diff != "" {
		t.Errorf("the aims are not those of the rows:\n%s", diff)
	}
	scale := benchOf[scaleRow](t, dsn, "scale", "--drain", "10", "--before", "5", "--runs", "1")
	if len(scale.Rows) != 2 || scale.Rows[0].Processes != 1 || scale.Rows[1].Processes != 2 || scale.Rows[1].Statements <= 0 {
		t.Errorf("got %+v", scale.Rows)
	}
	if n := benchDatabases(t, dsn); n != 0 {
		t.Errorf("%d databases of the measurements are left", n)
	}
}

// TestBenchExportAndStart do what they say, once each.
func TestBenchExportAndStart(t *testing.T) {
	t.Parallel()
	dsn := storetest.EmptyDSN(t)
	var formats []string
	for _, r := range benchOf[exportRow](t, dsn, "export", "--results", "3", "--runs", "1").Rows {
		formats = append(formats, r.Format)
		if r.Results != 3 || r.Megabytes <= 0 {
			t.Errorf("got %+v", r)
		}
	}
	if want := []string{"csv", "jsonl", "zip", "parquet"}; !slices.Equal(formats, want) {
		t.Errorf("got %v, want %v", formats, want)
	}
	for _, r := range benchOf[startRow](t, dsn, "start", "--runs", "1").Rows {
		if r.Seconds <= 0 {
			t.Errorf("got %+v", r)
		}
	}
}

// TestBenchReconcile finds all that is missing.
func TestBenchReconcile(t *testing.T) {
	t.Parallel()
	dsn := storetest.EmptyDSN(t)
	got := rollcall(t, envOf(map[string]string{"DATABASE_URL": dsn}), "bench", "reconcile", "--json", "--jobs", "150", "--missing", "7", "--runs", "1")
	report := benchRead[reconcileRow](t, "reconcile", got.out)
	if r := report.Rows[0]; r.Found != 7 || r.ListPages != 4 || r.Calls < 4+7 || got.code != 0 {
		t.Errorf("exit %d with %+v\n%s", got.code, report, got.errOut)
	}
}

// TestBenchUnread: when what reads the progress goes away, as with "| head", a measurement ends and leaves no database.
func TestBenchUnread(t *testing.T) {
	t.Parallel()
	dsn := storetest.EmptyDSN(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = read.Close() // Nobody reads.
	cmd := exec.CommandContext(t.Context(), os.Args[0], "bench", "reconcile", "--jobs", "150", "--missing", "7", "--runs", "1")
	cmd.Env = []string{asProgram + "=1", "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), hasty, "DATABASE_URL=" + dsn}
	cmd.Stderr = write
	if err := cmd.Run(); err == nil {
		t.Error("it went on to its end")
	}
	_ = write.Close() // Nothing of ours was written.
	if n := benchDatabases(t, dsn); n != 0 {
		t.Errorf("%d databases of the measurement are left", n)
	}
}

// benchOf runs a measurement as a process, so that those which it starts are this program too.
func benchOf[row any](t *testing.T, dsn, name string, args ...string) benchReport[row] {
	t.Helper()
	p := start(t, map[string]string{"DATABASE_URL": dsn}, append([]string{"bench", name, "--json"}, args...)...)
	if code := p.exit(patience); code > 1 {
		t.Fatalf("exit %d:\n%s", code, p.log)
	}
	return benchRead[row](t, name, p.log.String())
}

// benchRead finds the one object among what was printed.
func benchRead[row any](t *testing.T, name, text string) benchReport[row] {
	t.Helper()
	var report benchReport[row]
	at := strings.Index(text, `{"name"`)
	if at < 0 {
		t.Fatalf("%s printed no report:\n%s", name, text)
	}
	dec := json.NewDecoder(strings.NewReader(text[at:]))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&report); err != nil {
		t.Fatalf("%s: %v in\n%s", name, err, text)
	}
	if report.Name != name || report.Machine.CPUs < 1 || report.Machine.Postgres == "" || len(report.Rows) == 0 || len(report.Aims) == 0 {
		t.Fatalf("got %+v", report)
	}
	return report
}
