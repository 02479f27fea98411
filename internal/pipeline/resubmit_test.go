package pipeline_test

import (
	"fmt"
	"slices"
	"testing"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// failedBatch is a batch of which every URL failed for good: the sandbox's
// retryable failures go away when the URL is sent again by a person.
func failedBatch(t *testing.T, kind store.Kind, n int) (*rig, *store.Batch) {
	t.Helper()
	r := newRig(t, setup{
		sandbox:  func(c *sandbox.Config) { c.Faults = sandbox.Faults{sandbox.FaultItemFail: 1} },
		pipeline: func(c *pipeline.Config) { c.RetryGaps = c.RetryGaps[:0] },
	})
	batch := r.submit(kind, sandbox.MadeURLs(n, 1)...)
	b := r.ended(batch)
	if b.Failed != int64(n) {
		t.Fatalf("%d of %d failed: %+v", b.Failed, n, b)
	}
	return r, b
}

func TestResubmitSendsFailuresAgainAndKeepsTheirItems(t *testing.T) {
	t.Parallel()
	for _, kind := range []store.Kind{store.KindBatch, store.KindExtract} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			r, b := failedBatch(t, kind, 24)
			r.noFaults()
			done, err := r.pipe.Resubmit(t.Context(), r.itemIDs(b.ID), store.AsPlanned{})
			if err != nil || done.Items != 24 {
				t.Fatalf("got %+v, %v; want 24 items sent", done, err)
			}
			after := r.ended(b.ID)
			r.wantBatch(after, 24, 0, 0)
			if after.Accepted != 24 {
				t.Errorf("%d accepted after the resubmission, want the same 24", after.Accepted)
			}
			if n := r.number(`SELECT count(*) FROM (SELECT item_id FROM job_items GROUP BY item_id HAVING count(*) = 2) t`); n != 24 {
				t.Errorf("%d items have two jobs in their lineage, want all", n)
			}
			r.balanced(b.ID)
		})
	}
}

func TestResubmitTwiceSendsOnce(t *testing.T) {
	t.Parallel()
	r, b := failedBatch(t, store.KindExtract, 3)
	finish := r.unfinished()
	ids := r.itemIDs(b.ID)
	first, err := r.pipe.Resubmit(t.Context(), ids, store.AsPlanned{})
	if err != nil || first.Items != 3 {
		t.Fatalf("got %+v, %v; want three items", first, err)
	}
	second, err := r.pipe.Resubmit(t.Context(), ids, store.AsPlanned{})
	if err != nil || second.Items != 0 || second.Jobs != 0 {
		t.Errorf("got %+v, %v; want nothing sent a second time", second, err)
	}
	finish()
	r.ended(b.ID)
	r.balanced(b.ID)

	// A batch whose headers went with a lost key is left alone, and keeps no neighbor from being sent.
	lost, other := r.submit(store.KindExtract, sandbox.MadeURLs(2, 9)...), r.submit(store.KindExtract, sandbox.MadeURLs(2, 11)...)
	r.ended(lost)
	r.ended(other)
	r.exec(`UPDATE batches SET headers_sealed = '\x00' WHERE id = $1`, lost)
	third, err := r.pipe.Resubmit(t.Context(), append(r.itemIDs(lost), r.itemIDs(other)...), store.AsPlanned{})
	if err != nil || third.Items != 2 || third.BatchID != other || !slices.Equal(third.Sealed, []int64{lost}) {
		t.Errorf("got %+v, %v; want the two items of batch %d sent, and batch %d left for its headers", third, err, other, lost)
	}
	if n := r.number(`SELECT count(*) FROM items WHERE batch_id = $1 AND state <> 'failed'`, lost); n != 0 {
		t.Errorf("%d items were touched whose headers are lost", n)
	}
	r.ended(other)
	r.balanced(lost)
	r.balanced(other)
}

