package web

import (
	"net/http"
	"strings"
	"testing"

	"rollcall/store"
)

// TestForeignJobs: counted on the overview and above the deliveries, listed with
// why they are left alone.
func TestForeignJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	if got := v.get("/"); got.doc.Find("[data-testid=foreign]").Length() != 0 {
		t.Error("the overview speaks of foreign jobs, and there are none")
	}
	b.exec(t, `INSERT INTO processed_events (vendor_job_id, event_type, received_at, state)
		SELECT 'foreign-' || g || E'\u00e9"<b>', 'extract_completed', timestamptz '2026-11-01' + (g / 7) * interval '1 s', 'foreign' FROM generate_series(1, 120) g`)
	b.exec(t, `INSERT INTO processed_events (vendor_job_id, event_type, received_at, state) VALUES ('held-1', 'batch_completed', now(), 'held')`)
	delivery := b.deliver(t, "held-1", "accepted", []byte(`{}`))
	if text := v.get("/").text("[data-testid=foreign]"); text != "120 foreign jobs delivered 1 job held" {
		t.Errorf("overview: got %q", text)
	}
	if text := v.get("/deliveries").text(".tabs-alone"); text != "Received The vendor's log Foreign jobs 120 Held 1" {
		t.Errorf("deliveries: got %q", text)
	}
	foreign := v.get("/deliveries?about=foreign")
	if text := foreign.text("[data-testid=about]"); !strings.Contains(text, "whole account") || !strings.Contains(text, "never fetches them") {
		t.Errorf("explanation: got %q", text)
	}
	if rows := walk(t, v, "/deliveries?about=foreign", "[data-testid=foreign] tbody th code"); len(rows) != 120 || rows[0] != `foreign-120é"<b>` {
		t.Errorf("got %d foreign jobs, want 120 from the last on", len(rows))
	}
	held := v.get("/deliveries?about=held")
	if held.doc.Find("[data-testid=foreign] a[href='/deliveries/"+idText(delivery)+"']").Length() != 1 || !strings.Contains(held.text("[data-testid=about]"), "ten minutes") {
		t.Errorf("held: got %q", held.text("main"))
	}
	for _, cursor := range []string{"x", "AAAA", "AAAAAAAAAAA", strings.Repeat("_", 40), strings.Repeat("A", 3000)} {
		if got := v.get("/deliveries?about=foreign&from=" + cursor); got.status != http.StatusBadRequest {
			t.Errorf("cursor %.12s: got %d, want 400", cursor, got.status)
		}
	}
	if got := v.get("/deliveries?about=nonsense"); got.status != http.StatusOK || got.doc.Find("[data-testid=about]").Length() != 0 {
		t.Errorf("about nonsense: got %d, want all deliveries", got.status)
	}
}
