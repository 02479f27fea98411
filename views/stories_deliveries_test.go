package views_test

import (
	"strconv"
	"strings"
	"time"

	"rollcall/views"
)

// vendorJob is how the vendor names a job.
const vendorJob = "b7d0c7f2-5c3e-4f4c-8a57-0d7f3f9b2d11"

func deliveryStories() []story {
	list := deliveriesProps(views.RoleOperator)
	list.Pager, list.ReplayAll = views.Pager{Newer: "/deliveries", Older: "/deliveries?from=abc"}, "/replays/new?from=received"
	read := deliveriesProps(views.RoleAnalyst)
	read.Filter.Verdict, read.Filter.Event, read.Filter.Filtered = "refused", "batch_completed", true
	read.Filter.HTTP, read.Filter.Since, read.Filter.Total = "401", "2026-11-29 14:00", views.Count{}
	none := views.DeliveriesProps{Layout: layout("Deliveries", views.SectionDeliveries, views.RoleAnalyst), Filter: deliveryFilter("/deliveries")}
	none.Filter.Total = views.Known(0)
	wrong := none
	wrong.Filter.HTTP, wrong.Filter.Since, wrong.Filter.Job, wrong.Filter.Filtered = "teapot", "yesterday", hostile, true
	wrong.Filter.Errors = views.Errors{
		"http": "An HTTP status is a whole number from 100 to 999.", "since": `"yesterday" is no time. Write it like 2026-11-29 14:00, or 2026-11-29 for the day.`,
	}
	return append([]story{
		{"deliveries", views.Deliveries(list)},
		{"deliveries-filtered", views.Deliveries(read)},
		{"deliveries-none", views.Deliveries(none)},
		{"deliveries-errors", views.Deliveries(wrong)},
	}, append(deliveryPages(), logStories()...)...)
}

func deliveryFilter(path string) views.DeliveryFilter {
	return views.DeliveryFilter{
		Path: path, Zone: "Europe/Berlin", Total: views.Count{N: 10000, Known: true, More: true},
		Webhooks: []views.Option{{Value: "3", Text: "3: crawl_completed"}, {Value: "2", Text: "2: batch_completed"}, {Value: "1", Text: "1: extract_completed, removed"}},
		Events:   []views.Option{{Value: "extract_completed", Text: "extract_completed"}, {Value: "batch_completed", Text: "batch_completed"}},
		Verdicts: []views.Option{{Value: "accepted", Text: "Accepted"}, {Value: "duplicate", Text: "Duplicate"}, {Value: "refused", Text: "Refused"}, {Value: "unreadable", Text: "Unreadable"}},
	}
}

func deliveriesProps(role string) views.DeliveriesProps {
	list := views.DeliveriesProps{
		Layout: layout("Deliveries", views.SectionDeliveries, role), Filter: deliveryFilter("/deliveries"), Foreign: views.Known(2), Held: views.Known(0),
	}
	for i, verdict := range []string{"accepted", "duplicate", "accepted", "refused", "unreadable", "refused", "something_new"} {
		row := views.DeliveryRow{
			ID: strconv.Itoa(i + 1), At: before(time.Duration(i) * 7 * time.Second), Event: "batch_completed", Webhook: "2", VendorID: vendorJob,
			Verdict: verdict, Status: []int{200, 200, 503, 401, 400, 404, 503}[i], Took: time.Duration(i*i*31) * time.Millisecond, Source: "203.0.113.7",
		}
		if verdict == "accepted" || verdict == "duplicate" {
			row.Secret, row.Form = "version 2", "body whole none hex"
		}
		list.Deliveries = append(list.Deliveries, row)
	}
	list.Deliveries[0].JobID, list.Deliveries[2].RecoveredAt = "104", before(4*time.Second)
	list.Deliveries[3].Reason, list.Deliveries[5].Reason = "Signed with a retired secret", hostile
	list.Deliveries[5].Webhook, list.Deliveries[5].Event, list.Deliveries[5].VendorID = "", "", ""
	return list
}

