package pipeline_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"rollcall/internal/geonode"
	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/store/storetest"
)

// statsRig is a database, a clock that stands still, and two replicas that only
// roll up.
type statsRig struct {
	t        testing.TB
	store    *store.Store
	mu       sync.Mutex
	at       time.Time
	replicas [2]*pipeline.Pipeline
	client   *geonode.Client
}

func newStatsRig(t *testing.T) *statsRig {
	t.Helper()
	r := &statsRig{t: t, store: storetest.New(t), at: statsFirst}
	client, err := geonode.New(geonode.Config{BaseURL: "http://127.0.0.1:1", APIKey: "key", Now: r.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	r.client = client
	for i := range r.replicas {
		r.replicas[i] = r.newReplica()
	}
	return r
}

func (r *statsRig) newReplica() *pipeline.Pipeline {
	r.t.Helper()
	p, err := pipeline.New(pipeline.Config{
		Store: r.store, Vendor: r.client, Now: r.now, Key: bytes.Repeat([]byte{7}, 32), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// statsFirst is the first hour of the tests here.
var statsFirst = time.Date(2026, 11, 28, 21, 0, 0, 0, time.UTC)

func (r *statsRig) now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at
}

func (r *statsRig) set(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = at
}

func (r *statsRig) exec(query string, args ...any) {
	r.t.Helper()
	if _, err := r.store.SQL().Exec(query, args...); err != nil {
		r.t.Fatalf("%s: %v", query, err)
	}
}

func (r *statsRig) id(query string, args ...any) int64 {
	r.t.Helper()
	var id int64
	if err := r.store.SQL().QueryRow(query, args...).Scan(&id); err != nil {
		r.t.Fatalf("%s: %v", query, err)
	}
	return id
}

// rollUp has both replicas count at once, and returns what stands then.
func (r *statsRig) rollUp() []store.HourStats {
	r.t.Helper()
	var both sync.WaitGroup
	for _, p := range r.replicas {
		both.Go(func() {
			if _, err := p.RollUp(r.t.Context()); err != nil {
				r.t.Error(err)
			}
		})
	}
	both.Wait()
	hours, err := r.store.PageHours(r.t.Context(), time.Time{})
	if err != nil {
		r.t.Fatal(err)
	}
	return hours
}

// statsModel counts in the plainest way what is written to the database.
type statsModel map[time.Time]*store.HourStats

func (m statsModel) hour(at time.Time) *store.HourStats {
	at = at.UTC().Truncate(time.Hour)
	if m[at] == nil {
		m[at] = &store.HourStats{Hour: at}
	}
	return m[at]
}

// until is what the hours up to one come to, those without anything included.
func (m statsModel) until(first, last time.Time) []store.HourStats {
	var out []store.HourStats
	for at := first.Truncate(time.Hour); !at.After(last); at = at.Add(time.Hour) {
		out = append(out, *m.hour(at))
	}
	return out
}

func inBucket(l *store.Latencies, took time.Duration) {
	bucket := int(math.Ceil(4 * math.Log2(math.Max(took.Seconds(), 0.001)/0.1)))
	bucket = min(max(bucket, 0), store.LatencyBuckets-1)
	for len(*l) <= bucket {
		*l = append(*l, 0)
	}
	(*l)[bucket]++
}

// someTime is within the hours of a test, and never on the bound of anything.
func someTime(rt *rapid.T, from time.Time, most time.Duration, name string) time.Time {
	return from.Add(time.Duration(rapid.Int64Range(0, most.Milliseconds()).Draw(rt, name))*time.Millisecond + 37*time.Microsecond)
}

// statsJob is one job of the random data.
type statsJob struct {
	id                  int64
	vendorEnd, accepted time.Time
}

// addJob writes a settled job and counts it.
func (r *statsRig) addJob(rt *rapid.T, m statsModel, batch int64, created, hookSince time.Time) statsJob {
	kind := rapid.SampledFrom([]string{"extract", "batch"}).Draw(rt, "kind")
	status := rapid.SampledFrom([]string{"completed", "completed", "completed", "failed", "cancelled"}).Draw(rt, "status")
	net := rapid.SampledFrom([]string{"poll", "reconcile", "replay"}).Draw(rt, "net")
	urls, charged := rapid.Int64Range(1, 130).Draw(rt, "urls"), rapid.Int64Range(0, 9).Draw(rt, "charged")
	accepted := someTime(rt, created, time.Minute, "accepted")
	vendorEnd := someTime(rt, accepted, 20*time.Minute, "vendor end")
	ended := someTime(rt, vendorEnd, 90*time.Minute, "ended")
	run, webhook := vendorEnd.Sub(accepted), any(nil)
	inTime := false
	if rapid.Bool().Draw(rt, "told") {
		at := someTime(rt, vendorEnd, 2*time.Hour, "webhook")
		webhook, inTime = at, !at.After(ended.Add(store.PunctualWithin))
	}
	j := statsJob{accepted: accepted, vendorEnd: vendorEnd}
	j.id = r.id(`INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, accepted_at, vendor_status, settle_net, ended_at,
			webhook_at, vendor_ended_at, charged) VALUES ($1, $2, 'settled', 'submit', '\x00', $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING id`,
		batch, kind, urls, created, accepted, status, net, ended, webhook, vendorEnd, charged)
	h := m.hour(ended)
	h.Charged += charged
	h.ComparedJobs++
	pages := (urls+49)/50 - 1
	h.CallsEachSecond += max(1, int64(math.Ceil(run.Seconds()))) + pages
	h.CallsBackoff += backoffCalls(run) + pages
	switch status {
	case "failed":
		h.JobsFailed++
	case "cancelled":
		h.JobsCancelled++
	default:
		h.JobsCompleted++
		if kind == "extract" && !accepted.Before(hookSince) {
			*map[string]*int64{"poll": &h.RepairedPoll, "reconcile": &h.RepairedReconcile, "replay": &h.RepairedReplay}[net]++
			if inTime {
				*map[string]*int64{"poll": &h.RepairedPoll, "reconcile": &h.RepairedReconcile, "replay": &h.RepairedReplay}[net]--
				h.InTime++
			}
		}
	}
	return j
}

// backoffCalls adds up mean gaps until the job is over.
func backoffCalls(run time.Duration) int64 {
	at, calls := time.Duration(0), int64(0)
	for limit := time.Second; ; limit = min(2*limit, 30*time.Second) {
		at += limit / 2
		calls++
		if at >= run {
			return calls
		}
	}
}

// addResult writes an item that is stored, perhaps replaced since, and counts it
// where it was first stored.
func (r *statsRig) addResult(rt *rapid.T, m statsModel, batch, position int64, submitted, stored time.Time, job *statsJob) {
	net, jobID := "sync", any(nil)
	h := m.hour(stored)
	if job != nil {
		net, jobID = rapid.SampledFrom([]string{"webhook", "poll", "reconcile", "replay"}).Draw(rt, "stored by"), job.id
		inBucket(&h.VendorLatency, stored.Sub(job.vendorEnd))
	}
	inBucket(&h.SubmitLatency, stored.Sub(submitted))
	*map[string]*int64{
		"webhook": &h.StoredWebhook, "poll": &h.StoredPoll, "reconcile": &h.StoredReconcile, "replay": &h.StoredReplay, "sync": &h.StoredSync,
	}[net]++
	item := r.id(`INSERT INTO items (batch_id, position, url, url_hash, state, net, created_at, ended_at)
		VALUES ($1, $2, 'https://a.example/', '\x00', 'stored', $3, $4, $5) RETURNING id`, batch, position, net, submitted, stored)
	charged := rapid.Int64Range(0, 5).Draw(rt, "page charged")
	if job == nil {
		h.Charged += charged // A job's pages are charged with the job.
	}
	version, at := 1, stored
	if job != nil && rapid.Bool().Draw(rt, "replaced") {
		version, at = 2, stored.Add(3*time.Hour)
		r.exec(`INSERT INTO result_versions (item_id, version, job_id, net, stored_at, replaced_at) VALUES ($1, 1, $2, $3, $4, $5)`, item, jobID, net, stored, at)
	}
	r.exec(`INSERT INTO results (item_id, job_id, net, stored_at, charged, version) VALUES ($1, $2, $3, $4, $5, $6)`, item, jobID, net, at, charged, version)
}

// TestHoursAreWhatAPlainRecountFinds: whatever was stored, settled and
// delivered, two replicas that count at once come to what counting row by row
// comes to; counting again changes nothing, a late result is counted where it
// was stored, and a closed hour stays as it is.
func TestHoursAreWhatAPlainRecountFinds(t *testing.T) {
	t.Parallel()
	r := newStatsRig(t)
	if _, err := r.store.CountCallsFrom(t.Context(), statsFirst); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		r.exec(`TRUNCATE hourly_stats, deliveries, results, result_versions, items, jobs, batches, webhooks CASCADE`)
		m, created := statsModel{}, someTime(rt, statsFirst, time.Hour, "created")
		hookSince := someTime(rt, statsFirst, 2*time.Hour, "webhook since")
		r.exec(`INSERT INTO webhooks (endpoint, event_type, url, state, created_at, state_at)
			VALUES ('an-endpoint-of-ours', 'extraction_completed', 'https://a.example/', 'live', $1, $1)`, hookSince)
		batch := r.id(`INSERT INTO batches (name, kind, options, created_at) VALUES ('b', 'batch', '{}', $1) RETURNING id`, created)
		position := int64(0)
		add := func(stored time.Time, job *statsJob) {
			position++
			r.addResult(rt, m, batch, position, created, stored, job)
		}
		for range rapid.IntRange(0, 12).Draw(rt, "jobs") {
			job := r.addJob(rt, m, batch, someTime(rt, created, 2*time.Hour, "job created"), hookSince)
			for range rapid.IntRange(0, 3).Draw(rt, "results") {
				add(someTime(rt, job.vendorEnd, time.Hour, "stored"), &job)
			}
		}
		if rapid.Bool().Draw(rt, "sync") {
			add(someTime(rt, created, time.Hour, "sync stored"), nil)
		}
		for range rapid.IntRange(0, 6).Draw(rt, "deliveries") {
			r.addDelivery(rt, m, someTime(rt, created, 3*time.Hour, "received"))
		}
		// All of it lies before nine hours are over.
		last := statsFirst.Add(9 * time.Hour)
		r.set(last.Add(time.Minute))
		r.wantHours(rt, m, created, last)
		r.wantHours(rt, m, created, last) // Counting again is no counting twice.
		add(r.now(), nil)                 // Late, and after its hour was counted.
		r.set(r.now().Add(time.Hour))
		r.wantHours(rt, m, created, last.Add(time.Hour))
		r.set(r.now().Add(15 * time.Minute))
		r.rollUp()
		// Nothing is stored in the past; whoever writes it by hand finds the hour closed.
		r.exec(`UPDATE results SET stored_at = $1 WHERE version = 1`, last.Add(time.Minute))
		r.wantHours(rt, m, created, last.Add(time.Hour))
	})
}

func (r *statsRig) addDelivery(rt *rapid.T, m statsModel, at time.Time) {
	verdict := rapid.SampledFrom([]string{"accepted", "duplicate", "refused", "unreadable"}).Draw(rt, "verdict")
	r.exec(`INSERT INTO deliveries (received_at, verdict, status, headers, body, body_size) VALUES ($1, $2, 200, '', '', 0)`, at, verdict)
	h := m.hour(at)
	*map[string]*int64{
		"accepted": &h.DeliveriesAccepted, "duplicate": &h.DeliveriesDuplicate, "refused": &h.DeliveriesRefused, "unreadable": &h.DeliveriesRefused,
	}[verdict]++
}

func (r *statsRig) wantHours(rt *rapid.T, m statsModel, first, last time.Time) {
	got, want := r.rollUp(), m.until(first, last)
	if diff := cmp.Diff(got, want, cmpopts.IgnoreFields(store.HourStats{}, "RolledAt", "TookMS", "Closed"), cmpopts.EquateEmpty()); diff != "" {
		rt.Fatalf("hours (-got +want):\n%s", diff)
	}
	for i := range got {
		if closes := got[i].Hour.Add(75 * time.Minute); got[i].Closed == r.now().Before(closes) {
			rt.Fatalf("%s: closed is %t at %s", got[i].Hour, got[i].Closed, r.now())
		}
	}
}

// TestHoursOutliveAWrongClock: whatever steps a clock takes between two runs,
// and back again, what was stored meanwhile is counted when all clocks agree.
func TestHoursOutliveAWrongClock(t *testing.T) {
	t.Parallel()
	r := newStatsRig(t)
	if _, err := r.store.CountCallsFrom(t.Context(), statsFirst); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		r.exec(`TRUNCATE hourly_stats, deliveries, results, result_versions, items, jobs, batches, webhooks CASCADE`)
		m, right := statsModel{}, statsFirst.Add(20*time.Minute)
		batch := r.id(`INSERT INTO batches (name, kind, options, created_at) VALUES ('b', 'batch', '{}', $1) RETURNING id`, statsFirst)
		for i := range rapid.Int64Range(1, 6).Draw(rt, "rounds") {
			ahead := rapid.SampledFrom([]time.Duration{0, -time.Hour, 16 * time.Minute, 76 * time.Minute, 5 * time.Hour, 50 * time.Hour}).Draw(rt, "ahead")
			r.set(right.Add(ahead))
			r.rollUp()
			r.set(right)
			r.rollUp()
			r.addResult(rt, m, batch, i+1, statsFirst, someTime(rt, right, time.Minute, "stored"), nil)
			right = right.Add(time.Duration(rapid.Int64Range(2, 50).Draw(rt, "minutes")) * time.Minute)
		}
		r.set(right)
		r.rollUp()
		last := right.Truncate(time.Hour).Add(2*time.Hour + 15*time.Minute)
		r.set(last)
		got, want := r.rollUp(), m.until(statsFirst, last)
		got = got[:min(len(got), len(want))] // An hour that a wrong clock counted in the future is empty.
		if diff := cmp.Diff(got, want, cmpopts.IgnoreFields(store.HourStats{}, "RolledAt", "TookMS", "Closed"), cmpopts.EquateEmpty()); diff != "" {
			rt.Fatalf("hours (-got +want):\n%s", diff)
		}
	})
}

