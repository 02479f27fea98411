package views_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"rollcall/views"
)

// hookAddress is where a webhook delivers to, as the pages show it.
const hookAddress = "https://rollcall.example.com/webhooks/geonode/mzxw..."

func secretRows() []views.SecretRow {
	return []views.SecretRow{
		{Version: 3, From: before(2 * time.Hour), Verified: views.Known(214), LastSeen: before(time.Minute)},
		{Version: 2, From: before(300 * time.Hour), Until: now().Add(22 * time.Hour), Verified: views.Count{N: 10_000, Known: true, More: true}, LastSeen: before(90 * time.Minute)},
		{Version: 1, From: before(900 * time.Hour), Until: before(276 * time.Hour), Ended: true, LastSeen: before(299 * time.Hour)},
	}
}

func webhookRow(state string) views.WebhookRow {
	return views.WebhookRow{
		ID: "3", VendorID: "4f3c2b1a-0000-4000-8000-000000000003", Event: "batch_completed", Address: hookAddress, State: state,
		Form: "body whole none hex", CreatedAt: before(900 * time.Hour), LastDelivery: before(time.Minute), Secrets: secretRows(),
	}
}

func webhookRows(states ...string) []views.WebhookRow {
	var rows []views.WebhookRow
	for i, state := range states {
		row := webhookRow(state)
		row.ID, row.VendorID = strconv.Itoa(i+1), fmt.Sprintf("4f3c2b1a-0000-4000-8000-00000000000%d", i)
		row.Event = []string{"extract_completed", "batch_completed", "crawl_completed"}[i%3]
		row.Secrets, row.LastDelivery = row.Secrets[:2], before(time.Duration(i)*time.Hour)
		if i%2 == 1 {
			row.Secrets, row.Form = row.Secrets[:1], "auto"
		}
		rows = append(rows, row)
	}
	return rows
}

func foreignHooks() []views.ForeignWebhook {
	return []views.ForeignWebhook{
		{VendorID: "9a3c2b1a-0000-4000-8000-000000000001", Event: "extract_completed", Address: "https://old.example.com/hooks/geonode", Description: "the nightly job", CreatedAt: before(4000 * time.Hour)},
		{VendorID: "9a3c2b1a-0000-4000-8000-000000000002", Event: "crawl_completed", Address: hookAddress, Description: hostile, Inactive: true, Here: true},
	}
}

func atVendor(used int64, foreign ...views.ForeignWebhook) views.WebhooksAtVendor {
	return views.WebhooksAtVendor{Asked: true, Used: views.Known(used), Most: views.Known(10), Foreign: foreign}
}

func webhookStories() []story {
	page := func(p views.WebhooksProps) story {
		p.Layout, p.Address = layout("Webhooks", views.SectionWebhooks, views.RoleAdmin), "https://rollcall.example.com/webhooks/geonode/"
		return story{"", views.Webhooks(p)}
	}
	well := page(views.WebhooksProps{Webhooks: webhookRows("active", "active", "active"), Vendor: atVendor(5, foreignHooks()...)})
	all := page(views.WebhooksProps{Webhooks: webhookRows("active", "rotating", "secret_unknown", "paused", "inactive", "moved", "gone"), Missing: []string{"crawl_completed"}, Vendor: atVendor(7)})
	away := page(views.WebhooksProps{Webhooks: webhookRows("active"), Vendor: views.WebhooksAtVendor{Most: views.Known(10), Trouble: "the vendor did not answer"}})
	fresh := page(views.WebhooksProps{Missing: []string{"extract_completed", "batch_completed", "crawl_completed"}, Vendor: atVendor(0)})
	none := page(views.WebhooksProps{Missing: []string{"extract_completed", "batch_completed", "crawl_completed"}, Vendor: views.WebhooksAtVendor{
		Most: views.Known(10), Trouble: "the vendor answered 403: not in your plan",
		Unavailable: "The vendor says that webhooks aren't available on this account (it answered 403: not in your plan). Nothing is lost by that: jobs come home by polling. The vendor is asked again with every reconcile run.",
	}})
	well.name, all.name, away.name, fresh.name, none.name = "webhooks", "webhooks-states", "webhooks-away", "webhooks-fresh", "webhooks-unavailable"
	return append(append([]story{well, all, away, fresh, none}, story{"webhooks-none", views.Webhooks(views.WebhooksProps{
		Layout: layout("Webhooks", views.SectionWebhooks, views.RoleAdmin), Vendor: atVendor(0),
	})}), oneWebhookStories()...)
}

func formPoints() []views.FormPoint {
	return []views.FormPoint{
		{Name: "signed", Text: "What is signed", Values: []string{"body", "delivery_id.body"}, Current: "body"},
		{Name: "key", Text: "The key", Values: []string{"whole", "after_whsec"}, Current: "whole"},
		{Name: "prefix", Text: "Before the signature", Values: []string{"none", "sha256="}, Current: "none"},
		{Name: "encoding", Text: "How it is written", Values: []string{"hex", "base64"}, Current: "hex"},
	}
}