func deliveryPages() []story {
	one := views.DeliveryProps{
		Layout: layout("Delivery 7", views.SectionDeliveries, views.RoleOperator), ID: "7", At: now(), Event: "batch_completed", VendorID: vendorJob,
		JobID: "104", Verdict: "accepted", Reason: "The signature fits secret version 2.", Status: 200, Took: 4 * time.Millisecond, Source: "203.0.113.7",
		Webhook: "2", WebhookID: "5e0c9ad4-0000-4000-8000-000000000041", VendorName: "9a1f0000-0000-4000-8000-000000000007",
		Attempt: "attempt 1, success, 200", AttemptPath: "/deliveries/log?job=" + vendorJob,
		Secret: "version 2", Form: "body whole none hex", ContentType: "application/json",
		Headers: []views.Pair{{Name: "Content-Type", Value: "application/json"}, {Name: "X-Webhook-Signature", Value: strings.Repeat("0af3", 16)}, {Name: "X-Odd", Value: hostile}},
		Body:    `{"event":"batch_completed","data":{"job_id":"b7d0c7f2","note":"` + hostile + `"}}`, BodyBytes: 1843, KeptBytes: 1843,
		Dump: "00000000  7b 22 65 76 65 6e 74 22  3a 22 62 61 74 63 68 5f  |{\"event\":\"batch_|", JobTimeline: shortTimeline(),
	}
	recovered := one
	recovered.Status, recovered.RecoveredAt, recovered.Reason, recovered.SharedWith = 503, before(3*time.Second), "No known secret gives this signature.", "3"
	refused := one
	refused.Layout = layout("Delivery 7", views.SectionDeliveries, views.RoleAdmin)
	refused.Verdict, refused.Status, refused.JobID, refused.Event, refused.Secret, refused.Form = "refused", 401, "", "", "", ""
	refused.Reason, refused.SecretLost = "No known secret gives this signature.", true
	refused.Cause = views.Cause{Title: "Nothing matches", Text: "None of the known forms and secrets gives this signature. " + hostile}
	refused.Body, refused.BodyBytes, refused.KeptBytes, refused.DumpCut = "", 33554432, 33554432, true
	refused.Dump = "00000000  00 ff 10 7b 22 65 76 65  6e 74 22 3a 22 62 61 74  |...{\"event\":\"bat|"
	gone := one
	gone.Layout = layout("Delivery 7", views.SectionDeliveries, views.RoleAnalyst)
	gone.Headers, gone.Body, gone.Dump, gone.KeptBytes, gone.Gone, gone.Attempt = nil, "", "", 0, true, ""
	unread := refused
	unread.Status, unread.Reason, unread.SecretLost, unread.Unread = 415, "the Content-Type must be application/json", false, true
	unread.Cause = views.Cause{Title: "Refused unread", Text: "Refused before its signature was looked at: the Content-Type must be application/json."}
	unread.BodyBytes, unread.KeptBytes, unread.Dump, unread.DumpCut, unread.ContentType = 0, 0, "", false, "application/x-www-form-urlencoded"
	unread.Attempt, unread.JobTimeline = "", nil
	return []story{
		{"delivery-unread", views.Delivery(unread)},
		{"delivery", views.Delivery(one)},
		{"delivery-recovered", views.Delivery(recovered)},
		{"delivery-odd", views.Delivery(refused)},
		{"delivery-gone", views.Delivery(gone)},
	}
}

func shortTimeline() []views.TimelineEvent {
	return []views.TimelineEvent{
		{At: before(20 * time.Second), Kind: "accepted", Title: "Accepted by the vendor"},
		{At: now(), Kind: "delivery", Net: "webhook", Title: "Delivery accepted", Detail: "batch_completed, answered 200", Path: "/deliveries/7"},
		{At: now().Add(400 * time.Millisecond), Kind: "settled", Title: "Settled"},
	}
}

func logStories() []story {
	list := logProps(views.RoleOperator)
	list.Pager, list.ReplayAll = views.Pager{Older: "/deliveries/log?from=abc"}, "/replays/new?from=log"
	busy := logProps(views.RoleAnalyst)
	busy.Self = "/stories/delivery-log-busy" // It asks for itself while it waits.
	busy.Filter.Standing, busy.Filter.Attempt, busy.Filter.Filtered = "refused", "2", true
	busy.Readings[0].Asked, busy.Readings[1].More, busy.Readings[2].Error = true, true, hostile
	none := logProps(views.RoleOperator)
	none.Attempts, none.Readings, none.Filter.Total = nil, nil, views.Known(0)
	return []story{
		{"delivery-log", views.DeliveryLog(list)}, {"delivery-log-busy", views.DeliveryLog(busy)}, {"delivery-log-none", views.DeliveryLog(none)},
	}
}

func logProps(role string) views.DeliveryLogProps {
	p := views.DeliveryLogProps{
		Layout: layout("The vendor's log", views.SectionDeliveries, role), Filter: deliveryFilter("/deliveries/log"), Self: "/deliveries/log",
		Foreign: views.Known(2), Held: views.Known(0),
		Readings: []views.LogReading{
			{Webhook: "1", Event: "extract_completed", ReadAt: before(4 * time.Minute), Added: views.Known(12), Changed: views.Known(3)},
			{Webhook: "2", Event: "batch_completed", ReadAt: before(4 * time.Minute), Added: views.Known(0), Changed: views.Known(0)},
			{Webhook: "3", Event: "crawl_completed"},
		},
	}
	p.Filter.Verdicts, p.Filter.Standings = nil, views.StandingOptions()
	p.Filter.Statuses = []views.Option{{Value: "success", Text: "success"}, {Value: "failed", Text: "failed"}}
	p.Filter.Total = views.Known(1204)
	for i, standing := range []string{"received", "absent", "refused", "given_up", "pending", "lost", "received"} {
		p.Attempts = append(p.Attempts, views.LogRow{
			Pick: "2.1.9a1f0000-0000-4000-8000-00000000000" + strconv.Itoa(i), At: before(time.Duration(i) * 9 * time.Second), Event: "batch_completed",
			Webhook: "2", Attempt: strconv.Itoa(1 + i%3), VendorID: vendorJob, Standing: standing,
			Status: []string{"success", "success", "failed", "abandoned", "pending", "failed", "failed"}[i], HTTP: []int{200, 200, 401, 0, 0, 502, 503}[i],
		})
	}
	p.Attempts[0].JobID, p.Attempts[0].DeliveryID, p.Attempts[0].DeliveredAt = "104", "7", before(time.Second)
	p.Attempts[2].Why, p.Attempts[2].DeliveryID = "Signed with a retired secret", "4"
	p.Attempts[3].VendorID, p.Attempts[3].Attempt = "", ""
	p.Attempts[5].Status, p.Attempts[5].Event = hostile, hostile
	p.Attempts[6].RecoveredAt, p.Attempts[6].DeliveryID = before(3*time.Second), "3"
	return p
}
