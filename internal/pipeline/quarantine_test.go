package pipeline_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// refuse hands in deliveries of a source that no secret signed and returns how
// they were answered.
func (r *rig) refuse(in pipeline.Incoming, source string, n, size int) int {
	r.t.Helper()
	status := 0
	for i := range n {
		one := in
		one.Header = in.Header.Clone()
		one.Header.Set("X-Webhook-Signature", "wrong") // Nothing to hash: that is not what costs here.
		one.Source, one.Body = source, fmt.Appendf(nil, "%s %d", source, i)
		one.Body = append(one.Body, bytes.Repeat([]byte{'.'}, max(0, size-len(one.Body)))...)
		status = r.pipe.Receive(r.t.Context(), one).Status
	}
	return status
}

// accounted waits until each of so many refused deliveries is kept or counted.
func (r *rig) accounted(n int64) {
	r.t.Helper()
	eventually(r.t, "what was refused to be kept or counted", func() bool {
		return r.number(`SELECT (SELECT count(*) FROM deliveries WHERE verdict = 'refused') + coalesce((SELECT sum(deliveries) FROM refused_counts), 0)`) == n
	})
}

// kept is how many deliveries of a source are quarantined.
func (r *rig) kept(source string) int64 {
	r.t.Helper()
	return r.number(`SELECT count(*) FROM deliveries WHERE verdict = 'refused' AND source = $1`, source)
}

// TestQuarantineIsBounded: of what is refused a bounded number is kept, and
// the newest of the largest source goes first, so that a flood does not push
// out what another sent.
func TestQuarantineIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(func(c *pipeline.Config) { c.QuarantineRows = 50 })})
	in := r.ownWebhook("batch_completed", "job-1")
	if got := r.refuse(in, "192.0.2.7", 10, 0); got != http.StatusUnauthorized {
		t.Errorf("answered %d, want 401", got)
	}
	r.refuse(in, "198.51.100.9", 182, 0)
	r.accounted(192)
	if all, small := r.number(`SELECT count(*) FROM deliveries`), r.kept("192.0.2.7"); all != 50 || small != 10 {
		t.Errorf("got %d kept, %d of the small source, want 50 and all 10", all, small)
	}
	if got := r.number(`SELECT count(*) FROM deliveries WHERE source = '198.51.100.9' AND body = '198.51.100.9 0'`); got != 1 {
		t.Error("the oldest of the flood is gone, want the newest to go first")
	}
	// Another that comes late finds room.
	r.refuse(in, "203.0.113.1", 3, 0)
	r.accounted(195)
	if all, late := r.number(`SELECT count(*) FROM deliveries`), r.kept("203.0.113.1"); all != 50 || late != 3 {
		t.Errorf("got %d kept, %d of the late source, want 50 and all 3", all, late)
	}
	if got := r.text(`SELECT cause || ' ' || deliveries || ' ' || last_source FROM refused_counts`); got != "full 145 198.51.100.9" {
		t.Errorf("got %q counted, want 145 of the flood", got)
	}
}

// TestQuarantineIsBoundedInBytes: large bodies are kept whole, and no more of
// them than there is room for.
func TestQuarantineIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(func(c *pipeline.Config) { c.QuarantineBytes = 2 << 20 })})
	in := r.ownWebhook("batch_completed", "job-1")
	r.refuse(in, "192.0.2.7", 1, 600<<10)
	r.refuse(in, "198.51.100.9", 300, 50<<10)
	r.accounted(301)
	if got := r.number(`SELECT sum(octet_length(body)) FROM deliveries`); got > 2<<20 || got < 2<<20-50<<10 {
		t.Errorf("got %d bytes kept, want just under %d", got, 2<<20)
	}
	if got := r.number(`SELECT octet_length(body) FROM deliveries WHERE source = '192.0.2.7'`); got != 600<<10 {
		t.Errorf("got %d bytes of the first one, want it whole", got)
	}
	if got := r.number(`SELECT count(*) FROM deliveries WHERE body_size <> octet_length(body)`); got != 0 {
		t.Errorf("%d bodies are cut", got)
	}
	// One that is larger than all the room is counted.
	r.refuse(in, "203.0.113.1", 1, 3<<20)
	r.accounted(302)
	if got := r.kept("203.0.113.1"); got != 0 {
		t.Error("a body above the bound is kept")
	}
}

