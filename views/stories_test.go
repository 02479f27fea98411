package views_test

import (
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
		entryStories(), overviewStories(), newBatchStories(), preflightStories(), batchStories(), batchPageStories(), failureStories(), jobStories(), itemStories(), resultStories(), searchStories(),
		kindStories(), planStories(), foreignStories(), webhookStories(), sentStories(),
		rotationStories(), exportStories(), compareStories(), replayStories(), rerunStories(), scheduleStories(), signatureStories(), deliveryStories(), operatorStories(), peopleStories(), errorStories(),
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
			Errors: views.Errors{"token": "This token isn't the one in the log.", "password": "Use at least 10 characters."},
		})},
	}
}

// together adds up days.
func together(days []views.DayRow) views.RollCall {
	var n [9]int64
	for i := range days {
		r := days[i].RollCall
		for at, c := range []views.Count{r.Invalid, r.Duplicate, r.Failed, r.Cancelled, r.Outstanding, r.Nets.Webhook, r.Nets.Poll, r.Nets.Reconcile, r.Nets.Replay} {
			n[at] += c.N
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
	blank := views.NewBatchProps{Layout: layout("New batch", views.SectionNewBatch, views.RoleAnalyst), Kind: "auto", Fetch: views.Fetch{Markdown: true}}
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
		"urls":          "Some lines can't be submitted: correct them, or tick the box below their list to leave them out.",
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
	cancelled := done
	cancelled.RollCall, cancelled.CancelAt, cancelled.CancelBy = rollCall(0, 0, 16, 106, 0, nets(100, 0, 64, 0, 0)), before(time.Hour), "alice"
	pruned := done
	pruned.PrunedAt, pruned.Items.Tabs.State = before(9*24*time.Hour), ""
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
		{"batch-cancelled", views.Batch(cancelled)},
		{"batch-pruned", views.Batch(pruned)},
		{"batch-unknown", views.Batch(unknown)},
		{"batch-unbalanced", views.Batch(broken)},
	}
}

func batchProps() views.BatchProps {
	return views.BatchProps{
		Layout: layout("Product pages, November", views.SectionBatches, views.RoleAnalyst),
		ID:     "12", Name: "Product pages, November", Kind: "batch", By: "alice", CreatedAt: before(3 * time.Minute), Live: true,
		RollCall: running(), Vendor: views.AtWork{Jobs: views.Known(2), Reported: views.Known(1), Done: views.Known(1659), Total: views.Known(2000)},
		Options: views.BatchOptions{
			Formats: []string{"markdown", "html"}, RenderJS: true, ProxyCountry: "DE", ProxyType: "residential",
			WaitUntil: "load", WaitFor: "main article", WaitTimeout: "30 s", HeaderNames: []string{"Authorization"}, ExtractLinks: true,
		},
		Jobs: jobRows(), JobsTotal: views.Known(6), JobsPager: views.Pager{Older: "/batches/12?jobs_before=101"},
		Items: views.BatchItemsProps{Tabs: tabs(), Filter: views.ItemFilter{BatchID: "12"}, Items: itemRows(), Pager: views.Pager{Older: "/batches/12/items?before=5"}, Self: "/batches/12/items"},
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
		{ID: "106", VendorID: "b7d0c7f2-5c3e-4f4c-8a57-0d7f3f9b2d11", Kind: "batch", State: "accepted", URLs: views.Known(45), RollCall: rollCall(0, 0, 0, 0, 45, nets(0, 0, 0, 0, 0)), CreatedAt: before(2 * time.Minute), Flags: []string{"overdue"}, Vendor: views.VendorReport{Status: "processing", Total: views.Known(2000), Completed: views.Known(1650), Failed: views.Known(9)}},
		{ID: "105", Kind: "batch", State: "calling", URLs: views.Known(4), RollCall: rollCall(0, 0, 0, 0, 4, nets(0, 0, 0, 0, 0)), CreatedAt: before(2 * time.Minute), Origin: "resubmit"},
		{ID: "104", VendorID: "x", Kind: "batch", State: "settled", Origin: "retry", Net: "webhook", URLs: views.Known(51), RollCall: rollCall(0, 0, 2, 0, 0, nets(48, 0, 0, 0, 0)), CreatedAt: before(3 * time.Minute), SettledAt: before(40 * time.Second)},
		{ID: "103", VendorID: "x", Kind: "batch", State: "settled", Net: "reconcile", URLs: views.Known(50), RollCall: rollCall(0, 0, 0, 0, 0, nets(0, 0, 50, 0, 0)), CreatedAt: before(3 * time.Minute), SettledAt: before(10 * time.Second), Flags: []string{"superseded", "MISNUMBERED"}},
		{ID: "102", Kind: "batch", State: "uncertain", URLs: views.Known(50), RollCall: rollCall(0, 0, 0, 0, 50, nets(0, 0, 0, 0, 0)), CreatedAt: before(3 * time.Minute)},
		{ID: "101", Kind: "batch", State: "refused", Error: "422: " + hostile, URLs: views.Known(50), RollCall: rollCall(0, 0, 50, 0, 0, nets(0, 0, 0, 0, 0)), CreatedAt: before(3 * time.Minute)},
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
