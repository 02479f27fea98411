package store

import (
	"context"
	"slices"
	"time"

	"github.com/uptrace/bun"
)

// Counts is what one transaction adds to a batch's counters.
type Counts struct {
	Accepted     int64 // Crawl pages found; Submitted grows alike.
	Stored       int64
	Net          Net
	Failed       int64
	Cancelled    int64
	Charged      int64
	ChargedTwice int64
}

// BatchEnd is how a batch stood when it ended.
type BatchEnd struct {
	ID                        int64
	Stored, Failed, Cancelled int64
}

// Ended are the batches that this transaction has ended so far. That they have
// is certain once it is committed.
func (t Tx) Ended() []BatchEnd { return *t.ended }

// storedColumn is the counter of each net.
func storedColumn(n Net) bun.Ident {
	switch n {
	case NetWebhook:
		return "stored_webhook"
	case NetPoll:
		return "stored_poll"
	case NetReconcile:
		return "stored_reconcile"
	case NetReplay:
		return "stored_replay"
	case NetSync:
		return "stored_sync"
	}
	return "stored_replay"
}

// AddCounts adds to a batch's counters and tells whoever listens. It must be
// the last statement of the transaction whose guarded updates it counts: the
// row is locked from here to the commit.
func (t Tx) AddCounts(ctx context.Context, batchID int64, c Counts, now time.Time) error {
	out := c.Accepted - c.Stored - c.Failed - c.Cancelled
	if c == (Counts{Net: c.Net}) {
		return nil
	}
	slot, began := paceSlot(now)
	var rows []struct {
		BatchEnd
		Again bool // It may have ended, which a further statement finds out.
		Ended bool
	}
	err := t.db.NewRaw(`WITH changed AS (
			UPDATE batches SET submitted = submitted + ?accepted, accepted = accepted + ?accepted,
				?column = ?column + ?stored, failed = failed + ?failed, cancelled = cancelled + ?cancelled,
				charged = charged + ?charged, charged_twice = charged_twice + ?twice,
				ended_at = CASE WHEN outstanding + ?out = 0 AND NOT EXISTS (`+openCrawl+`) THEN coalesce(ended_at, ?now) END
			WHERE id = ?id RETURNING id, kind = 'crawl' AND outstanding = 0 AND ended_at IS NULL AS again,
				coalesce(ended_at = ?now, false) AS ended, accepted - outstanding - failed - cancelled AS stored, failed, cancelled),
		told AS (SELECT pg_notify('rollcall_batch', id::text) FROM changed),
		paced AS (`+paceSQL+`)
		SELECT id, again, ended, stored, failed, cancelled FROM changed, told`, named{
		"accepted": c.Accepted, "column": storedColumn(c.Net), "stored": c.Stored, "failed": c.Failed,
		"cancelled": c.Cancelled, "charged": c.Charged, "twice": c.ChargedTwice, "out": out, "now": now, "id": batchID,
		"slot": slot, "began": began, "ended": c.ended(),
	}).Scan(ctx, &rows)
	if err != nil || len(rows) == 0 {
		return translate(err)
	}
	if rows[0].Ended {
		*t.ended = append(*t.ended, rows[0].BatchEnd)
	}
	if rows[0].Again {
		return t.endLocked(ctx, batchID, now)
	}
	return nil
}

// CountLast is AddCounts for a transaction that may have ended something without
// counting anything: then the batch may have ended all the same.
func (t Tx) CountLast(ctx context.Context, batchID int64, c Counts, now time.Time) error {
	if c == (Counts{Net: c.Net}) {
		return t.EndBatch(ctx, batchID, now)
	}
	return t.AddCounts(ctx, batchID, c, now)
}

// openCrawl finds a crawl of the batch that may still report pages: until it is
// settled the batch has not ended, though nothing of it is outstanding.
const openCrawl = `SELECT FROM jobs WHERE batch_id = ?id AND kind = 'crawl'
	AND state IN ('intended', 'calling', 'uncertain', 'accepted')`

// EndBatch ends a batch of which nothing is outstanding and whose crawls are
// settled, and tells whoever listens. Like AddCounts it comes last. Other
// batches than crawls end with their last item, by AddCounts.
func (t Tx) EndBatch(ctx context.Context, batchID int64, now time.Time) error {
	var open []int64
	err := t.db.NewRaw(`SELECT id FROM batches WHERE id = ? AND kind = 'crawl' AND ended_at IS NULL FOR NO KEY UPDATE`, batchID).
		Scan(ctx, &open)
	if err == nil && len(open) > 0 {
		err = t.endLocked(ctx, batchID, now)
	}
	if err != nil {
		return translate(err)
	}
	return t.Notify(ctx, batchID)
}

