package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"rollcall/store"
)

// ready asks /readyz until it answers as wanted, and returns the answer.
func (v *visitor) ready(what string, status int, problems ...string) Readiness {
	v.t.Helper()
	limit := time.Now().Add(patience)
	for {
		got := v.get("/readyz")
		var r Readiness
		if err := json.Unmarshal([]byte(got.body), &r); err != nil {
			v.t.Fatalf("%s: %v", got.body, err)
		}
		if got.status == status && slices.Equal(r.Problems, problems) && r.Ready == (status == http.StatusOK) {
			return r
		}
		if time.Now().After(limit) {
			v.t.Fatalf("%s: got %d %s, want %d %q", what, got.status, got.body, status, problems)
		}
	}
}

// admit lets connections to the test's database in, or keeps new ones out; those that are there stay.
func (b *bench) admit(t *testing.T, yes bool) {
	t.Helper()
	cfg := b.store.Pool().Config().ConnConfig.Copy()
	name := cfg.Database
	cfg.Database = "template1"
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	allow := "ALTER DATABASE " + pgx.Identifier{name}.Sanitize() + " ALLOW_CONNECTIONS false"
	if yes {
		allow = strings.Replace(allow, "false", "true", 1)
	}
	if _, err := conn.Exec(t.Context(), allow); err != nil {
		t.Fatal(err)
	}
}

// TestReadyTellsOfTheListener cuts the connection that live pages hear of changes by while no other can be made: the
// process says so, and once it may connect it is ready by itself and live pages show what they missed.
func TestReadyTellsOfTheListener(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "november", 8)
	watched := v.watch("/batches/" + strconv.FormatInt(s.batch, 10) + "/live")
	watched.until(t, "roll-call")
	v.ready("well", http.StatusOK)
	b.admit(t, false)
	b.exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`)
	got := v.ready("listener cut", http.StatusServiceUnavailable, "live pages are not connected to the database's notifications")
	if got.Listener != "not connected" || got.Database != "ok" || got.Workers != "ok" {
		t.Errorf("listener cut: got %+v", got)
	}
	b.exec(t, `UPDATE batches SET stored_reconcile = stored_reconcile + 1 WHERE id = $1`, s.batch)
	b.admit(t, true)
	v.ready("listener back", http.StatusOK)
	watched.until(t, `data-net="reconcile"`)
	if got := strings.Count(b.log.String(), "live pages lost their listener"); got != 1 {
		t.Errorf("the log tells %d times that the listener is lost, want once", got)
	}
	if !strings.Contains(b.log.String(), "live pages have their listener again") {
		t.Error("the log doesn't tell that the listener is back")
	}
}

func TestReadyTellsOfTheSchema(t *testing.T) {
	t.Parallel()
	wrong := errors.New("20261129000003 is missing in db.internal.example")
	b := setupWith(t, Config{Schema: func(context.Context) error { return wrong }})
	v := b.visit(t)
	got := v.ready("migrated back", http.StatusServiceUnavailable, "the database's migrations are not those of this release")
	if body := v.get("/readyz").body; got.Schema == "ok" || strings.Contains(body, "internal") {
		t.Errorf("got %s, want the schema told of and no internals", body)
	}
}

// TestReadyWithoutPages: where there are pages they stand without workers; a process that has nothing else is not ready.
func TestReadyWithoutPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	h := Health{Store: b.store, Workers: func() error { return errSick }, Log: b.server.log}
	if got := h.Check(t.Context()); got.Ready || got.Workers != "stuck" || !slices.Equal(got.Problems, []string{"the background work is not running"}) {
		t.Errorf("without pages: got %+v", got)
	}
	h.Listening = func() bool { return true }
	if got := h.Check(t.Context()); !got.Ready || len(got.Problems) != 1 {
		t.Errorf("with pages: got %+v, want ready, and the workers told of", got)
	}
}

// TestLiveTriesAgain: what could not be shown, because a connection broke, is shown without another change.
func TestLiveTriesAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "november", 8)
	watched := v.watch("/batches/" + strconv.FormatInt(s.batch, 10) + "/live")
	watched.until(t, "roll-call")
	b.exec(t, `ALTER TABLE batches RENAME TO away`)
	b.exec(t, `SELECT pg_notify('rollcall_batch', $1)`, strconv.FormatInt(s.batch, 10))
	for limit := time.Now().Add(patience); !strings.Contains(b.log.String(), "live page not refreshed"); {
		if time.Now().After(limit) {
			t.Fatal("nothing failed: the test shows nothing")
		}
		v.get("/healthz")
	}
	b.exec(t, `ALTER TABLE away RENAME TO batches`)
	b.exec(t, `UPDATE batches SET stored_reconcile = stored_reconcile + 1 WHERE id = $1`, s.batch)
	watched.until(t, `data-net="reconcile"`)
}
