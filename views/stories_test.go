package views_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/a-h/templ"

	"rollcall/views"
)

// A story is one page in one state, with made-up data.
type story struct {
	name string
	page templ.Component
}

// hostile is what a URL, a name or a message may hold; none of it may become markup.
const hostile = `"><script>alert(1)</script><img src=x onerror=alert(2)>`

// now is the time of all stories.
func now() time.Time { return time.Date(2026, 11, 29, 14, 2, 10, 123e6, time.UTC) }

func before(d time.Duration) time.Time { return now().Add(-d) }

func layout(title, section, role string) views.Layout {
	l := views.Layout{Title: title, Section: section, CSRF: "csrf-of-this-session", Sandbox: true, Failures: views.Known(9)}
	if role != "" {
		l.User = &views.User{Name: map[string]string{views.RoleAnalyst: "alice", views.RoleOperator: "bob", views.RoleAdmin: "carol"}[role], Role: role}
	}
	return l
}

func nets(webhook, poll, reconcile, replay, sync int64) views.Nets {
	return views.Nets{
		Webhook: views.Known(webhook), Poll: views.Known(poll), Reconcile: views.Known(reconcile),
		Replay: views.Known(replay), Sync: views.Known(sync),
	}
}

// rollCall makes one that balances.
func rollCall(invalid, duplicate, failed, cancelled, outstanding int64, n views.Nets) views.RollCall {
	stored := n.Webhook.N + n.Poll.N + n.Reconcile.N + n.Replay.N + n.Sync.N
	accepted := stored + failed + cancelled + outstanding
	return views.RollCall{
		Submitted: views.Known(accepted + invalid + duplicate), Invalid: views.Known(invalid), Duplicate: views.Known(duplicate),
		Accepted: views.Known(accepted), Stored: views.Known(stored), Failed: views.Known(failed),
		Cancelled: views.Known(cancelled), Outstanding: views.Known(outstanding), Nets: n,
	}
}

func running() views.RollCall { return rollCall(2, 3, 5, 0, 49, nets(198, 31, 12, 0, 0)) }

func finished() views.RollCall { return rollCall(0, 4, 11, 0, 0, nets(1621, 240, 121, 7, 0)) }

func stories() []story {
	var all []story
	for _, some := range [][]story{
		entryStories(), overviewStories(), newBatchStories(), batchStories(), jobStories(), itemStories(), resultStories(),
		deliveryStories(), operatorStories(), adminStories(), errorStories(),
	} {
		all = append(all, some...)
	}
	return all
}

func entryStories() []story {
	return []story{
		{"sign-in", views.SignIn(views.SignInProps{Layout: layout("Sign in", "", ""), Next: "/batches/7"})},
		{"sign-in-refused", views.SignIn(views.SignInProps{
			Layout: layout("Sign in", "", ""), Name: hostile, Next: "/",
			Note: "Your session has expired. Sign in to go on where you were.", Error: "Name or password is wrong.",
		})},
		{"setup", views.Setup(views.SetupProps{
			Layout: layout("Set up", "", ""), Token: "wrong-token", Name: "carol",
			Errors: views.Errors{"token": "This token isn't the one in the log.", "password": "Use at least 12 characters."},
		})},
	}
}

func overviewStories() []story {
	busy := overviewProps(views.RoleOperator)
	troubled := overviewProps(views.RoleOperator)
	troubled.Layout.Alerts = []views.Alert{{
		Level: "danger", Title: "Dispatch is paused", Resume: true,
		Text: "The vendor answered 402: the plan's tokens are used up. Nothing new is sent until somebody resumes.",
	}}
	troubled.System.Paused, troubled.System.PausedReason = true, "402 from the vendor"
	troubled.System.Submit = views.GateState{Closed: true, Until: now().Add(90 * time.Second)}
	troubled.Webhooks[1].State = "inactive"
	troubled.Webhooks[2].State = "secret_unknown"
	troubled.Running, troubled.Live = nil, false
	paused := troubled
	paused.Layout.User = &views.User{Name: "alice", Role: views.RoleAnalyst}
	fresh := views.OverviewProps{
		Layout: layout("Overview", views.SectionOverview, views.RoleAnalyst),
		System: views.SystemState{Mode: "poll", Queue: views.Known(0), Open: views.Known(0)},
	}
	return []story{
		{"overview", views.Overview(busy)},
		{"overview-trouble", views.Overview(troubled)},
		{"overview-trouble-analyst", views.Overview(paused)},
		{"overview-fresh", views.Overview(fresh)},
	}
}

