package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// Rotate begins a rotation as the real one does, and never gets further.
func (f *fakePipeline) Rotate(ctx context.Context, id int64, emergency bool) (*store.Rotation, error) {
	if _, err := f.rows.Webhook(ctx, id); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rotated = append(f.rotated, fmt.Sprint(id, emergency))
	return &store.Rotation{ID: 1, WebhookID: id, Emergency: emergency}, f.unrotatable
}

// hook makes a live webhook with two secrets and returns its id.
func (b *bench) hook(t *testing.T) int64 {
	t.Helper()
	id := b.id(t, `INSERT INTO webhooks (endpoint, event_type, url, state, vendor_webhook_id, created_at, state_at)
		VALUES ('abcdefghijklmnopqrstuvwx', 'batch_completed', 'https://desk.test/webhooks/geonode/abcdefghijklmnopqrstuvwx', 'live', 'wh_1', now(), now())
		RETURNING id`)
	b.exec(t, `INSERT INTO webhook_secrets (webhook_id, version, sealed, valid_from, valid_until)
		VALUES ($1, 1, 'sealed', now() - interval '1 day', now() + interval '1 hour'), ($1, 2, 'sealed', now(), NULL)`, id)
	return id
}

func TestRotationPage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAdmin)
	id := b.hook(t)
	path := fmt.Sprintf("/webhooks/%d", id)
	page := v.get(path + "/rotation")
	if page.status != http.StatusOK || page.doc.Find("[data-testid=secrets] tbody tr").Length() != 2 || page.doc.Find("[data-testid=steps]").Length() != 0 {
		t.Fatalf("got %d with %d versions, want two and no change yet", page.status, page.doc.Find("[data-testid=secrets] tbody tr").Length())
	}
	for _, emergency := range []string{"", "1"} {
		got := v.submit(path+"/rotate", url.Values{"emergency": {emergency}})
		if got.status != http.StatusSeeOther || got.header.Get("Location") != path+"/rotation" {
			t.Errorf("rotate: got %d to %q, want 303 to the page of the secret", got.status, got.header.Get("Location"))
		}
	}
	if want := []string{fmt.Sprint(id, false), fmt.Sprint(id, true)}; strings.Join(b.pipeline.rotated, ";") != strings.Join(want, ";") {
		t.Errorf("asked for %v, want %v", b.pipeline.rotated, want)
	}
	b.exec(t, `INSERT INTO rotations (webhook_id, state, webhook_was, started_at, attempt, lost, started_by)
		VALUES ($1, 'secret_unknown', 'live', now(), 2, 1, 'carol')`, id)
	page = v.get(path + "/rotation")
	if text := page.text("[data-testid=steps]"); !strings.Contains(text, "By carol") || !strings.Contains(text, "An answer was lost") {
		t.Errorf("the steps are %q, want who asked and what was lost", text)
	}
	if page.doc.Find("form[action='"+path+"/rotate'] button[disabled]").Length() != 1 {
		t.Error("want the plain button out of use during a change, and the emergency one not")
	}
	b.pipeline.unrotatable = pipeline.ErrNotRotatable
	if got := v.submit(path+"/rotate", nil); got.status != http.StatusConflict || !strings.Contains(got.text("main"), "no secret to change") {
		t.Errorf("a webhook without a secret: got %d %q, want 409 in words", got.status, got.text("main"))
	}
}

// TestRotationFollowsLive: an open page is told of each step, and of the end.
func TestRotationFollowsLive(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAdmin)
	id := b.hook(t)
	rotation := b.id(t, `INSERT INTO rotations (webhook_id, state, webhook_was, started_at) VALUES ($1, 'calling', 'live', now()) RETURNING id`, id)
	watched := v.watch(fmt.Sprintf("/webhooks/%d/rotation/live", id))
	watched.until(t, "event: items")
	b.exec(t, `UPDATE rotations SET state = 'stored', version = 3, stored_at = now() WHERE id = $1`, rotation)
	watched.until(t, "event: items")
	b.exec(t, `UPDATE rotations SET state = 'done', ended_at = $2 WHERE id = $1`, rotation, time.Now())
	watched.until(t, "event: done")
	watched.ended(t)
}

// TestRotationThatBroughtNoNewSecret: whoever changed it because it leaked reads that it still is the leaked one, also in
// an emergency, in which every older version has ended.
func TestRotationThatBroughtNoNewSecret(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAdmin)
	id := b.hook(t)
	page := fmt.Sprintf("/webhooks/%d/rotation", id)
	const said = "is the secret of version 1 again"
	rotation := b.id(t, `INSERT INTO rotations (webhook_id, state, webhook_was, started_at, emergency, stored_at, version, log_read_at, note, ended_at)
		VALUES ($1, 'done', 'live', now(), true, now(), 3, now(), 'the log could not be read', now()) RETURNING id`, id)
	if got := v.get(page).text("main"); strings.Contains(got, said) {
		t.Errorf("a new secret: got %q", got)
	}
	b.exec(t, `UPDATE rotations SET same_as = 1 WHERE id = $1`, rotation)
	if got := v.get(page).text("main"); !strings.Contains(got, "Version 3 "+said) || strings.Contains(got, "Every older version has ended.") {
		t.Errorf("the first secret again: got %q", got)
	}
}
