package pipeline_test

import (
	"errors"
	"strings"
	"testing"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// again runs a batch again and fails the test when that can't be.
func (r *rig) again(a pipeline.Again) *store.Batch {
	r.t.Helper()
	done, err := r.pipe.Rerun(r.t.Context(), a)
	if err != nil {
		r.t.Fatal(err)
	}
	b, err := r.store.Batch(r.t.Context(), done.BatchID)
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

// refused wants running again refused for a field, and nothing written.
func (r *rig) refused(a pipeline.Again, field string) {
	r.t.Helper()
	before := r.number(`SELECT count(*) FROM batches`)
	_, err := r.pipe.Rerun(r.t.Context(), a)
	invalid, ok := errors.AsType[*pipeline.InvalidSubmission](err)
	if !ok || invalid.Fields[0].Field != field {
		r.t.Errorf("%+v: got %v, want %s refused", a, err, field)
	}
	if after := r.number(`SELECT count(*) FROM batches`); after != before {
		r.t.Errorf("%+v made %d batches", a, after-before)
	}
}

// urlsOf are a batch's URLs with the columns beside them, in order.
func (r *rig) urlsOf(batch int64) string {
	return r.text(`SELECT coalesce(string_agg(position || ' ' || url || coalesce(' ' || array_to_string(extra, '|'), ''), E'\n' ORDER BY position), '')
		FROM items WHERE batch_id = $1`, batch)
}

// sourcesOf are the lines that a batch's items come from, each with what it held
// if its URL was mended, in the order of the items.
func (r *rig) sourcesOf(batch int64) string {
	r.t.Helper()
	return r.text(`SELECT string_agg(concat_ws(' ', coalesce(line::text, 'none'), original), ', ' ORDER BY position) FROM items WHERE batch_id = $1`, batch)
}

// endWith ends a batch as if everything of it had been stored, except for the
// positions that failed.
func (r *rig) endWith(batch int64, failed ...int64) {
	r.t.Helper()
	r.exec(`UPDATE items SET ended_at = now(), state = CASE WHEN position = ANY($2) THEN 'failed' ELSE 'stored' END,
		net = CASE WHEN position = ANY($2) THEN NULL ELSE 'poll' END,
		error_code = CASE WHEN position = ANY($2) THEN 'BROKEN' ELSE '' END WHERE batch_id = $1`, batch, failed)
	r.exec(`UPDATE batches SET stored_poll = accepted - $2, failed = $2, ended_at = now() WHERE id = $1`, batch, len(failed))
}

// TestRunAgain: a batch or what failed of it becomes a new batch with the same
// URLs, columns, options and headers, tied to the old one, which stays as it is;
// the same form sent twice makes one.
func TestRunAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true, noWebhooks: true})
	first, err := r.pipe.Submit(t.Context(), pipeline.Submission{
		Name: "prices", Kind: store.KindBatch, Text: "https://a.test/1\n\n<a.test/2>,\nhttps://a.test/3\nhttps://a.test/4",
		Options: pipeline.Options{Formats: []string{"html"}, RenderJS: true, ProxyCountry: "DE"}, Headers: map[string]string{"X-Shop": "secret"},
	})
	if err != nil {
		t.Fatal(err)
	}
	old := first.BatchID
	r.exec(`UPDATE batches SET columns = '{sku,price}', url_column = 'link' WHERE id = $1`, old)
	r.exec(`UPDATE items SET extra = ARRAY['sku' || position, 'ä,"' ] WHERE batch_id = $1`, old)
	r.endWith(old, 2, 3, 4)
	r.exec(`UPDATE items SET resolved_at = now(), resolved_note = 'gone for good' WHERE batch_id = $1 AND position = 4`, old)
	before := r.text(`SELECT to_jsonb(b)::text FROM batches b WHERE id = $1`, old) + r.text(`SELECT jsonb_agg(i ORDER BY id)::text FROM items i WHERE batch_id = $1`, old)

	plan, err := r.pipe.PlanRerun(t.Context(), old, true)
	if err != nil || plan.URLs != 2 || plan.Jobs != 1 || plan.Requests != 2 || plan.Resolved != 1 || plan.Name != "prices (failures again)" {
		t.Errorf("got the plan %+v, %v", plan, err)
	}
	ask := pipeline.Again{BatchID: old, Failures: true, Token: "once"}
	failures := r.again(ask)
	if got := r.urlsOf(failures.ID); got != "1 https://a.test/2 sku2|ä,\"\n2 https://a.test/3 sku3|ä,\"" {
		t.Errorf("the failures again are\n%s", got)
	}
	if was, got := r.sourcesOf(old), r.sourcesOf(failures.ID); was != "1, 3 <a.test/2>,, 4, 5" || got != "3 <a.test/2>,, 4" {
		t.Errorf("the items came from lines %q, those that failed from %q", was, got)
	}
	r.exec(`UPDATE items SET state = 'stored', net = 'poll', error_code = '' WHERE batch_id = $1 AND position IN (2, 3)`, old)
	if again := r.again(ask); again.ID != failures.ID {
		t.Errorf("the form sent twice made batches %d and %d", failures.ID, again.ID)
	}
	r.exec(`UPDATE items SET state = 'failed', net = NULL, error_code = 'BROKEN' WHERE batch_id = $1 AND position IN (2, 3)`, old)

	all := r.again(pipeline.Again{BatchID: old, Name: "prices in December"})
	if all.Name != "prices in December" || all.Kind != store.KindBatch || all.Accepted != 4 || all.Outstanding != 4 || all.Submitted != 4 ||
		strings.Join(all.Columns, " ") != "sku price" || all.URLColumn != "link" || *all.ParentBatchID != old || *all.Rerun != store.RerunAll {
		t.Errorf("got %+v", all)
	}
	if got := r.text(`SELECT string_agg(DISTINCT options::text, ' ') FROM batches`); !strings.Contains(got, `"DE"`) || strings.Count(got, "formats") != 1 {
		t.Errorf("the options are %s", got)
	}
	// What the vendor is sent, headers too, has one hash for the same URLs.
	if n := r.number(`SELECT count(DISTINCT request_hash) FROM jobs WHERE batch_id IN ($1, $2)`, old, all.ID); n != 1 {
		t.Errorf("the two batches ask for %d different things", n)
	}
	if n := r.number(`SELECT count(*) FROM river_job WHERE kind = 'dispatch' AND (args->>'job_id')::bigint IN (SELECT id FROM jobs WHERE batch_id = $1)`, all.ID); n != 1 {
		t.Errorf("%d dispatch tasks came with it, want 1", n)
	}
	if got := r.text(`SELECT string_agg(what || ' ' || on_id || ' ' || (after->>'of') || ' ' || (after->>'which'), ', ' ORDER BY id) FROM audit_log WHERE what = 'batch.rerun'`); got !=
		"batch.rerun 2 1 failures, batch.rerun 3 1 all" {
		t.Errorf("the audit log says %s", got)
	}
	after := r.text(`SELECT to_jsonb(b)::text FROM batches b WHERE id = $1`, old) + r.text(`SELECT jsonb_agg(i ORDER BY id)::text FROM items i WHERE batch_id = $1`, old)
	if after != before {
		t.Errorf("the old batch was\n%s\nand is\n%s", before, after)
	}
	r.refused(pipeline.Again{BatchID: old, Name: strings.Repeat("ä", 201)}, "name")
	r.refused(pipeline.Again{BatchID: failures.ID, Failures: true}, "which")
	if _, err := r.pipe.Rerun(t.Context(), pipeline.Again{BatchID: 999}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("of no batch: got %v", err)
	}
	r.againByKind()
}