func overviewProps(role string) views.OverviewProps {
	total := together(days())
	return views.OverviewProps{
		Layout: layout("Overview", views.SectionOverview, role), Live: true,
		Running: batchRows()[:2], Latest: batchRows()[2:], Days: days(), Total: total,
		System: views.SystemState{Mode: "auto", Effective: "webhook", Queue: views.Known(3), Open: views.Known(6)},
		Webhooks: []views.WebhookHealth{
			{Event: "extraction.completed", State: "active", LastDelivery: before(4 * time.Second), OnTime: views.Known(47), OutOf: views.Known(50)},
			{Event: "batch.completed", State: "active", LastDelivery: before(8 * time.Minute), OnTime: views.Known(9), OutOf: views.Known(10)},
			{Event: "crawl.completed", State: "active"},
		},
		Last:     &runs()[0],
		Failures: views.Known(9),
	}
}

// together adds up days.
func together(days []views.DayRow) views.RollCall {
	var n [9]int64
	for _, each := range days {
		r := each.RollCall
		for i, c := range []views.Count{r.Invalid, r.Duplicate, r.Failed, r.Cancelled, r.Outstanding, r.Nets.Webhook, r.Nets.Poll, r.Nets.Reconcile, r.Nets.Replay} {
			n[i] += c.N
		}
	}
	return rollCall(n[0], n[1], n[2], n[3], n[4], nets(n[5], n[6], n[7], n[8], 0))
}

func days() []views.DayRow {
	midnight := now().Truncate(24 * time.Hour)
	made := make([]views.DayRow, 0, 7)
	for i, n := range []int64{620, 1240, 980, 0, 1410, 1805, 1322} {
		r := rollCall(1, 4, n/90, 2, 0, nets(n*8/10, n/10, n/20, n/100, 0))
		if i == 6 {
			r.Outstanding, r.Accepted = views.Known(149), views.Known(r.Accepted.N+149)
		}
		made = append(made, views.DayRow{Day: midnight.AddDate(0, 0, i-6), RollCall: r})
	}
	made[3].RollCall = rollCall(0, 0, 0, 0, 0, nets(0, 0, 0, 0, 0))
	return made
}

func batchRows() []views.BatchRow {
	crawl := views.RollCall{Submitted: views.Known(214), Accepted: views.Known(214), Stored: views.Known(120), SoFar: true}
	return []views.BatchRow{
		{ID: "12", Name: "Product pages, November", Kind: "batch", By: "alice", CreatedAt: before(3 * time.Minute), RollCall: running()},
		{ID: "11", Name: "News front pages", Kind: "extract", By: "bob", CreatedAt: before(21 * time.Minute), RollCall: rollCall(0, 0, 0, 0, 37, nets(2, 1, 0, 0, 0))},
		{ID: "10", Name: "Forum threads with a rather long name that somebody typed without thinking of the width of a table", Kind: "batch", By: "alice", CreatedAt: before(26 * time.Hour), RollCall: finished()},
		{ID: "9", Name: "A crawl whose numbers aren't all known", Kind: "crawl", By: "dave", CreatedAt: before(50 * time.Hour), RollCall: crawl},
		{ID: "8", Name: hostile, Kind: "auto", By: hostile, CreatedAt: before(70 * 24 * time.Hour), RollCall: rollCall(7, 0, 0, 0, 0, nets(0, 0, 0, 0, 0))},
	}
}

