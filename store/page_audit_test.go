package store_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"rollcall/store"
	"rollcall/store/storetest"
)

// TestAuditLogIsWrittenOnce: no statement of the app's user changes a line.
func TestAuditLogIsWrittenOnce(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	if err := s.Audit(t.Context(), moment, store.Change{What: "test.done", After: map[string]int{"n": 1}}); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{
		"UPDATE audit_log SET who = 'nobody'", "DELETE FROM audit_log", "TRUNCATE audit_log",
		"INSERT INTO audit_log (id, at, who, what) OVERRIDING SYSTEM VALUE SELECT id, at, who, what FROM audit_log ON CONFLICT (id) DO UPDATE SET who = 'nobody'",
	} {
		if _, err := s.SQL().ExecContext(t.Context(), query); err == nil || !strings.Contains(err.Error(), "written once") {
			t.Errorf("%s: got %v, want it refused", query, err)
		}
	}
	if rows, _, err := s.PageAudit(t.Context(), store.AuditFilter{}, store.Key{}, 10); err != nil || len(rows) != 1 || rows[0].Who != "rollcall" {
		t.Errorf("got %+v, %v", rows, err)
	}
}

// TestAuditTakesAnyText: what people type may hold anything, and is kept as far
// as the database's text takes it.
func TestAuditTakesAnyText(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	for _, typed := range []string{"a\x00b", "\x00", "\xff", `\u0000`, `\\u0000`, "\\\x00", "\u2028<>&", `"`, strings.Repeat("\x00", 2000)} {
		kept := map[string]string{}
		err := s.Audit(store.WithActor(t.Context(), store.Actor{Name: typed, Source: typed}), moment, store.Change{
			What: "test.done", Kind: "thing", ID: typed, Before: map[string]string{typed: typed}, After: map[string]string{"note": typed},
		})
		if err != nil {
			t.Errorf("%.20q: %v", typed, err)
			continue
		}
		rows, _, err := s.PageAudit(t.Context(), store.AuditFilter{}, store.Key{}, 1)
		if err != nil || len(rows) != 1 || json.Unmarshal(rows[0].After, &kept) != nil {
			if len(typed) < 100 {
				t.Errorf("%.20q: got %+v, %v", typed, rows, err)
			}
			continue
		}
		if kept["note"] != store.CleanText(typed) {
			t.Errorf("%.20q: kept %q", typed, kept["note"])
		}
	}
}

// walk pages through what a filter finds and returns the ids in order.
func walk(t *testing.T, s *store.Store, f store.AuditFilter, size int64) []int64 {
	t.Helper()
	var ids []int64
	for from := (store.Key{}); ; {
		rows, next, err := s.PageAudit(t.Context(), f, from, size)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			ids = append(ids, rows[i].ID)
		}
		if next.ID == 0 {
			return ids
		}
		from = next
	}
}

// TestAuditPagesOfTies: lines of one moment are neither skipped nor repeated.
func TestAuditPagesOfTies(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	exec(t, s, `INSERT INTO audit_log (at, who, what, kind, on_id)
		SELECT $1, CASE WHEN n % 2 = 0 THEN 'Alice' ELSE 'bob' END, 'test.' || n % 3, 'thing', n::text FROM generate_series(1, 1000) n`, moment)
	for name, tt := range map[string]struct {
		f    store.AuditFilter
		want int
	}{
		"all":             {store.AuditFilter{}, 1000},
		"who":             {store.AuditFilter{Who: "aLICE"}, 500},
		"what":            {store.AuditFilter{What: "test.0"}, 333},
		"who and what":    {store.AuditFilter{Who: "bob", What: "test.0"}, 167},
		"kind":            {store.AuditFilter{Kind: "thing", What: "test.1"}, 334},
		"one":             {store.AuditFilter{Kind: "thing", ID: "77"}, 1},
		"one by another":  {store.AuditFilter{Kind: "thing", ID: "77", Who: "alice"}, 0},
		"since":           {store.AuditFilter{From: moment}, 1000},
		"after it":        {store.AuditFilter{From: moment.Add(time.Microsecond)}, 0},
		"until":           {store.AuditFilter{Until: moment}, 0},
		"until after it":  {store.AuditFilter{Until: moment.Add(time.Microsecond), Who: "bob"}, 500},
		"unknown":         {store.AuditFilter{What: "test.9"}, 0},
		"text of a query": {store.AuditFilter{Who: "' OR true --"}, 0},
	} {
		for _, size := range []int64{7, 50, 1000} {
			got := walk(t, s, tt.f, size)
			sorted := slices.Clone(got)
			slices.SortFunc(sorted, func(a, b int64) int { return int(b - a) })
			if len(got) != tt.want || !slices.Equal(got, slices.Compact(sorted)) {
				t.Errorf("%s by %d: got %d lines in order %v, want %d", name, size, len(got), slices.Equal(got, sorted), tt.want)
			}
		}
	}
}

