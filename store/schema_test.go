package store_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"rollcall/store"
	"rollcall/store/storetest"
)

// TestCountersCannotBeWrong: whatever a program does, the sums of the roll call
// hold, or the statement fails.
func TestCountersCannotBeWrong(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	exec(t, s, `INSERT INTO batches (name, kind, options, created_at, submitted, invalid, duplicate, accepted) VALUES ('b', 'batch', '{}', now(), 10, 2, 3, 5)`)
	for _, set := range []string{
		"submitted = 11", "invalid = 1", "accepted = 4", "stored_poll = 6", "failed = 3, stored_webhook = 3", "failed = -1",
		"stored_sync = -1, failed = 1", "cancelled = 6", "invalid = -1, duplicate = 6",
	} {
		_, err := s.SQL().ExecContext(t.Context(), "UPDATE batches SET "+set)
		if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "23514" {
			t.Errorf("%s: got %v, want it refused by a CHECK", set, err)
		}
	}
	if _, err := s.SQL().ExecContext(t.Context(), "UPDATE batches SET outstanding = 3"); err == nil {
		t.Error("outstanding was written; it is computed")
	}
	err := s.InTx(t.Context(), func(ctx context.Context, tx store.Tx) error {
		return tx.AddCounts(ctx, 1, store.Counts{Net: store.NetPoll, Stored: 6}, time.Now())
	})
	if err == nil {
		t.Error("more were stored than accepted")
	}
	inTx(t, s, func(ctx context.Context, tx store.Tx) error {
		return tx.AddCounts(ctx, 1, store.Counts{Net: store.NetWebhook, Stored: 3, Failed: 2}, time.Now())
	})
	if got := one(t, s, `SELECT outstanding + CASE WHEN ended_at IS NULL THEN 100 ELSE 0 END FROM batches`); got != 0 {
		t.Errorf("got %d, want nothing outstanding and the batch ended", got)
	}
	inTx(t, s, func(ctx context.Context, tx store.Tx) error {
		return tx.AddCounts(ctx, 1, store.Counts{Net: store.NetReplay, Stored: 1, Failed: -1}, time.Now())
	})
	if got := one(t, s, `SELECT stored_replay * 10 + failed FROM batches`); got != 11 {
		t.Errorf("got %d, want one stored by replay and one failed", got)
	}
}

// TestRowsCannotContradictThemselves: an item's state, net and end belong
// together.
func TestRowsCannotContradictThemselves(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	job := oneJob(t, s, store.JobAccepted)
	for _, set := range []string{
		"state = 'stored'", "net = 'poll'", "state = 'failed', ended_at = now()", "ended_at = now()", "state = 'cancelled'",
		"state = 'lost', ended_at = now()", "state = 'stored', net = 'pigeon', ended_at = now()",
	} {
		_, err := s.SQL().ExecContext(t.Context(), "UPDATE items SET "+set+" WHERE current_job_id = $1", job)
		if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "23514" {
			t.Errorf("%s: got %v, want it refused by a CHECK", set, err)
		}
	}
	for _, statement := range []string{
		`INSERT INTO job_items SELECT job_id, input_index, item_id FROM job_items`,
		`INSERT INTO job_items (job_id, input_index, item_id) SELECT job_id, 1, item_id FROM job_items`,
	} {
		if _, err := s.SQL().ExecContext(t.Context(), statement); err == nil {
			t.Errorf("%s: passed, want the lineage's keys to refuse it", statement)
		}
	}
}

// TestLongestURLIsStored: keys on URLs index a hash, so that 8 kB fit; the text
// of its line may be anything.
func TestLongestURLIsStored(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	var random strings.Builder
	for i := 0; random.Len() < 8000; i++ {
		fmt.Fprintf(&random, "%x", sha256.Sum256(fmt.Append(nil, i)))
	}
	url := "https://a.example/" + random.String()[:7980]
	job := oneJob(t, s, store.JobAccepted)
	sum := sha256.Sum256([]byte(url))
	batch := one(t, s, `SELECT batch_id FROM jobs WHERE id = $1`, job)
	inTx(t, s, func(ctx context.Context, tx store.Tx) error {
		return tx.InsertItems(ctx, []*store.Item{{
			BatchID: batch, Position: 2, URL: url, URLHash: sum[:], State: store.ItemOutstanding, CreatedAt: time.Now(), Original: new("a\x00\xff" + url),
		}})
	})
	exec(t, s, `INSERT INTO crawl_pages (job_id, url_hash, item_id) SELECT $1, url_hash, id FROM items WHERE position = 2`, job)
	if got := one(t, s, `SELECT max(length(url)) FROM items WHERE url_hash = $1`, sum[:]); got != int64(len(url)) {
		t.Errorf("got %d characters back, want %d", got, len(url))
	}
	if got := word(t, s, `SELECT coalesce(line::text, 'no line') || ' ' || left(original, 3) FROM items WHERE position = 2`); got != "no line a\uFFFD\uFFFD" {
		t.Errorf("the text of its line is %q", got)
	}
}