func newBatchStories() []story {
	blank := views.NewBatchProps{Layout: layout("New batch", views.SectionNewBatch, views.RoleAnalyst), Kind: "auto", Markdown: true}
	wrong := blank
	wrong.Name, wrong.URLs, wrong.HTML, wrong.RenderJS = "Product pages", "https://shop.sandbox.test/p/1\njavascript:alert(1)\nhttps://\n"+hostile, true, true
	wrong.ProxyCountry, wrong.WaitTimeout, wrong.Headers, wrong.Markdown = "DEU", "soon", "Accept-Language: de\nno colon here", false
	wrong.BadLines = []views.RejectedLine{
		{Number: 2, Text: "javascript:alert(1)", State: "invalid", Reason: "only http and https can be fetched"},
		{Number: 3, Text: "https://", State: "invalid", Reason: "no host"},
		{Number: 4, Text: hostile, State: "invalid", Reason: "not a URL"},
	}
	wrong.BadTotal = views.Known(1204)
	wrong.Errors = views.Errors{
		"urls":          "1,204 of 9,000 lines can't be submitted; they are listed above.",
		"proxy_country": "Two letters, such as DE.",
		"wait_timeout":  "A whole number of seconds.",
		"headers":       "Line 2 has no colon.",
	}
	return []story{{"batch-new", views.NewBatch(blank)}, {"batch-new-errors", views.NewBatch(wrong)}}
}

func batchStories() []story {
	list := views.BatchesProps{Layout: layout("Batches", views.SectionBatches, views.RoleAnalyst), Batches: batchRows(), Pager: views.Pager{Older: "/batches?before=8", Newer: "/batches"}}
	list.Layout.Flash = &views.Flash{Level: "success", Text: "300 lines were submitted: 295 accepted, 3 duplicate, 2 invalid."}
	none := views.BatchesProps{Layout: layout("Batches", views.SectionBatches, views.RoleAnalyst)}
	missed := none
	missed.Name = hostile
	live := batchProps()
	rejected := batchProps()
	rejected.Items.Tabs.State = views.StateRejected
	rejected.Items.Items = nil
	rejected.Items.Rejected = []views.RejectedLine{
		{Number: 17, Text: hostile, State: "invalid", Reason: "not a URL"},
		{Number: 1030, Text: "https://shop.sandbox.test/p/1", State: "duplicate", Reason: "same as line 1"},
	}
	done := batchProps()
	done.Live, done.RollCall, done.Jobs, done.JobsTotal = false, finished(), nil, views.Known(0)
	done.Items.Tabs.State, done.Items.Items = "failed", nil
	unknown := batchProps()
	unknown.RollCall = views.RollCall{Submitted: views.Known(214), Invalid: views.Known(0), Duplicate: views.Known(0), Accepted: views.Known(214), SoFar: true}
	unknown.Kind = "crawl"
	broken := batchProps()
	broken.RollCall.Stored = views.Known(240)
	return []story{
		{"batches", views.Batches(list)},
		{"batches-none", views.Batches(none)},
		{"batches-no-match", views.Batches(missed)},
		{"batch", views.Batch(live)},
		{"batch-rejected", views.Batch(rejected)},
		{"batch-finished", views.Batch(done)},
		{"batch-unknown", views.Batch(unknown)},
		{"batch-unbalanced", views.Batch(broken)},
	}
}

func batchProps() views.BatchProps {
	return views.BatchProps{
		Layout: layout("Product pages, November", views.SectionBatches, views.RoleAnalyst),
		ID:     "12", Name: "Product pages, November", Kind: "batch", By: "alice", CreatedAt: before(3 * time.Minute), Live: true,
		RollCall: running(),
		Options: views.BatchOptions{
			Formats: []string{"markdown", "html"}, RenderJS: true, ProxyCountry: "DE", ProxyType: "residential",
			WaitUntil: "load", WaitFor: "main article", WaitTimeout: "30 s", HeaderNames: []string{"Authorization"}, ExtractLinks: true,
		},
		Jobs: jobRows(), JobsTotal: views.Known(6), JobsPager: views.Pager{Older: "/batches/12?jobs_before=101"},
		Items: views.BatchItemsProps{Tabs: tabs(), Items: itemRows(), Pager: views.Pager{Older: "/batches/12/items?before=5"}},
	}
}

func tabs() views.ItemTabs {
	return views.ItemTabs{
		BatchID: "12", All: views.Known(295), Outstanding: views.Known(49), Stored: views.Known(241),
		Failed: views.Known(5), Cancelled: views.Known(0), Rejected: views.Known(5),
	}
}

