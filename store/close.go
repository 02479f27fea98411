package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/uptrace/bun"
)

// Reading is what a look at a job showed, to be noted without ending it.
type Reading struct {
	JobID        int64
	SeenSeq      int64 // wake_seq as read before the call.
	VendorStatus string
	Reports      json.RawMessage
	NextPollAt   time.Time
	Overdue      bool
}

// NoteReading ends a look at a job that is not at its end: it sets the next
// poll, unless the job was woken since the look began. It reports false then,
// and the caller must look again at once, or that wake would be lost.
func (t Tx) NoteReading(ctx context.Context, r Reading) (bool, error) {
	n, err := affected(t.db.NewRaw(`UPDATE jobs SET vendor_status = ?, vendor_reports = coalesce(?::jsonb, vendor_reports),
			next_poll_at = CASE WHEN state = 'accepted' THEN ?::timestamptz END,
			overdue = overdue OR ?, not_found = 0, not_found_at = NULL, look = 'running'
		WHERE id = ? AND wake_seq = ? AND state IN ('accepted', 'given_up')`,
		r.VendorStatus, jsonArg(r.Reports), r.NextPollAt, r.Overdue, r.JobID, r.SeenSeq).Exec(ctx))
	return n == 1, err
}

// PutOff sets the next poll of a job whose look showed nothing, for the reason
// that look gives, unless it was woken since, which it reports as false.
func (t Tx) PutOff(ctx context.Context, jobID, seenSeq int64, look Look, next time.Time) (bool, error) {
	n, err := affected(t.db.NewRaw(`UPDATE jobs SET next_poll_at = CASE WHEN state = 'accepted' THEN ?::timestamptz END, look = ?
		WHERE id = ? AND wake_seq = ? AND state IN ('accepted', 'given_up')`, next, look, jobID, seenSeq).Exec(ctx))
	return n == 1, err
}

// NoteNotFound counts a 404 for the job. It returns how many came in a row and
// when the first did.
func (t Tx) NoteNotFound(ctx context.Context, jobID int64, now time.Time) (int, time.Time, error) {
	var row struct {
		NotFound   int
		NotFoundAt time.Time
	}
	err := t.db.NewRaw(`UPDATE jobs SET not_found = not_found + 1, not_found_at = coalesce(not_found_at, ?)
		WHERE id = ? RETURNING not_found, not_found_at`, now, jobID).Scan(ctx, &row)
	return row.NotFound, row.NotFoundAt, translate(err)
}

// PageTurn is a page of a job's results that is in.
type PageTurn struct {
	JobID        int64
	Next, Size   int // The page to go on with, and how many items it holds.
	VendorStatus string
	Reports      json.RawMessage // The vendor's counters; nil keeps the last.
	Charged      int64           // What the page's items were newly charged.
}

// TurnPage notes that a page of results is in: the next look goes on behind it.
func (t Tx) TurnPage(ctx context.Context, p PageTurn) error {
	_, err := t.db.NewRaw(`UPDATE jobs SET settle_page = ?, page_size = ?, vendor_status = ?,
			vendor_reports = coalesce(?::jsonb, vendor_reports), charged = charged + ?,
			not_found = 0, not_found_at = NULL
		WHERE id = ? AND state IN ('accepted', 'given_up')`,
		p.Next, p.Size, CleanText(p.VendorStatus), jsonArg(p.Reports), p.Charged, p.JobID).Exec(ctx)
	return translate(err)
}

// Pass is a complete read of a terminal job that left items unreported.
type Pass struct {
	JobID  int64
	At     time.Time
	Vendor time.Time     // The same moment by the vendor's clock; zero when the vendor didn't say.
	Gap    time.Duration // How far apart two such reads are that both count.
	Next   time.Time     // When to read again.
}

// manyGaps is how many gaps by our clock are one whatever the vendor's says: it
// may have been set back.
const manyGaps = 30

