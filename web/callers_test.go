package web

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// caller is somebody with a session, or with what looks like one.
type caller struct {
	name   string
	cookie string // Empty: none is sent.
	csrf   string
	role   store.Role // Empty: nobody is signed in.
}

// callers are all kinds of people that may ask for a page. The sessions are rows of their own: no password is hashed.
type callers struct {
	in, out  []caller // Signed in, from the least role up; and not.
	stranger caller   // An analyst who owns nothing that the others ask for.
}

// session makes an account and a session for it.
func (b *bench) session(t *testing.T, name string, role store.Role) (caller, int64) {
	t.Helper()
	u := b.addUser(t, name, role)
	c := caller{name: name, cookie: newToken(), csrf: newToken(), role: role}
	data, err := json.Marshal(map[string]string{keyToken: c.csrf})
	if err != nil {
		t.Fatal(err)
	}
	b.exec(t, `INSERT INTO sessions (token_hash, user_id, data, created_at, last_seen_at, expires_at) VALUES ($1, $2, $3, now(), now(), now() + interval '1 day')`,
		tokenHash(c.cookie), u.ID, data)
	return c, u.ID
}

func (b *bench) callers(t *testing.T) callers {
	t.Helper()
	var all callers
	for _, role := range []store.Role{store.RoleAnalyst, store.RoleOperator, store.RoleAdmin} {
		c, _ := b.session(t, string(role), role)
		all.in = append(all.in, c)
	}
	all.stranger, _ = b.session(t, "stranger", store.RoleAnalyst)
	// What a person was doesn't count: the role is that of the request's moment.
	demoted, id := b.session(t, "was an admin", store.RoleAdmin)
	b.exec(t, `UPDATE users SET role = 'analyst' WHERE id = $1`, id)
	demoted.role = store.RoleAnalyst
	all.in = append(all.in, demoted)
	for name, query := range map[string]string{
		"idle":      `UPDATE sessions SET last_seen_at = now() - interval '13 hours' WHERE user_id = $1`,
		"expired":   `UPDATE sessions SET expires_at = now() WHERE user_id = $1`,
		"ended":     `DELETE FROM sessions WHERE user_id = $1`,
		"disabled":  `UPDATE users SET disabled_at = now() WHERE id = $1`,
		"nobody's":  `UPDATE sessions SET user_id = NULL WHERE user_id = $1`,
		"never was": `SELECT $1::bigint`,
	} {
		c, id := b.session(t, name, store.RoleAdmin)
		b.exec(t, query, id)
		if c.role = ""; name == "never was" {
			c.cookie = newToken()
		}
		all.out = append(all.out, c)
	}
	all.out = append(all.out, caller{name: "without a cookie"})
	return all
}

// things are one of each kind that an address can name, under the path before its id. No two kinds share an id, and what
// can belong to a person is the analyst's.
func (b *bench) things(t *testing.T, owner int64) map[string]int64 {
	t.Helper()
	s := b.seed(t, "november", 4)
	hook := b.ourHook(t, "batch_completed", "live")
	replay := b.id(t, `INSERT INTO replays (state, picked, planned_by, planned_at, differing) VALUES ('planned', 'x', 'bob', now(), 1) RETURNING id`)
	b.exec(t, `INSERT INTO replay_differences (replay_id, item_id, job_id, found_at, version, kept, markdown) VALUES ($1, $2, $3, now(), 1, true, '# Other')`, replay, s.items[0], s.job)
	subject := b.addUser(t, "subject", store.RoleAnalyst)
	sent := b.seed(t, pipeline.TestName("batch_completed"), 1)
	refused := b.deliver(t, s.vendorID, "refused", []byte("{}"))
	b.pipeline.stored = map[int64]pipeline.Verification{refused: {}}
	return map[string]int64{
		"/replays/:item": s.items[0], "/webhooks/:batch": sent.batch, "/deliveries": refused,
		"/batches": s.batch, "/jobs": s.job, "/items": s.items[0], "/results": s.items[0], "/webhooks": hook, "/replays": replay, "/users": subject.ID,
		"/preflights": b.id(t, `INSERT INTO preflights (created_by, created_at, expires_at, name, kind, options, upload_name, upload_size, choices, stored_days)
			VALUES ($1, now(), now() + interval '1 day', 'p', 'batch', '{"formats":["markdown"]}', '', 0, '{}', 0) RETURNING id`, owner),
		"/exports": b.id(t, `INSERT INTO exports (owner_id, made_by, created_at, state, name, picked, filter, choices, sha256, manifest, ended_at, expires_at, held)
			VALUES ($1, 'analyst', now(), 'done', 'x.csv', 'all', '{}', '{"format":"csv"}', '\x00', '{}', now(), now() + interval '1 day', true) RETURNING id`, owner),
		"/schedules": b.id(t, `INSERT INTO schedules (name, template_batch_id, cron, zone, created_at, next_at) VALUES ('s', $1, '0 6 * * *', 'UTC', now(), now()) RETURNING id`, s.batch),
		"/users/invites": b.id(t, `INSERT INTO invites (token_hash, name, role, made_by, created_at, expires_at)
			VALUES ('\x00', 'erin', 'analyst', 'admin', now(), now() + interval '1 day') RETURNING id`),
		"/account/sessions": b.id(t, `SELECT id FROM sessions WHERE user_id = $1`, owner),
	}
}

// firstEvent is what a handler answers, without a socket in between: there are thousands of them.
type firstEvent struct {
	*httptest.ResponseRecorder
	stop context.CancelFunc
}

// Flush implements http.Flusher: the first event of an endless answer is enough.
func (a firstEvent) Flush() { a.stop() }

// ask sends a request with the caller's cookie.
func (b *bench) ask(t *testing.T, c caller, method, path string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	r := httptest.NewRequestWithContext(ctx, method, "http://desk.example"+path, strings.NewReader(form.Encode()))
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if c.cookie != "" {
		r.AddCookie(&http.Cookie{Name: "rollcall", Value: c.cookie})
	}
	a := firstEvent{httptest.NewRecorder(), stop}
	b.server.Handler().ServeHTTP(a, r)
	return a.ResponseRecorder
}

// form is what the caller's own page would send: what some routes need before they look for the thing itself.
func (c caller) form() url.Values {
	return url.Values{csrfField: {c.csrf}, "reading": {"1"}, "job": {"7"}}
}
