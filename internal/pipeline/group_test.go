package pipeline_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// newWebhook makes a live webhook with testSecret and returns its endpoint.
func (r *rig) newWebhook(event string) string {
	r.t.Helper()
	ctx := context.Background()
	name := fmt.Sprintf("endpoint-of-the-test-%d-%s", time.Now().UnixNano(), event)
	w := &store.Webhook{
		Endpoint: name[:min(60, len(name))], EventType: event, URL: r.hooks.URL + "/webhooks/geonode/" + name,
		State: store.WebhookLive, CreatedAt: time.Now(), StateAt: time.Now(),
	}
	if err := r.store.InsertWebhook(ctx, w); err != nil {
		r.t.Fatal(err)
	}
	r.addSecret(w.ID, 1, testSecret)
	return w.Endpoint
}

// addSecret stores a further secret as another process would.
func (r *rig) addSecret(webhook int64, version int, secret string) {
	r.t.Helper()
	err := r.store.InTx(context.Background(), func(ctx context.Context, tx store.Tx) error {
		return tx.AddSecret(ctx, webhook, version, r.pipe.SealSecret(webhook, version, secret), time.Now(), time.Now().Add(time.Hour))
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// ownWebhook makes a webhook and a good delivery for it.
func (r *rig) ownWebhook(event, vendorJobID string) pipeline.Incoming {
	r.t.Helper()
	return signedDelivery(r.newWebhook(event), event, testSecret, envelopeFor(event, vendorJobID))
}

// receiveAll hands deliveries in at once; started runs when all are queued.
func (r *rig) receiveAll(in []pipeline.Incoming, queued func()) []pipeline.Answer {
	r.t.Helper()
	answers := make([]pipeline.Answer, len(in))
	var wg sync.WaitGroup
	var back atomic.Int64
	for i := range in {
		wg.Go(func() {
			answers[i] = r.pipe.Receive(context.Background(), in[i])
			back.Add(1)
		})
	}
	if queued != nil {
		eventually(r.t, "the deliveries to queue, and those that find no place to be sent back", func() bool {
			return r.pipe.Queued() >= min(len(in), pipeline.GroupQueue) && int(back.Load()) >= len(in)-pipeline.GroupQueue
		})
		queued()
	}
	wg.Wait()
	return answers
}

func (r *rig) startQuietly() {
	r.t.Helper()
	if err := r.pipe.Start(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

func count(answers []pipeline.Answer, status int, verdict store.Verdict) int {
	n := 0
	for _, a := range answers {
		if a.Status == status && a.Verdict == verdict {
			n++
		}
	}
	return n
}

// TestDuplicateAndFirstInOneGroup: of the deliveries for one job in one group
// exactly one is the first.
func TestDuplicateAndFirstInOneGroup(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true, noWebhooks: true})
	name := r.newWebhook("batch_completed")
	var in []pipeline.Incoming
	for i := range 40 {
		in = append(in, signedDelivery(name, "batch_completed", testSecret, envelopeFor("batch_completed", fmt.Sprintf("job-%d", i%10))))
	}
	answers := r.receiveAll(in, r.startQuietly)
	if a, d := count(answers, 200, store.VerdictAccepted), count(answers, 200, store.VerdictDuplicate); a != 10 || d != 30 {
		t.Errorf("got %d accepted, %d duplicates, want 10, 30", a, d)
	}
	if got := r.number(`SELECT count(*) FROM processed_events`); got != 10 {
		t.Errorf("got %d events, want 10", got)
	}
	if got := r.number(`SELECT count(*) FROM deliveries WHERE verdict = 'accepted'`); got != 10 {
		t.Errorf("got %d accepted rows, want 10", got)
	}
}

// TestOverlappingIDsInTwoGroups: groups that share ids, while the jobs are
// settled at the same time, end without an error and without a deadlock that
// anybody sees.
func TestOverlappingIDsInTwoGroups(t *testing.T) {
	t.Parallel()
	log := &safeBuffer{}
	r := newRig(t, setup{noWebhooks: true, sandbox: func(c *sandbox.Config) { c.RunTime = time.Millisecond }, pipeline: func(c *pipeline.Config) {
		deaf(c)
		c.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}})
	name := r.newWebhook("extract_completed")
	id := r.submit(store.KindExtract, sandbox.MadeURLs(40, 8)...)
	eventually(t, "the vendor's ids", func() bool {
		return r.number(`SELECT count(*) FROM jobs WHERE state = 'accepted'`) == 40
	})
	var ids []string
	for i := range 60 {
		ids = append(ids, r.text(`SELECT coalesce((SELECT vendor_job_id FROM jobs ORDER BY id OFFSET $1 LIMIT 1), 'unknown-' || $1)`, i))
	}
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range 60 {
				job := ids[(i*(2*g+1)+g)%len(ids)]
				a := r.pipe.Receive(context.Background(), signedDelivery(name, "extract_completed", testSecret, envelopeFor("extract_completed", job)))
				if a.Status != http.StatusOK {
					t.Errorf("got %+v, want 200", a)
				}
			}
		})
	}
	wg.Wait()
	b := r.ended(id)
	r.wantBatch(b, 40, 0, 0)
	if got := r.number(`SELECT count(*) FROM deliveries WHERE verdict = 'accepted'`); got != 60 {
		t.Errorf("got %d accepted, want one for each of 60 ids", got)
	}
	if got := r.number(`SELECT count(*) FROM deliveries`); got != 16*60 {
		t.Errorf("got %d deliveries, want %d", got, 16*60)
	}
	if text := log.String(); strings.Contains(text, "deadlock") || strings.Contains(text, "not committed") {
		t.Errorf("got in the log:\n%s", text)
	}
	r.balanced(id)
}

