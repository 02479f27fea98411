package web

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rollcall/store"
	"rollcall/views"
)

func TestAuditPage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	admin := b.as(t, store.RoleAdmin)
	who := admin.person().Name
	admin.invited("erin", store.RoleOperator)
	b.addUser(t, "<i>mallory</i>", store.RoleAnalyst)
	b.visit(t).post("/sign-in", signInForm("<I>mallory</i>", "my secret password"))
	b.visit(t).post("/sign-in", signInForm("my other secret password", "mallory"))
	all := admin.get("/audit")
	if all.status != http.StatusOK || all.doc.Find("[data-testid=audit] tbody tr").Length() != 4 {
		t.Fatalf("got %d, %q", all.status, all.text("[data-testid=audit]"))
	}
	for _, want := range []string{"Not signed in 127.0.0.1 user.sign_in_failed user <i>mallory</i>", who + " 127.0.0.1 user.invite user erin", "role operator"} {
		if !strings.Contains(all.text("[data-testid=audit]"), want) {
			t.Errorf("want %q in %q", want, all.text("[data-testid=audit]"))
		}
	}
	if strings.Contains(all.body, "secret password") {
		t.Error("a password that was typed is on the page")
	}
	for query, want := range map[string]int{
		"who=" + strings.ToUpper(who): 2, "what=user.invite": 1, "kind=user&id=erin": 1, "kind=user": 4, "what=nothing": 0,
		"since=2020-01-01": 4, "until=2020-01-01": 0, "who=" + who + "&what=user.sign_in&since=2020-01-01+10:00&until=2090-01-01T10:00": 1,
	} {
		got := admin.get("/audit?" + query)
		if n := got.doc.Find("[data-testid=audit] tbody tr").Length(); got.status != http.StatusOK || n != want {
			t.Errorf("%s: got %d with %d lines, want %d", query, got.status, n, want)
		}
	}
	if got := admin.get("/").text("nav.menu"); !strings.Contains(got, "Audit") {
		t.Errorf("menu: got %q", got)
	}
	if got := b.as(t, store.RoleOperator).get("/").text("nav.menu"); strings.Contains(got, "Audit") {
		t.Errorf("an operator's menu: got %q", got)
	}
}

func TestAuditNamesBadValues(t *testing.T) {
	t.Parallel()
	b := setup(t)
	admin := b.as(t, store.RoleAdmin)
	for query, field := range map[string]string{
		"since=yesterday": "Since", "until=2026-13-01": "Until", "since=2026-11-29&until=2026-11-28": "Until", "id=7": "On",
		"who=" + strings.Repeat("x", 400): "Who", "since=0001-01-01": "Since",
	} {
		got := admin.get("/audit?" + query)
		if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.text("#error-summary"), field+": ") {
			t.Errorf("%s: got %d, %q", query, got.status, got.text("#error-summary"))
		}
		for _, ending := range []string{".csv", ".jsonl"} {
			if got := admin.get("/audit" + ending + "?" + query); got.status != http.StatusBadRequest {
				t.Errorf("%s?%s: got %d, want 400", ending, query, got.status)
			}
		}
	}
	if got := admin.get("/audit?from=damaged"); got.status != http.StatusBadRequest {
		t.Errorf("damaged place: got %d, want 400", got.status)
	}
	if slices.ContainsFunc(b.audited(t), func(line string) bool { return strings.Contains(line, "export") }) {
		t.Error("an export that was refused is in the log")
	}
}

