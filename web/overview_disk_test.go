package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"rollcall/store"
)

// TestDiskOnTheOverview: what was sampled, how it grows and when the limit is
// reached; a dash for what isn't known, and nothing of it for analysts. Then a
// batch whose rows were removed says so and offers nothing that needs them.
func TestDiskOnTheOverview(t *testing.T) {
	t.Parallel()
	b := setupWith(t, Config{Sandbox: true, DiskLimit: 10e9})
	b.clock.advance(b.clock.now().Truncate(time.Hour).Add(90 * time.Minute).Sub(b.clock.now())) // Far from any full hour.
	v := b.as(t, store.RoleOperator)
	want := func(name, text string) {
		t.Helper()
		if got := v.get("/").text("[data-testid=disk-" + name + "]"); !strings.Contains(got, text) {
			t.Errorf("%s: %q, want %q", name, got, text)
		}
	}
	want("total", "–")
	want("days", "–")
	if err := b.store.SampleDisk(t.Context(), b.clock.now()); err != nil {
		t.Fatal(err)
	}
	newest, oldest, err := b.store.DiskSamples(t.Context(), b.clock.now().Add(-time.Hour))
	if err != nil || newest != oldest || len(newest.Bytes) != 6 || newest.Bytes[store.DiskItems] < 8192 || newest.Total() < 1<<20 {
		t.Fatalf("sampled %+v, %+v (%v)", newest, oldest, err)
	}
	want("growth", "–")
	// The newest look is the hour's only one.
	b.clock.advance(time.Minute)
	if err := b.store.SampleDisk(t.Context(), b.clock.now()); err != nil {
		t.Fatal(err)
	}
	if again, first, err := b.store.DiskSamples(t.Context(), b.clock.now().Add(-time.Hour)); err != nil || again != first || !again.At.After(newest.At) {
		t.Errorf("a minute later: %+v, %+v (%v)", again, first, err)
	}
	if shown := v.get("/"); !strings.HasSuffix(shown.text("[data-testid=disk-total] strong"), "MB") || shown.text("[data-testid=disk-together]") != shown.text("[data-testid=disk-total] strong") {
		t.Errorf("together %q, the total %q", shown.text("[data-testid=disk-together]"), shown.text("[data-testid=disk-total]"))
	}
	sample := func(ago time.Duration, items int64) {
		b.exec(t, `INSERT INTO disk_samples (at, part, bytes) VALUES ($1, 'items', $2), ($1, 'results', 1000000000)`, b.clock.now().Add(-ago), items)
	}
	sample(9*24*time.Hour, 1) // Longer ago than is looked at.
	sample(4*24*time.Hour, 1e9)
	b.clock.advance(time.Minute)
	sample(0, 3e9)
	want("total", "4.0 GB")
	want("total", "40 % of 10 GB")
	want("growth", "+500 MB")
	want("days", "12 days") // And some hours more.
	b.clock.advance(time.Minute)
	sample(0, 12e9)
	want("days", "It is reached")
	if got := b.as(t, store.RoleAnalyst).get("/").text("[data-testid=disk]"); got != "" {
		t.Errorf("an analyst sees %q", got)
	}

	s := b.seed(t, "Long ago", 3)
	path := "/batches/" + idText(s.batch)
	if p := v.get(path); p.text("[data-testid=pruned]") != "" || !strings.Contains(p.text("#batch-menu"), "Run again") {
		t.Errorf("before: %q, %q", p.text("[data-testid=pruned]"), p.text("#batch-menu"))
	}
	b.exec(t, `UPDATE items SET state = 'cancelled', ended_at = $2 WHERE batch_id = $1 AND state = 'outstanding'`, s.batch, b.clock.now())
	b.exec(t, `UPDATE batches SET cancelled = cancelled + outstanding, ended_at = $2, pruned_at = $2 WHERE id = $1`, s.batch, b.clock.now())
	b.exec(t, `DELETE FROM items WHERE batch_id = $1`, s.batch)
	if p := v.get(path); !strings.Contains(p.text("[data-testid=pruned]"), "Only the counts") || strings.Contains(p.text("#batch-menu"), "Run again") {
		t.Errorf("after: %q, %q", p.text("[data-testid=pruned]"), p.text("#batch-menu"))
	}
	// The page to run it again offers nothing that a press of it would be refused.
	again := v.get(path + "/rerun?which=failures")
	if !strings.Contains(again.text("[data-testid=plan]"), "were removed") || again.doc.Find("form[method=post]:not([action='/sign-out']), #which").Length() > 0 {
		t.Errorf("run again: got %q", again.text("main"))
	}
	if p := v.submit(path+"/rerun", url.Values{"which": {"all"}, "name": {""}, "once": {"x"}}); p.status != http.StatusUnprocessableEntity {
		t.Errorf("run again: got %d", p.status)
	}
	other := b.seed(t, "Lately", 3)
	if p := v.get("/compare/batches?a=" + idText(s.batch) + "&b=" + idText(other.batch)); p.status != http.StatusUnprocessableEntity || !strings.Contains(p.text("main"), "were removed") {
		t.Errorf("compare: got %d and %q", p.status, p.text("main"))
	}
	if p := v.submit("/compare/batches", url.Values{"a": {idText(other.batch)}, "b": {idText(s.batch)}}); p.status != http.StatusBadRequest {
		t.Errorf("ask to compare: got %d", p.status)
	}
}