// TestAChangeHasRoomOfItsOwn: what is refused while the secret is being
// changed is not pushed out by a flood before, nor by one during the change.
func TestAChangeHasRoomOfItsOwn(t *testing.T) {
	t.Parallel()
	clock := &shifted{}
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(func(c *pipeline.Config) { c.QuarantineRows, c.Now = 40, clock.now })})
	in := r.ownWebhook("batch_completed", "job-1")
	r.refuse(in, "198.51.100.9", 100, 0)
	r.accounted(100)
	r.exec(`UPDATE webhooks SET state = 'rotating', state_at = $1`, time.Now())
	if got := r.refuse(in, "192.0.2.7", 15, 0); got != http.StatusServiceUnavailable {
		t.Errorf("answered %d, want 503", got)
	}
	r.refuse(in, "203.0.113.1", 100, 0)
	r.accounted(215)
	if before, vendor, forged := r.kept("198.51.100.9"), r.kept("192.0.2.7"), r.kept("203.0.113.1"); before != 40 || vendor != 15 || forged != 25 {
		t.Errorf("got %d of before, %d of the vendor's, %d forged ones kept, want 40, 15, 25", before, vendor, forged)
	}
	// When the change is over, what nothing verified is like all else.
	r.exec(`UPDATE webhooks SET state = 'live', state_at = $1`, time.Now())
	clock.forward(2 * time.Second) // It is counted anew.
	r.refuse(in, "198.51.100.9", 1, 0)
	r.accounted(216)
	if got := r.number(`SELECT count(*) FROM deliveries`); got != 40 {
		t.Errorf("got %d kept after the change, want 40", got)
	}
	if got := r.kept("192.0.2.7"); got < 13 {
		t.Errorf("got %d of the vendor's kept, want its part", got)
	}
}

// TestManySmallSourcesDoNotPushOutTheVendor: half the room is for addresses
// that verified deliveries came from.
func TestManySmallSourcesDoNotPushOutTheVendor(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(func(c *pipeline.Config) { c.QuarantineRows = 40 })})
	in := r.ownWebhook("batch_completed", "job-1")
	in.Source = "192.0.2.7"
	if a := r.pipe.Receive(t.Context(), in); a.Status != http.StatusOK {
		t.Fatalf("got %+v", a)
	}
	r.refuse(in, "192.0.2.7", 20, 0)
	for i := range 100 {
		r.refuse(in, fmt.Sprintf("198.51.100.%d", i), 2, 0)
	}
	r.accounted(220)
	if vendor, all := r.kept("192.0.2.7"), r.number(`SELECT count(*) FROM deliveries WHERE verdict = 'refused'`); vendor != 20 || all != 40 {
		t.Errorf("got %d of the vendor's and %d in all kept, want 20 and 40", vendor, all)
	}
}

// TestUnsignedFloodsAreCounted: a sample is kept, and what is signed wrongly
// has its room.
func TestUnsignedFloodsAreCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(func(c *pipeline.Config) { c.QuarantineRows = 100 })})
	in := r.ownWebhook("batch_completed", "job-1")
	bare := in
	bare.Header = in.Header.Clone()
	bare.Header.Del("X-Webhook-Signature")
	for i := range 200 {
		bare.Source = fmt.Sprintf("198.51.100.%d", i)
		if a := r.pipe.Receive(t.Context(), bare); a.Status != http.StatusUnauthorized {
			t.Fatalf("got %+v, want 401", a)
		}
		r.pipe.RefuseUnread(t.Context(), in.Endpoint, http.Header{}, bare.Source, http.StatusMethodNotAllowed, "deliveries are sent by POST")
	}
	r.refuse(in, "192.0.2.7", 30, 0)
	r.accounted(430)
	counts, err := r.store.UnsignedCounts(t.Context(), time.Now().Add(-24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if len(counts) != 1 || counts[0].Cause != store.CauseUnsigned || counts[0].Deliveries != 390 || !strings.HasPrefix(counts[0].LastSource, "198.51.100.") {
		t.Errorf("got %+v, want 390 unsigned ones counted", counts)
	}
	if sample, signed := r.number(`SELECT count(*) FROM deliveries WHERE unsigned`), r.kept("192.0.2.7"); sample != 10 || signed != 30 {
		t.Errorf("got %d unsigned ones and %d others kept, want 10 and 30", sample, signed)
	}
}

// TestWhatWaitsIsBounded: while the writer can't write, what waits is bounded
// in memory, and the rest is counted.
func TestWhatWaitsIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true, noWebhooks: true, pipeline: silent(func(c *pipeline.Config) { c.QuarantineBytes = 1 << 30 })})
	in := r.ownWebhook("batch_completed", "job-1")
	r.refuse(in, "192.0.2.7", 72, 1<<20)
	if got := r.pipe.RefusedBytes(); got > 64<<20 {
		t.Errorf("%d bytes wait", got)
	}
	r.startQuietly()
	r.accounted(72)
	if got := r.number(`SELECT sum(deliveries) FROM refused_counts WHERE cause = 'busy'`); got < 7 || got > 12 {
		t.Errorf("got %d counted, want what did not fit into 64 MiB", got)
	}
	eventually(t, "the room to be given back", func() bool { return r.pipe.RefusedBytes() == 0 })
}