// againByKind: a crawl begins again from its seed, what was tried on the spot is
// fetched by a job, and a large batch goes over whole.
func (r *rig) againByKind() {
	r.t.Helper()
	crawl := r.startCrawl("https://site.sandbox.test/", pipeline.CrawlOptions{Depth: 3, Limit: 40})
	r.exec(`INSERT INTO items (batch_id, position, url, url_hash, state, net, created_at, ended_at)
		VALUES ($1, 2, 'https://site.sandbox.test/found', '\x00', 'stored', 'poll', now(), now())`, crawl)
	plan, err := r.pipe.PlanRerun(r.t.Context(), crawl, false)
	if err != nil || plan.URLs != 1 || plan.Jobs != 1 || plan.Requests != 40 || !plan.Whole {
		r.t.Errorf("a crawl: got the plan %+v, %v", plan, err)
	}
	again := r.again(pipeline.Again{BatchID: crawl})
	if again.Kind != store.KindCrawl || r.urlsOf(again.ID) != "1 https://site.sandbox.test/" || !strings.Contains(string(again.Options), `"limit": 40`) {
		r.t.Errorf("a crawl again is %+v of %s with %s", again, r.urlsOf(again.ID), again.Options)
	}
	r.refused(pipeline.Again{BatchID: crawl, Failures: true}, "which")
	if got := r.sourcesOf(crawl) + ", " + r.sourcesOf(again.ID); got != "none, none, none" {
		r.t.Errorf("what a crawl begins with or finds comes from lines %s", got)
	}

	tried, err := r.pipe.TryNow(r.t.Context(), pipeline.Submission{Name: "try", Text: "https://a.test/now"})
	if err != nil {
		r.t.Fatal(err)
	}
	if again := r.again(pipeline.Again{BatchID: tried.BatchID}); again.Kind != store.KindExtract {
		r.t.Errorf("a try again is a %s", again.Kind)
	}

	large := r.number(`INSERT INTO batches (name, kind, options, created_at, submitted, accepted)
		VALUES ('large', 'batch', '{"formats":["markdown"]}', now(), 11000, 11000) RETURNING id`)
	r.exec(`INSERT INTO items (batch_id, position, url, url_hash, state, created_at)
		SELECT $1, g, 'https://a.test/large/' || g, '\x00', 'outstanding', now() FROM generate_series(1, 11000) g`, large)
	whole := r.again(pipeline.Again{BatchID: large})
	if n := r.number(`SELECT count(*) FROM items a JOIN items b ON b.batch_id = $2 AND b.position = a.position AND b.url = a.url
		WHERE a.batch_id = $1`, large, whole.ID); n != 11_000 || whole.Accepted != 11_000 {
		r.t.Errorf("%d of 11,000 went over, %d are counted", n, whole.Accepted)
	}
	if n := r.number(`SELECT count(*) FROM jobs WHERE batch_id = $1`, whole.ID); n != 550 {
		r.t.Errorf("they are carried by %d jobs, want 550 of 20", n)
	}
	if diff, _, err := r.store.RecountBatches(r.t.Context(), whole.ID-1, 1000); err != nil || len(diff) > 0 {
		r.t.Errorf("counters differ from rows: %+v, %v", diff, err)
	}
}
