package web

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"rollcall/internal/geonode"
	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
	"rollcall/store/storetest"
)

// act is one route that changes something, or hands data out, done so that it
// succeeds. They are done in order, on one database, with the actual pipeline.
type act struct {
	route string // As in the table: its method and its path.
	path  string // As asked for; empty is the route's own.
	form  url.Values
	what  string // The line that it leaves in the audit log.
	// before brings about what the route needs.
	before func(t *testing.T, b *bench)
}

// A reason is why a route isn't among the acts: a test elsewhere holds its
// line, named by folder and name, or there is nothing to write.
type reason struct{ test, nothing string }

// unaudited are the routes that aren't done here, each with its reason.
func unaudited() map[string]reason {
	return map[string]reason{
		"POST " + webhookPath:                         {nothing: "a delivery is a record of its own"},
		"GET /exports/:id/manifest.json":              {nothing: "it tells of a file, and has nothing of it"},
		"POST /preflights/:id/choices":                {nothing: "it only looks: what was pasted is read in another way"},
		"POST " + checkPath:                           {nothing: "it only looks: what is pasted isn't kept"},
		"POST " + setUpPath:                           {test: "web TestSetUpIsAudited"},
		"POST " + signInPath:                          {test: "web TestSignInsAreAudited"},
		"POST /sign-out":                              {test: "web TestSignInsAreAudited"},
		"POST " + invitePrefix + ":token":             {test: "store TestInviteIsGoodOnceAndForAWhile"},
		"POST /webhooks/adopt":                        {test: "internal/pipeline TestAdoptedWebhookDeliversHere"},
		"POST /replays/:id/differences/:item/replace": {test: "internal/pipeline TestRefetchComparesAndReplaces"},
	}
}

