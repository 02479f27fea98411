package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// HourStats is what happened in one hour of UTC. Whoever adds up hours has a
// day of any zone that is full hours off.
type HourStats struct {
	bun.BaseModel `bun:"table:hourly_stats,alias:hs"`
	Hour          time.Time `bun:",pk"`
	RolledAt      time.Time // When it was counted.
	TookMS        int64     `bun:"took_ms"` // How long that took.
	Closed        bool      // It is never counted again.

	// Results by when they were first stored.
	StoredWebhook   int64
	StoredPoll      int64
	StoredReconcile int64
	StoredReplay    int64
	StoredSync      int64
	SubmitLatency   Latencies `bun:",array"` // From the submit of their batch.
	VendorLatency   Latencies `bun:",array"` // From the vendor's end of their job, where it said when that was.

	// Jobs by when they were settled, as the vendor ended them.
	JobsCompleted int64
	JobsFailed    int64
	JobsCancelled int64
	// Completed jobs whose webhook was registered when they were accepted: those
	// whose webhook came within PunctualWithin, and the others by their net.
	InTime            int64
	RepairedPoll      int64
	RepairedReconcile int64
	RepairedReplay    int64
	// Charged is what the vendor charged for the hour's jobs and sync calls.
	Charged int64
	// ComparedJobs are those accepted since calls are counted; the others are what
	// asking for each of them by itself would have cost, see simulatedCalls.
	ComparedJobs    int64
	CallsEachSecond int64
	CallsBackoff    int64

	// Deliveries by when they were received.
	DeliveriesAccepted  int64
	DeliveriesDuplicate int64
	DeliveriesRefused   int64
}

// Stored is how many results were first stored in the hour.
func (h *HourStats) Stored() int64 {
	return h.StoredWebhook + h.StoredPoll + h.StoredReconcile + h.StoredReplay + h.StoredSync
}

// PunctualWithin is how long after a job was settled its webhook is in time.
const PunctualWithin = 60 * time.Second

// net is where results of a net are counted; nil for one that isn't known.
func (h *HourStats) net(net Net) *int64 {
	switch net {
	case NetWebhook:
		return &h.StoredWebhook
	case NetPoll:
		return &h.StoredPoll
	case NetReconcile:
		return &h.StoredReconcile
	case NetReplay:
		return &h.StoredReplay
	case NetSync:
		return &h.StoredSync
	}
	return nil
}

// restFactor is for how many times as long as its counting took an hour is left
// alone: counting again a very busy hour takes a tenth of the time at most.
const restFactor = 10

// ClocksApart is how far apart the clocks of replicas may be. What stands from
// later than that is of a wrong one.
const ClocksApart = 15 * time.Minute

// OpenHours lists hours that are to be counted, newest first: from the first
// batch's on up to the one that holds now, those that aren't closed and whose
// last counting was long enough ago. What was counted in the future was counted
// by a clock that went wrong, and is open. Hours before since are left alone:
// their counts may be gone on purpose.
func (q Queries) OpenHours(ctx context.Context, now, since time.Time, limit int) ([]time.Time, error) {
	var hours []time.Time
	err := q.db.NewRaw(`SELECT g.hour FROM generate_series(
			date_trunc('hour', greatest(?since::timestamptz, coalesce((SELECT created_at FROM batches ORDER BY created_at, id LIMIT 1), ?now)), 'UTC'),
			date_trunc('hour', ?now::timestamptz, 'UTC'), '1 hour') AS g(hour)
		WHERE NOT EXISTS (SELECT FROM hourly_stats s WHERE s.hour = g.hour AND s.hour >= date_trunc('hour', ?since::timestamptz, 'UTC') AND s.rolled_at <= ?apart
			AND (s.closed OR s.rolled_at + ?rest * s.took_ms * interval '1 ms' > ?now))
		ORDER BY g.hour DESC LIMIT ?limit`, named{"now": now, "since": since, "limit": limit, "rest": restFactor, "apart": now.Add(ClocksApart)}).Scan(ctx, &hours)
	return hours, translate(err)
}

// CountHour counts an hour anew from the rows themselves, by ranges of indexes;
// countingSince is from when on calls are counted. The caller says when it was
// counted and whether it is closed.
func (q Queries) CountHour(ctx context.Context, hour, countingSince time.Time) (*HourStats, error) {
	h := &HourStats{Hour: hour.UTC(), SubmitLatency: Latencies{}, VendorLatency: Latencies{}}
	for _, part := range []func(context.Context, *HourStats, named) error{q.countStored, q.countSettled, q.countDelivered} {
		args := named{
			"from": hour, "until": hour.Add(time.Hour), "since": countingSince, "within": PunctualWithin.Seconds(),
			"first": latencyFirst, "steps": latencySteps, "last": LatencyBuckets - 1,
		}
		if err := part(ctx, h, args); err != nil {
			return nil, translate(err)
		}
	}
	return h, nil
}