func jobRows() []views.JobRow {
	return []views.JobRow{
		{ID: "106", VendorID: "b7d0c7f2-5c3e-4f4c-8a57-0d7f3f9b2d11", Kind: "batch", State: "accepted", RollCall: rollCall(0, 0, 0, 0, 45, nets(0, 0, 0, 0, 0)), CreatedAt: before(2 * time.Minute), Flags: []string{"overdue"}},
		{ID: "105", Kind: "batch", State: "calling", RollCall: rollCall(0, 0, 0, 0, 4, nets(0, 0, 0, 0, 0)), CreatedAt: before(2 * time.Minute), Resubmitted: true},
		{ID: "104", VendorID: "x", Kind: "batch", State: "settled", Net: "webhook", RollCall: rollCall(0, 0, 2, 0, 0, nets(48, 0, 0, 0, 0)), CreatedAt: before(3 * time.Minute), SettledAt: before(40 * time.Second)},
		{ID: "103", VendorID: "x", Kind: "batch", State: "settled", Net: "reconcile", RollCall: rollCall(0, 0, 0, 0, 0, nets(0, 0, 50, 0, 0)), CreatedAt: before(3 * time.Minute), SettledAt: before(10 * time.Second), Flags: []string{"superseded", "MISNUMBERED"}},
		{ID: "102", Kind: "batch", State: "uncertain", RollCall: rollCall(0, 0, 0, 0, 50, nets(0, 0, 0, 0, 0)), CreatedAt: before(3 * time.Minute)},
		{ID: "101", Kind: "batch", State: "refused", Error: "422: " + hostile, RollCall: rollCall(0, 0, 50, 0, 0, nets(0, 0, 0, 0, 0)), CreatedAt: before(3 * time.Minute)},
	}
}

func itemRows() []views.ItemRow {
	return []views.ItemRow{
		{ID: "1", URL: "https://shop.sandbox.test/p/1", State: "stored", Net: "webhook", JobID: "104", Attempts: 1, Bytes: 48213, At: before(40 * time.Second)},
		{ID: "2", URL: "https://news.sandbox.test/2026/11/a-long-story-about-" + strings.Repeat("very-", 30) + "long-addresses?utm=1", State: "stored", Net: "poll", JobID: "104", Attempts: 3, Bytes: 812, At: before(2 * time.Hour)},
		{ID: "3", URL: hostile, State: "failed", Code: "NOT_FOUND", Message: hostile, JobID: "104", Attempts: 1, At: before(41 * time.Second)},
		{ID: "4", URL: "https://forum.sandbox.test/رسالة/日本語", State: "outstanding", JobID: "106", Attempts: 1},
		{ID: "5", URL: "https://forum.sandbox.test/t/5", State: "cancelled", JobID: "0b9d52a6-4be5-4c57-bb66-29b4c58a9c9d", Attempts: 1, At: before(time.Minute)},
	}
}

func jobStories() []story {
	job := views.JobProps{
		Layout: layout("Job 104", views.SectionBatches, views.RoleOperator),
		ID:     "104", VendorID: "b7d0c7f2-5c3e-4f4c-8a57-0d7f3f9b2d11", Kind: "batch", State: "accepted", BatchID: "12", BatchName: "Product pages, November",
		Attempt: 2, ParentID: "98", ChildIDs: []string{"105", "107"}, Flags: []string{"overdue"}, CorrelationID: "c-5512", MaySettle: true,
		RollCall:   rollCall(0, 0, 2, 0, 8, nets(38, 2, 0, 0, 0)),
		Vendor:     views.VendorReport{Status: "processing", Total: views.Known(50), Completed: views.Known(42), Failed: views.Known(2), Pending: views.Known(6), AskedAt: before(3 * time.Second)},
		NextPollAt: now().Add(12 * time.Second), Timeline: timeline(), Items: itemRows(),
	}
	analyst := job
	analyst.Layout = layout("Job 104", views.SectionBatches, views.RoleAnalyst)
	fresh := views.JobProps{
		Layout: layout("Job 108", views.SectionBatches, views.RoleAnalyst), ID: "7a1cb3f0-9f1e-4c33-a7a0-5b4d9d6e8f10", Kind: "extract", State: "refused",
		BatchID: "12", BatchName: hostile, Attempt: 1, Error: "The vendor refused it: 422 VALIDATION_ERROR, " + hostile,
	}
	return []story{{"job", views.Job(job)}, {"job-analyst", views.Job(analyst)}, {"job-refused", views.Job(fresh)}}
}

