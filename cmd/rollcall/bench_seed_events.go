package main

import (
	"fmt"
	"strings"
	"time"

	"rollcall/store"
)

// seedEvents are the event types; the webhook of each has its place as id.
func seedEvents() []string {
	return []string{"extract_completed", "batch_completed", "crawl_completed"}
}

// seedHook is the webhook that a batch's jobs come home by.
func seedHook(b *seedBatch) int {
	switch b.kind {
	case store.KindBatch:
		return 2
	case store.KindCrawl:
		return 3
	case store.KindExtract, store.KindMixed, store.KindSync:
	}
	return 1
}

func (d *seeder) webhookRows() seedTable {
	columns := []string{"id", "endpoint", "event_type", "url", "description", "state", "vendor_webhook_id", "signature_form", "created_at", "state_at", "last_delivery_at"}
	events := seedEvents()
	from := d.batches[0].created
	return seedTable{"webhooks", columns, rowsOf(len(events), func(i int) []any {
		endpoint := strings.Repeat(string("abc"[i]), 32)
		return []any{
			i + 1, endpoint, events[i], "https://desk.example/webhooks/geonode/" + endpoint, "", "live", fmt.Sprintf("hook-%d", i+1),
			"hex", from, from, d.began,
		}
	})}
}

// seedDelivery is one request; job is 0 when it was for somebody else's.
type seedDelivery struct {
	b       *seedBatch
	job     int
	vendor  string
	verdict store.Verdict
	status  int
	at      time.Time
}

// Of so many deliveries one is refused, or for a job of somebody else with the same account.
const (
	seedRefusedOf = 397
	seedForeignOf = 53
)

// everyDelivery makes a row of each delivery, oldest first. All jobs that are over have some; the second one is a duplicate.
func (d *seeder) everyDelivery(row func(i int, each seedDelivery) []any) func() ([]any, bool) {
	at, last := 0, 0
	jobs := d.jobTotal()
	return rowsOf(d.Deliveries, func(i int) []any {
		job := int(int64(i)*int64(jobs)/int64(d.Deliveries)) + 1
		for job > d.batches[at].jobs+d.batches[at].jobCount() {
			at++
		}
		b := &d.batches[at]
		each := seedDelivery{b: b, job: job, vendor: vendorJob(job), verdict: store.VerdictDuplicate, status: 200, at: b.jobEnded(job - b.jobs - 1)}
		if job != last {
			each.verdict = store.VerdictAccepted
		} else {
			each.at = each.at.Add(time.Duration(i%600) * time.Second)
		}
		switch {
		case i%seedRefusedOf == 1:
			each.verdict, each.status = store.VerdictRefused, 401
		case i%seedForeignOf == 1 || seedNet(job) != store.NetWebhook || d.isOpen(b, job-b.jobs-1):
			each.job, each.vendor, each.verdict = 0, fmt.Sprintf("other-%010d", i), store.VerdictAccepted
		default:
			last = job
		}
		each.at = minTime(each.at, d.began)
		return row(i, each)
	})
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func (d *seeder) deliveryRows() seedTable {
	columns := []string{
		"id", "webhook_id", "received_at", "verdict", "status", "reason", "event_type", "vendor_job_id", "vendor_delivery_id", "secret_version",
		"signature_form", "source", "micros", "headers", "body", "body_size", "diagnosis", "diagnosed_at",
	}
	events := seedEvents()
	return seedTable{"deliveries", columns, d.everyDelivery(func(i int, each seedDelivery) []any {
		hook := seedHook(each.b)
		event := events[hook-1]
		body := fmt.Appendf(nil, `{"event":%q,"data":{"job_id":%q,"status":"completed","completed_at":%q}}`, event, each.vendor, each.at.Format(time.RFC3339))
		headers := fmt.Appendf(nil, "Content-Type: application/json\nX-Geonode-Event: %s\nX-Geonode-Signature: %064x\nUser-Agent: Geonode-Webhooks/1.0\n", event, i)
		row := []any{
			i + 1, hook, each.at, string(each.verdict), each.status, "", event, each.vendor, fmt.Sprintf("del-%010d", i), 1,
			"hex", fmt.Sprintf("198.51.100.%d", i%32), 400 + i%900, headers, body, len(body), "", nil,
		}
		if each.verdict == store.VerdictRefused {
			row[5], row[9], row[16], row[17] = "the signature is not of any secret", nil, "signed with another secret", each.at.Add(time.Second)
		}
		return row
	})}
}

// eventRows are the jobs that deliveries were taken up for.
func (d *seeder) eventRows() seedTable {
	columns := []string{"vendor_job_id", "event_type", "received_at", "state", "job_id"}
	events, last := seedEvents(), 0
	return seedTable{"processed_events", columns, d.everyDelivery(func(_ int, each seedDelivery) []any {
		event := events[seedHook(each.b)-1]
		switch {
		case each.verdict != store.VerdictAccepted || each.job != 0 && each.job == last:
			return nil
		case each.job == 0:
			return []any{each.vendor, event, each.at, "foreign", nil}
		}
		last = each.job
		return []any{each.vendor, event, each.at, "claimed", each.job}
	})}
}

// timelineRows are two lines for each job that is over.
func (d *seeder) timelineRows() seedTable {
	columns := []string{"job_id", "at", "kind", "net", "detail"}
	next := d.everyJob(func(b *seedBatch, at, job int) []any { return []any{job, b, at} })
	var second []any
	return seedTable{"job_events", columns, func() ([]any, bool) {
		if row := second; row != nil {
			second = nil
			return row, true
		}
		row, ok := next()
		if !ok {
			return nil, false
		}
		job, b, at := row[0], row[1].(*seedBatch), row[2].(int) //nolint:forcetypeassert // Made above.
		if !d.isOpen(b, at) {
			second = []any{job, b.jobEnded(at), "settled", string(seedNet(b.jobs + at + 1)), "completed"}
		}
		return []any{job, b.created, "accepted", "", ""}, true
	}}
}

// logRows are the vendor's own list of the newest deliveries, of which some attempts did not arrive.
func (d *seeder) logRows() seedTable {
	columns := []string{"webhook_id", "vendor_id", "attempt", "event_type", "vendor_job_id", "status", "http_status", "delivered_at", "created_at", "seen_at", "delivery_id"}
	events := seedEvents()
	return seedTable{"delivery_log", columns, d.everyDelivery(func(i int, each seedDelivery) []any {
		if i < d.Deliveries*9/10 {
			return nil
		}
		hook := seedHook(each.b)
		status, delivery := "success", any(i+1)
		if each.status != 200 {
			status = "failed"
		}
		if i%200 == 3 {
			status, delivery, each.status = "failed", nil, 502
		}
		return []any{hook, fmt.Sprintf("del-%010d", i), 1, events[hook-1], each.vendor, status, each.status, each.at, each.at, each.at.Add(time.Minute), delivery}
	})}
}
