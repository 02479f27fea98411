package store_test

import (
	"fmt"
	"testing"

	"rollcall/store"
)

// TestStampsDiffer: whatever changes on the page of a job or an item changes
// its stamp.
func TestStampsDiffer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	root := s.id("SELECT min(id) FROM items")
	both := func() string {
		job, err := s.PageJobStamp(t.Context(), s.job)
		if err != nil {
			t.Fatal(err)
		}
		item, err := s.PageItemStamp(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(job, item)
	}
	was := both()
	for _, change := range []string{
		"UPDATE jobs SET wake_seq = 7", "UPDATE jobs SET vendor_status = 'processing'", `UPDATE jobs SET vendor_reports = '{"total":3}'`,
		"UPDATE jobs SET cancel_requested_at = now()", "INSERT INTO job_events (job_id, at, kind) SELECT id, now(), 'woken' FROM jobs",
		"UPDATE items SET state = 'failed', error_code = 'X', ended_at = now()", "UPDATE jobs SET state = 'settled', ended_at = now()",
	} {
		exec(t, s.Store, change)
		is := both()
		if is == was {
			t.Errorf("%s: the stamps are the same", change)
		}
		was = is
	}
	job, _ := s.PageJobStamp(t.Context(), s.job)
	item, _ := s.PageItemStamp(t.Context(), root)
	if !job.Ended || !item.Ended {
		t.Errorf("at the end: got %+v and %+v, want both ended", job, item)
	}
}

// TestAtWork sums what the vendor says of the jobs it has at work, and of no
// others.
func TestAtWork(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	add := func(kind, state string, reports any) {
		exec(t, s.Store, `INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, vendor_reports, ended_at)
			VALUES ($1, $2, $3, 'submit', '\x00', 1, now(), $4::jsonb, CASE WHEN $3 = 'settled' THEN now() END)`, s.batch, kind, state, reports)
	}
	want := func(want store.AtWork) {
		t.Helper()
		if got, err := s.PageAtWork(t.Context(), s.batch); got != want || err != nil {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	want(store.AtWork{Jobs: 1}) // The site's crawl, of which nothing is known yet.
	add("batch", "settled", `{"total": 1000, "completed": 1000}`)
	add("batch", "intended", nil)
	add("extract", "accepted", nil)
	want(store.AtWork{Jobs: 1})
	add("batch", "accepted", `{"total": 1000, "completed": 640, "failed": 18, "cancelled": 1, "pending": 341, "charged": 659}`)
	add("batch", "accepted", `{"completed": 7}`)
	want(store.AtWork{Jobs: 3, Reported: 1, Done: 659, Total: 1000})
	for range 2 {
		add("crawl", "accepted", `{"total": 9223372036854775807, "completed": 9223372036854775807, "failed": 9223372036854775807}`)
	}
	want(store.AtWork{Jobs: 5, Reported: 3, Done: 1<<63 - 1, Total: 1<<63 - 1})
}
