package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// ourHook inserts a webhook of ours and returns its id.
func (b *bench) ourHook(t *testing.T, event, state string) int64 {
	t.Helper()
	return b.id(t, `INSERT INTO webhooks (endpoint, event_type, url, state, vendor_webhook_id, created_at, state_at)
		VALUES ('endpoint' || md5($1 || $2), $1, 'https://desk.example/webhooks/geonode/endpoint' || md5($1 || $2), $2, 'vendor-' || $1, now(), now()) RETURNING id`, event, state)
}

func setupHooks(t *testing.T) *bench {
	t.Helper()
	return setupWith(t, Config{Sandbox: true, PublicURL: "https://desk.example"})
}

// TestWebhooksPage shows what is ours, what each secret verified, what the
// vendor has besides, and how much of the allowance is used.
func TestWebhooksPage(t *testing.T) {
	t.Parallel()
	b := setupHooks(t)
	id := b.ourHook(t, "extract_completed", "live")
	b.exec(t, `INSERT INTO webhook_secrets (webhook_id, version, sealed, valid_from, valid_until) VALUES
		($1, 1, '\x00', now() - interval '2 d', now() + interval '1 h'), ($1, 2, '\x00', now() - interval '1 d', NULL)`, id)
	b.exec(t, `INSERT INTO deliveries (webhook_id, received_at, verdict, status, secret_version, headers, body, body_size)
		SELECT $1, now() - n * interval '1 s', 'accepted', 200, 1 + n % 2, '{}', '', 0 FROM generate_series(1, 7) n`, id)
	b.pipeline.vendor = pipeline.AtVendor{Asked: true, Used: 2, Most: 10, Foreign: []pipeline.VendorWebhook{
		{ID: "theirs", URL: "https://user:hush@elsewhere.example/hook?key=hush", Event: "crawl_completed", Inactive: true},
	}}
	v := b.as(t, store.RoleAdmin)
	list := v.get("/webhooks")
	for selector, want := range map[string]string{
		"[data-testid=webhooks] tbody":   "extract_completed Webhook " + idText(id) + " https:// desk. example/ webhooks/ geonode/",
		"[data-testid=webhooks] td + td": "4 version 2 3 version 1",
		"[data-testid=used]":             "Of the account's 10 webhooks 2 are used.",
		"[data-testid=foreign] tbody":    "crawl_completed https:// elsewhere. example/ hook Off",
		"[data-testid=register]":         "Register what is missing",
	} {
		if got := list.text(selector); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q in it", selector, got, want)
		}
	}
	if strings.Contains(list.body, "hush") {
		t.Error("a secret of somebody else's address is on the page")
	}
	if got := list.doc.Find("[data-testid=webhooks] .address").Text(); !strings.HasPrefix(got, "https://desk.example/webhooks/geonode/") {
		t.Errorf("got the address %q, want nothing between its pieces", got)
	}
	one := v.get("/webhooks/" + idText(id))
	if got := one.text(".facts"); !strings.Contains(got, "Webhook "+idText(id)) {
		t.Errorf("got %q, want the number", got)
	}
	if got := one.text("[data-testid=secrets] tbody"); !inOrder(got, "Version 2", "In use", "4", "Version 1", "Still accepted", "3") {
		t.Errorf("secrets: got %q", got)
	}
	b.exec(t, `UPDATE webhooks SET state = 'removed'`)
	if got := v.get("/webhooks/" + idText(id)); got.status != http.StatusNotFound {
		t.Errorf("a removed one: got %d, want 404", got.status)
	}
}

// TestWebhooksPageWithoutTheVendor still shows ours, and says what it can't know.
func TestWebhooksPageWithoutTheVendor(t *testing.T) {
	t.Parallel()
	b := setupHooks(t)
	b.ourHook(t, "extract_completed", "live")
	b.pipeline.vendor = pipeline.AtVendor{Most: 10, Trouble: "the vendor did not answer"}
	got := b.as(t, store.RoleAdmin).get("/webhooks")
	if text := got.text("main"); got.status != http.StatusOK || !inOrder(text, "could not be asked", "extract_completed", "the account's 10 webhooks are used isn't known") {
		t.Errorf("got %d %q", got.status, text)
	}
	b.pipeline.vendor = pipeline.AtVendor{Most: 10, Trouble: "the vendor answered 403", Unavailable: "The vendor says that webhooks aren't available."}
	if text := b.as(t, store.RoleAdmin).get("/webhooks").text("[data-testid=unavailable]"); !strings.Contains(text, "aren't available") {
		t.Errorf("got %q, want the explanation", text)
	}
}