// TestOneBadRowInAGroup: a row that the database refuses is refused alone.
func TestOneBadRowInAGroup(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true, noWebhooks: true, pipeline: func(c *pipeline.Config) { c.Logger = slog.New(slog.DiscardHandler) }})
	r.exec(`ALTER TABLE deliveries ADD CONSTRAINT not_this_one CHECK (vendor_job_id <> 'job-2')`)
	name := r.newWebhook("batch_completed")
	var in []pipeline.Incoming
	for i := range 6 { // Few: each is tried alone, all within the time in which the vendor is answered.
		in = append(in, signedDelivery(name, "batch_completed", testSecret, envelopeFor("batch_completed", fmt.Sprintf("job-%d", i))))
	}
	answers := r.receiveAll(in, r.startQuietly)
	for i, a := range answers {
		want := http.StatusOK
		if i == 2 {
			want = http.StatusServiceUnavailable
		}
		if a.Status != want {
			t.Errorf("delivery %d: got %+v, want %d", i, a, want)
		}
	}
	if got := r.number(`SELECT count(*) FROM processed_events`); got != 5 {
		t.Errorf("got %d events, want 5: the refused one left none", got)
	}
}

// TestNULInAnEventIsTakenUp: what a text column cannot hold must not make a
// delivery that the vendor repeats for ever.
func TestNULInAnEventIsTakenUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true})
	name := r.newWebhook("batch_completed")
	body := []byte(`{"event":"batch\u0000completed","id":"d\u0000","data":{"job_id":"job-1"}}`)
	in := signedDelivery(name, "", testSecret, body)
	in.Header.Del("X-Webhook-Event")
	if a := r.pipe.Receive(t.Context(), in); a.Status != http.StatusOK {
		t.Errorf("got %+v, want 200", a)
	}
}

// TestQueueOfDeliveriesIsBounded: what cannot be taken up in time is sent back
// to the vendor at once.
func TestQueueOfDeliveriesIsBounded(t *testing.T) {
	t.Parallel()
	log := &safeBuffer{}
	r := newRig(t, setup{stopped: true, noWebhooks: true, pipeline: func(c *pipeline.Config) { c.Logger = slog.New(slog.NewTextHandler(log, nil)) }})
	name := r.newWebhook("batch_completed")
	const more = 20
	in := make([]pipeline.Incoming, pipeline.GroupQueue+more)
	for i := range in {
		in[i] = signedDelivery(name, "batch_completed", testSecret, envelopeFor("batch_completed", fmt.Sprintf("job-%d", i)))
	}
	answers := r.receiveAll(in, func() {
		// On a slow machine some are sent back for having waited too long; these found no place.
		eventually(t, "all to come", func() bool { return strings.Count(log.String(), "too many wait for a commit") == more })
		r.startQuietly()
	})
	good, busy := count(answers, 200, store.VerdictAccepted), count(answers, 503, "")
	if good+busy != len(in) || busy == 0 {
		t.Errorf("got %d taken up, %d sent back of %d, want at least one sent back", good, busy, len(in))
	}
	// On a slow machine a delivery may be sent back although it is committed: the
	// vendor's next one is a duplicate. The other way round is never right.
	got := r.number(`SELECT count(*) FROM processed_events`)
	if got < int64(good) || got < pipeline.GroupQueue || got == int64(len(in)) {
		t.Errorf("got %d events of %d deliveries, %d of them taken up; the queue holds %d", got, len(in), good, pipeline.GroupQueue)
	}
}