// TestASecretStoredBeforeTheRefusalIsWritten, and one stored while it is: the
// delivery that it verifies does not stay behind as refused.
func TestASecretStoredBeforeTheRefusalIsWritten(t *testing.T) {
	t.Parallel()
	const newSecret = "whsec_MTIzNDU2Nzg5Ojs8PT4_QEFCQ0RFRkdI"
	for _, state := range []store.WebhookState{store.WebhookLive, store.WebhookRotating} {
		for _, during := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s during %v", state, during), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, setup{stopped: true, noWebhooks: true})
				name := r.newWebhook("batch_completed")
				r.exec(`UPDATE webhooks SET state = $1`, string(state))
				id := r.number(`SELECT id FROM webhooks`)
				a := r.pipe.Receive(t.Context(), signedDelivery(name, "batch_completed", newSecret, envelopeFor("batch_completed", "job-1")))
				if a.Status == http.StatusOK || a.Verdict != store.VerdictRefused {
					t.Fatalf("got %+v, want it refused", a)
				}
				if during {
					b := r.newBarrier(map[string]string{"delivery": "BEFORE INSERT ON deliveries FOR EACH ROW"})
					r.startQuietly()
					eventually(t, "the writer", func() bool { return b.waiting() == 1 })
					r.addSecret(id, 2, newSecret)
					b.lift()
				} else {
					r.addSecret(id, 2, newSecret)
					r.startQuietly()
				}
				eventually(t, "it to be taken up", func() bool {
					return r.text(`SELECT max(verdict || ' ' || status || ' ' || (recovered_at IS NOT NULL) || ' ' || coalesce(secret_version, 0)) FROM deliveries`) ==
						fmt.Sprintf("accepted %d true 2", a.Status)
				})
				if got := r.number(`SELECT count(*) FROM processed_events`); got != 1 {
					t.Errorf("got %d events, want 1", got)
				}
			})
		}
	}
}

// TestStoringASecretWaitsForARefusal that is being committed: it is then found
// by whoever stores the secret. Others note the webhook's use meanwhile.
func TestStoringASecretWaitsForARefusal(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(nil)})
	in := r.ownWebhook("batch_completed", "job-1")
	id := r.number(`SELECT id FROM webhooks`)
	// A deferred constraint trigger runs within COMMIT itself: all is locked.
	r.exec(`CREATE FUNCTION held_at_commit() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN NULL; END $$`)
	b := r.newBarrier(nil)
	r.exec(`CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON deliveries DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION held_at_commit()`)
	r.refuse(in, "192.0.2.7", 1, 0)
	eventually(t, "the commit of the refusal", func() bool { return b.waiting() == 1 })
	seen := make(chan int64, 1)
	go func() {
		_ = r.store.InTx(context.Background(), func(ctx context.Context, tx store.Tx) error {
			err := tx.AddSecret(ctx, id, 2, r.pipe.SealSecret(id, 2, testSecret), time.Now(), time.Now().Add(time.Hour))
			rows, _ := tx.Quarantine(ctx, id)
			seen <- int64(len(rows))
			return err
		})
	}()
	eventually(t, "the secret to wait", func() bool {
		return r.number(`SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database() AND query LIKE '%FOR UPDATE%'`) == 1
	})
	b.lift()
	if got := <-seen; got != 1 {
		t.Errorf("whoever stores the secret sees %d refusals, want 1", got)
	}
}
