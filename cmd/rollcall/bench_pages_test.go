package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"rollcall/store/storetest"
	"rollcall/web"
)

// TestBenchPages fills a small database and visits every page: each route of the table is there, none reads a table that
// grows without end from one end to the other when it need not, and what was seeded adds up.
func TestBenchPages(t *testing.T) {
	t.Parallel()
	dsn := storetest.EmptyDSN(t)
	env := envOf(map[string]string{"DATABASE_URL": dsn})
	got := rollcall(t, env, "bench", "pages", "--json", "--items", "1500", "--results", "200", "--deliveries", "1500", "--runs", "1",
		"--visits", "1", "--no-scans", "--recount")
	var report benchReport[pageRow]
	dec := json.NewDecoder(strings.NewReader(got.out))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&report); err != nil {
		t.Fatalf("exit %d, %q: %v\n%s", got.code, got.out, err, got.errOut)
	}
	measured := map[string]bool{}
	for _, row := range report.Rows {
		measured[row.Path] = true
		if row.P50 <= 0 || row.P95 < row.P50 || row.P99 < row.P95 || len(row.Addresses) == 0 || row.Visits < len(row.Addresses) {
			t.Errorf("got %+v", row)
		}
		for _, scan := range row.Scans {
			t.Errorf("read from end to end: %s", scan)
		}
	}
	for _, read := range new(web.Server).Reads() {
		if !measured[read.Path] && read.Path != "/search" && read.Path != "/static/*" {
			t.Errorf("%s is not measured", read.Path)
		}
	}
	if !measured["phrase of common"] || report.Name != "pages" || report.Machine.Postgres == "" {
		t.Errorf("got %s on %+v, %d rows", report.Name, report.Machine, len(report.Rows))
	}
	held := !slices.ContainsFunc(report.Aims, func(a aim) bool { return !a.Held })
	if len(report.Aims) != 4 || (got.code == 0) != held || got.code > 1 {
		t.Errorf("exit %d with aims %+v", got.code, report.Aims)
	}
	if n := benchDatabases(t, dsn); n != 0 {
		t.Errorf("%d databases of the measurement are left", n)
	}
}

func TestBenchSeedRefusesSillySizes(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{{"--items=10"}, {"--results=50"}, {"--deliveries=1"}, {"--items=2000", "--results=1900"}} {
		got := rollcall(t, emptyEnv, append([]string{"bench", "seed"}, flags...)...)
		if got.code != 1 || !strings.Contains(got.errOut, flags[len(flags)-1]) {
			t.Errorf("%v: got %+v", flags, got)
		}
	}
}

// TestPageAims holds each aim against rows that miss it.
func TestPageAims(t *testing.T) {
	t.Parallel()
	rows := []pageRow{
		{Kind: pageKind, P95: 50}, {Kind: pageKind, P95: 51, Scans: []string{"items in /"}}, {Kind: streamKind, P95: 50}, {Kind: searchKind, P95: 151},
	}
	if got, want := heldOf(pageAims(rows, false)), []bool{false, false, true, false}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// What wasn't measured holds nothing, but needn't be there when only some were asked for.
	if got, want := heldOf(pageAims(rows[:1], false)), []bool{true, true, false, false}; !slices.Equal(got, want) {
		t.Errorf("pages only: got %v, want %v", got, want)
	}
	if got, want := heldOf(pageAims(rows[:1], true)), []bool{true, true}; !slices.Equal(got, want) {
		t.Errorf("only pages asked for: got %v, want %v", got, want)
	}
}

// TestBenchPagesLeavesOthersAlone: a database of somebody's own is refused, and no account of it changed.
func TestBenchPagesLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	dsn := storetest.DSN(t)
	env := envOf(map[string]string{"DATABASE_URL": dsn})
	if err := unused(t.Context(), dsn); err != nil {
		t.Errorf("nobody's database: %v", err)
	}
	typed := strings.NewReader("a-long-password-123\n")
	if code := run(t.Context(), []string{"user", "add", "realadmin", "--role", "admin", "--password-stdin"}, typed, t.Output(), t.Output(), env); code != 0 {
		t.Fatalf("got exit %d", code)
	}
	hash := func() string {
		var out string
		if err := storetest.Open(t, dsn).SQL().QueryRowContext(t.Context(), "SELECT md5(password_hash) FROM users").Scan(&out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	before := hash()
	for command, why := range map[string]string{"pages": "not filled by bench seed", "seed": "is left alone"} {
		if got := rollcall(t, env, "bench", command, "--database", dsn); got.code != 1 || !strings.Contains(got.errOut, why) {
			t.Errorf("%s: got %+v, want a refusal", command, got)
		}
	}
	if hash() != before {
		t.Error("the password was changed")
	}
}
