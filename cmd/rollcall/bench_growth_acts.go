package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// growthKeep is longer than a year.
const growthKeep = 400 * 24 * time.Hour

// growthAct is one thing to measure. What it needs it makes first, which isn't counted.
type growthAct struct {
	what  string
	slack float64
	do    func(context.Context, *growthWorld) (time.Duration, error)
}

// growthActs are measured without workers.
func growthActs() []growthAct {
	acts := []growthAct{
		{"submit 1,000 URLs", growthSlack, func(ctx context.Context, w *growthWorld) (time.Duration, error) {
			return w.timed(func() error {
				_, err := w.submit(ctx, store.KindBatch, 1000)
				return err
			})
		}},
		{"take up 50 deliveries", growthSlack, func(ctx context.Context, w *growthWorld) (time.Duration, error) { return w.arrive(ctx) }},
		{"poll sweep, 100 jobs due", growthSlack, func(ctx context.Context, w *growthWorld) (time.Duration, error) { return w.sweep(ctx) }},
		{"reconcile: a page of a list", growthSlack, func(ctx context.Context, w *growthWorld) (time.Duration, error) { return w.compareList(ctx) }},
		{"retention: nothing is old", growthSlack, func(ctx context.Context, w *growthWorld) (time.Duration, error) {
			return w.timed(func() error {
				_, err := w.retainer.Retain(ctx)
				return err
			})
		}},
		{"retention: a batch of 500", growthSlack, func(ctx context.Context, w *growthWorld) (time.Duration, error) { return w.prune(ctx) }},
		{"roll-up", growthSlack, func(ctx context.Context, w *growthWorld) (time.Duration, error) {
			return w.timed(func() error {
				_, err := w.pipeline.RollUp(ctx)
				return err
			})
		}},
	}
	for _, path := range []string{
		"/", "/batches", "/batches/$batch", "/batches/$batch/items?state=failed", "/jobs/$job", "/items/$item", "/failures", "/deliveries",
		"/deliveries/log", "/replays", "/reconcile", "/audit", "/webhooks", "/search?q=page",
	} {
		acts = append(acts, growthAct{"page " + strings.NewReplacer("$", "").Replace(path), pageSlack, func(ctx context.Context, w *growthWorld) (time.Duration, error) {
			return w.reader.get(ctx, strings.NewReplacer("$batch", idWord(w.batch(ctx)), "$job", idWord(w.lastJob), "$item", idWord(w.lastItem)).Replace(path), false)
		}})
	}
	return acts
}

// growthWork is measured with workers: from the press of submit until the last result is stored.
func growthWork(jobs int) []growthAct {
	work := func(kind store.Kind, n int) func(context.Context, *growthWorld) (time.Duration, error) {
		return func(ctx context.Context, w *growthWorld) (time.Duration, error) {
			return w.timed(func() error {
				id, err := w.submit(ctx, kind, n)
				if err != nil {
					return err
				}
				return w.ended(ctx, id)
			})
		}
	}
	return []growthAct{
		{fmt.Sprintf("%d single jobs, submit to stored", jobs), waitTick, work(store.KindExtract, jobs)},
		{fmt.Sprintf("a batch of %d, submit to stored", 5*jobs), waitTick, work(store.KindBatch, 5*jobs)},
	}
}

func idWord(id int64) string { return strconv.FormatInt(id, 10) }

// batch is the newest one that was seeded.
func (w *growthWorld) batch(ctx context.Context) int64 {
	var id int64
	// The page is asked for all the same, and says that there is none.
	_ = w.store.SQL().QueryRowContext(ctx, `SELECT batch_id FROM items WHERE id = $1`, w.lastItem).Scan(&id)
	return id
}

func (w *growthWorld) timed(do func() error) (time.Duration, error) {
	began := w.now()
	err := do()
	return w.now().Sub(began), err
}

// turn is a number that nothing on this database had before.
func (w *growthWorld) turn() int {
	w.turns++
	return w.turns
}

func (w *growthWorld) submit(ctx context.Context, kind store.Kind, n int) (int64, error) {
	var text strings.Builder
	turn := w.turn()
	for i := range n {
		fmt.Fprintf(&text, "%s%d-%d\n", cannedPage, turn, i)
	}
	done, err := w.pipeline.Submit(ctx, pipeline.Submission{
		Name: fmt.Sprint("turn ", turn), Kind: kind, Text: text.String(), Options: pipeline.Options{Formats: []string{"markdown"}},
	})
	return done.BatchID, err
}

// waitTick is how often it is looked, in milliseconds; a difference within it isn't one.
const waitTick = 5

// ended waits for the end of a batch.
func (w *growthWorld) ended(ctx context.Context, id int64) error {
	ctx, cancel := context.WithTimeout(ctx, visitTime)
	defer cancel()
	tick := time.NewTicker(waitTick * time.Millisecond)
	defer tick.Stop()
	for {
		b, err := w.store.Batch(ctx, id)
		if err != nil {
			return err
		}
		if b.EndedAt != nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("batch %d doesn't end: %w", id, ctx.Err())
		case <-tick.C:
		}
	}
}