// NotePass notes such a read; the next look starts again at the first page. It
// returns how many there were, counting this one only when the last that counted
// is a gap old, by our clock and by the vendor's: another server may have noted
// that one, by a clock of its own. A wake since the look began is not looked
// for: the next look comes in any case.
func (t Tx) NotePass(ctx context.Context, p Pass) (int, error) {
	var passes []int
	err := t.db.NewRaw(`UPDATE jobs SET settle_page = 1, look = 'incomplete',
			settle_passes = settle_passes + CASE WHEN c.counts THEN 1 ELSE 0 END,
			settle_pass_at = CASE WHEN c.counts THEN ?now ELSE settle_pass_at END,
			settle_pass_vendor_at = CASE WHEN c.counts THEN ?vendor::timestamptz ELSE settle_pass_vendor_at END,
			next_poll_at = CASE WHEN state = 'accepted' THEN ?next::timestamptz END
		FROM (SELECT id AS job_id, settle_pass_at IS NULL OR settle_pass_at <= ?since
				AND (settle_pass_at <= ?long OR coalesce(settle_pass_vendor_at <= ?vendorSince::timestamptz, true)) AS counts
			FROM jobs WHERE id = ?id FOR NO KEY UPDATE) c
		WHERE id = c.job_id AND state IN ('accepted', 'given_up') RETURNING settle_passes`,
		named{
			"since": p.At.Add(-p.Gap), "long": p.At.Add(-manyGaps * p.Gap), "now": p.At, "next": p.Next, "id": p.JobID,
			"vendor": bun.NullTime{Time: p.Vendor}, "vendorSince": bun.NullTime{Time: before(p.Vendor, p.Gap)},
		}).Scan(ctx, &passes)
	if err != nil || len(passes) == 0 {
		return 0, translate(err)
	}
	return passes[0], nil
}

// before is a time a while earlier; zero stays zero.
func before(t time.Time, d time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(-d)
}

// SettleJob moves a job to settled: everything it can tell has been carried
// over. A wake that came since changes nothing, since there is nothing left to
// read. vendorEnd is when the job ended at the vendor, by our clock; zero when
// that isn't known. It reports false when the job was settled already.
func (t Tx) SettleJob(ctx context.Context, jobID int64, net Net, vendorEnd, now time.Time) (bool, error) {
	n, err := affected(t.db.NewRaw(`UPDATE jobs SET state = 'settled', settle_net = ?, error_code = '',
			error_message = '', ended_at = ?, vendor_ended_at = ?, next_poll_at = NULL
		WHERE id = ? AND state IN ('accepted', 'given_up')`, net, now, bun.NullTime{Time: vendorEnd}, jobID).Exec(ctx))
	return n == 1, err
}

// GiveUpJob moves a job to given_up: nobody asks any more, but a wake by
// another net still may bring it home. It reports false when the job was woken
// since its wake_seq was seen, or is no longer open.
func (t Tx) GiveUpJob(ctx context.Context, jobID, seenSeq int64, code, message string, now time.Time) (bool, error) {
	n, err := affected(t.db.NewRaw(`UPDATE jobs SET state = 'given_up', error_code = ?, error_message = ?,
			ended_at = ?, next_poll_at = NULL
		WHERE id = ? AND wake_seq = ? AND state = 'accepted'`, code, CleanText(message), now, jobID, seenSeq).Exec(ctx))
	return n == 1, err
}

// FlagJob marks what a person should know of a job: its answers did not match
// what was sent (misnumbered), or came after another job's (superseded).
func (t Tx) FlagJob(ctx context.Context, jobID int64, misnumbered, superseded bool) error {
	if !misnumbered && !superseded {
		return nil
	}
	_, err := t.db.NewRaw(`UPDATE jobs SET misnumbered = misnumbered OR ?, superseded = superseded OR ?
		WHERE id = ?`, misnumbered, superseded, jobID).Exec(ctx)
	return translate(err)
}

// jsonArg passes raw JSON as text, and nothing as NULL.
func jsonArg(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	return string(raw)
}