// TestBodiesAreCompressedWithLZ4 unless the server lacks it.
func TestBodiesAreCompressedWithLZ4(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	if one(t, s, `SELECT count(*) FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)`) == 0 {
		t.Skip("this server was built without lz4")
	}
	got := word(t, s, `SELECT string_agg(c.relname || '.' || a.attname, ' ' ORDER BY c.relname, a.attname)
		FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE a.attcompression = 'l'`)
	if want := "deliveries.body result_versions.html result_versions.markdown results.html results.markdown search_words.words"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestStatementsWithoutArgumentsAreNotKept: Bun writes values into the text, so
// each is new; pgx must not prepare and keep hundreds of them a connection.
func TestStatementsWithoutArgumentsAreNotKept(t *testing.T) {
	t.Parallel()
	dsn := storetest.DSN(t)
	s, err := store.Open(t.Context(), store.Config{DSN: dsn, MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for i := range 600 {
		if got, err := s.CarriedOf(t.Context(), int64(i), []int64{1}); err != nil || len(got) > 0 {
			t.Fatalf("got %v, %v, want nothing", got, err)
		}
	}
	if got := one(t, s, `SELECT count(*) FROM pg_prepared_statements`); got != 0 {
		t.Errorf("got %d prepared statements after 600 texts of Bun's, want none", got)
	}
	for i := range 3 {
		if _, err := s.Job(t.Context(), int64(i)); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("got %v, want none found", err)
		}
	}
	if got := one(t, s, `SELECT count(*) FROM pg_prepared_statements`); got != 1 {
		t.Errorf("got %d prepared statements after one with arguments, want 1", got)
	}
}

// TestBackgroundQueriesUseIndexes has the plans of what the pipeline asks all
// the time looked through for a scan of a whole growing table.
func TestBackgroundQueriesUseIndexes(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	fill(t, s)
	exec(t, s, `UPDATE jobs SET state = 'accepted', next_poll_at = created_at, accepted_at = created_at WHERE id % 10 = 0`)
	exec(t, s, `INSERT INTO processed_events (vendor_job_id, event_type, received_at, state, job_id)
		SELECT vendor_job_id, 'batch_completed', created_at, CASE WHEN id % 50 = 0 THEN 'held' ELSE 'claimed' END, id FROM jobs`)
	exec(t, s, "ANALYZE")
	var statements []string
	watched := *s
	store.Watch(&watched, func(query string) { statements = append(statements, query) })
	ctx, now := t.Context(), time.Now()
	err := watched.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		for _, do := range []func() error{
			func() error { _, err := tx.WakeDue(ctx, now, now, 200); return err },
			func() error { _, err := tx.WakeDueOthers(ctx, now, now, 200); return err },
			func() error { _, err := tx.PollSingly(ctx, now, 3); return err },
			func() error { _, err := tx.DueExtracts(ctx, now, 200); return err },
			func() error { _, err := tx.WakeListed(ctx, []int64{10, 20}, now, now); return err },
			func() error { return tx.NoteListed(ctx, []int64{10, 20}, "processing") },
			func() error { return tx.PutOffListed(ctx, []int64{10, 20}, &now, now, now) },
			func() error { _, err := tx.PollSoon(ctx, now, now, time.Second, 200); return err },
			func() error { _, err := tx.WakeJobs(ctx, []int64{10, 20}, store.NetPoll); return err },
			func() error { _, err := tx.WakeByWebhook(ctx, []int64{10, 20}, now); return err },
			func() error { _, err := tx.ClaimHeld(ctx, []string{"v7", "v50"}); return err },
			func() error { _, err := tx.HeldSince(ctx, now, 200); return err },
			func() error { _, err := tx.HeldKnown(ctx, 200); return err },
			func() error { _, err := tx.MarkForeign(ctx, []string{"v50"}); return err },
			func() error { _, err := tx.ExpiredClaims(ctx, now, 200); return err },
			func() error { _, err := tx.OpenJobs(ctx, now, store.Key{}, 200); return err },
			func() error { _, err := tx.KnownVendorIDs(ctx, []string{"v7", "v50"}); return err },
			func() error { _, err := tx.CallingWithHash(ctx, []byte{0}); return err },
			func() error { _, err := tx.AnyUncertain(ctx); return err },
			func() error { _, err := tx.OldestClaim(ctx); return err },
			func() error { _, err := tx.WebhookRecord(ctx, 50, time.Minute, now); return err },
			func() error { _, err := tx.Carried(ctx, 7); return err },
			func() error { _, err := tx.SendList(ctx, 7); return err },
		} {
			if err := do(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range statements {
		if strings.HasPrefix(statement, "BEGIN") || strings.HasPrefix(statement, "COMMIT") {
			continue
		}
		plan := planOf(t, s, statement)
		if wholeTable.MatchString(plan) || strings.Contains(plan, "Seq Scan on processed_events") {
			t.Errorf("%s\n%s", statement, plan)
		}
	}
}

// TestArriveTellsFirstFromDuplicate, within a group and across two.
func TestArriveTellsFirstFromDuplicate(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	job := oneJob(t, s, store.JobAccepted)
	arrive := func(ids ...string) string {
		t.Helper()
		group := make([]*store.Arrival, len(ids))
		for i, id := range ids {
			group[i] = &store.Arrival{Delivery: store.Delivery{VendorJobID: id, ReceivedAt: time.Now(), Headers: []byte{}, Body: []byte{}, Status: 200}}
		}
		if _, err := s.Arrive(t.Context(), group, store.JobTask{}, time.Now()); err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, a := range group {
			out = append(out, string(a.Verdict))
			if known := a.VendorJobID == fmt.Sprint("vendor-", job); (a.KnownJob == job) != known {
				t.Errorf("%s: got job %d", a.VendorJobID, a.KnownJob)
			}
		}
		return strings.Join(out, " ")
	}
	known := fmt.Sprint("vendor-", job)
	if got := arrive("a", "a", "b", known); got != "accepted duplicate accepted accepted" {
		t.Errorf("got %s", got)
	}
	if got := arrive("b", known, known, "z"); got != "duplicate duplicate duplicate accepted" {
		t.Errorf("got %s", got)
	}
	if got := word(t, s, `SELECT string_agg(state, ' ' ORDER BY vendor_job_id) FROM processed_events`); got != "held held claimed held" {
		t.Errorf("got events %s, want the known one claimed", got)
	}
}
