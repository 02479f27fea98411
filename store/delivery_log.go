package store

import (
	"context"
	"errors"
	"time"

	"github.com/uptrace/bun"
)

// LogRow is one attempt to deliver, as the vendor's log shows it.
type LogRow struct {
	bun.BaseModel `bun:"table:delivery_log,alias:dl"`
	ID            int64 // Orders attempts of one time, and no more.
	WebhookID     int64
	VendorID      string // What the vendor calls the delivery; its attempts may share it.
	Attempt       int    // Zero when the vendor doesn't number it.
	EventType     string
	VendorJobID   string // Empty when the vendor names no job.
	Status        string // The vendor's word.
	HTTPStatus    *int   `bun:"http_status"`
	DeliveredAt   *time.Time
	CreatedAt     time.Time // By the vendor's clock.
	SeenAt        time.Time // When the reading began that last changed the row.
	DeliveryID    *int64    // The delivery it is here; it may have gone since.
}

// LogRead says how far a webhook's log was read.
type LogRead struct {
	bun.BaseModel `bun:"table:delivery_log_reads,alias:lr"`
	WebhookID     int64 `bun:",pk"`
	NextPage      int   // Where a reading that was cut short goes on; zero when none was.
	Whole         bool  // That reading goes to the log's end.
	StartedAt     *time.Time
	ReadAt        *time.Time // The last that came to its end.
	WholeAt       *time.Time // The last that read all.
	NewestFirst   bool       // The last saw the newest rows come first.
	Pages         int
	Added         int
	Changed       int
	Note          string     // What went wrong, for people.
	AskedAt       *time.Time `bun:",scanonly"` // Somebody asked for a reading, which has not ended.
}

// MirrorLog writes rows of one webhook's log, no two of them the same attempt,
// and looks for the deliveries they are here. It returns how many are new and
// how many had changed. What a later reading wrote stays.
func (t Tx) MirrorLog(ctx context.Context, rows []LogRow) (int, int, error) {
	var c logColumns
	for i := range rows {
		c.add(&rows[i])
	}
	// In one order, so that two readings of one page can't lock each other out.
	got, err := t.tx.Tx.QueryContext(ctx, `INSERT INTO delivery_log (webhook_id, vendor_id, attempt, event_type, vendor_job_id,
			status, http_status, delivered_at, created_at, seen_at)
		SELECT * FROM unnest($1::bigint[], $2::text[], $3::int[], $4::text[], $5::text[], $6::text[], $7::int[],
			$8::timestamptz[], $9::timestamptz[], $10::timestamptz[]) AS g (webhook, id, attempt, event, job, status, http, delivered, created, seen)
		ORDER BY g.webhook, g.id, g.attempt
		ON CONFLICT (webhook_id, vendor_id, attempt) DO UPDATE SET
			event_type = coalesce(nullif(excluded.event_type, ''), delivery_log.event_type),
			vendor_job_id = coalesce(nullif(excluded.vendor_job_id, ''), delivery_log.vendor_job_id),
			status = excluded.status, http_status = excluded.http_status, delivered_at = excluded.delivered_at,
			seen_at = excluded.seen_at
		WHERE delivery_log.seen_at <= excluded.seen_at
		  AND ((delivery_log.status, delivery_log.http_status, delivery_log.delivered_at) IS DISTINCT FROM
				(excluded.status, excluded.http_status, excluded.delivered_at)
			OR delivery_log.vendor_job_id = '' AND excluded.vendor_job_id <> '')
		RETURNING webhook_id, vendor_id, xmax = 0`, c.webhook, c.vendorID, c.attempt, c.event, c.job, c.status, c.http, c.delivered, c.created, c.seen)
	if err != nil {
		return 0, 0, translate(err)
	}
	defer got.Close()
	var webhooks []int64
	var vendorIDs []string
	added := 0
	for got.Next() {
		var webhook int64
		var vendorID string
		var isNew bool
		if err := got.Scan(&webhook, &vendorID, &isNew); err != nil {
			return 0, 0, translate(err)
		}
		if isNew {
			added++
		}
		webhooks, vendorIDs = append(webhooks, webhook), append(vendorIDs, vendorID)
	}
	if err := got.Err(); err != nil {
		return 0, 0, translate(err)
	}
	return added, len(vendorIDs) - added, t.matchLog(ctx, webhooks, vendorIDs)
}