// TestAuditTimesAreTheReaders: a day, and a time, are those of their zone.
func TestAuditTimesAreTheReaders(t *testing.T) {
	t.Parallel()
	kolkata, err := time.LoadLocation("Asia/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	f, errs := auditFilterOf(t.Context(), url.Values{"since": {"2026-11-29"}, "until": {"2026-11-29"}}, kolkata)
	if got := f.Until.Sub(f.From); len(errs) > 0 || got != 24*time.Hour || f.From.Format(time.RFC3339) != "2026-11-28T18:30:00Z" {
		t.Errorf("a day: got %v, %s from %s", errs, got, f.From)
	}
	if f, _ = auditFilterOf(t.Context(), url.Values{"since": {"2026-11-29T05:30"}}, kolkata); !f.From.Equal(time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("a time: got %s", f.From)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	// The day on which the clocks go back has 25 hours.
	if f, _ = auditFilterOf(t.Context(), url.Values{"since": {"2026-10-25"}, "until": {"2026-10-25"}}, berlin); f.Until.Sub(f.From) != 25*time.Hour {
		t.Errorf("the long day: got %s", f.Until.Sub(f.From))
	}
}

func TestAuditPagesWalkWhole(t *testing.T) {
	t.Parallel()
	b := setup(t)
	admin := b.as(t, store.RoleAdmin)
	b.exec(t, `INSERT INTO audit_log (at, who, what, kind, on_id) SELECT '2026-11-29', 'bob', 'test.done', 'thing', n::text FROM generate_series(1, 130) n`)
	seen := map[string]bool{}
	pages := 0
	for path := "/audit?who=bob&since=2026-11-29"; path != ""; pages++ {
		got := admin.get(path)
		for id := range strings.SplitSeq(got.text("[data-testid=audit] td[data-label=On]"), "thing ") {
			if id = strings.TrimSpace(id); id != "" && seen[id] {
				t.Errorf("line %s twice", id)
			}
			seen[id] = true
		}
		path = got.doc.Find("nav.pager a[rel=next]").AttrOr("href", "")
	}
	delete(seen, "")
	if len(seen) != 130 || pages != 3 {
		t.Errorf("got %d lines on %d pages, want 130 on 3", len(seen), pages)
	}
}

// TestAuditExports: all that fits, in more pieces than one, as programs read it.
func TestAuditExports(t *testing.T) {
	t.Parallel()
	b := setup(t)
	admin := b.as(t, store.RoleAdmin)
	b.exec(t, `INSERT INTO audit_log (at, who, what, kind, on_id, before, after)
		SELECT '2026-11-29', '=HYPERLINK("x")', 'test.done', 'thing', '-' || n, '{"a": 1}', '"line\nbreak, \"quote\""' FROM generate_series(1, 1203) n`)
	got := admin.get("/audit.csv?what=test.done")
	if got.status != http.StatusOK || !strings.HasPrefix(got.header.Get("Content-Type"), "text/csv") || !strings.HasSuffix(got.header.Get("Content-Disposition"), `.csv"`) {
		t.Fatalf("got %d, %v", got.status, got.header)
	}
	lines, err := csv.NewReader(strings.NewReader(got.body)).ReadAll()
	if err != nil || len(lines) != 1204 {
		t.Fatalf("got %d lines, %v; want 1204", len(lines), err)
	}
	want := []string{lines[1][0], "2026-11-29T00:00:00.000000Z", `'=HYPERLINK("x")`, "", "", "test.done", "thing", "'-1203", `{"a": 1}`, `"line\nbreak, \"quote\""`}
	if diff := cmp.Diff(lines[1], want); diff != "" {
		t.Errorf("a line (-got +want):\n%s", diff)
	}
	objects := json.NewDecoder(strings.NewReader(admin.get("/audit.jsonl?what=test.done").body))
	ids := map[float64]bool{}
	for objects.More() {
		var object map[string]any
		if err := objects.Decode(&object); err != nil {
			t.Fatal(err)
		}
		ids[object["id"].(float64)] = true
		if object["who"] != `=HYPERLINK("x")` || object["after"] != "line\nbreak, \"quote\"" || fmt.Sprint(object["before"]) != "map[a:1]" || object["user_id"] != nil {
			t.Fatalf("got %v", object)
		}
	}
	if len(ids) != 1203 {
		t.Errorf("got %d objects, want 1203", len(ids))
	}
	checkExportsAudited(t, b, admin)
}

func checkExportsAudited(t *testing.T, b *bench, admin *visitor) {
	t.Helper()
	if got := admin.do(admin.request(http.MethodHead, "/audit.csv", nil)); got.status != http.StatusOK || got.body != "" {
		t.Errorf("HEAD: got %d, %q", got.status, got.body)
	}
	rows, _, err := b.store.PageAudit(t.Context(), store.AuditFilter{What: "export.audit"}, store.Key{}, 10)
	if err != nil || len(rows) != 2 || string(rows[0].After) != `{"what": "test.done", "format": "jsonl"}` {
		t.Errorf("got %d lines about exports, %v: %+v", len(rows), err, rows)
	}
	if got := b.as(t, store.RoleOperator).get("/audit.csv"); got.status != http.StatusForbidden {
		t.Errorf("an operator: got %d, want 403", got.status)
	}
}

// TestAuditExportThatBreaksOffSaysSo: a reader must not take half of it for all.
func TestAuditExportThatBreaksOffSaysSo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	admin := b.as(t, store.RoleAdmin)
	b.exec(t, `INSERT INTO audit_log (at, who, what, after) SELECT '2026-11-29', 'bob', 'test.done', to_jsonb(repeat('x', 8000)) FROM generate_series(1, 5000) n`)
	resp, err := admin.client.Do(admin.request(http.MethodGet, "/audit.csv", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	reader := csv.NewReader(resp.Body)
	if _, err := reader.Read(); err != nil {
		t.Fatal(err)
	}
	// Far more is to come than sockets hold; the session ends meanwhile.
	b.exec(t, `DELETE FROM sessions`)
	b.exec(t, `SELECT pg_notify('rollcall_people', id::text) FROM users`)
	if lines, err := reader.ReadAll(); err == nil {
		t.Errorf("got %d lines and no error, want a broken connection", len(lines))
	}
}

func TestAuditChanges(t *testing.T) {
	t.Parallel()
	text := func(s string) views.AuditValue { return views.AuditValue{Text: s} }
	for name, tt := range map[string]struct {
		before, after string
		want          []views.AuditChange
	}{
		"nothing": {"", "", nil},
		"what moved": {`{"a": 1, "b": "x", "c": null}`, `{"a": 1, "b": "", "d": [1, "two"]}`, []views.AuditChange{
			{Name: "b", Before: text("x"), After: text("(empty)"), Was: true, Is: true}, {Name: "c", Before: text("null"), Was: true}, {Name: "d", After: text("1, two"), Is: true},
		}},
		"made":        {"", `{"role": "admin"}`, []views.AuditChange{{Name: "role", After: text("admin"), Is: true}}},
		"no object":   {`{"a": 1}`, `"too large to keep"`, []views.AuditChange{{Before: text(`{"a": 1}`), After: text("too large to keep"), Was: true, Is: true}}},
		"long member": {"", `{"a": "` + strings.Repeat("é", 400) + `"}`, []views.AuditChange{{Name: "a", After: text(strings.Repeat("é", 150) + "…"), Is: true}}},
		"in it": {`{"o": {"a": 1, "b": {"c": 2, "d": {}}}}`, `{"o": {"a": 1, "b": {"c": 3, "d": {}}}}`, []views.AuditChange{
			{Name: "o.b.c", Before: text("2"), After: text("3"), Was: true, Is: true},
		}},
		"a time":      {"", `{"at": "2026-12-03T13:11:51.395939113Z"}`, []views.AuditChange{{Name: "at", After: views.AuditValue{At: time.Date(2026, 12, 3, 13, 11, 51, 395939113, time.UTC)}, Is: true}}},
		"one of none": {"", `{"at": "0001-01-01T00:00:00Z", "l": []}`, []views.AuditChange{{Name: "at", After: text("0001-01-01T00:00:00Z"), Is: true}, {Name: "l", After: text("[]"), Is: true}}},
	} {
		if diff := cmp.Diff(auditChanges(t.Context(), json.RawMessage(tt.before), json.RawMessage(tt.after)), tt.want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
}

// TestSignInsAreAudited, the failed ones with the name that was tried; a try
// that must wait is no try.
func TestSignInsAreAudited(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.addUser(t, "alice", store.RoleAnalyst)
	v := b.visit(t)
	v.post("/sign-in", signInForm("ALICE", password))
	v.submit("/sign-out", nil)
	tries, waits := 0, 0
	for range 12 {
		if got := v.post("/sign-in", signInForm(strings.Repeat("m", 100), "wrong")); got.status == http.StatusTooManyRequests {
			waits++
		} else {
			tries++
		}
	}
	got := b.audited(t)
	slices.Reverse(got)
	want := []string{"alice user.sign_in alice", "alice user.sign_out alice"}
	for range tries {
		want = append(want, "user.sign_in_failed")
	}
	if diff := cmp.Diff(got, want); diff != "" || waits == 0 {
		t.Errorf("%d waits (-got +want):\n%s", waits, diff)
	}
}