func TestResubmitWithAFilterSendsOnlyWhatMatches(t *testing.T) {
	t.Parallel()
	r, b := failedBatch(t, store.KindBatch, 20)
	r.noFaults()
	code := r.text(`SELECT max(error_code) FROM items WHERE batch_id = $1 AND url LIKE 'https://news.%'`, b.ID)
	want := r.number(`SELECT count(*) FROM items WHERE batch_id = $1 AND error_code = $2 AND url LIKE 'https://news.%'`, b.ID, code)
	ids, err := r.store.FailedItems(t.Context(), store.Failed{BatchID: b.ID, Code: code, Host: "news.sandbox.test"}, 100)
	if err != nil {
		t.Fatal(err)
	}
	done, err := r.pipe.Resubmit(t.Context(), ids, store.AsPlanned{})
	if err != nil || done.Items != want || want == 0 {
		t.Errorf("got %+v, %v; want %d items of code %s", done, err, want, code)
	}
	r.ended(b.ID)
	r.balanced(b.ID)
}

// TestResubmitOfACrawl: its seed is crawled from again, a page of it is fetched
// by itself, and neither adds a page that is there already.
func TestResubmitOfACrawl(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{pipeline: func(c *pipeline.Config) { c.RetryGaps = c.RetryGaps[:0] }})
	b := r.crawled(r.startCrawl(madeShop, pipeline.CrawlOptions{Depth: 2, Limit: 10, SameDomainOnly: true}))
	ids := r.itemIDs(b.ID)
	r.exec(`DELETE FROM results WHERE item_id = ANY($1)`, ids[:2])
	r.exec(`UPDATE items SET state = 'failed', net = NULL, error_code = 'LOST' WHERE id = ANY($1)`, ids[:2])
	r.exec(`UPDATE batches SET failed = 2, stored_webhook = stored_webhook - x.w, stored_poll = stored_poll - (2 - x.w)
		FROM (SELECT least(stored_webhook, 2) AS w FROM batches WHERE id = $1) x WHERE id = $1`, b.ID)
	done, err := r.pipe.Resubmit(t.Context(), ids, store.AsPlanned{})
	if err != nil || done.Items != 2 || done.Jobs != 2 {
		t.Fatalf("got %+v, %v; want two items in two jobs", done, err)
	}
	r.ended(b.ID)
	after := r.crawled(b.ID)
	if after.Accepted != b.Accepted || after.Stored() != after.Accepted {
		t.Errorf("%d accepted and %d stored after the resubmission, want the same %d", after.Accepted, after.Stored(), b.Accepted)
	}
	kinds := r.text(`SELECT string_agg(kind || ' of ' || url_count, ', ' ORDER BY id) FROM jobs WHERE batch_id = $1`, b.ID)
	if want := "crawl of 1, crawl of 1, extract of 1"; kinds != want {
		t.Errorf("the batch's jobs are %s, want %s", kinds, want)
	}
}

func TestResubmitTakesUpACancelledBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true, noWebhooks: true})
	batch := r.submit(store.KindBatch, sandbox.MadeURLs(5, 1)...)
	if _, err := r.pipe.CancelBatch(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if _, err := r.pipe.Resubmit(t.Context(), r.itemIDs(batch), store.AsPlanned{}); err != nil {
		t.Fatal(err)
	}
	r.start(setup{noWebhooks: true})
	r.wantBatch(r.ended(batch), 5, 0, 0)
	r.balanced(batch)
}

// noFaults mends the vendor.
func (r *rig) noFaults() {
	r.t.Helper()
	if err := r.sandbox.SetFaults(nil); err != nil {
		r.t.Fatal(err)
	}
}

// itemIDs are the items of a batch.
func (r *rig) itemIDs(batch int64) []int64 {
	r.t.Helper()
	rows, err := r.eyes.QueryContext(r.t.Context(), `SELECT id FROM items WHERE batch_id = $1 ORDER BY position`, batch)
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			r.t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		r.t.Fatal(fmt.Errorf("items: %w", err))
	}
	return ids
}