// countStored counts results where they were first stored, however often they
// were replaced since. A crawl's pages become items as they are stored, so what
// counts as their submit is the batch's.
func (q Queries) countStored(ctx context.Context, h *HourStats, args named) error {
	var rows []struct {
		Net          Net
		SubmitBucket int
		VendorBucket *int
		N            int64
		Charged      int64
	}
	err := q.db.NewRaw(`SELECT net, submit_bucket, vendor_bucket, count(*) AS n, coalesce(sum(charged), 0) AS charged
		FROM (SELECT v.net, v.charged, `+latencyBucket("submit")+` AS submit_bucket, `+latencyBucket("vendor")+` AS vendor_bucket
			FROM (SELECT item_id, job_id, net, stored_at, CASE WHEN job_id IS NULL THEN charged END AS charged
					FROM results WHERE version = 1 AND stored_at >= ?from AND stored_at < ?until
				UNION ALL SELECT item_id, job_id, net, stored_at, NULL
					FROM result_versions WHERE version = 1 AND stored_at >= ?from AND stored_at < ?until) v
			JOIN items i ON i.id = v.item_id JOIN batches b ON b.id = i.batch_id LEFT JOIN jobs j ON j.id = v.job_id,
			LATERAL (SELECT extract(epoch FROM v.stored_at - b.created_at)::float8 AS submit,
				extract(epoch FROM v.stored_at - j.vendor_ended_at)::float8 AS vendor) seconds) stored
		GROUP BY net, submit_bucket, vendor_bucket`, args).Scan(ctx, &rows)
	for _, row := range rows {
		h.Charged += row.Charged
		if at := h.net(row.Net); at != nil {
			*at += row.N
		}
		h.SubmitLatency = h.SubmitLatency.with(row.SubmitBucket, row.N)
		if row.VendorBucket != nil {
			h.VendorLatency = h.VendorLatency.with(*row.VendorBucket, row.N)
		}
	}
	return err
}

// latencyBucket is the bucket of a number of seconds; NULL of NULL.
func latencyBucket(name string) string {
	at := "seconds." + name
	return `CASE WHEN ` + at + ` IS NOT NULL THEN
		least(?last, greatest(0, ceil(?steps * ln(greatest(` + at + `, 0.001) / ?first) / ln(2))))::integer END`
}

// settledWhile is how long a job ran for whoever asks for it alone, in seconds:
// up to the first that anybody knew of its end, so that nothing is called saved
// that was only our own delay.
const settledWhile = `greatest(0, extract(epoch FROM least(ended_at, webhook_at, vendor_ended_at) - accepted_at)::float8)`

// simulatedCalls is what asking for a job by itself would have cost, as `bench
// poll` simulates it: one call each second until it is over, the last of which
// brings the first page of its results; or calls with gaps of full jitter under
// a limit that doubles from 1 s to 30 s, which are half the limit on average: so
// n calls cover (2^n - 1) / 2 seconds up to the fifth, and 15 s more each after
// it. Both need the further pages of a batch. How many pages a crawl has nobody
// knows from its request, so they count for nothing, which understates both.
const simulatedCalls = `count(*) AS compared_jobs,
	coalesce(sum(greatest(1, ceil(seconds)) + pages), 0) AS calls_each_second,
	coalesce(sum(greatest(1, CASE WHEN seconds <= 15.5 THEN ceil(ln(2 * seconds + 1) / ln(2)) ELSE 5 + ceil((seconds - 15.5) / 15) END)
		+ pages), 0) AS calls_backoff`

// countSettled counts jobs where they were settled. A failed or cancelled job
// has no webhook to miss.
func (q Queries) countSettled(ctx context.Context, h *HourStats, args named) error {
	return q.db.NewRaw(`WITH ended AS MATERIALIZED (
			SELECT kind, vendor_status, settle_net, url_count, charged, accepted_at, ended_at, webhook_at, vendor_ended_at,
				vendor_status = 'completed' AND EXISTS (SELECT FROM webhooks w WHERE w.event_type LIKE kind || '%'
					AND w.created_at <= accepted_at AND (w.state <> 'removed' OR w.state_at > ended_at)) AS expected,
				coalesce(webhook_at <= ended_at + make_interval(secs => ?within), false) AS in_time
			FROM jobs WHERE state = 'settled' AND ended_at >= ?from AND ended_at < ?until),
		simulated AS (SELECT `+simulatedCalls+` FROM (
			SELECT `+settledWhile+` AS seconds, greatest(0, (url_count + 49) / 50 - 1) AS pages
			FROM ended WHERE accepted_at >= ?since) each_job)
		SELECT count(*) FILTER (WHERE vendor_status = 'completed') AS jobs_completed,
			count(*) FILTER (WHERE vendor_status NOT IN ('completed', 'cancelled')) AS jobs_failed,
			count(*) FILTER (WHERE vendor_status = 'cancelled') AS jobs_cancelled,
			count(*) FILTER (WHERE expected AND in_time) AS in_time,
			count(*) FILTER (WHERE expected AND NOT in_time AND settle_net = 'poll') AS repaired_poll,
			count(*) FILTER (WHERE expected AND NOT in_time AND settle_net = 'reconcile') AS repaired_reconcile,
			count(*) FILTER (WHERE expected AND NOT in_time AND settle_net = 'replay') AS repaired_replay,
			coalesce(sum(charged), 0) + ?charged AS charged, min(compared_jobs) AS compared_jobs,
			min(calls_each_second)::bigint AS calls_each_second, min(calls_backoff)::bigint AS calls_backoff
		FROM simulated LEFT JOIN ended ON true`, args.with("charged", h.Charged)).
		Scan(ctx, &h.JobsCompleted, &h.JobsFailed, &h.JobsCancelled, &h.InTime, &h.RepairedPoll, &h.RepairedReconcile,
			&h.RepairedReplay, &h.Charged, &h.ComparedJobs, &h.CallsEachSecond, &h.CallsBackoff)
}