func timeline() []views.TimelineEvent {
	at := func(s float64) time.Time { return before(2 * time.Minute).Add(time.Duration(s * float64(time.Second))) }
	return []views.TimelineEvent{
		{At: at(0), Kind: "intended", Title: "Intended", Detail: "50 URLs"},
		{At: at(0.04), Kind: "called", Title: "Called the vendor", Detail: "call 1"},
		{At: at(0.31), Kind: "accepted", Title: "Accepted by the vendor", Detail: "202 in 270 ms"},
		{At: at(1.2), Kind: "asked", Net: "poll", Title: "Asked the vendor", Detail: "processing, 3 of 50"},
		{At: at(22.4), Kind: "delivery", Net: "webhook", Title: "Delivery accepted", Detail: "batch.completed, answered 202", Path: "/deliveries/7"},
		{At: at(22.5), Kind: "wake", Net: "webhook", Title: "Woken"},
		{At: at(22.9), Kind: "stored", Net: "webhook", Title: "Stored 48 results", Detail: "2 failed"},
		{At: at(23), Kind: "settled", Net: "webhook", Title: "Settled"},
	}
}

func itemStories() []story {
	failed := views.ItemProps{
		Layout: layout("Item", views.SectionBatches, views.RoleAnalyst), ID: "3", URL: "https://shop.sandbox.test/fail/NOT_FOUND", Line: 3, State: "failed",
		BatchID: "12", BatchName: "Product pages, November", Code: "NOT_FOUND", Message: "The page answered 404.", CreatedAt: before(3 * time.Minute), AnswerAt: before(41 * time.Second),
		Lineage: []views.LineageRow{
			{JobID: "98", State: "settled", Net: "webhook", InputIndex: 2, CreatedAt: before(3 * time.Minute), SettledAt: before(time.Minute)},
			{JobID: "104", State: "settled", Net: "poll", InputIndex: 0, Current: true, CreatedAt: before(time.Minute), SettledAt: before(41 * time.Second)},
		},
	}
	stored := failed
	stored.URL, stored.State, stored.Net, stored.HasResult, stored.Code, stored.Message, stored.Line = hostile, "stored", "webhook", true, "", "", 0
	waiting := failed
	waiting.URL, waiting.State, waiting.Code, waiting.Lineage, waiting.AnswerAt = "javascript:alert(1)", "outstanding", "", nil, time.Time{}
	return []story{{"item-failed", views.Item(failed)}, {"item-stored", views.Item(stored)}, {"item-outstanding", views.Item(waiting)}}
}

func resultStories() []story {
	base := views.ResultProps{
		Layout: layout("Result", views.SectionBatches, views.RoleAnalyst), ItemID: "1", URL: "https://shop.sandbox.test/p/1", BatchID: "12", BatchName: "Product pages, November",
		JobID: "104", Net: "webhook", StoredAt: before(40 * time.Second), Title: "Copper kettle, 1.7 l", HasMD: true, HasHTML: true, LinksTotal: views.Known(2), Bytes: 48213,
		SafeHTML: `<h1>Copper kettle, 1.7 l</h1><p>A <strong>heavy</strong> kettle with a <a href="https://shop.sandbox.test/p/2" rel="nofollow">matching pan</a>. غلاية نحاس 🫖</p><h2>Measures</h2><table><thead><tr><th>What</th><th>How much</th></tr></thead><tbody><tr><td>Weight</td><td>1.9 kg</td></tr></tbody></table><pre><code>GET /p/1 HTTP/1.1</code></pre><blockquote><p>Boils fast.</p></blockquote>`,
		Markdown: "# Copper kettle, 1.7 l\n\nA **heavy** kettle.\n" + hostile,
		HTML:     "<!doctype html>\n<title>Copper kettle</title>\n" + hostile,
		Metadata: []views.Pair{{Name: "http_status", Value: "200"}, {Name: "duration_ms", Value: "412"}, {Name: "url", Value: hostile}},
		Links:    []views.Link{{URL: "https://shop.sandbox.test/p/2", Text: "matching pan"}, {URL: "javascript:alert(1)", Text: hostile}},
	}
	made := make([]story, 0, 7)
	for _, tab := range []string{views.TabRead, views.TabMarkdown, views.TabPreview, views.TabHTML, views.TabMetadata, views.TabLinks} {
		p := base
		p.Tab, p.Truncated = tab, tab == views.TabHTML
		made = append(made, story{"result-" + tab, views.Result(p)})
	}
	bare := views.ResultProps{Layout: layout("Result", "", views.RoleAnalyst), ItemID: "2", URL: "https://shop.sandbox.test/p/2", BatchID: "12", BatchName: "B", HasHTML: true, Tab: views.TabHTML}
	return append(made, story{"result-empty", views.Result(bare)})
}

