package store

import (
	"context"
	"encoding/json"
	"fmt"
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

// insertRows is how many rows go as arrays in one statement: some megabytes of
// URLs, and a tenth of the time that a VALUES list of them takes to be written
// and read.
const insertRows = 10_000

// InsertItems writes outstanding items, all of one batch, and fills in their
// IDs.
func (t Tx) InsertItems(ctx context.Context, items []*Item) error {
	for chunk := range slices.Chunk(items, insertRows) {
		if err := t.insertItems(ctx, chunk); err != nil {
			return err
		}
	}
	return nil
}

func (t Tx) insertItems(ctx context.Context, items []*Item) error {
	positions, urls, hashes := make([]int, len(items)), make([]string, len(items)), make([][]byte, len(items))
	jobs, extras := make([]*int64, len(items)), make([]*string, len(items))
	lines, originals := make([]*int, len(items)), make([]*string, len(items))
	at := make(map[int]*Item, len(items))
	for i, it := range items {
		positions[i], urls[i], hashes[i], jobs[i], at[it.Position] = it.Position, it.URL, it.URLHash, it.CurrentJobID, it
		lines[i] = it.Line
		if it.Original != nil {
			originals[i] = new(CleanText(*it.Original))
		}
		if it.Extra != nil {
			text, err := json.Marshal(it.Extra)
			if err != nil {
				return fmt.Errorf("encode an item's columns: %w", err)
			}
			extras[i] = new(string(text))
		}
	}
	rows, err := t.tx.Tx.QueryContext(ctx, `INSERT INTO items (batch_id, position, url, url_hash, state, current_job_id, created_at, line, original, extra)
		SELECT $1, u.position, u.url, u.hash, 'outstanding', u.job, $2, u.line, u.original,
			CASE WHEN u.extra IS NOT NULL THEN ARRAY(SELECT value FROM jsonb_array_elements_text(u.extra::jsonb) WITH ORDINALITY ORDER BY ordinality) END
		FROM unnest($3::int[], $4::text[], $5::bytea[], $6::bigint[], $7::text[], $8::int[], $9::text[]) AS u (position, url, hash, job, extra, line, original)
		ORDER BY u.position RETURNING id, position`,
		items[0].BatchID, items[0].CreatedAt, positions, urls, hashes, jobs, extras, lines, originals)
	if err != nil {
		return translate(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id int64
		var position int
		if err := rows.Scan(&id, &position); err != nil {
			return translate(err)
		}
		at[position].ID = id
	}
	return translate(rows.Err())
}

// InsertJobItems extends the lineage of items by the jobs that carry them.
func (t Tx) InsertJobItems(ctx context.Context, rows []JobItem) error {
	for chunk := range slices.Chunk(rows, insertRows) {
		jobs, places, items := make([]int64, len(chunk)), make([]int, len(chunk)), make([]int64, len(chunk))
		for i, r := range chunk {
			jobs[i], places[i], items[i] = r.JobID, r.InputIndex, r.ItemID
		}
		_, err := t.tx.Tx.ExecContext(ctx, `INSERT INTO job_items (job_id, input_index, item_id)
			SELECT * FROM unnest($1::bigint[], $2::int[], $3::bigint[])`, jobs, places, items)
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
	return b, q.hot.row(ctx, b, q.hot.batch, id)
}
