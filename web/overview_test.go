package web

import (
	"testing"
	"time"

	"rollcall/store"
)

// TestRefusedDeliveriesOnTheOverview: counted beside their webhook for a day,
// by the server's clock, and not spoken of when there are none.
func TestRefusedDeliveriesOnTheOverview(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	quiet, loud := b.seedLog(t, 1), b.id(t, `INSERT INTO webhooks (endpoint, event_type, url, state, created_at, state_at)
		VALUES ('another-endpoint', 'batch_completed', 'https://a.example/', 'live', now(), now()) RETURNING id`)
	for _, verdict := range []string{"refused", "refused", "refused", "unreadable", "accepted"} {
		b.exec(t, `UPDATE deliveries SET webhook_id = $1 WHERE id = $2`, loud, b.deliver(t, "v1", verdict, []byte("{}")))
	}
	b.exec(t, `UPDATE deliveries SET webhook_id = $1 WHERE id = $2`, quiet, b.deliver(t, "v1", "accepted", []byte("{}")))
	old := b.deliver(t, "v1", "refused", []byte("{}"))
	b.exec(t, `UPDATE deliveries SET webhook_id = $1, received_at = $2 WHERE id = $3`, loud, b.clock.now().Add(-25*time.Hour), old)
	got := v.get("/")
	if text := got.text("[data-testid=refused]"); text != "3 deliveries refused in the last 24 hours" {
		t.Errorf("got %q, want three of one webhook", text)
	}
	href := got.doc.Find("[data-testid=refused] a").AttrOr("href", "")
	if want := "/deliveries?verdict=refused&webhook=" + idText(loud); href != want {
		t.Fatalf("it leads to %q, want %q", href, want)
	}
	if list := v.get(href); list.doc.Find(`a[href="/deliveries/`+idText(old)+`"]`).Length() == 0 {
		t.Errorf("the list doesn't show what is refused: %q", list.text("main"))
	}
	b.clock.advance(25 * time.Hour)
	if n := b.as(t, store.RoleAnalyst).get("/").doc.Find("[data-testid=refused]").Length(); n != 0 {
		t.Errorf("a day later it is spoken of %d times", n)
	}
}
