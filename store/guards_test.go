package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rollcall/store"
	"rollcall/store/storetest"
)

// one reads one number.
func one(t *testing.T, s *store.Store, query string, args ...any) int64 {
	t.Helper()
	var n int64
	if err := s.SQL().QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// word reads one text.
func word(t *testing.T, s *store.Store, query string, args ...any) string {
	t.Helper()
	var text string
	if err := s.SQL().QueryRowContext(t.Context(), query, args...).Scan(&text); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return text
}

// inTx runs do in a transaction and wants it committed.
func inTx(t *testing.T, s *store.Store, do func(ctx context.Context, tx store.Tx) error) {
	t.Helper()
	if err := s.InTx(t.Context(), do); err != nil {
		t.Fatal(err)
	}
}

// oneJob makes a batch with one item, carried by one job in the given state.
func oneJob(t *testing.T, s *store.Store, state store.JobState) int64 {
	t.Helper()
	// Long due: tests that run side by side may come to it minutes after they took the time.
	batch := one(t, s, `INSERT INTO batches (name, kind, options, created_at, submitted, accepted) VALUES ('b', 'extract', '{}', now(), 1, 1) RETURNING id`)
	job := one(t, s, `INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, call_no, lease_until, next_poll_at)
		VALUES ($1, 'extract', $2, 'submit', '\x01', 1, now(), 1, now() - interval '1 hour', now() - interval '1 hour') RETURNING id`, batch, string(state))
	exec(t, s, `UPDATE jobs SET vendor_job_id = 'vendor-' || id, accepted_at = now() WHERE id = $1 AND state IN ('accepted', 'settled', 'given_up')`, job)
	item := one(t, s, `INSERT INTO items (batch_id, position, url, url_hash, current_job_id, created_at) VALUES ($1, 1, 'https://a.example/', '\x02', $2, now()) RETURNING id`, batch, job)
	exec(t, s, `INSERT INTO job_items (job_id, input_index, item_id) VALUES ($1, 0, $2)`, job, item)
	return job
}

// move is one guarded update of a job; it reports whether it took hold.
type move struct {
	name string
	from []store.JobState
	to   store.JobState // Empty: the state stays.
	do   func(ctx context.Context, tx store.Tx, id int64, callNo int) (bool, error)
}

func positive(n int, err error) (bool, error) { return n > 0, err }

func contains(id int64) func(ids []int64, err error) (bool, error) {
	return func(ids []int64, err error) (bool, error) { return slices.Contains(ids, id), err }
}

func moves() []move {
	now := time.Now()
	before, calling := []store.JobState{store.JobIntended, store.JobCalling, store.JobUncertain}, []store.JobState{store.JobCalling, store.JobUncertain}
	open := []store.JobState{store.JobAccepted, store.JobGivenUp}
	end := func(to store.JobState) func(context.Context, store.Tx, int64, int) (bool, error) {
		return func(ctx context.Context, tx store.Tx, id int64, callNo int) (bool, error) {
			return tx.EndJob(ctx, id, callNo, to, "CODE", "message", now)
		}
	}
	return []move{
		{"claim", before[:1], store.JobCalling, func(ctx context.Context, tx store.Tx, id int64, _ int) (bool, error) {
			return tx.ClaimJob(ctx, id, now, now, now.Add(time.Minute))
		}},
		{"expire", calling[:1], store.JobUncertain, func(ctx context.Context, tx store.Tx, id int64, _ int) (bool, error) {
			return tx.ExpireClaim(ctx, id, now)
		}},
		{"doubt", calling[:1], store.JobUncertain, func(ctx context.Context, tx store.Tx, id int64, callNo int) (bool, error) {
			return tx.MarkUncertain(ctx, id, callNo, now)
		}},
		{"accept", calling, store.JobAccepted, func(ctx context.Context, tx store.Tx, id int64, callNo int) (bool, error) {
			got := &store.Acceptance{JobID: id, CallNo: callNo, VendorJobID: fmt.Sprint("new-", id), At: now, NextPollAt: now}
			err := tx.AcceptJobs(ctx, []*store.Acceptance{got})
			return got.Taken, err
		}},
		{"release", calling, store.JobIntended, func(ctx context.Context, tx store.Tx, id int64, callNo int) (bool, error) {
			return tx.ReleaseJob(ctx, id, callNo)
		}},
		{"look", calling[1:], "", func(ctx context.Context, tx store.Tx, id int64, callNo int) (bool, error) {
			return positive(tx.AdoptPass(ctx, id, callNo, now, now))
		}},
		{"refuse", before, store.JobRefused, end(store.JobRefused)},
		{"end as withdrawn", before, store.JobWithdrawn, end(store.JobWithdrawn)},
		{"withdraw", before[:1], store.JobWithdrawn, func(ctx context.Context, tx store.Tx, id int64, _ int) (bool, error) {
			jobs, err := tx.WithdrawJobs(ctx, store.Scope{JobIDs: []int64{id}}, "not wanted", 10, now)
			return len(jobs) == 1, err
		}},
		{"flag", append(calling[:2:2], store.JobAccepted), "", func(ctx context.Context, tx store.Tx, id int64, _ int) (bool, error) {
			jobs, err := tx.FlagJobs(ctx, store.Scope{JobIDs: []int64{id}}, 0, 10, now)
			return len(jobs) == 1, err
		}},
		{"split", before, store.JobSplit, end(store.JobSplit)},
		{"settle", open, store.JobSettled, func(ctx context.Context, tx store.Tx, id int64, _ int) (bool, error) {
			return tx.SettleJob(ctx, id, store.NetPoll, time.Time{}, now)
		}},
		{"give up", open[:1], store.JobGivenUp, func(ctx context.Context, tx store.Tx, id int64, _ int) (bool, error) {
			return tx.GiveUpJob(ctx, id, 0, "GAVE_UP", "", now)
		}},
		{"read", open, "", func(ctx context.Context, tx store.Tx, id int64, _ int) (bool, error) {
			return tx.NoteReading(ctx, store.Reading{JobID: id, NextPollAt: now})
		}},
		{"put off", open, "", func(ctx context.Context, tx store.Tx, id int64, _ int) (bool, error) {
			return tx.PutOff(ctx, id, 0, store.LookNoAnswer, now)
		}},
		{"pass", open, "", func(ctx context.Context, tx store.Tx, id int64, _ int) (bool, error) {
			return positive(tx.NotePass(ctx, store.Pass{JobID: id, At: now, Gap: time.Second, Next: now}))
		}},
		{"wake", open, "", func(ctx context.Context, tx store.Tx, id int64, _ int) (bool, error) {
			return contains(id)(tx.WakeJobs(ctx, []int64{id}, store.NetReconcile))
		}},
		{"wake by webhook", open, "", func(ctx context.Context, tx store.Tx, id int64, _ int) (bool, error) {
			return contains(id)(tx.WakeByWebhook(ctx, []int64{id}, now))
		}},
		{"wake when due", open[:1], "", func(ctx context.Context, tx store.Tx, id int64, _ int) (bool, error) {
			return contains(id)(tx.WakeDue(ctx, now, now.Add(time.Minute), 1000))
		}},
		{"wake when listed", open[:1], "", func(ctx context.Context, tx store.Tx, id int64, _ int) (bool, error) {
			return contains(id)(tx.WakeListed(ctx, []int64{id}, now, now.Add(time.Minute)))
		}},
	}
}

func jobStates() []store.JobState {
	return []store.JobState{
		store.JobIntended, store.JobCalling, store.JobUncertain, store.JobAccepted, store.JobSettled,
		store.JobGivenUp, store.JobRefused, store.JobWithdrawn, store.JobSplit,
	}
}

// TestMovesOfAJob tries every move from every state: those that DESIGN.md
// section 3 does not draw touch no row.
func TestMovesOfAJob(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	for _, m := range moves() {
		for _, state := range jobStates() {
			id := oneJob(t, s, state)
			took := false
			inTx(t, s, func(ctx context.Context, tx store.Tx) error {
				var err error
				took, err = m.do(ctx, tx, id, 1)
				return err
			})
			want := slices.Contains(m.from, state)
			after := state
			if want && m.to != "" {
				after = m.to
			}
			if got := word(t, s, `SELECT state FROM jobs WHERE id = $1`, id); took != want || got != string(after) {
				t.Errorf("%s from %s: took hold %v, now %s; want %v, %s", m.name, state, took, got, want, after)
			}
		}
	}
}

// TestMovesOfAnEarlierCall: an answer to a call that is not the job's last
// moves nothing.
func TestMovesOfAnEarlierCall(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	for _, m := range moves() {
		if !slices.Contains([]string{"doubt", "accept", "release", "look", "refuse", "end as withdrawn", "split"}, m.name) {
			continue
		}
		for _, state := range m.from {
			id := oneJob(t, s, state)
			inTx(t, s, func(ctx context.Context, tx store.Tx) error {
				took, err := m.do(ctx, tx, id, 0)
				if took {
					t.Errorf("%s from %s took hold for an earlier call", m.name, state)
				}
				return err
			})
		}
	}
}

// TestMovesOfAWokenJob: a look that began before a wake closes nothing that
// would lose the wake.
func TestMovesOfAWokenJob(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	for _, m := range moves() {
		if !slices.Contains([]string{"read", "put off", "give up"}, m.name) {
			continue
		}
		id := oneJob(t, s, store.JobAccepted)
		exec(t, s, `UPDATE jobs SET wake_seq = 1 WHERE id = $1`, id)
		inTx(t, s, func(ctx context.Context, tx store.Tx) error {
			took, err := m.do(ctx, tx, id, 1)
			if took {
				t.Errorf("%s took hold of a job that was woken since", m.name)
			}
			return err
		})
	}
}

// TestVendorIDIsRecordedOnce: two jobs cannot have one vendor job.
func TestVendorIDIsRecordedOnce(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	accept := func(id int64) error {
		return s.InTx(t.Context(), func(ctx context.Context, tx store.Tx) error {
			return tx.AcceptJobs(ctx, []*store.Acceptance{{JobID: id, CallNo: 1, VendorJobID: "the-one", At: time.Now(), NextPollAt: time.Now()}})
		})
	}
	if err := accept(oneJob(t, s, store.JobCalling)); err != nil {
		t.Fatal(err)
	}
	if err := accept(oneJob(t, s, store.JobUncertain)); !errors.Is(err, store.ErrTaken) {
		t.Errorf("got %v, want %v", err, store.ErrTaken)
	}
}

// TestMovesOfAnItem tries to store, fail, cancel, withdraw, move and reopen an
// item in every state, by its current job, by an earlier one of its lineage and
// by a stranger. Reopening is a person's and asks for no job.
func TestMovesOfAnItem(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	for _, state := range []string{"outstanding", "stored", "failed", "cancelled"} {
		for _, who := range []string{"current", "earlier", "stranger"} {
			for _, what := range []string{"store", "fail", "cancel", "withdraw", "move", "reopen"} {
				t.Run(strings.Join([]string{what, state, who}, " "), func(t *testing.T) {
					t.Parallel()
					want := state == "outstanding" && who == "current"
					switch what {
					case "store":
						want = state != "stored" && who != "stranger"
					case "reopen":
						want = state == "failed" || state == "cancelled"
					}
					if got := tryItem(t, s, state, who, what); got != want {
						t.Errorf("took hold %v, want %v", got, want)
					}
				})
			}
		}
	}
}

// tryItem puts an item into a state, tries one move as one of the jobs and
// reports whether it took hold. The counters follow, or the test fails.
func tryItem(t *testing.T, s *store.Store, state, who, what string) bool {
	t.Helper()
	earlier := oneJob(t, s, store.JobAccepted)
	stranger := oneJob(t, s, store.JobAccepted)
	batch := one(t, s, `SELECT batch_id FROM jobs WHERE id = $1`, earlier)
	current := one(t, s, `INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at) VALUES ($1, 'extract', 'accepted', 'retry', '\x01', 1, now()) RETURNING id`, batch)
	item := one(t, s, `UPDATE items SET current_job_id = $2 WHERE batch_id = $1 RETURNING id`, batch, current)
	exec(t, s, `INSERT INTO job_items (job_id, input_index, item_id) VALUES ($1, 0, $2)`, current, item)
	ctx := t.Context()
	attempt := func(job int64, what string) bool {
		t.Helper()
		took := false
		inTx(t, s, func(ctx context.Context, tx store.Tx) error {
			counts, err := store.Counts{Net: store.NetPoll}, error(nil)
			var ids []int64
			switch what {
			case "store":
				counts, _, err = tx.StoreItems(ctx, job, store.NetPoll, []*store.Result{{ItemID: item, JobID: &job, Net: store.NetPoll, StoredAt: time.Now(), Markdown: []byte("x")}}, time.Now())
				took = counts.Stored == 1
			case "fail":
				ids, err = tx.FailItems(ctx, job, []store.Ending{{ItemID: item, Code: "CODE"}}, time.Now())
				took, counts.Failed = len(ids) == 1, int64(len(ids))
			case "cancel":
				ids, err = tx.CancelItems(ctx, job, []store.Ending{{ItemID: item, Code: "CODE"}}, time.Now())
				took, counts.Cancelled = len(ids) == 1, int64(len(ids))
			case "withdraw":
				ended, endErr := tx.CancelItemsOf(ctx, []int64{job}, "CODE", "", time.Now())
				took, counts.Cancelled, err = ended[batch] == 1, ended[batch], endErr
			case "move":
				n, moveErr := tx.MoveItems(ctx, job, earlier, true)
				took, err = n == 1, moveErr
			case "reopen":
				took, err = reopen(ctx, tx, item, current, &counts)
			}
			if err != nil {
				return err
			}
			return tx.AddCounts(ctx, batch, counts, time.Now())
		})
		return took
	}
	if first := map[string]string{"stored": "store", "failed": "fail", "cancelled": "cancel"}[state]; first != "" && !attempt(current, first) {
		t.Fatalf("the item could not be made %s", state)
	}
	took := attempt(map[string]int64{"current": current, "earlier": earlier, "stranger": stranger}[who], what)
	if diff, _, err := s.RecountBatches(ctx, batch-1, 1); err != nil || len(diff) > 0 {
		t.Errorf("counters differ: %+v %v", diff, err)
	}
	return took
}

// reopen makes the item outstanding again if it failed or was cancelled, and
// counts that. It tries the update whatever was locked, which has a guard too.
func reopen(ctx context.Context, tx store.Tx, item, job int64, counts *store.Counts) (bool, error) {
	locked, err := tx.LockEnded(ctx, []int64{item}, store.AsPlanned{})
	if err != nil {
		return false, err
	}
	for _, it := range locked {
		if it.State == store.ItemFailed {
			counts.Failed--
		} else {
			counts.Cancelled--
		}
	}
	return len(locked) == 1, tx.Reopen(ctx, []int64{item}, []int64{job})
}

// TestAnyBytesAreStoredWithoutLoss: content is bytes, whatever they are.
func TestAnyBytesAreStoredWithoutLoss(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	all := make([]byte, 0, 256*40)
	for range 40 {
		for b := range 256 {
			all = append(all, byte(b))
		}
	}
	for name, content := range map[string][]byte{"all": all, "nul": {0}, "not UTF-8": {0xff, 0xfe, 0x80}, "empty": {}, "large": bytes.Repeat(all, 500)} {
		job := oneJob(t, s, store.JobAccepted)
		item := one(t, s, `SELECT item_id FROM job_items WHERE job_id = $1`, job)
		inTx(t, s, func(ctx context.Context, tx store.Tx) error {
			_, _, err := tx.StoreItems(ctx, job, store.NetPoll, []*store.Result{{ItemID: item, JobID: &job, Net: store.NetPoll, StoredAt: time.Now(), Markdown: content, HTML: content}}, time.Now())
			return err
		})
		for _, part := range []store.Part{store.PartMarkdown, store.PartHTML} {
			got, err := s.ResultPart(t.Context(), item, part, 1<<30)
			if err != nil || !bytes.Equal(got, content) {
				t.Errorf("%s: got %d bytes back, %v, want the %d that were stored", name, len(got), err, len(content))
			}
		}
	}
}

// TestAWebhookMovesFromTheStateItIsIn: who looked at it before a rotation began
// does not move it back.
func TestAWebhookMovesFromTheStateItIsIn(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	now := time.Now().UTC().Truncate(time.Microsecond)
	w := &store.Webhook{
		Endpoint: strings.Repeat("e", 32), EventType: "batch_completed", URL: "https://hooks.example/x",
		State: store.WebhookLive, CreatedAt: now, StateAt: now,
	}
	if err := s.InsertWebhook(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	for _, move := range []struct {
		from, to store.WebhookState
		want     bool
	}{
		{store.WebhookLive, store.WebhookRotating, true},
		{store.WebhookLive, store.WebhookGone, false},
		{store.WebhookRotating, store.WebhookLive, true},
		{store.WebhookLive, store.WebhookLive, true},
	} {
		got, err := s.MoveWebhook(t.Context(), w.ID, move.from, move.to, now)
		if err != nil || got != move.want {
			t.Errorf("%s to %s: got %t, %v, want %t", move.from, move.to, got, err, move.want)
		}
	}
}