// endLocked ends the batch if it has ended. The caller has locked its row, in a
// statement before: only a statement that begins after the lock sees a crawl
// whose end another transaction committed while this one waited.
func (t Tx) endLocked(ctx context.Context, batchID int64, now time.Time) error {
	var rows []BatchEnd
	err := t.db.NewRaw(`UPDATE batches SET ended_at = ?now WHERE id = ?id AND ended_at IS NULL AND outstanding = 0
		AND NOT EXISTS (`+openCrawl+`) RETURNING id, accepted - failed - cancelled AS stored, failed, cancelled`,
		named{"now": now, "id": batchID}).Scan(ctx, &rows)
	*t.ended = append(*t.ended, rows...)
	return translate(err)
}

// Notify tells whoever listens that something of the batch changed that is
// not in its counters.
func (q Queries) Notify(ctx context.Context, batchID int64) error {
	_, err := q.db.NewRaw(`SELECT pg_notify('rollcall_batch', ?::bigint::text)`, batchID).Exec(ctx)
	return translate(err)
}

// moved is an item that a guarded update touched, with the state it had.
type moved struct {
	ID  int64
	Was ItemState
}

// StoreItems stores the answers for items that the job carries, wherever the
// items are in their lineage, unless they are stored already. It returns the
// counters' change and which of the items it stored. Job 0 is a sync call,
// which has no job: it may store the items that it was made for.
func (t Tx) StoreItems(ctx context.Context, jobID int64, net Net, results []*Result, now time.Time) (Counts, map[int64]bool, error) {
	counts, stored := Counts{Net: net}, map[int64]bool{}
	if len(results) == 0 {
		return counts, stored, nil
	}
	ids := make([]int64, 0, len(results))
	for _, r := range results {
		ids = append(ids, r.ItemID)
	}
	carries := `job_items ji ON ji.item_id = i.id AND ji.job_id = ?job`
	if jobID == 0 {
		carries = `sync_calls sc ON sc.item_id = i.id AND sc.called_at IS NOT NULL`
	}
	var rows []moved
	err := t.db.NewRaw(`SELECT i.id, i.state AS was FROM items i JOIN `+carries+`
		WHERE i.id IN (?ids) AND i.state <> 'stored' ORDER BY i.id FOR NO KEY UPDATE OF i`,
		named{"job": jobID, "ids": bun.List(ids)}).Scan(ctx, &rows)
	if err != nil || len(rows) == 0 {
		return counts, stored, translate(err)
	}
	ids = ids[:0]
	for _, r := range rows {
		ids = append(ids, r.ID)
		stored[r.ID] = true
		counts.Store(r.Was)
	}
	_, err = t.db.NewRaw(`UPDATE items SET state = 'stored', net = ?, ended_at = ?,
			error_code = '', error_message = '', error_retryable = false,
			resolved_at = NULL, resolved_by = NULL, resolved_note = '' WHERE id IN (?)`, net, now, bun.List(ids)).Exec(ctx)
	if err != nil {
		return counts, nil, translate(err)
	}
	news := slices.DeleteFunc(slices.Clone(results), func(r *Result) bool { return !stored[r.ItemID] })
	return counts, stored, t.insertResults(ctx, news)
}

// Store counts an item as stored that was in another state.
func (c *Counts) Store(was ItemState) {
	c.Stored++
	switch was {
	case ItemFailed:
		c.Failed--
	case ItemCancelled:
		c.Cancelled--
	case ItemOutstanding, ItemStored:
	}
}

// Ending is how an item ends without a result.
type Ending struct {
	ItemID    int64
	Code      string
	Message   string
	Retryable bool
}

// FailItems ends items as failed, and only those whose current job this is and
// that are still outstanding. It returns which it ended. Job 0 is a sync call:
// its items have no job.
func (t Tx) FailItems(ctx context.Context, jobID int64, ends []Ending, now time.Time) ([]int64, error) {
	return t.endItems(ctx, jobID, ItemFailed, ends, now)
}

// CancelItems ends items as cancelled, under the same guard as FailItems.
func (t Tx) CancelItems(ctx context.Context, jobID int64, ends []Ending, now time.Time) ([]int64, error) {
	return t.endItems(ctx, jobID, ItemCancelled, ends, now)
}