// arrive takes up deliveries as the receiver does, half of which are about jobs that have settled long ago.
func (w *growthWorld) arrive(ctx context.Context) (time.Duration, error) {
	turn, hook := w.turn(), int64(1)
	known, err := w.vendorIDs(ctx, 25)
	if err != nil {
		return 0, err
	}
	group := make([]*store.Arrival, 0, 50)
	for i, id := range known {
		for _, vendor := range []string{fmt.Sprintf("arrival-%d-%d", turn, i), id} {
			group = append(group, &store.Arrival{Delivery: store.Delivery{
				WebhookID: &hook, ReceivedAt: w.now(), Status: 200, EventType: "extract_completed", VendorJobID: vendor,
				VendorDeliveryID: fmt.Sprint("d-", turn, "-", i, vendor), Headers: []byte("a: b"), Body: []byte(`{}`), BodySize: 2,
			}})
		}
	}
	return w.timed(func() error {
		return w.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Arrive(ctx, group, w.now())
			return err
		})
	})
}

// vendorIDs are of jobs that are spread over all that there are.
func (w *growthWorld) vendorIDs(ctx context.Context, n int) ([]string, error) {
	rows, err := w.store.SQL().QueryContext(ctx, `SELECT (SELECT vendor_job_id FROM jobs WHERE id <= greatest(1, $1::bigint * n / $2) AND vendor_job_id IS NOT NULL ORDER BY id DESC LIMIT 1)
		FROM generate_series(1, $2::int) AS n`, w.lastJob, n)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err tells what went wrong.
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// sweep wakes jobs whose next poll is due.
func (w *growthWorld) sweep(ctx context.Context) (time.Duration, error) {
	if err := w.seedCanned(ctx, fmt.Sprint("sweep-", w.turn()), 100, w.now()); err != nil {
		return 0, err
	}
	due := w.now().Add(-time.Second)
	if _, err := w.store.SQL().ExecContext(ctx, `UPDATE jobs SET next_poll_at = $1 WHERE state = 'accepted' AND next_poll_at IS NULL`, due); err != nil {
		return 0, err
	}
	return w.timed(func() error {
		if err := w.pipeline.Sweep(ctx); err != nil {
			return err
		}
		_, err := w.pipeline.Poll(ctx)
		return err
	})
}

// compareList does what the reconciler asks of the database for a page of a list, and once a run.
func (w *growthWorld) compareList(ctx context.Context) (time.Duration, error) {
	ids, err := w.vendorIDs(ctx, 100)
	if err != nil {
		return 0, err
	}
	return w.timed(func() error {
		if _, err := w.store.OldestClaim(ctx); err != nil {
			return err
		}
		if _, err := w.store.KnownVendorIDs(ctx, ids); err != nil {
			return err
		}
		if _, err := w.store.OpenJobs(ctx, w.now(), store.Key{}, 200); err != nil {
			return err
		}
		if _, err := w.store.HeldKnown(ctx, 100); err != nil {
			return err
		}
		_, err := w.store.Unarrived(ctx, store.Key{}, 500)
		return err
	})
}

// prune removes a batch whose time is over. It says that it was submitted just now, or it would be the first batch, and all
// hours since would be counted.
func (w *growthWorld) prune(ctx context.Context) (time.Duration, error) {
	id, err := w.count(ctx, `INSERT INTO batches (name, kind, options, created_at, ended_at, submitted, accepted, stored_poll)
		VALUES ('old', 'batch', '{}', $1, $2, 500, 500, 500) RETURNING id`, w.now(), w.now().Add(-2*growthKeep))
	if err != nil {
		return 0, err
	}
	_, err = w.store.SQL().ExecContext(ctx, `WITH job AS (
			INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, accepted_at, ended_at, vendor_job_id, account)
			SELECT $1::bigint, 'batch', 'settled', 'submit', '', 500, $2::timestamptz, $2, $2, 'old-' || $1::bigint, 'bench' RETURNING id),
		item AS (
			INSERT INTO items (batch_id, position, url, url_hash, state, net, created_at, ended_at, current_job_id)
			SELECT $1::bigint, n, 'https://old.example/' || n, sha256(n::text::bytea), 'stored', 'poll', $2::timestamptz, $2, job.id FROM job, generate_series(1, 500) AS n RETURNING id, position, current_job_id),
		result AS (
			INSERT INTO results (item_id, job_id, net, stored_at) SELECT id, current_job_id, 'poll', $2 FROM item)
		INSERT INTO job_items (job_id, input_index, item_id, outcome) SELECT current_job_id, position - 1, id, 'stored' FROM item`, id, w.now().Add(-2*growthKeep))
	if err != nil {
		return 0, fmt.Errorf("make an old batch: %w", err)
	}
	return w.timed(func() error {
		kept, err := w.retainer.Retain(ctx)
		if err == nil && kept.Batches != 1 {
			return fmt.Errorf("removed %+v, want one batch", kept)
		}
		return err
	})
}