func acts() []act {
	soon := strconv.FormatInt(time.Now().Add(50*time.Second).UnixMicro(), 10) // After what is cancelled before.
	return []act{
		{route: "POST /batches", form: url.Values{"urls": {"https://shop.sandbox.test/a"}, "format": {"markdown"}}, what: "batch.submit"},
		{route: "POST /crawls", form: url.Values{"urls": {"https://shop.sandbox.test/"}, "format": {"markdown"}, "depth": {"1"}, "limit": {"5"}}, what: "batch.submit"},
		{route: "POST /try", form: url.Values{"urls": {"https://shop.sandbox.test/b"}, "format": {"markdown"}}, what: "batch.try"},
		{route: "POST /jobs/:id/settle", path: "/jobs/1/settle", what: "job.settle"},
		{route: "POST /jobs/cancel", form: url.Values{"job": {"1"}}, what: "job.cancel"},
		{route: "POST /batches/:id/cancel", path: "/batches/2/cancel", what: "batch.cancel"},
		{route: "POST /resubmit", form: url.Values{"item": {"2"}, "before": {soon}}, what: "item.resubmit"},
		{route: "POST /failures/resolve", form: url.Values{"set": {freeze([]int64{2})}, "before": {soon}, "note": {"gone\x00"}}, what: "item.resolve", before: func(t *testing.T, b *bench) {
			t.Helper()
			b.exec(t, `UPDATE items SET state = 'failed', error_code = 'X', ended_at = now() - interval '1 min' WHERE id = 2`)
		}},
		{route: "POST /failures/unresolve", form: url.Values{"item": {"2"}}, what: "item.unresolve"},
		{route: "POST /batches/:id/ask", path: "/batches/1/ask", form: url.Values{"job": {"1"}}, what: "job.settle"},
		{route: "GET /results/:id/download", path: "/results/%d/download", what: "export.result"},
		{route: "POST /compare/batches", form: url.Values{"a": {"1"}, "b": {"2"}}, what: "batch.compare"},
		{route: "POST /exports", form: url.Values{"batch": {"1"}, "format": {"csv"}, "behind": {"on"}, "once": {"e"}}, what: "export.make"},
		{route: "POST /exports/:id/cancel", path: "/exports/1/cancel", what: "export.cancel"},
		{route: "GET /batches/:id/export", path: "/batches/1/export?format=csv", what: "export.items"},
		{route: "GET /exports/items", path: "/exports/items?format=jsonl", what: "export.items"},
		{route: "GET /exports/:id/download", path: "/exports/1/download", what: "export.download", before: func(t *testing.T, b *bench) {
			t.Helper()
			b.exec(t, `UPDATE exports SET state = 'done', sha256 = '\x00' WHERE id = 1`)
		}},
		{route: "POST /exports/:id/delete", path: "/exports/1/delete", what: "export.delete"},
		{route: "POST /reconcile", what: "reconcile.run"},
		{route: "POST /dispatch/resume", what: "dispatch.resume", before: func(t *testing.T, b *bench) {
			t.Helper()
			b.exec(t, `INSERT INTO gates (name, paused_at, paused_status) VALUES ('submit', now(), 401)
				ON CONFLICT (name) DO UPDATE SET paused_at = now(), paused_status = 401`)
		}},
		{route: "POST /deliveries/:id/verify", path: "/deliveries/1/verify", what: "delivery.verify", before: func(t *testing.T, b *bench) {
			t.Helper()
			b.deliver(t, "vendor-x", "refused", []byte("{}"))
		}},
		{route: "GET /deliveries/:id/body", path: "/deliveries/1/body", what: "export.delivery"},
		{route: "POST " + replaysPath, form: url.Values{pickJob: {"1"}, "once": {"x"}}, what: "replay.plan"},
		{route: "POST /replays/:id/run", path: "/replays/1/run", what: "replay.run"},
		{route: "POST /replays/:id/pause", path: "/replays/1/pause", what: "replay.pause"},
		{route: "POST /replays/:id/resume", path: "/replays/1/resume", what: "replay.resume"},
		{route: "POST /replays/:id/cancel", path: "/replays/1/cancel", what: "replay.cancel"},

		{route: "POST /webhooks/register", what: "webhook.register"},
		{route: "POST /deliveries/log/read", what: "delivery_log.read"},
		{route: "POST /webhooks/:id/pause", path: "/webhooks/1/pause", what: "webhook.pause"},
		{route: "POST /webhooks/:id/resume", path: "/webhooks/1/resume", what: "webhook.resume"},
		{route: "POST /webhooks/:id/describe", path: "/webhooks/1/describe", form: url.Values{"description": {"new\x00words"}}, what: "webhook.describe"},
		{route: "POST /webhooks/:id/form", path: "/webhooks/1/form", form: url.Values{"encoding": {"hex"}, "prefix": {"none"}, "signed": {"body"}, "key": {"whole"}}, what: "webhook.form"},
		{route: "POST /webhooks/:id/send", path: "/webhooks/1/send", form: url.Values{"url": {"https://shop.sandbox.test/c"}}, what: "batch.submit"},
		{route: "POST /webhooks/:id/rotate", path: "/webhooks/1/rotate", what: "webhook.rotate"},
		{route: "POST /webhooks/check/form", form: url.Values{"webhook": {"1"}, "form": {"auto"}}, what: "webhook.form"},
		{route: "POST /webhooks/:id/repair", path: "/webhooks/3/repair", what: "webhook.repair", before: func(t *testing.T, b *bench) {
			t.Helper()
			b.exec(t, `UPDATE webhooks SET url = 'https://old.example/x' WHERE id = 3`)
		}},
		{route: "POST /webhooks/:id/remove", path: "/webhooks/2/remove", what: "webhook.remove"},

		{route: "POST /preflights", form: url.Values{"urls": {"https://shop.sandbox.test/d"}, "format": {"markdown"}}, what: "preflight.make"},
		{route: "GET /preflights/:id/rejected.csv", path: "/preflights/1/rejected.csv", what: "export.rejected"},
		{route: "POST /preflights/:id/submit", path: "/preflights/1/submit", form: url.Values{"reading": {"1"}}, what: "batch.submit"},
		{route: "GET /batches/:id/rejected.csv", path: "/batches/1/rejected.csv", what: "export.rejected"},

		{route: "POST /batches/:id/rerun", path: "/batches/1/rerun", form: url.Values{"which": {"all"}, "name": {"again\x00"}, "once": {"r"}}, what: "batch.rerun"},
		{route: "POST /schedules", form: url.Values{"batch": {"1"}, "name": {"each day\x00"}, "pick": {"daily"}, "time": {"06:00"}, "zone": {"UTC"}, "once": {"s"}}, what: "schedule.make"},
		{route: "POST /schedules/:id/change", path: "/schedules/1/change", form: url.Values{"name": {"each hour"}, "pick": {"cron"}, "cron": {"0 * * * *"}, "zone": {"UTC"}}, what: "schedule.change"},
		{route: "POST /schedules/:id/pause", path: "/schedules/1/pause", what: "schedule.pause"},
		{route: "POST /schedules/:id/resume", path: "/schedules/1/resume", what: "schedule.resume"},
		{route: "POST /schedules/:id/run", path: "/schedules/1/run", what: "schedule.run"},
		{route: "POST /schedules/:id/remove", path: "/schedules/1/remove", what: "schedule.remove"},

		{route: "POST /users/invite", form: url.Values{"name": {"erin"}, "role": {"analyst"}}, what: "user.invite"},
		{route: "POST /users/invites/:id/revoke", path: "/users/invites/1/revoke", what: "user.revoke_link"},
		{route: "POST /users/:id/role", path: "/users/1/role", form: url.Values{"role": {"operator"}}, what: "user.role"},
		{route: "POST /users/:id/sign-out", path: "/users/1/sign-out", what: "user.end_sessions"},
		{route: "POST /users/:id/reset", path: "/users/1/reset", what: "user.reset_password"},
		{route: "POST /users/:id/disable", path: "/users/1/disable", what: "user.disable"},
		{route: "POST /users/:id/enable", path: "/users/1/enable", what: "user.enable"},
		{route: "GET /audit.csv", what: "export.audit"},
		{route: "GET /audit.jsonl", what: "export.audit"},
		{route: "POST /account/settings", form: url.Values{"time_zone": {"Europe/Berlin"}, "theme": {"dark"}}, what: "user.settings"},
		{route: "POST /account/password", form: passwordForm(password, password+"!"), what: "user.password"},
		{route: "POST /account/sessions/end", what: "user.end_sessions"},
		{route: "POST /account/sessions/:id/end", path: "/account/sessions/%d/end", what: "user.end_session"},
	}
}