func oneWebhookStories() []story {
	one := views.WebhookProps{
		Layout: layout("Webhook for batch_completed", views.SectionWebhooks, views.RoleAdmin), Webhook: webhookRow("active"), Since: before(2 * time.Hour),
		CheckedAt: before(4 * time.Minute), Description: "Rollcall", Points: formPoints(), SendURL: "https://example.com/", SendWhat: "a batch of one URL",
	}
	gone := one
	gone.Webhook = webhookRow("gone")
	gone.Webhook.VendorID, gone.Webhook.Secrets, gone.FormFixed = "", nil, true
	gone.Layout.Alerts = []views.Alert{{
		Level: "danger", Title: "The webhook for batch_completed brings nothing home", Repair: "/webhooks/3/repair", Since: before(2 * time.Hour),
		Text: "The vendor doesn't know it any more. Polling and reconciling take over until an admin repairs it, which registers it anew.",
	}}
	paused := one
	paused.Webhook = webhookRow("paused")
	paused.Webhook.Adopted, paused.Webhook.Form = true, "auto"
	paused.Points = formPoints()
	for i := range paused.Points {
		paused.Points[i].Current = ""
	}
	wrong := one
	wrong.SendURL, wrong.Description = hostile, strings.Repeat("x", 300)
	wrong.Errors = views.Errors{"url": "This URL can't be fetched: it has no host.", "description": "Use at most 200 characters that can be shown."}
	adopt := views.AdoptProps{
		Layout: layout("Adopt a webhook", views.SectionWebhooks, views.RoleAdmin), Foreign: foreignHooks(), Picked: foreignHooks()[0].VendorID,
		Address: "https://rollcall.example.com/webhooks/geonode/",
	}
	refused := adopt
	refused.Picked, refused.Errors = foreignHooks()[1].VendorID, views.Errors{"secret": "That is too short: a secret has at least 16 characters."}
	pick := adopt
	pick.Picked, pick.Errors = "gone", views.Errors{"webhook": "The vendor lists no such webhook. It may have been removed meanwhile."}
	nothing := views.AdoptProps{Layout: adopt.Layout, Trouble: "the vendor did not answer"}
	return []story{
		{"webhook", views.Webhook(one)},
		{"webhook-gone", views.Webhook(gone)},
		{"webhook-paused", views.Webhook(paused)},
		{"webhook-errors", views.Webhook(wrong)},
		{"webhook-adopt", views.WebhookAdopt(adopt)},
		{"webhook-adopt-refused", views.WebhookAdopt(refused)},
		{"webhook-adopt-pick", views.WebhookAdopt(pick)},
		{"webhook-adopt-none", views.WebhookAdopt(nothing)},
	}
}

func sentStories() []story {
	at := func(d time.Duration) time.Time { return before(time.Minute).Add(d) }
	hops := []views.Hop{
		{Title: "Submitted", State: "done", At: at(0), Detail: "as job 104", Path: "/jobs/104"},
		{Title: "Accepted by the vendor", State: "done", At: at(210 * time.Millisecond), Detail: "the vendor calls it b7d0c7f2-5c3e-4f4c-8a57-0d7f3f9b2d11"},
		{Title: "Delivery received", State: "done", At: at(1400 * time.Millisecond), Detail: "answered 200", Path: "/deliveries/7"},
		{Title: "Verified", State: "done", At: at(1400 * time.Millisecond), Detail: "by version 3 of the secret"},
		{Title: "Settled", State: "done", At: at(1600 * time.Millisecond), Detail: "by webhook"},
		{Title: "Stored", State: "done", At: at(1600 * time.Millisecond), Detail: "by webhook", Path: "/items/31"},
	}
	well := views.SentProps{Layout: layout("Send me one", views.SectionWebhooks, views.RoleAdmin), WebhookID: "3", Event: "batch_completed", BatchID: "12", Hops: hops, Self: "/webhooks/3/sent/12"}
	waiting := well
	waiting.Hops, waiting.Live = append([]views.Hop{}, hops...), true
	waiting.Hops[2] = views.Hop{Title: "Delivery received", State: "waiting"}
	for i := 3; i < 6; i++ {
		waiting.Hops[i] = views.Hop{Title: hops[i].Title, State: "ahead"}
	}
	refused := well
	refused.Hops = append([]views.Hop{}, hops...)
	refused.Hops[2].Detail = "answered 401"
	refused.Hops[3] = views.Hop{
		Title: "Verified", State: "failed", At: at(1400 * time.Millisecond), Path: "/deliveries/7", Detail: "signature does not match: " + hostile,
		Reasons: []string{
			"The vendor signs with another secret than the one stored here: rotate it.",
			"The vendor signs in another form than the one set for this webhook: go back to auto, or check a captured request under Check a signature.",
		},
	}
	refused.Hops[4].Detail, refused.Hops[5].Detail = "by poll, which was there before the webhook", "by poll"
	retried := refused
	retried.Live, retried.Hops = true, append([]views.Hop{}, refused.Hops...)
	retried.Hops[3].Detail = "signature does not match; a retry of it may still come"
	failed := well
	failed.Ended = views.SentEnd{How: "failed", Why: "TARGET_BLOCKED: The target keeps refusing the request."}
	failed.Hops = append([]views.Hop{}, hops...)
	failed.Hops[2] = views.Hop{Title: "Delivery received", State: "none", Detail: "the vendor sends none for a job that failed"}
	failed.Hops[3] = views.Hop{Title: "Verified", State: "none", Detail: "there is nothing to verify"}
	failed.Hops[4].Detail = "by poll"
	failed.Hops[5].State, failed.Hops[5].Detail = "failed", failed.Ended.Why
	return []story{{"send-one-failed", views.SentOne(failed)}, {"send-one-retried", views.SentOne(retried)}, {"send-one", views.SentOne(well)}, {"send-one-waiting", views.SentOne(waiting)}, {"send-one-refused", views.SentOne(refused)}}
}
