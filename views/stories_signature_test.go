package views_test

import (
	"strings"
	"time"

	"rollcall/views"
)

func signatureStories() []story {
	empty := views.CheckProps{Layout: layout("Check a signature", views.SectionWebhooks, views.RoleAdmin), Header: "X-Webhook-Signature"}
	typed := empty
	typed.Headers = "Content-Type: application/json\nX-Webhook-Event: crawl_completed\nX-Webhook-Signature: sha256=" + strings.Repeat("5f", 32)
	typed.Body = "\n{\"event\": \"crawl_completed\", \"note\": \"" + hostile + "\"}"
	found, nothing, fixed, wrong := typed, typed, typed, typed
	found.Result = &views.CheckResult{
		Matches: true, Form: "body whole sha256= hex", Reading: "as it was pasted, with lines that end in LF", Webhook: "3",
		Webhooks: []views.Option{{Value: "2", Text: "batch_completed (2)"}, {Value: "3", Text: "crawl_completed (3)"}},
	}
	fixed.Result = &views.CheckResult{Matches: true, Form: "body whole sha256= hex", Reading: "as it was pasted", Fixed: true}
	nothing.Result = &views.CheckResult{
		Title: "Body changed on its way",
		Text:  "The body was changed after it was signed: written compact, names sorted it matches. Something on the way reads and writes it again.",
	}
	wrong.Errors = views.Errors{"headers": `Line 2 has no colon: a header is written "Name: value".`, "secret": "Enter the secret."}
	return []story{
		{"check", views.Check(empty)},
		{"check-found", views.Check(found)},
		{"check-nothing", views.Check(nothing)},
		{"check-fixed", views.Check(fixed)},
		{"check-wrong", views.Check(wrong)},
		{"delivery-refused", views.Delivery(refusedDelivery(views.RoleOperator, views.Cause{
			Title: "Signed with a retired secret", Text: "Signed with version 2 of the secret, which ended on 28 November 2026 09:30:00 UTC.",
		}))},
		{"deliveries-counted", views.Deliveries(views.DeliveriesProps{
			Layout:  layout("Deliveries", views.SectionDeliveries, views.RoleAnalyst),
			Counted: []views.RefusedCount{{Event: "crawl_completed", Unsigned: 4711, Others: 12, LastAt: before(time.Minute), LastSource: "198.51.100.9"}},
		})},
		{"delivery-unreadable", views.Delivery(unreadableDelivery())},
		{"delivery-refused-analyst", views.Delivery(refusedDelivery(views.RoleAnalyst, views.Cause{}))},
	}
}

func refusedDelivery(role string, cause views.Cause) views.DeliveryProps {
	return views.DeliveryProps{
		Layout: layout("Delivery 41", views.SectionDeliveries, role), ID: "41", At: before(time.Minute), Event: "crawl_completed",
		Verdict: "refused", Status: 401, Reason: "signature does not match", Took: 900 * time.Microsecond, Source: "192.0.2.7",
		Headers: []views.Pair{{Name: "X-Webhook-Signature", Value: strings.Repeat("5f", 32)}}, Body: "{}", BodyBytes: 2, KeptBytes: 2, Cause: cause,
	}
}

func unreadableDelivery() views.DeliveryProps {
	p := refusedDelivery(views.RoleOperator, views.Cause{})
	p.Verdict, p.Status, p.Reason, p.Secret, p.Form = "unreadable", 400, "no job id", "version 2", "body whole sha256= hex"
	return p
}
