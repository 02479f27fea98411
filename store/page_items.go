package store

import (
	"context"
	"errors"
	"time"

	"github.com/uptrace/bun"
)

// ItemRow is an item in a list: how many jobs carried it, and how large what
// is stored of it is, in bytes.
type ItemRow struct {
	Item
	Attempts int
	Bytes    int64
}

// PageItems lists a batch's items by position, those after the given one; an
// empty state lists all of them.
func (q Queries) PageItems(ctx context.Context, batchID int64, state ItemState, after int, limit int64) ([]ItemRow, error) {
	var items []Item
	query := q.db.NewSelect().Model(&items).Where("i.batch_id = ?", batchID).Where("i.position > ?", after)
	if state != "" {
		query = query.Where("i.state = ?", state)
	}
	if err := query.Order("i.position").Limit(limit).Scan(ctx); err != nil {
		return nil, translate(err)
	}
	return q.itemRows(ctx, items)
}

// PageRejected lists lines of a batch that became no item, those after the
// given line. A result that a line would have fetched again is named while it is
// kept.
func (q Queries) PageRejected(ctx context.Context, batchID int64, after int, limit int64) ([]RejectedLine, error) {
	var lines []RejectedLine
	err := q.db.NewRaw(`SELECT l.batch_id, l.line, l.kind, l.text, l.reason, l.extra, l.duplicate_of,
			(SELECT r.item_id FROM results r WHERE r.item_id = l.stored_item) AS stored_item
		FROM rejected_lines l WHERE l.batch_id = ? AND l.line > ? ORDER BY l.line LIMIT ?`, batchID, after, limit).Scan(ctx, &lines)
	return lines, translate(err)
}

// JobItemRow is an item in the list of a job, at its place there.
type JobItemRow struct {
	ItemRow
	InputIndex int
}

// PageJobItems lists the items that a job carries or carried, by their place
// in it, those after the given one; -1 begins.
func (q Queries) PageJobItems(ctx context.Context, jobID int64, after int, limit int64) ([]JobItemRow, error) {
	var steps []JobItem
	err := q.db.NewSelect().Model(&steps).Column("input_index", "item_id").Where("ji.job_id = ?", jobID).
		Where("ji.input_index > ?", after).Order("ji.input_index").Limit(limit).Scan(ctx)
	if err != nil || len(steps) == 0 {
		return nil, translate(err)
	}
	ids := make([]int64, len(steps))
	for i, step := range steps {
		ids[i] = step.ItemID
	}
	var items []Item
	if err := q.db.NewSelect().Model(&items).Where("i.id IN (?)", bun.List(ids)).Scan(ctx); err != nil {
		return nil, translate(err)
	}
	rows, err := q.itemRows(ctx, items)
	if err != nil {
		return nil, err
	}
	byID := make(map[int64]ItemRow, len(rows))
	for i := range rows {
		byID[rows[i].ID] = rows[i]
	}
	carried := make([]JobItemRow, len(steps))
	for i, step := range steps {
		carried[i] = JobItemRow{ItemRow: byID[step.ItemID], InputIndex: step.InputIndex}
	}
	return carried, nil
}

// itemRows adds to items what their list shows beside them.
func (q Queries) itemRows(ctx context.Context, items []Item) ([]ItemRow, error) {
	rows := make([]ItemRow, len(items))
	ids := make([]int64, len(items))
	for i := range items {
		rows[i].Item, ids[i] = items[i], items[i].ID
	}
	if len(ids) == 0 {
		return rows, nil
	}
	var extras []struct {
		ID       int64
		Attempts int
		Bytes    int64
	}
	// The size of a stored value is known without unpacking it.
	err := q.db.NewRaw(`SELECT i.id, (SELECT count(*) FROM job_items ji WHERE ji.item_id = i.id) AS attempts,
			coalesce(octet_length(r.markdown), 0)::bigint + coalesce(octet_length(r.html), 0) AS bytes
		FROM items i LEFT JOIN results r ON r.item_id = i.id WHERE i.id IN (?)`, bun.List(ids)).Scan(ctx, &extras)
	if err != nil {
		return nil, translate(err)
	}
	place := make(map[int64]int, len(ids))
	for i, id := range ids {
		place[id] = i
	}
	for _, extra := range extras {
		row := &rows[place[extra.ID]]
		row.Attempts, row.Bytes = extra.Attempts, extra.Bytes
	}
	return rows, nil
}

// ItemStory is an item with its batch's name and the jobs that carried it,
// oldest first.
type ItemStory struct {
	Item
	BatchName string
	BatchKind Kind
	HasResult bool
	Resolver  string // Who put a failure aside; "" when nobody did, or nobody with an account.
	Lineage   []LineageStep
	Sync      *SyncCall // Of a URL tried at once; nil otherwise.
}

// LineageStep is one job that carried an item.
type LineageStep struct {
	JobID        int64
	VendorJobID  string
	Kind         Kind
	State        JobState
	Origin       Origin
	Net          Net
	InputIndex   int
	Outcome      Outcome // What the job said of the item; "" before it did.
	ErrorCode    string
	ErrorMessage string
	CreatedAt    time.Time
	EndedAt      *time.Time
}

// maxLineage bounds the steps shown; retries are limited far below it.
const maxLineage = 100

// PageItem is one item and its story; ErrNotFound when there is none.
func (q Queries) PageItem(ctx context.Context, id int64) (*ItemStory, error) {
	story := new(ItemStory)
	if err := q.db.NewSelect().Model(&story.Item).Where("i.id = ?", id).Scan(ctx); err != nil {
		return nil, translate(err)
	}
	err := q.db.NewRaw(`SELECT b.name, b.kind, EXISTS (SELECT 1 FROM results WHERE item_id = ?),
			coalesce((SELECT u.name FROM users u WHERE u.id = ?), '') FROM batches b WHERE b.id = ?`,
		id, story.ResolvedBy, story.BatchID).Scan(ctx, &story.BatchName, &story.BatchKind, &story.HasResult, &story.Resolver)
	if err != nil {
		return nil, translate(err)
	}
	if story.BatchKind == KindSync {
		if story.Sync, err = q.SyncCall(ctx, id); err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
	}
	err = q.db.NewRaw(`SELECT j.id AS job_id, coalesce(j.vendor_job_id, '') AS vendor_job_id, j.kind, j.state, j.origin,
			coalesce(j.settle_net, '') AS net, ji.input_index, coalesce(ji.outcome, '') AS outcome, ji.error_code,
			ji.error_message, j.created_at, j.ended_at
		FROM job_items ji JOIN jobs j ON j.id = ji.job_id WHERE ji.item_id = ? ORDER BY ji.job_id LIMIT ?`,
		id, maxLineage).Scan(ctx, &story.Lineage)
	return story, translate(err)
}