func (t Tx) endItems(ctx context.Context, jobID int64, to ItemState, ends []Ending, now time.Time) ([]int64, error) {
	if len(ends) == 0 {
		return nil, nil
	}
	ids, codes, messages, retryable := make([]int64, len(ends)), make([]string, len(ends)),
		make([]string, len(ends)), make([]bool, len(ends))
	for i, e := range ends {
		ids[i], codes[i], messages[i], retryable[i] = e.ItemID, CleanText(e.Code), CleanText(e.Message), e.Retryable
	}
	open, err := t.lock(ctx, `SELECT id FROM items WHERE id IN (?ids) AND coalesce(current_job_id, 0) = ?job AND state = 'outstanding'
		ORDER BY id FOR NO KEY UPDATE`, named{"ids": bun.List(ids), "job": jobID})
	if err != nil || len(open) == 0 {
		return nil, err
	}
	_, err = t.tx.Tx.ExecContext(ctx, `UPDATE items SET state = $5, ended_at = $6, error_code = e.code, error_message = e.message,
			error_retryable = e.retryable
		FROM unnest($1::bigint[], $2::text[], $3::text[], $4::boolean[]) AS e (id, code, message, retryable)
		WHERE items.id = e.id AND items.id = ANY ($7::bigint[])`, ids, codes, messages, retryable, string(to), now, open)
	return open, translate(err)
}

// FreshItems returns which of the items the job had not brought home before,
// and locks their lineage: a look that runs twice counts its charges once.
func (t Tx) FreshItems(ctx context.Context, jobID int64, ids []int64) ([]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var fresh []int64
	err := t.db.NewRaw(`SELECT item_id FROM job_items WHERE job_id = ? AND item_id IN (?)
			AND (outcome IS NULL OR outcome NOT IN ('stored', 'superseded'))
		ORDER BY input_index FOR NO KEY UPDATE`, jobID, bun.List(ids)).Scan(ctx, &fresh)
	return fresh, translate(err)
}

// Report is what a job said of one item it carried.
type Report struct {
	ItemID  int64
	Outcome Outcome
	Code    string
	Message string
}

// ReportItems notes in the lineage what the job said. A later word replaces an
// earlier one, except that stored stays.
func (t Tx) ReportItems(ctx context.Context, jobID int64, reports []Report, now time.Time) error {
	if len(reports) == 0 {
		return nil
	}
	ids, outcomes := make([]int64, len(reports)), make([]string, len(reports))
	codes, messages := make([]string, len(reports)), make([]string, len(reports))
	for i, r := range reports {
		ids[i], outcomes[i], codes[i], messages[i] = r.ItemID, string(r.Outcome), CleanText(r.Code), CleanText(r.Message)
	}
	_, err := t.tx.Tx.ExecContext(ctx, `UPDATE job_items ji SET outcome = r.outcome, error_code = r.code,
			error_message = r.message, reported_at = $6
		FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[]) AS r (item_id, outcome, code, message)
		WHERE ji.job_id = $5 AND ji.item_id = r.item_id AND ji.outcome IS DISTINCT FROM 'stored'`,
		ids, outcomes, codes, messages, jobID, now)
	return translate(err)
}

// CarriedItem is an item as seen by one job of its lineage.
type CarriedItem struct {
	InputIndex int
	ItemID     int64
	URL        string `bun:"url"`
	State      ItemState
	Current    bool // This job is the item's current one.
	Retries    int
	Outcome    *Outcome
}

const carriedSQL = `SELECT ji.input_index, ji.item_id, i.url, i.state,
		coalesce(i.current_job_id = ji.job_id, false) AS current, i.retries, ji.outcome
	FROM job_items ji JOIN items i ON i.id = ji.item_id`

// Carried lists what a job carries, by input index.
func (q Queries) Carried(ctx context.Context, jobID int64) ([]CarriedItem, error) {
	var out []CarriedItem
	err := q.hot.rows(ctx, &out, carriedSQL+` WHERE ji.job_id = $1 ORDER BY ji.input_index`, jobID)
	return out, err
}

// CarriedOf is Carried for some of the job's items.
func (q Queries) CarriedOf(ctx context.Context, jobID int64, itemIDs []int64) ([]CarriedItem, error) {
	var out []CarriedItem
	if len(itemIDs) == 0 {
		return nil, nil
	}
	err := q.db.NewRaw(carriedSQL+` WHERE ji.job_id = ? AND ji.item_id IN (?) ORDER BY ji.input_index`, jobID, bun.List(itemIDs)).Scan(ctx, &out)
	return out, translate(err)
}
