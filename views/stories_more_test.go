package views_test

import (
	"strconv"
	"strings"
	"time"

	"rollcall/views"
)

func jobStories() []story {
	job := views.JobProps{
		Layout: layout("Job 104", views.SectionBatches, views.RoleOperator),
		ID:     "104", Live: true, Self: "/jobs/104", MayCancel: true, CancelAt: before(time.Minute), VendorID: "b7d0c7f2-5c3e-4f4c-8a57-0d7f3f9b2d11", Kind: "batch", State: "accepted", BatchID: "12", BatchName: "Product pages, November",
		Attempt: 2, ParentID: "98", ChildIDs: []string{"105", "107"}, TakenOver: views.Known(12), Flags: []string{"overdue"}, CorrelationID: "c-5512", MaySettle: true,
		RollCall:   rollCall(0, 0, 2, 0, 8, nets(38, 2, 0, 0, 0)),
		Vendor:     views.VendorReport{Status: "processing", Total: views.Known(50), Completed: views.Known(42), Failed: views.Known(2), Pending: views.Known(6)},
		NextPollAt: now().Add(12 * time.Second), Timeline: timeline(), Items: itemRows(),
	}
	analyst := job
	analyst.Layout, analyst.PollDue = layout("Job 104", views.SectionBatches, views.RoleAnalyst), true
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
		Layout: layout("Item", views.SectionBatches, views.RoleAnalyst), ID: "3", URL: "https://shop.sandbox.test/fail/NOT_FOUND", Place: 3, State: "failed",
		BatchID: "12", BatchName: "Product pages, November", Code: "NOT_FOUND", Message: "The page answered 404.", CreatedAt: before(3 * time.Minute), AnswerAt: before(41 * time.Second),
		Lineage: []views.LineageRow{
			{JobID: "98", State: "settled", Net: "webhook", InputIndex: 2, CreatedAt: before(3 * time.Minute), SettledAt: before(time.Minute)},
			{JobID: "104", State: "settled", Net: "poll", InputIndex: 0, Current: true, CreatedAt: before(time.Minute), SettledAt: before(41 * time.Second)},
		},
	}
	stored := failed
	stored.URL, stored.State, stored.Net, stored.HasResult, stored.Code, stored.Message, stored.Place = hostile, "stored", "webhook", true, "", "", 0
	failed.Line = views.ItemLine{Number: views.Known(1082), Original: "<shop.sandbox.test/fail/NOT_FOUND>,", Mended: "quotes or brackets around it removed, https:// put in front"}
	stored.Line = views.ItemLine{Number: views.Known(4), Original: hostile}
	failed.Columns = views.LineColumns{Shown: []views.Pair{{Name: "sku", Value: "SKU-0002"}, {Name: hostile, Value: hostile}, {Name: "", Value: strings.Repeat("x", 1000) + "…"}, {Name: "Preis"}}, More: views.Known(149)}
	waiting := failed
	waiting.Columns = views.LineColumns{}
	waiting.URL, waiting.State, waiting.Code, waiting.Lineage, waiting.AnswerAt = "javascript:alert(1)", "outstanding", "", nil, time.Time{}
	return []story{{"item-failed", views.Item(failed)}, {"item-stored", views.Item(stored)}, {"item-outstanding", views.Item(waiting)}}
}

func runs() []views.ReconcileRow {
	return []views.ReconcileRow{
		{ID: "3", StartedAt: before(4 * time.Minute), FinishedAt: before(4*time.Minute - 2300*time.Millisecond), From: before(48 * time.Hour), To: before(4 * time.Minute), Listed: views.Known(1283), Missing: views.Known(0), Refused: views.Known(1), Held: views.Known(3), Woken: views.Known(12), Foreign: views.Known(2), Errors: views.Known(0), By: "bob"},
		{ID: "2", StartedAt: before(14 * time.Minute), FinishedAt: before(13 * time.Minute), From: before(48 * time.Hour), To: before(14 * time.Minute), Listed: views.Known(1100), Missing: views.Known(1), Refused: views.Known(0), Held: views.Known(0), Woken: views.Known(1), Foreign: views.Known(0), Errors: views.Known(1), Error: "list of crawls: 503"},
		{ID: "1", StartedAt: before(24 * time.Minute), From: before(48 * time.Hour), To: before(24 * time.Minute)},
	}
}

func operatorStories() []story {
	failures := views.FailuresProps{Layout: layout("Failures", views.SectionFailures, views.RoleAnalyst), Codes: []views.Option{{Value: "NOT_FOUND", Text: "NOT_FOUND (4)"}}, Total: views.Known(9)}
	for i := range 4 {
		failures.Failures = append(failures.Failures, views.FailureRow{
			ItemID: strconv.Itoa(i), URL: "https://shop.sandbox.test/fail/" + strconv.Itoa(i), Code: "NOT_FOUND", Message: "The page answered 404.", Retryable: i%2 == 1,
			BatchID: "12", BatchName: "Product pages, November", JobID: "104", Attempts: i + 1, At: before(time.Duration(i) * time.Hour),
		})
	}
	failures.Failures[2].URL += "?" + strings.Repeat("q=1&", 750)
	failures.Failures[3].URL, failures.Failures[3].Message, failures.Failures[3].BatchName = hostile, hostile, hostile
	reconcile := views.ReconcileProps{Layout: layout("Reconcile", views.SectionReconcile, views.RoleOperator), Every: 10 * time.Minute, NextAt: now().Add(6 * time.Minute), Runs: runs(), Live: true}
	idle := views.ReconcileProps{Layout: layout("Reconcile", views.SectionReconcile, views.RoleAnalyst), Every: 10 * time.Minute}
	wrong := views.FailuresProps{Layout: failures.Layout, Codes: failures.Codes, BatchID: hostile, Errors: views.Errors{"batch": "There is no batch of that number."}}
	return []story{
		{"failures", views.Failures(failures)},
		{"failures-wrong", views.Failures(wrong)},
		{"failures-none", views.Failures(views.FailuresProps{Layout: layout("Failures", views.SectionFailures, views.RoleAnalyst), Total: views.Known(0)})},
		{"reconcile", views.Reconcile(reconcile)},
		{"reconcile-none", views.Reconcile(idle)},
	}
}

func errorStories() []story {
	return []story{
		{"error-404", views.Error(views.ErrorProps{Layout: layout("Not found", "", views.RoleAnalyst), Status: 404, Title: "There is no such batch", Message: "It may have been removed, or the address has a slip in it."})},
		{"error-500", views.Error(views.ErrorProps{Layout: layout("Something broke", "", ""), Status: 500, Title: "Something broke on our side", Message: "Nothing you typed was lost by it. Try again in a moment.", LogID: "01JDX7Z3Q9"})},
	}
}