// logColumns are rows turned on their side, as unnest takes them.
type logColumns struct {
	webhook                      []int64
	vendorID, event, job, status []string
	attempt                      []int32
	http                         []*int32
	delivered                    []*time.Time
	created, seen                []time.Time
}

func (c *logColumns) add(r *LogRow) {
	c.webhook, c.vendorID = append(c.webhook, r.WebhookID), append(c.vendorID, CleanText(r.VendorID))
	c.event, c.job = append(c.event, CleanText(r.EventType)), append(c.job, CleanText(r.VendorJobID))
	c.status, c.attempt = append(c.status, CleanText(r.Status)), append(c.attempt, int32(r.Attempt)) //nolint:gosec // The caller's numbers fit.
	var status *int32
	if r.HTTPStatus != nil {
		status = new(int32(*r.HTTPStatus)) //nolint:gosec // The caller's numbers fit.
	}
	c.http, c.delivered = append(c.http, status), append(c.delivered, r.DeliveredAt)
	c.created, c.seen = append(c.created, r.CreatedAt), append(c.seen, r.SeenAt)
}

// LogReadOf says how far a webhook's log was read; nothing, for one that never was.
func (q Queries) LogReadOf(ctx context.Context, webhookID int64) (*LogRead, error) {
	r := &LogRead{}
	err := translate(q.db.NewSelect().Model(r).Where("webhook_id = ?", webhookID).Scan(ctx))
	if errors.Is(err, ErrNotFound) {
		return &LogRead{WebhookID: webhookID}, nil
	}
	return r, err
}

// SaveLogRead writes how far a webhook's log was read.
func (q Queries) SaveLogRead(ctx context.Context, r *LogRead) error {
	_, err := q.db.NewInsert().Model(r).On("CONFLICT (webhook_id) DO UPDATE").
		Set(`next_page = excluded.next_page, whole = excluded.whole, started_at = excluded.started_at, read_at = excluded.read_at,
			whole_at = excluded.whole_at, newest_first = excluded.newest_first, pages = excluded.pages, added = excluded.added,
			changed = excluded.changed, note = excluded.note`).Exec(ctx)
	return translate(err)
}

// AskLogRead notes that somebody asked for readings of the webhooks' logs.
func (q Queries) AskLogRead(ctx context.Context, webhookIDs []int64, now time.Time) error {
	if len(webhookIDs) == 0 {
		return nil
	}
	_, err := q.db.NewRaw(`INSERT INTO delivery_log_reads (webhook_id, asked_at) SELECT id, ? FROM webhooks WHERE id IN (?) ORDER BY id
		ON CONFLICT (webhook_id) DO UPDATE SET asked_at = excluded.asked_at`, now, bun.List(webhookIDs)).Exec(ctx)
	return translate(err)
}

// AnswerLogRead notes that what somebody asked for has ended.
func (q Queries) AnswerLogRead(ctx context.Context, webhookID int64) error {
	_, err := q.db.NewRaw(`UPDATE delivery_log_reads SET asked_at = NULL WHERE webhook_id = ?`, webhookID).Exec(ctx)
	return translate(err)
}

// Unarrived is an attempt that isn't noted as a success, and the job it was
// for, when that is ours and has not settled.
type Unarrived struct {
	LogRow
	JobID *int64
}

// Unarrived lists attempts that are not noted as successes, oldest first, from
// after the key on.
func (q Queries) Unarrived(ctx context.Context, from Key, limit int) ([]Unarrived, error) {
	var out []Unarrived
	err := q.db.NewRaw(`SELECT dl.id, dl.webhook_id, dl.vendor_id, dl.attempt, dl.vendor_job_id, dl.status, dl.http_status, dl.delivered_at, dl.created_at, j.id AS job_id
		FROM (SELECT * FROM delivery_log WHERE status <> 'success' AND (created_at, id) > (?, ?)
			ORDER BY created_at, id LIMIT ?) AS dl
		LEFT JOIN jobs AS j ON j.vendor_job_id = dl.vendor_job_id AND dl.vendor_job_id <> '' AND j.state IN ('accepted', 'given_up')
		ORDER BY dl.created_at, dl.id`, from.At, from.ID, limit).Scan(ctx, &out)
	return out, translate(err)
}