func deliveryStories() []story {
	list := views.DeliveriesProps{
		Layout: layout("Deliveries", views.SectionDeliveries, views.RoleOperator), Verdict: "duplicate",
		Verdicts: []views.Option{{Value: "accepted", Text: "Accepted"}, {Value: "duplicate", Text: "Duplicate"}, {Value: "bad_signature", Text: "Bad signature"}},
		Events:   []views.Option{{Value: "batch.completed", Text: "batch.completed"}},
		Pager:    views.Pager{Older: "/deliveries?before=3"},
	}
	for i, verdict := range []string{"accepted", "duplicate", "held", "foreign", "bad_signature", "unreadable", "something_new"} {
		list.Deliveries = append(list.Deliveries, views.DeliveryRow{
			ID: fmt.Sprint(i + 1), At: before(time.Duration(i) * 7 * time.Second), Event: "batch.completed", VendorID: "b7d0c7f2-5c3e-4f4c-8a57-0d7f3f9b2d11",
			Verdict: verdict, Status: []int{202, 200, 202, 202, 401, 400, 503}[i], Took: time.Duration(i*i*31) * time.Millisecond, Source: "203.0.113.7",
		})
	}
	list.Deliveries[0].JobID = "104"
	none := views.DeliveriesProps{Layout: layout("Deliveries", views.SectionDeliveries, views.RoleAnalyst)}
	one := views.DeliveryProps{
		Layout: layout("Delivery 7", views.SectionDeliveries, views.RoleOperator), ID: "7", At: now(), Event: "batch.completed", VendorID: "b7d0c7f2-5c3e-4f4c-8a57-0d7f3f9b2d11",
		JobID: "104", Verdict: "accepted", Reason: "The signature fits secret version 2.", Status: 202, Took: 4 * time.Millisecond, Source: "203.0.113.7", WebhookID: "wh_41",
		Secret: "version 2", Form: "hex, body", ContentType: "application/json",
		Headers: []views.Pair{{Name: "Content-Type", Value: "application/json"}, {Name: "X-Webhook-Signature", Value: strings.Repeat("0af3", 16)}, {Name: "X-Odd", Value: hostile}},
		Body:    `{"event":"batch.completed","data":{"job_id":"b7d0c7f2","note":"` + hostile + `"}}`, BodyBytes: 1843,
	}
	raw := one
	raw.Verdict, raw.Status, raw.JobID, raw.Event = "bad_signature", 401, "", ""
	raw.Reason = "No known secret gives this signature."
	raw.Body, raw.BodyIsHex, raw.BodyCut, raw.BodyBytes, raw.Headers = "00000000  00 ff 10 7b 22 65 76 65  6e 74 22 3a 22 62 61 74  |...{\"event\":\"bat|", true, true, 33554432, nil
	return []story{{"deliveries", views.Deliveries(list)}, {"deliveries-none", views.Deliveries(none)}, {"delivery", views.Delivery(one)}, {"delivery-bytes", views.Delivery(raw)}}
}

func runs() []views.ReconcileRow {
	return []views.ReconcileRow{
		{ID: "3", StartedAt: before(4 * time.Minute), FinishedAt: before(4*time.Minute - 2300*time.Millisecond), From: before(48 * time.Hour), To: before(4 * time.Minute), Listed: views.Known(1283), Missing: views.Known(0), Woken: views.Known(12), Foreign: views.Known(2), Errors: views.Known(0), By: "bob"},
		{ID: "2", StartedAt: before(14 * time.Minute), FinishedAt: before(13 * time.Minute), From: before(48 * time.Hour), To: before(14 * time.Minute), Listed: views.Known(1100), Missing: views.Known(1), Woken: views.Known(1), Foreign: views.Known(0), Errors: views.Known(1), Error: "list of crawls: 503"},
		{ID: "1", StartedAt: before(24 * time.Minute), From: before(48 * time.Hour), To: before(24 * time.Minute)},
	}
}

