package web

import (
	"fmt"
	"testing"
)

// exec runs SQL on the bench's database.
func (b *bench) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	if _, err := b.store.SQL().ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// id runs SQL that returns one id.
func (b *bench) id(t *testing.T, query string, args ...any) int64 {
	t.Helper()
	var id int64
	if err := b.store.SQL().QueryRowContext(t.Context(), query, args...).Scan(&id); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return id
}

// seed is a batch with one settled job: of its items one in four failed, one in
// four is outstanding, the others are stored by webhook.
type seed struct {
	batch, job int64
	items      []int64 // By position, from 1.
	vendorID   string
}

func (b *bench) seed(t *testing.T, name string, items int) seed {
	t.Helper()
	s := seed{vendorID: "vendor-" + newToken()[:8]}
	failed, outstanding := items/4, items/4
	s.batch = b.id(t, `INSERT INTO batches (name, kind, options, created_at, submitted, invalid, duplicate, accepted, stored_webhook, failed)
		VALUES ($1, 'batch', '{"formats":["markdown","html"],"render_js":true,"wait_timeout_ms":30000}', now(), $2, 1, 1, $3, $4, $5) RETURNING id`,
		name, items+2, items, items-failed-outstanding, failed)
	b.exec(t, `INSERT INTO rejected_lines (batch_id, line, kind, text, reason)
		VALUES ($1, 2, 'invalid', 'javascript:alert(1)', 'begins with javascript:'), ($1, 3, 'duplicate', 'https://a.example/1', 'is line 1 again')`, s.batch)
	s.job = b.id(t, `INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, called_at, vendor_job_id,
			accepted_at, vendor_status, vendor_reports, wake_net, settle_net, ended_at, charged, webhook_at, call_no)
		VALUES ($1, 'batch', 'settled', 'submit', '\x00', $2, now(), now() - interval '1 h', $3, now(), 'completed',
			'{"total_urls": 12, "completed_urls": 9, "failed_urls": null}', 'webhook', 'webhook', now(), 7, now(), 1) RETURNING id`, s.batch, items, s.vendorID)
	for i := 1; i <= items; i++ {
		state, net, code, ended := "stored", any("webhook"), "", "now()"
		switch i % 4 {
		case 2:
			state, net, code = "failed", nil, "NOT_FOUND"
		case 3:
			state, net, ended = "outstanding", nil, "NULL"
		}
		id := b.id(t, `INSERT INTO items (batch_id, position, url, url_hash, state, net, current_job_id, error_code, error_message, created_at, ended_at)
			VALUES ($1, $2, $3, '\x00', $4, $5, $6, $7, CASE WHEN $7 = '' THEN '' ELSE 'gone <b>' END, now(), `+ended+`) RETURNING id`,
			s.batch, i, fmt.Sprintf("https://a.example/%d", i), state, net, s.job, code)
		s.items = append(s.items, id)
		b.exec(t, `INSERT INTO job_items (job_id, input_index, item_id) VALUES ($1, $2, $3)`, s.job, i-1, id)
		if state == "stored" {
			b.exec(t, `INSERT INTO results (item_id, job_id, net, stored_at, title, markdown, html, http_status)
				VALUES ($1, $2, 'webhook', now(), 'A title', $3, $4, 200)`, id, s.job, []byte("# Page"), []byte("<h1>Page</h1>"))
		}
	}
	b.exec(t, `INSERT INTO job_events (job_id, at, kind, net, detail) VALUES ($1, now() - interval '2 h', 'intended', '', ''),
		($1, now() + interval '1 min', 'settled', 'webhook', '')`, s.job)
	return s
}

// deliver inserts a delivery for a vendor's job.
func (b *bench) deliver(t *testing.T, vendorID, verdict string, body []byte) int64 {
	t.Helper()
	return b.id(t, `INSERT INTO deliveries (received_at, verdict, status, reason, event_type, vendor_job_id, source, micros, headers, body, body_size)
		VALUES (now() - interval '1 min', $1, 200, 'as signed', 'batch_completed', $2, '192.0.2.7', 1500, $3, $4, $5) RETURNING id`,
		verdict, vendorID, []byte(`{"Content-Type":["application/json"],"Authorization":["Bearer hush"],"X-Signature":["s1"]}`), body, len(body))
}
