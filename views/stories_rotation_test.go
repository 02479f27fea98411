package views_test

import (
	"strings"
	"testing"
	"time"

	"rollcall/views"
)

// rotationStories are the page of a webhook's secret: never changed, at each
// turn of a change, and what came of it.
func rotationStories() []story {
	at := func(seconds int) time.Time { return before(time.Minute).Add(time.Duration(seconds) * time.Second) }
	secrets := []views.SecretRow{
		{Version: 2, From: at(2), Verified: views.Known(4), LastSeen: at(58)},
		{Version: 1, From: before(90 * 24 * time.Hour), Until: now().Add(24 * time.Hour), Verified: views.Count{N: 10000, Known: true, More: true}, LastSeen: at(1)},
	}
	page := func(r *views.Rotation, s []views.SecretRow, state string) views.RotationProps {
		return views.RotationProps{
			Layout: layout("Secret of batch_completed", views.SectionWebhooks, views.RoleAdmin), WebhookID: "3", Event: "batch_completed",
			State: state, Rotation: r, Secrets: s, CanRotate: true,
		}
	}
	begun := views.Rotation{State: "calling", By: "carol", StartedAt: at(0), CalledAt: at(1), Calls: 1}
	unknown := begun
	unknown.State, unknown.Calls, unknown.Lost, unknown.Emergency = "secret_unknown", 3, 2, true
	stored := begun
	stored.State, stored.StoredAt, stored.Version, stored.OldUntil = "stored", at(2), 2, now().Add(24*time.Hour)
	stored.VerifiedAt, stored.Quarantined, stored.Recovered = at(3), views.Known(7), views.Known(6)
	done := stored
	done.State, done.LogReadAt, done.Refused, done.Woken, done.EndedAt = "done", at(5), views.Known(3), views.Known(1), at(6)
	done.Recovered, done.RefusedSecretLost, done.Lost, done.Emergency, done.By = views.Known(8), views.Known(2), 1, true, hostile
	same := done
	same.Version, same.SameAs, same.By = 3, 1, "carol"
	failed := views.Rotation{State: "failed", StartedAt: at(0), CalledAt: at(1), Calls: 1, EndedAt: at(2), Note: "This plan has no webhooks" + hostile}
	ended := page(&done, secrets, "active")
	ended.Earlier = []views.Rotation{failed, {State: "done", By: "carol", StartedAt: before(72 * time.Hour), EndedAt: before(72*time.Hour - 6*time.Second), Version: 1, Recovered: views.Known(0), RefusedSecretLost: views.Known(0)}}
	gone := page(nil, secrets[1:], "gone")
	gone.CanRotate = false
	return []story{
		{"rotation-none", views.RotationPage(page(nil, []views.SecretRow{{Version: 1, From: before(time.Hour), Verified: views.Known(0)}}, "active"))},
		{"rotation-calling", views.RotationPage(page(&begun, secrets[1:], "rotating"))},
		{"rotation-secret-unknown", views.RotationPage(page(&unknown, secrets[1:], "secret_unknown"))},
		{"rotation-stored", views.RotationPage(page(&stored, secrets, "active"))},
		{"rotation-done", views.RotationPage(ended)},
		{"rotation-same", views.RotationPage(page(&same, secrets, "active"))},
		{"rotation-failed", views.RotationPage(page(&failed, secrets[1:], "active"))},
		{"rotation-gone", views.RotationPage(gone)},
	}
}

// TestRotationTellsWhereItIs: one step is under way, those before it are done.
func TestRotationTellsWhereItIs(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"rotation-calling": "✓…    ", "rotation-stored": "✓✓✓✓… ", "rotation-done": "✓✓✓✓✓✓"} {
		for _, s := range rotationStories() {
			if s.name != name {
				continue
			}
			var got strings.Builder
			for _, text := range parse(t, s.page).Find("[data-testid=steps] .moment-title .visually-hidden").EachIter() {
				got.WriteString(map[string]string{" (done)": "✓", " (under way)": "…", " (to come)": " "}[text.Text()])
			}
			if got.String() != want {
				t.Errorf("%s: the steps are %q, want %q", name, got.String(), want)
			}
		}
	}
}