func operatorStories() []story {
	failures := views.FailuresProps{Layout: layout("Failures", views.SectionFailures, views.RoleAnalyst), Codes: []views.Option{{Value: "NOT_FOUND", Text: "NOT_FOUND (4)"}}, Total: views.Known(9)}
	for i := range 4 {
		failures.Failures = append(failures.Failures, views.FailureRow{
			ItemID: fmt.Sprint(i), URL: "https://shop.sandbox.test/fail/" + fmt.Sprint(i), Code: "NOT_FOUND", Message: "The page answered 404.", Retryable: i%2 == 1,
			BatchID: "12", BatchName: "Product pages, November", JobID: "104", Attempts: i + 1, At: before(time.Duration(i) * time.Hour),
		})
	}
	failures.Failures[3].URL, failures.Failures[3].Message, failures.Failures[3].BatchName = hostile, hostile, hostile
	reconcile := views.ReconcileProps{Layout: layout("Reconcile", views.SectionReconcile, views.RoleOperator), Every: 10 * time.Minute, NextAt: now().Add(6 * time.Minute), Runs: runs()}
	idle := views.ReconcileProps{Layout: layout("Reconcile", views.SectionReconcile, views.RoleAnalyst), Every: 10 * time.Minute}
	return []story{
		{"failures", views.Failures(failures)},
		{"failures-none", views.Failures(views.FailuresProps{Layout: layout("Failures", views.SectionFailures, views.RoleAnalyst), Total: views.Known(0)})},
		{"reconcile", views.Reconcile(reconcile)},
		{"reconcile-none", views.Reconcile(idle)},
	}
}

func adminStories() []story {
	hooks := views.WebhooksProps{Layout: layout("Webhooks", views.SectionWebhooks, views.RoleAdmin)}
	for i, state := range []string{"active", "rotating", "secret_unknown", "inactive"} {
		hooks.Webhooks = append(hooks.Webhooks, views.WebhookRow{
			ID: fmt.Sprintf("4f3c2b1a-0000-4000-8000-00000000000%d", i), Event: "extraction.completed", Address: "https://rollcall.example.com/webhooks/geonode/extract-" + strings.Repeat("k", 24),
			State: state, CreatedAt: before(900 * time.Hour), LastDelivery: before(time.Duration(i) * time.Hour),
		})
	}
	users := views.UsersProps{Layout: layout("Users", views.SectionUsers, views.RoleAdmin), Users: []views.UserRow{
		{Name: "alice", Role: views.RoleAnalyst, CreatedAt: before(900 * time.Hour), LastSeen: before(time.Minute)},
		{Name: hostile, Role: views.RoleOperator, CreatedAt: before(90 * time.Hour)},
		{Name: "carol", Role: views.RoleAdmin, CreatedAt: before(950 * time.Hour), LastSeen: now()},
	}}
	return []story{
		{"webhooks", views.Webhooks(hooks)},
		{"webhooks-none", views.Webhooks(views.WebhooksProps{Layout: layout("Webhooks", views.SectionWebhooks, views.RoleAdmin)})},
		{"users", views.Users(users)},
		{"account", views.Account(views.AccountProps{Layout: layout("Account", views.SectionAccount, views.RoleAnalyst), SignedInAt: before(time.Hour), EndsAt: now().Add(11 * time.Hour)})},
	}
}

func errorStories() []story {
	return []story{
		{"error-404", views.Error(views.ErrorProps{Layout: layout("Not found", "", views.RoleAnalyst), Status: 404, Title: "There is no such batch", Message: "It may have been removed, or the address has a slip in it."})},
		{"error-500", views.Error(views.ErrorProps{Layout: layout("Something broke", "", ""), Status: 500, Title: "Something broke on our side", Message: "Nothing you typed was lost by it. Try again in a moment.", LogID: "01JDX7Z3Q9"})},
	}
}