// with is the arguments and one more.
func (n named) with(name string, value any) named {
	n[name] = value
	return n
}

// countDelivered counts deliveries where they were received.
func (q Queries) countDelivered(ctx context.Context, h *HourStats, args named) error {
	return q.db.NewRaw(`SELECT count(*) FILTER (WHERE verdict = 'accepted'), count(*) FILTER (WHERE verdict = 'duplicate'),
			count(*) FILTER (WHERE verdict IN ('refused', 'unreadable'))
		FROM deliveries WHERE received_at >= ?from AND received_at < ?until`, args).
		Scan(ctx, &h.DeliveriesAccepted, &h.DeliveriesDuplicate, &h.DeliveriesRefused)
}

// SaveHour writes what was counted. An hour that is closed stays as it is, and
// so does one that was counted later: of two that count at once the later count
// stands. One that was counted by a clock that is far ahead is written over.
func (q Queries) SaveHour(ctx context.Context, h *HourStats) error {
	_, err := q.db.NewInsert().Model(h).On("CONFLICT (hour) DO UPDATE").
		Where("NOT hs.closed AND hs.rolled_at <= EXCLUDED.rolled_at OR hs.rolled_at > ?", h.RolledAt.Add(ClocksApart)).Exec(ctx)
	return translate(err)
}

// CallCount is how many calls of a kind were made in an hour.
type CallCount struct {
	bun.BaseModel `bun:"table:call_counts,alias:cc"`
	Hour          time.Time `bun:",pk"`
	Kind          string    `bun:",pk"`
	N             int64
}

// AddCalls adds to the counts of calls.
func (q Queries) AddCalls(ctx context.Context, counts []CallCount) error {
	if len(counts) == 0 {
		return nil
	}
	_, err := q.db.NewInsert().Model(&counts).On("CONFLICT (hour, kind) DO UPDATE").
		Set("n = cc.n + EXCLUDED.n").Exec(ctx)
	return translate(err)
}

// countingSinceKey is the setting that says from when on calls are counted.
const countingSinceKey = "calls_counted_since"

// CallsCountedSince is from when on calls are counted; false when nobody has
// counted yet.
func (q Queries) CallsCountedSince(ctx context.Context) (time.Time, bool, error) {
	text, err := q.Setting(ctx, countingSinceKey)
	if err != nil || text == "" {
		return time.Time{}, false, err
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	return at, err == nil, err
}

// CountCallsFrom says from when on calls are counted: from now, unless somebody
// began before.
func (q Queries) CountCallsFrom(ctx context.Context, now time.Time) (time.Time, error) {
	text, err := q.InitSetting(ctx, countingSinceKey, now.UTC().Format(time.RFC3339Nano), now)
	if err != nil {
		return time.Time{}, err
	}
	return time.Parse(time.RFC3339Nano, text)
}

// Add adds what another hour came to; the hour itself stays.
func (h *HourStats) Add(o *HourStats) {
	for _, pair := range [][2]*int64{
		{&h.StoredWebhook, &o.StoredWebhook},
		{&h.StoredPoll, &o.StoredPoll},
		{&h.StoredReconcile, &o.StoredReconcile},
		{&h.StoredReplay, &o.StoredReplay},
		{&h.StoredSync, &o.StoredSync},
		{&h.JobsCompleted, &o.JobsCompleted},
		{&h.JobsFailed, &o.JobsFailed},
		{&h.JobsCancelled, &o.JobsCancelled},
		{&h.InTime, &o.InTime},
		{&h.RepairedPoll, &o.RepairedPoll},
		{&h.RepairedReconcile, &o.RepairedReconcile},
		{&h.RepairedReplay, &o.RepairedReplay},
		{&h.Charged, &o.Charged},
		{&h.ComparedJobs, &o.ComparedJobs},
		{&h.CallsEachSecond, &o.CallsEachSecond},
		{&h.CallsBackoff, &o.CallsBackoff},
		{&h.DeliveriesAccepted, &o.DeliveriesAccepted},
		{&h.DeliveriesDuplicate, &o.DeliveriesDuplicate},
		{&h.DeliveriesRefused, &o.DeliveriesRefused},
	} {
		*pair[0] += *pair[1]
	}
	h.SubmitLatency = h.SubmitLatency.Plus(o.SubmitLatency)
	h.VendorLatency = h.VendorLatency.Plus(o.VendorLatency)
}
