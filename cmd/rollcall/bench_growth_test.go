package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"rollcall/store/storetest"
)

// TestBenchGrowth fills two small databases, does everything on both, prints one object whose aims follow from its rows,
// and leaves nothing behind.
func TestBenchGrowth(t *testing.T) {
	t.Parallel()
	dsn := storetest.EmptyDSN(t)
	got := rollcall(t, envOf(map[string]string{"DATABASE_URL": dsn}), "bench", "growth", "--json",
		"--nights", "3", "--urls", "200", "--rounds", "1", "--jobs", "4")
	var report benchReport[growthRow]
	dec := json.NewDecoder(strings.NewReader(got.out))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&report); err != nil {
		t.Fatalf("exit %d, %q: %v\n%s", got.code, got.out, err, got.errOut)
	}
	if report.Name != "growth" || len(report.Rows) != len(growthActs())+2 || len(report.Aims) != len(report.Rows) {
		t.Errorf("got %s with %d rows and %d aims", report.Name, len(report.Rows), len(report.Aims))
	}
	for i, r := range report.Rows {
		if r.Young <= 0 || r.Old <= 0 || r.Times <= 0 || report.Aims[i] != r.aim() {
			t.Errorf("got %+v with the aim %+v", r, report.Aims[i])
		}
	}
	held := !slices.ContainsFunc(report.Aims, func(a aim) bool { return !a.Held })
	if (got.code == 0) != held || got.code > 1 || !strings.Contains(got.errOut, "batches:") && !strings.Contains(got.errOut, "items:") {
		t.Errorf("exit %d with aims %+v\n%s", got.code, report.Aims, got.errOut)
	}
	if n := benchDatabases(t, dsn); n != 0 {
		t.Errorf("%d databases of the measurement are left", n)
	}
}