// TestAuditLooksAtSoManyLinesAtATime: a rare line far back is found, a page at
// a time, without one page reading all before it.
func TestAuditLooksAtSoManyLinesAtATime(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	exec(t, s, `INSERT INTO audit_log (at, who, what) SELECT $1::timestamptz + n * interval '1 s', 'bob', CASE n WHEN 1 THEN 'rare' ELSE 'often' END
		FROM generate_series(1, 10500) n`, moment)
	f := store.AuditFilter{Who: "bob", What: "rare"}
	rows, next, err := s.PageAudit(t.Context(), f, store.Key{}, 50)
	if err != nil || len(rows) != 0 || next.ID == 0 {
		t.Fatalf("first page: got %d lines, next %v, %v; want none, and more", len(rows), next, err)
	}
	rows, next, err = s.PageAudit(t.Context(), f, next, 50)
	if err != nil || len(rows) != 1 || next.ID != 0 {
		t.Errorf("second page: got %d lines, next %v, %v; want the one, and the end", len(rows), next, err)
	}
}

func TestAuditWords(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	exec(t, s, `INSERT INTO audit_log (at, who, what, kind) SELECT $1, 'bob', 'test.' || n % 3, CASE n % 2 WHEN 0 THEN '' ELSE 'thing' END
		FROM generate_series(1, 100) n`, moment)
	if got, err := s.AuditWords(t.Context()); err != nil || !slices.Equal(got, []string{"test.0", "test.1", "test.2"}) {
		t.Errorf("whats: got %v, %v", got, err)
	}
	if got, err := s.AuditKinds(t.Context()); err != nil || !slices.Equal(got, []string{"thing"}) {
		t.Errorf("kinds: got %v, %v", got, err)
	}
}

// TestFailedSignInsDontFillTheLog: beyond a thousand an hour nothing is added,
// and the thousandth says so.
func TestFailedSignInsDontFillTheLog(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	u := &store.User{Name: "mallory", Role: store.RoleAnalyst, PasswordHash: "x", CreatedAt: moment, PasswordChangedAt: moment}
	if err := s.AddUser(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	exec(t, s, `INSERT INTO audit_log (at, who, what) SELECT $1, '', 'user.sign_in_failed' FROM generate_series(1, 998)`, moment)
	for range 5 {
		if err := s.NoteFailedSignIn(t.Context(), "mallory", moment.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	rows, _, err := s.PageAudit(t.Context(), store.AuditFilter{Kind: "user", ID: "mallory"}, store.Key{}, 10)
	if err != nil || len(rows) != 2 || !strings.Contains(string(rows[0].After), "not written down") || len(rows[1].After) > 0 {
		t.Errorf("got %d lines, %v; want two, the latter with a note: %+v", len(rows), err, rows)
	}
	if err := s.NoteFailedSignIn(t.Context(), "mallory", moment.Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := walk(t, s, store.AuditFilter{ID: "mallory", Kind: "user"}, 10); len(got) != 3 {
		t.Errorf("an hour later: got %d lines, want 3", len(got))
	}
}

// TestAuditWalksAlongIndexes: each filter has an index that has its lines in
// order; nothing is sorted, and nothing read whole.
func TestAuditWalksAlongIndexes(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	exec(t, s, `INSERT INTO audit_log (at, who, what, kind, on_id)
		SELECT $1::timestamptz + n * interval '1 s', 'p' || n % 50, 'test.' || n % 40, 'kind' || n % 20, n::text FROM generate_series(1, 5000) n`, moment)
	exec(t, s, "ANALYZE audit_log")
	from := store.Key{At: moment.Add(time.Hour), ID: 3600}
	for index, f := range map[string]store.AuditFilter{
		"audit_log_at_idx": {From: moment}, "audit_log_who_idx": {Who: "P7"}, "audit_log_what_idx": {What: "test.1", From: moment},
		"audit_log_kind_idx": {Kind: "kind3"}, "audit_log_on_idx": {Kind: "kind3", ID: "3", Who: "p3"},
	} {
		watched := storetest.Open(t, s.Pool().Config().ConnString())
		var statements []string
		store.Watch(watched, func(query string) { statements = append(statements, query) })
		if _, _, err := watched.PageAudit(t.Context(), f, from, 50); err != nil {
			t.Fatal(err)
		}
		for _, statement := range statements {
			if plan := planOf(t, s, statement); !strings.Contains(plan, index) || strings.Contains(plan, "Seq Scan") {
				t.Errorf("want %s:\n%s\n%s", index, statement, plan)
			}
		}
	}
}