// TestWebhooksPageWithoutCounts shows a dash for what can't be counted in time,
// and the versions all the same.
func TestWebhooksPageWithoutCounts(t *testing.T) {
	t.Parallel()
	b := setupHooks(t)
	id := b.ourHook(t, "extract_completed", "live")
	b.exec(t, `INSERT INTO webhook_secrets (webhook_id, version, sealed, valid_from) VALUES ($1, 1, '\x00', now())`, id)
	v := b.as(t, store.RoleAdmin)
	tx, err := b.store.SQL().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), `LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	if got := v.get("/webhooks/" + idText(id)).text("[data-testid=secrets] tbody"); !inOrder(got, "Version 1", "In use", "–") {
		t.Errorf("got %q, want the version and a dash", got)
	}
}

// TestWebhookButtons each ask for one thing, and say what came of it.
func TestWebhookButtons(t *testing.T) {
	t.Parallel()
	b := setupHooks(t)
	id := idText(b.ourHook(t, "extract_completed", "live"))
	v := b.as(t, store.RoleAdmin)
	for _, c := range []struct {
		path, asked, to string
		form            url.Values
	}{
		{"/webhooks/register", "register", "/webhooks", nil},
		{"/webhooks/" + id + "/pause", "pause " + id, "/webhooks/" + id, nil},
		{"/webhooks/" + id + "/resume", "resume " + id, "/webhooks/" + id, nil},
		{"/webhooks/" + id + "/repair", "repair " + id, "/webhooks/" + id, nil},
		{"/webhooks/" + id + "/describe", "describe " + id + " a b", "/webhooks/" + id, url.Values{"description": {" a b "}}},
		{"/webhooks/" + id + "/form", "form " + id + " ", "/webhooks/" + id, url.Values{"to": {"auto"}}},
		{"/webhooks/" + id + "/form", "form " + id + " body whole v1, hex", "/webhooks/" + id, url.Values{"to": {"this"}, "signed": {"body"}, "key": {"whole"}, "prefix": {"v1,"}, "encoding": {"hex"}}},
		{"/webhooks/adopt", "adopt theirs s3cret", "/webhooks/1", url.Values{"webhook": {"theirs"}, "secret": {"s3cret"}}},
		{"/webhooks/" + id + "/remove", "remove " + id, "/webhooks", nil},
	} {
		got := v.submit(c.path, c.form)
		if got.status != http.StatusSeeOther || got.header.Get("Location") != c.to {
			t.Errorf("%s: got %d to %q, want 303 to %q", c.path, got.status, got.header.Get("Location"), c.to)
		}
		if all := b.pipeline.all(); len(all) == 0 || all[len(all)-1] != c.asked {
			t.Errorf("%s: got %q asked, want %q", c.path, all, c.asked)
		}
		if note := v.get("/webhooks").doc.Find("main .note-success").Length(); note != 1 {
			t.Errorf("%s: got %d notes, want one", c.path, note)
		}
	}
}

// TestWebhookRefusals: a button's goes to the page it was pressed on, a form's
// brings back what was typed, but never a secret.
func TestWebhookRefusals(t *testing.T) {
	t.Parallel()
	b := setupHooks(t)
	id := idText(b.ourHook(t, "extract_completed", "live"))
	v := b.as(t, store.RoleAdmin)
	b.pipeline.refuse = &pipeline.WebhookError{Text: "The vendor answered 418."}
	for _, path := range []string{"/webhooks/register", "/webhooks/" + id + "/pause", "/webhooks/" + id + "/remove"} {
		got := v.submit(path, nil)
		if note := v.get(got.header.Get("Location")).text("main .note-danger"); got.status != http.StatusSeeOther || !strings.Contains(note, "418") {
			t.Errorf("%s: got %d and %q, want the reason on the next page", path, got.status, note)
		}
	}
	b.pipeline.vendor = pipeline.AtVendor{Asked: true, Most: 10, Foreign: []pipeline.VendorWebhook{{ID: "other"}, {ID: "theirs"}}}
	b.pipeline.refuse = &pipeline.WebhookError{Field: "secret", Text: "That is too short."}
	got := v.submit("/webhooks/adopt", url.Values{"webhook": {"theirs"}, "secret": {"very-secret"}})
	if picked, _ := got.doc.Find("input[name=webhook]").Attr("value"); got.status != http.StatusUnprocessableEntity || picked != "theirs" ||
		strings.Contains(got.body, "very-secret") || !strings.Contains(got.text("#secret-error"), "too short") {
		t.Errorf("adopt: got %d, picked %q, %q", got.status, picked, got.text("main"))
	}
	b.pipeline.refuse = &pipeline.WebhookError{Field: "description", Text: "Too long."}
	got = v.submit("/webhooks/"+id+"/describe", url.Values{"description": {"typed by me"}})
	if value, _ := got.doc.Find("#description").Attr("value"); got.status != http.StatusUnprocessableEntity || value != "typed by me" || got.text("#description-error") == "" {
		t.Errorf("describe: got %d and %q", got.status, value)
	}
	b.pipeline.refuse = &pipeline.InvalidSubmission{Lines: []pipeline.BadLine{{Number: 1, Text: "x", Reason: "has no host"}}}
	got = v.submit("/webhooks/"+id+"/send", url.Values{"url": {"nonsense://typed"}})
	if value, _ := got.doc.Find("#url").Attr("value"); got.status != http.StatusUnprocessableEntity || value != "nonsense://typed" || !strings.Contains(got.text("#url-error"), "has no host") {
		t.Errorf("send: got %d, %q, %q", got.status, value, got.text("#url-error"))
	}
	b.pipeline.refuse = errors.New("broken on purpose")
	if got := v.submit("/webhooks/"+id+"/pause", nil); got.status != http.StatusInternalServerError || strings.Contains(got.body, "on purpose") {
		t.Errorf("our own fault: got %d: %s", got.status, got.text("main"))
	}
}

// TestOnlyAdminsSeeTheRepair of what everybody is alarmed of.
func TestOnlyAdminsSeeTheRepair(t *testing.T) {
	t.Parallel()
	b := setupHooks(t)
	id := idText(b.ourHook(t, "extract_completed", "moved"))
	for role, want := range map[store.Role]int{store.RoleAnalyst: 0, store.RoleOperator: 0, store.RoleAdmin: 1} {
		got := b.as(t, role).get("/")
		if n := got.doc.Find(`.note-danger form[action="/webhooks/` + id + `/repair"]`).Length(); n != want || !strings.Contains(got.text(".note-danger"), "another address or event") {
			t.Errorf("%s: got %d buttons, want %d, in %q", role, n, want, got.text(".note-danger"))
		}
	}
}

// TestSentOnePage follows a test's job, and no other's.
func TestSentOnePage(t *testing.T) {
	t.Parallel()
	b := setupHooks(t)
	id := b.ourHook(t, "batch_completed", "live")
	other := b.ourHook(t, "crawl_completed", "live")
	s, ordinary := b.seed(t, pipeline.TestName("batch_completed"), 1), b.seed(t, "test", 1)
	b.deliver(t, s.vendorID, "accepted", []byte("{}"))
	b.exec(t, `UPDATE deliveries SET webhook_id = $1, secret_version = 3`, id)
	v := b.as(t, store.RoleAdmin)
	b.pipeline.sent = pipeline.Submitted{BatchID: s.batch}
	got := v.submit("/webhooks/"+idText(id)+"/send", url.Values{"url": {"https://example.com/"}})
	if want := sentPath(id, s.batch); got.status != http.StatusSeeOther || got.header.Get("Location") != want {
		t.Fatalf("got %d to %q, want 303 to %q", got.status, got.header.Get("Location"), want)
	}
	page := v.get(sentPath(id, s.batch))
	if text := page.text("[data-testid=hops]"); !inOrder(text, "Submitted", "Accepted", "Delivery received", "Verified", "by version 3", "Stored", "Settled", "by webhook") {
		t.Errorf("hops: got %q", text)
	}
	watched := v.watch(sentPath(id, s.batch) + "/live")
	watched.until(t, "event: done")
	for _, path := range []string{sentPath(other, s.batch), sentPath(id, ordinary.batch), sentPath(id, 999), sentPath(id, s.batch) + "0x", sentPath(999, s.batch)} {
		if got := v.get(path); got.status != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", path, got.status)
		}
	}
}

// seedTest is a test's batch that polling brought home before any good delivery
// came: the webhook refused the first attempt.
func (b *bench) seedTest(t *testing.T, webhook int64) seed {
	t.Helper()
	s := b.seed(t, pipeline.TestName("batch_completed"), 1)
	b.exec(t, `UPDATE jobs SET settle_net = 'poll' WHERE id = $1`, s.job)
	b.deliver(t, "", "refused", []byte(`{"job_id":"`+s.vendorID+`"}`))
	b.exec(t, `UPDATE deliveries SET webhook_id = $1, received_at = now(), status = 401, reason = 'signature does not match'`, webhook)
	return s
}

// TestSentOneIsFollowedUntilItsDeliveryCame though the job has come home by
// polling and the first attempt was refused.
func TestSentOneIsFollowedUntilItsDeliveryCame(t *testing.T) {
	t.Parallel()
	b := setupHooks(t)
	id := b.ourHook(t, "batch_completed", "live")
	s := b.seedTest(t, id)
	v, path := b.as(t, store.RoleAdmin), sentPath(id, s.batch)
	got := v.get(path)
	if verdict := got.text("[data-testid=verdict]"); !strings.Contains(verdict, "So far it has failed at this hop: Verified") || got.doc.Find("#live").Length() != 1 {
		t.Fatalf("got %q and %d streams, want it followed", verdict, got.doc.Find("#live").Length())
	}
	watched := v.watch(path + "/live")
	if first := watched.until(t, "event: "); strings.Contains(first, "done") {
		t.Fatalf("got %q, want the stream to go on", first)
	}
	good := b.deliver(t, s.vendorID, "accepted", []byte("{}"))
	b.exec(t, `UPDATE deliveries SET webhook_id = $1, secret_version = 1 WHERE id = $2`, id, good)
	watched.until(t, "event: done")
	got = v.get(path)
	if verdict := got.text("[data-testid=verdict]"); !strings.Contains(verdict, "came all the way") || got.doc.Find("#live").Length() != 0 {
		t.Errorf("got %q and %d streams, want it done", verdict, got.doc.Find("#live").Length())
	}
}

// TestSentOneIsFollowedNoLonger than a retry is waited for, and says so.
func TestSentOneIsFollowedNoLonger(t *testing.T) {
	t.Parallel()
	b := setupHooks(t)
	id := b.ourHook(t, "batch_completed", "live")
	s := b.seedTest(t, id)
	v, path := b.as(t, store.RoleAdmin), sentPath(id, s.batch)
	watched := v.watch(path + "/live")
	if first := watched.until(t, "event: "); strings.Contains(first, "done") {
		t.Fatalf("got %q, want the stream to go on", first)
	}
	b.clock.advance(retryFor)
	watched.until(t, "event: done")
	got := v.get(path)
	if text := got.text("main"); !inOrder(text, "It failed at this hop: Verified", "no good one followed while it was waited for") || got.doc.Find("#live").Length() != 0 {
		t.Errorf("got %q and %d streams, want it given up", text, got.doc.Find("#live").Length())
	}
}

// TestHops names the hop that failed or takes too long, whatever it is.
func TestHops(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 14, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *time.Time { at := now.Add(-d); return &at }
	hook := &store.Webhook{ID: 3, State: store.WebhookLive, EventType: "extract_completed"}
	sent := store.TestJob{BatchID: 1, JobID: 1, ItemID: 1, CreatedAt: *ago(2 * time.Minute), JobState: store.JobIntended, ItemState: store.ItemOutstanding}
	accepted := sent
	accepted.AcceptedAt, accepted.VendorJobID, accepted.JobState = ago(110*time.Second), "v", store.JobAccepted
	polled := accepted
	polled.EndedAt, polled.JobState, polled.SettleNet, polled.VendorStatus = ago(time.Minute), store.JobSettled, store.NetPoll, "completed"
	polled.ItemState, polled.ItemEndedAt, polled.ItemNet = store.ItemStored, ago(time.Minute), store.NetPoll
	waitedFor := polled
	waitedFor.CreatedAt, waitedFor.EndedAt = *ago(7 * time.Minute), ago(retryFor+time.Second)
	failed := polled
	failed.VendorStatus, failed.ItemState, failed.ItemError = "failed", store.ItemFailed, "NOT_FOUND"
	told := failed
	told.VendorStatus = "completed"
	refused := sent
	refused.ItemState, refused.ItemError, refused.JobState = store.ItemFailed, "REFUSED: no", store.JobRefused
	good := store.TestDelivery{ID: 9, WebhookID: 3, ReceivedAt: *ago(time.Minute), Verdict: store.VerdictAccepted, Status: 200, SecretVersion: 1}
	bad := store.TestDelivery{ID: 9, WebhookID: 3, ReceivedAt: *ago(time.Minute), Verdict: store.VerdictRefused, Status: 401, Reason: "signature does not match", NamesJob: true}
	stranger := bad
	stranger.NamesJob = false
	fresh := accepted
	fresh.CreatedAt, fresh.AcceptedAt = *ago(time.Second), ago(time.Second)
	for name, c := range map[string]struct {
		job     store.TestJob
		came    []store.TestDelivery
		refused []store.TestDelivery
		want    string // The state of each hop by its first letter, a "!" where reasons are named.
		ended   bool
	}{
		"not sent for long":      {sent, nil, nil, "d l! a a a a", false},
		"refused by the vendor":  {refused, nil, nil, "d f! a a f a", true},
		"just accepted":          {fresh, nil, nil, "d d w a a a", false},
		"all the way":            {polled, []store.TestDelivery{good}, nil, "d d d d d d", true},
		"delivered, not settled": {accepted, []store.TestDelivery{good}, nil, "d d d d a l!", false},
		"nothing came":           {waitedFor, nil, nil, "d d f! a d d", true},
		"nothing came yet":       {polled, nil, nil, "d d l! a d d", false},
		"a stranger came":        {waitedFor, nil, []store.TestDelivery{stranger}, "d d f! a d d", true},
		"not verified":           {waitedFor, nil, []store.TestDelivery{bad}, "d d d f! d d", true},
		"not verified yet":       {polled, nil, []store.TestDelivery{bad}, "d d d f! d d", false},
		"verified at last":       {polled, []store.TestDelivery{good}, []store.TestDelivery{bad}, "d d d d d d", true},
		"the page failed":        {failed, nil, nil, "d d n n f d", true},
		"its page alone failed":  {told, []store.TestDelivery{good}, nil, "d d d d f d", true},
	} {
		tr := &trail{hook: hook, job: &c.job, came: c.came, refused: c.refused, now: now, address: "https://desk.example/"}
		var got []string
		for _, hop := range tr.hops(t.Context()) {
			word := hop.State[:1]
			if len(hop.Reasons) > 0 {
				word += "!"
			}
			got = append(got, word)
		}
		if end := tr.pageEnd(); (end.How != "") != (c.job.ItemState == store.ItemFailed && c.job.AcceptedAt != nil) {
			t.Errorf("%s: got the end %+v", name, end)
		}
		if strings.Join(got, " ") != c.want || tr.ended(t.Context()) != c.ended {
			t.Errorf("%s: got %q, ended %v, want %q, %v", name, strings.Join(got, " "), tr.ended(t.Context()), c.want, c.ended)
		}
	}
	paused := &trail{hook: &store.Webhook{ID: 3, State: store.WebhookPaused}, job: &polled, now: now}
	if reasons := paused.received(t.Context()).Reasons; !slices.ContainsFunc(reasons, func(r string) bool { return strings.Contains(r, "paused by now") }) {
		t.Errorf("got %q, want that it is paused", reasons)
	}
	forgotten := &trail{hook: hook, job: &accepted, now: now.Add(time.Hour)}
	if !forgotten.ended(t.Context()) {
		t.Error("a test is followed for ever")
	}
}
