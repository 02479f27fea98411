package store

import (
	"context"
	"slices"

	"github.com/uptrace/bun"
)

// insertChunk keeps one INSERT's text to a few megabytes however many rows a
// submission has.
const insertChunk = 1000

// InsertBatch writes a batch with its submitted, invalid, duplicate and
// accepted counts and fills in its ID. The error is ErrTaken when its token has
// made a batch before.
func (t Tx) InsertBatch(ctx context.Context, b *Batch) error {
	_, err := t.db.NewInsert().Model(b).
		Column("name", "kind", "options", "headers_sealed", "created_by", "created_at",
			"submitted", "invalid", "duplicate", "accepted", "submit_token", "columns", "url_column", "parent_batch_id", "rerun").
		Returning("id").Exec(ctx)
	return translate(err)
}

// InsertRejectedLines keeps the lines of a submission that became no item.
func (t Tx) InsertRejectedLines(ctx context.Context, lines []RejectedLine) error {
	for chunk := range slices.Chunk(lines, insertChunk) {
		if _, err := t.db.NewInsert().Model(&chunk).Exec(ctx); err != nil {
			return translate(err)
		}
	}
	return nil
}

// InsertJobs writes intended jobs and fills in their IDs.
func (t Tx) InsertJobs(ctx context.Context, jobs []*Job) error {
	for chunk := range slices.Chunk(jobs, insertChunk) {
		_, err := t.db.NewInsert().Model(&chunk).
			Column("batch_id", "kind", "state", "origin", "parent_job_id", "depth",
				"request_hash", "url_count", "created_at", "cancel_requested_at").
			Returning("id").Exec(ctx)
		if err != nil {
			return translate(err)
		}
	}
	return nil
}

// InsertItems writes outstanding items and fills in their IDs.
func (t Tx) InsertItems(ctx context.Context, items []*Item) error {
	for chunk := range slices.Chunk(items, insertChunk) {
		_, err := t.db.NewInsert().Model(&chunk).
			Column("batch_id", "position", "url", "url_hash", "state", "current_job_id", "created_at", "extra").
			Returning("id").Exec(ctx)
		if err != nil {
			return translate(err)
		}
	}
	return nil
}

// InsertJobItems extends the lineage of items by the jobs that carry them.
func (t Tx) InsertJobItems(ctx context.Context, rows []JobItem) error {
	for chunk := range slices.Chunk(rows, insertChunk) {
		_, err := t.db.NewInsert().Model(&chunk).Column("job_id", "input_index", "item_id").Exec(ctx)
		if err != nil {
			return translate(err)
		}
	}
	return nil
}

// InsertEvents appends lines to jobs' timelines.
func (q Queries) InsertEvents(ctx context.Context, events []JobEvent) error {
	for chunk := range slices.Chunk(events, insertChunk) {
		for i := range chunk {
			chunk[i].Detail = CleanText(chunk[i].Detail)
		}
		_, err := q.db.NewInsert().Model(&chunk).Column("job_id", "at", "kind", "net", "detail").Exec(ctx)
		if err != nil {
			return translate(err)
		}
	}
	return nil
}

// MoveItems makes to the current job of the items it carries, where from still
// is and the item is outstanding. It returns how many moved.
func (t Tx) MoveItems(ctx context.Context, from, to int64, retry bool) (int64, error) {
	step := 0
	if retry {
		step = 1
	}
	// In the order in which every other move locks items, or the two might wait
	// for each other.
	ids, err := t.lock(ctx, `SELECT i.id FROM items i JOIN job_items ji ON ji.item_id = i.id
		WHERE ji.job_id = ?to AND i.current_job_id = ?from AND i.state = 'outstanding' ORDER BY i.id FOR NO KEY UPDATE OF i`,
		named{"to": to, "from": from})
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	return affected(t.db.NewRaw(`UPDATE items SET current_job_id = ?, retries = retries + ? WHERE id IN (?)`,
		to, step, bun.List(ids)).Exec(ctx))
}

// BatchOfToken returns the batch that a form's token made, and its first item.
func (q Queries) BatchOfToken(ctx context.Context, token string) (*Batch, int64, error) {
	b := &Batch{}
	if err := q.db.NewSelect().Model(b).Where("submit_token = ?", token).Scan(ctx); err != nil {
		return nil, 0, translate(err)
	}
	first, err := q.count(ctx, `SELECT id FROM items WHERE batch_id = ? ORDER BY position LIMIT 1`, b.ID)
	return b, int64(first), err
}

// Batch returns one batch.
func (q Queries) Batch(ctx context.Context, id int64) (*Batch, error) {
	b := &Batch{}
	err := q.db.NewSelect().Model(b).Where("id = ?", id).Scan(ctx)
	return b, translate(err)
}
