package web

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"rollcall/store"
	"rollcall/store/storetest"
)

// beside is another server on the bench's database, as a second replica is.
func (b *bench) beside(t *testing.T, cfg Config) *bench {
	t.Helper()
	other := &bench{
		store: storetest.Open(t, b.store.Pool().Config().ConnString()), pipeline: newFakePipeline(), clock: b.clock, log: &lockedBuffer{},
	}
	var err error
	other.server, err = New(cfg, other.store, other.pipeline, slog.New(slog.NewTextHandler(other.log, nil)), other.clock.now)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(other.server.Handler())
	other.url = front.URL
	t.Cleanup(func() {
		other.server.Close()
		front.Close()
	})
	return other
}

// TestStreamsEndAtOnce: whatever ends a session ends its live pages on every
// replica, long before their heartbeat would.
func TestStreamsEndAtOnce(t *testing.T) {
	t.Parallel()
	cfg := Config{beat: time.Hour}
	b := setupWith(t, cfg)
	other := b.beside(t, cfg)
	s := b.seed(t, "november", 8)
	path := fmt.Sprintf("/batches/%d/live", s.batch)
	admin := other.as(t, store.RoleAdmin)
	for name, end := range map[string]func(u *store.User, v *visitor){
		"disable":   func(u *store.User, _ *visitor) { admin.submit("/users/"+idText(u.ID)+"/disable", nil) },
		"reset":     func(u *store.User, _ *visitor) { admin.submit("/users/"+idText(u.ID)+"/reset", nil) },
		"sign out":  func(u *store.User, _ *visitor) { admin.submit("/users/"+idText(u.ID)+"/sign-out", nil) },
		"their own": func(_ *store.User, v *visitor) { v.submit("/sign-out", nil) },
	} {
		v, stays := b.as(t, store.RoleOperator), b.as(t, store.RoleOperator)
		u := v.person()
		watched, kept := v.watch(path), stays.watch(path)
		watched.until(t, "roll-call")
		kept.until(t, "roll-call")
		end(u, v)
		watched.ended(t)
		if err := b.store.Notify(t.Context(), s.batch); err != nil {
			t.Fatal(err)
		}
		kept.until(t, "roll-call")
		if got := v.watch(path); got.resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: opened again: got %d, want 401", name, got.resp.StatusCode)
		}
	}
}

// TestStreamsEndWithTheRole: a page that only another role may watch.
func TestStreamsEndWithTheRole(t *testing.T) {
	t.Parallel()
	b := setupWith(t, Config{beat: time.Hour})
	c := b.server.echo.NewContext(httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder())
	v := b.as(t, store.RoleAdmin)
	b.as(t, store.RoleAdmin)
	u := v.person()
	for _, cookie := range v.client.Jar.Cookies(v.request(http.MethodGet, "/", nil).URL) {
		c.Request().AddCookie(cookie)
	}
	if err := b.server.identify(c); err != nil {
		t.Fatal(err)
	}
	c.Set(keyAccess, admins)
	defer b.server.open.join(c)()
	if err := b.store.SetRole(t.Context(), u.ID, store.RoleOperator, b.clock.now()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Request().Context().Done():
	case <-time.After(patience):
		t.Error("an admin's stream goes on for an operator")
	}
}

// TestStreamsEndAfterAMissedNotification: what happened while the listener was
// lost counts when it is back.
func TestStreamsEndAfterAMissedNotification(t *testing.T) {
	t.Parallel()
	b := setupWith(t, Config{beat: time.Hour})
	s := b.seed(t, "november", 8)
	watched := b.as(t, store.RoleAnalyst).watch(fmt.Sprintf("/batches/%d/live", s.batch))
	watched.until(t, "roll-call")
	b.exec(t, `DELETE FROM sessions`) // Tells nobody.
	b.exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`)
	watched.ended(t)
}