// setupIdle is a server on the actual pipeline, which runs no workers, with
// the sandbox as vendor.
func setupIdle(t *testing.T) *bench {
	t.Helper()
	box, err := sandbox.New(sandbox.Config{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	vendor := httptest.NewServer(box.Handler())
	transport := &http.Transport{}
	client, err := geonode.New(geonode.Config{BaseURL: vendor.URL, APIKey: sandbox.DefaultAPIKey, Now: time.Now, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{store: storetest.New(t), clock: &clock{}, log: &lockedBuffer{}}
	logger := slog.New(slog.NewTextHandler(b.log, nil))
	const public = "https://desk.example"
	pipe, err := pipeline.New(pipeline.Config{
		Store: b.store, Vendor: client, Now: time.Now, Key: bytes.Repeat([]byte{7}, 32), Account: "test", Logger: logger,
		PublicURL: public, OnlySubmit: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := pipe.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b.server, err = New(Config{PublicURL: public}, b.store, pipe, logger, b.clock.now); err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(b.server.Handler())
	b.url = front.URL
	t.Cleanup(func() {
		b.server.Close()
		front.Close()
		if err := pipe.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		client.Close()
		transport.CloseIdleConnections()
		vendor.Close()
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// TestWhatChangesIsAudited goes over the table of routes: whatever changes
// something, or hands data out as a file, leaves a line under the name of who
// asked, or says above why not.
func TestWhatChangesIsAudited(t *testing.T) {
	t.Parallel()
	b := setupIdle(t)
	bob := b.addUser(t, "bob", store.RoleAnalyst)
	if bob.ID != 1 {
		t.Fatalf("bob has id %d", bob.ID)
	}
	admin := b.as(t, store.RoleAdmin)
	seen := b.seed(t, "november", 4)
	covered := map[string]bool{}
	for _, a := range acts() {
		covered[a.route] = true
		b.act(t, admin, a, seen)
	}
	for route, why := range unaudited() {
		if covered[route] {
			t.Errorf("%s is done, and said not to be", route)
		}
		covered[route] = true
		if why.nothing == "" && !testThere(t, why.test) {
			t.Errorf("%s: there is no test %q that holds its line", route, why.test)
		}
	}
	for _, r := range b.server.routes() {
		route := r.method + " " + r.path
		if (r.method == http.MethodPost || handsOut(r)) && !covered[route] {
			t.Errorf("%s changes something or hands data out: add it to acts in audited_test.go, done so that it succeeds, "+
				"with the line it leaves in the audit log (tx.Audit, in the transaction of the change); or to unaudited with a reason", route)
		}
	}
}

// testThere reports whether there is a test of that folder and name.
func testThere(t *testing.T, test string) bool {
	t.Helper()
	folder, name, _ := strings.Cut(test, " ")
	files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)") {
			return true
		}
	}
	return false
}

// handsOut reports a route that gives data away as a file.
func handsOut(r route) bool {
	for _, mark := range []string{"download", ".csv", ".json"} {
		if strings.Contains(r.path, mark) {
			return true
		}
	}
	return r.long || strings.HasSuffix(r.path, "/export")
}

// act does one thing and looks for its line.
func (b *bench) act(t *testing.T, admin *visitor, a act, seen seed) {
	t.Helper()
	method, path, _ := strings.Cut(a.route, " ")
	if a.path != "" {
		path = a.path
	}
	who := admin.person()
	switch {
	case strings.HasPrefix(path, "/results/"):
		path = strings.Replace(path, "%d", idText(seen.items[0]), 1)
	case strings.HasPrefix(path, "/account/sessions/%d"):
		path = strings.Replace(path, "%d", idText(b.id(t, `SELECT max(id) FROM sessions WHERE user_id = $1`, who.ID)), 1)
	}
	if a.before != nil {
		a.before(t, b)
	}
	last := b.id(t, `SELECT coalesce(max(id), 0) FROM audit_log`)
	got := admin.act(method, path, a.form)
	if got.status != http.StatusSeeOther && (method == http.MethodPost || got.status != http.StatusOK) {
		t.Errorf("%s: got %d, want success: %s", a.route, got.status, got.text("main"))
		return
	}
	lines := b.id(t, `SELECT count(*) FROM audit_log WHERE id > $1 AND what = $2 AND user_id = $3 AND who = $4 AND source = '127.0.0.1'`,
		last, a.what, who.ID, who.Name)
	if lines == 0 {
		t.Errorf("%s: no line %s of %s in the audit log; the newest are %q", a.route, a.what, who.Name, b.audited(t)[:2])
	}
}

func (v *visitor) act(method, path string, form url.Values) page {
	v.t.Helper()
	if method == http.MethodGet {
		return v.get(path)
	}
	return v.submit(path, form)
}

func TestSetUpIsAudited(t *testing.T) {
	t.Parallel()
	b := setup(t)
	token, err := b.server.EnsureSetupToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := b.visit(t).post("/setup", setUpForm(token)); got.status != http.StatusSeeOther {
		t.Fatalf("got %d", got.status)
	}
	if got := b.audited(t); strings.Join(got, ", ") != "root user.sign_in root, root user.set_up root" {
		t.Errorf("got %q", got)
	}
}