// safeBuffer is a log that many goroutines write.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// TestHangingDatabaseAnswersTheGroupOnce: its deliveries are sent back after
// one timeout, not one each, the database is told to give up too, and what comes
// later is taken up.
func TestHangingDatabaseAnswersTheGroupOnce(t *testing.T) {
	t.Parallel()
	log := &safeBuffer{}
	r := newRig(t, setup{stopped: true, noWebhooks: true, pipeline: func(c *pipeline.Config) { c.Logger = slog.New(slog.NewTextHandler(log, nil)) }})
	b := r.newBarrier(map[string]string{"hanging": `BEFORE INSERT ON deliveries FOR EACH ROW`})
	in := r.hangingGroup()
	if strings.Contains(log.String(), "each is tried alone") {
		t.Error("each was tried alone after the timeout of all")
	}
	// Being told comes after the answers: whoever lifts the barrier before has
	// the statement commit, see TestCommittedAfterItWasSentBack.
	eventually(t, "the database to give up", func() bool { return b.waiting() == 0 })
	b.lift()
	if a := r.pipe.Receive(t.Context(), in[0]); a.Status != 200 || a.Verdict != store.VerdictAccepted {
		t.Errorf("got %+v once the database works again, want it taken up", a)
	}
	if got := r.number(`SELECT count(*) FROM processed_events`); got != 1 {
		t.Errorf("got %d events, want only the last one's", got)
	}
}

// hangingGroup hands 20 deliveries in as one group to a pipeline whose database
// hangs, and returns them once all are sent back.
func (r *rig) hangingGroup() []pipeline.Incoming {
	r.t.Helper()
	name := r.newWebhook("batch_completed")
	in := make([]pipeline.Incoming, 20)
	for i := range in {
		in[i] = signedDelivery(name, "batch_completed", testSecret, envelopeFor("batch_completed", fmt.Sprintf("job-%d", i)))
	}
	if got := count(r.receiveAll(in, r.startQuietly), 503, ""); got != len(in) {
		r.t.Errorf("got %d sent back, want all %d", got, len(in))
	}
	return in
}

// TestCommittedAfterItWasSentBack: a database that hangs, does not hear that it
// was given up and commits later has taken up what the vendor was told to send
// again. The second delivery is a duplicate, and nothing is there twice.
func TestCommittedAfterItWasSentBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true, noWebhooks: true, pipeline: silent(nil)})
	b := r.newBarrier(map[string]string{"hanging": `BEFORE INSERT ON deliveries FOR EACH ROW`})
	b.deafen()
	in := r.hangingGroup()
	// Being told comes after the answers: it must not meet the statement when that
	// no longer hangs. There are two when both committers took of the queue.
	eventually(t, "the statements to hang after they were told to give up", func() bool {
		hanging := b.waiting()
		return hanging > 0 && b.deaf() == hanging
	})
	b.lift()
	eventually(t, "the late commit", func() bool { return r.number(`SELECT count(*) FROM deliveries`) == int64(len(in)) })
	again := r.receiveAll(in, nil)
	if got := count(again, 200, store.VerdictDuplicate); got != len(in) {
		t.Errorf("got %d duplicates of %d sent again, want all", got, len(in))
	}
	if got := r.number(`SELECT count(*) FROM processed_events`); got != int64(len(in)) {
		t.Errorf("got %d events, want %d", got, len(in))
	}
}
