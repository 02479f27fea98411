package pipeline_test

import (
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// TestRefetchComparesAndReplaces: settled jobs are fetched once more only if
// that is wanted, what differs is kept beside what is stored, and a replacement
// keeps the earlier version.
func TestRefetchComparesAndReplaces(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{pipeline: asleep})
	single := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
	many := make([]string, 12)
	for i := range many {
		many[i] = fmt.Sprintf("https://shop.sandbox.test/item/m-%d", i)
	}
	batch := r.submit(store.KindBatch, many...)
	crawl := r.startCrawl(madeShop, pipeline.CrawlOptions{Depth: 2, Limit: 6})
	for _, id := range []int64{single, batch, crawl} {
		r.ended(id)
	}
	changed := r.text(`SELECT url FROM items WHERE batch_id = $1 ORDER BY position LIMIT 1`, batch)
	eventually(t, "all jobs to settle", func() bool { return r.number(`SELECT count(*) FROM jobs WHERE state <> 'settled'`) == 0 })
	settledAt := r.text(`SELECT string_agg(ended_at::text, ' ' ORDER BY id) FROM jobs`)
	var asked atomic.Int64
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if !isJob(req) {
			next.ServeHTTP(w, req)
			return
		}
		asked.Add(1)
		rewrite(w, req, next, "", func(_ int, body map[string]any) {
			rows, _ := body["results"].([]any)
			for _, each := range rows {
				row, _ := each.(map[string]any)
				if data, _ := row["data"].(map[string]any); row["url"] == changed && data != nil {
					data["markdown"] = "# Another page"
				}
			}
		})
	})
	jobs := store.ReplayPicks{JobIDs: append(append(r.jobsOf(single), r.jobsOf(batch)...), r.jobsOf(crawl)...)}
	plain := r.planOf(jobs)
	if plain.SettledBefore != 3 || plain.Calls != 0 || plain.RefetchCalls != 3 {
		t.Errorf("got %+v frozen, want three settled that cost nothing, or three calls", plain.Frozen)
	}
	r.run(plain.ID, false)
	if got := r.replayed(plain.ID); got.AlreadySettled != 3 || got.Refetched != 0 || asked.Load() != 0 {
		t.Errorf("without refetching: got %+v and %d calls", got, asked.Load())
	}
	again := r.planOf(jobs)
	r.run(again.ID, true)
	got := r.replayed(again.ID)
	if got.AlreadySettled != 3 || got.Refetched != 3 || got.Differing != 1 || asked.Load() != 3 {
		t.Errorf("refetched: got %+v and %d calls, want one difference in three calls", got, asked.Load())
	}
	if words := r.text(`SELECT string_agg(refetched, ' ' ORDER BY job_id) FROM replay_jobs WHERE replay_id = $1`, again.ID); words != "same differs same" {
		t.Errorf("got %q, want only the batch to differ", words)
	}
	item := r.number(`SELECT item_id FROM replay_differences WHERE replay_id = $1`, again.ID)
	if url := r.text(`SELECT url FROM items WHERE id = $1`, item); url != changed {
		t.Errorf("got a difference of %s, want %s", url, changed)
	}
	if now := r.text(`SELECT string_agg(ended_at::text, ' ' ORDER BY id) FROM jobs`); now != settledAt || r.number(`SELECT count(*) FROM results WHERE version > 1`) != 0 {
		t.Error("refetching changed a settled job or a result by itself")
	}
	was := r.text(`SELECT encode(markdown, 'escape') FROM results WHERE item_id = $1`, item)
	for i, want := range []bool{true, false} {
		if done, err := r.pipe.ReplaceResult(t.Context(), again.ID, item); err != nil || done != want {
			t.Errorf("press %d: got %v, %v, want %v", i+1, done, err, want)
		}
	}
	if is := r.text(`SELECT encode(markdown, 'escape') || ' ' || version FROM results WHERE item_id = $1`, item); is != "# Another page 2" {
		t.Errorf("got %q stored", is)
	}
	if kept := r.text(`SELECT encode(markdown, 'escape') FROM result_versions WHERE item_id = $1 AND version = 1`, item); kept != was || was == "" {
		t.Errorf("got %q kept, want %q", kept, was)
	}
	if n := r.number(`SELECT count(*) FROM audit_log WHERE what = 'replay.replace' AND on_id = $1`, strconv.FormatInt(item, 10)); n != 1 {
		t.Errorf("got %d audit rows, want one", n)
	}
	r.balanced()
}

// TestRefetchOfWhatTheVendorForgot says so, and changes nothing.
func TestRefetchOfWhatTheVendorForgot(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{pipeline: asleep})
	batch := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
	r.ended(batch)
	eventually(t, "the job to settle", func() bool { return r.number(`SELECT count(*) FROM jobs WHERE state = 'settled'`) == 1 })
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if isJob(req) {
			answerJSON(w, http.StatusNotFound, refusal("NOT_FOUND", false), "")
			return
		}
		next.ServeHTTP(w, req)
	})
	plan := r.planOf(store.ReplayPicks{JobIDs: r.jobsOf(batch)})
	r.run(plan.ID, true)
	got := r.replayed(plan.ID)
	word := r.text(`SELECT refetched || ': ' || detail FROM replay_jobs`)
	if got.AlreadySettled != 1 || got.Differing != 0 || word != "unknown_to_vendor: the vendor answered 404" {
		t.Errorf("got %+v, %s", got, word)
	}
}

// TestReplayVerifiesRefusedDeliveriesAgain: what is signed by a secret of today