// TestHoursBeforeAnUpgradeAreCountedInSteps: the newest come first, each run
// does a bounded number, and an installation without a batch has the present
// hour only. Of two counts the later one stands.
func TestHoursBeforeAnUpgradeAreCountedInSteps(t *testing.T) {
	t.Parallel()
	r := newStatsRig(t)
	r.set(statsFirst.Add(30 * time.Minute)) // The hour before is over, and its grace.
	if n := len(r.rollUp()); n != 1 {
		t.Fatalf("without a batch: %d hours, want the present one", n)
	}
	r.exec(`INSERT INTO batches (name, kind, options, created_at) VALUES ('b', 'batch', '{}', $1)`, statsFirst.Add(-700*time.Hour))
	p := r.newReplica() // After the upgrade.
	for i, want := range []int{500, 202, 1} {
		n, err := p.RollUp(t.Context())
		if err != nil || n != want {
			t.Fatalf("run %d: counted %d hours (%v), want %d", i+1, n, err, want)
		}
	}
	open, err := r.store.OpenHours(t.Context(), r.now(), time.Time{}, 9)
	if err != nil || fmt.Sprint(open) != fmt.Sprint([]time.Time{statsFirst}) {
		t.Fatalf("open: %v (%v)", open, err)
	}
	older := &store.HourStats{Hour: statsFirst, RolledAt: r.now().Add(-time.Second), StoredPoll: 99, SubmitLatency: store.Latencies{}, VendorLatency: store.Latencies{}}
	if err := r.store.SaveHour(t.Context(), older); err != nil {
		t.Fatal(err)
	}
	hours, err := r.store.PageHours(t.Context(), statsFirst)
	if err != nil || len(hours) != 1 || hours[0].StoredPoll != 0 {
		t.Errorf("an older count stands: %+v (%v)", hours, err)
	}
}
