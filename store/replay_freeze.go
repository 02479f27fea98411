package store

import (
	"context"

	"github.com/uptrace/bun"
)

// ReplayPicks is what a replay is about: all that match one of the filters, or
// the rows named.
type ReplayPicks struct {
	Log         *LogFilter
	Received    *DeliveryFilter
	LogRows     []LogKey
	DeliveryIDs []int64
	JobIDs      []int64
}

// LogKey names one row of the vendor's delivery log.
type LogKey struct {
	Webhook  int64
	Attempt  int
	VendorID string
}

// openVerdicts are those of deliveries that were not taken up.
const openVerdicts = "d.verdict IN ('refused', 'unreadable')"

// sources are queries for the vendor ids of the jobs that the picked lines name,
// one row a line. A refused delivery names none: nobody has verified what it
// says.
func (t Tx) sources(p ReplayPicks) []*bun.SelectQuery {
	var out []*bun.SelectQuery
	if p.Log != nil {
		out = append(out, p.Log.narrow(t.db.NewSelect().TableExpr("delivery_log AS dl").ColumnExpr("dl.vendor_job_id")))
	}
	if len(p.LogRows) > 0 {
		q := t.db.NewSelect().TableExpr("delivery_log AS dl").ColumnExpr("dl.vendor_job_id")
		out = append(out, q.WhereGroup(" AND ", func(q *bun.SelectQuery) *bun.SelectQuery {
			for _, k := range p.LogRows {
				q = q.WhereOr("dl.webhook_id = ? AND dl.vendor_id = ? AND dl.attempt = ?", k.Webhook, CleanText(k.VendorID), k.Attempt)
			}
			return q
		}))
	}
	for _, q := range t.received(p) {
		out = append(out, q.ColumnExpr("d.vendor_job_id").Where("NOT "+openVerdicts))
	}
	if len(p.JobIDs) > 0 {
		out = append(out, t.db.NewSelect().TableExpr("jobs AS j").ColumnExpr("coalesce(j.vendor_job_id, '') AS vendor_job_id").
			Where("j.id IN (?)", bun.List(p.JobIDs)))
	}
	return out
}

// received are the queries over our own deliveries, without columns.
func (t Tx) received(p ReplayPicks) []*bun.SelectQuery {
	var out []*bun.SelectQuery
	if p.Received != nil {
		out = append(out, p.Received.narrow(t.db.NewSelect().TableExpr("deliveries AS d")))
	}
	if len(p.DeliveryIDs) > 0 {
		out = append(out, t.db.NewSelect().TableExpr("deliveries AS d").Where("d.id IN (?)", bun.List(p.DeliveryIDs)))
	}
	return out
}

// freezeSQL turns lines into an exact set of our jobs, each once, in one
// statement. A job of many URLs takes a call for each page of results. Jobs of
// batches that are going, or gone, are left out: there is nothing to carry
// their results into, or to compare them with.
const freezeSQL = `WITH lines AS MATERIALIZED (?lines),
	named AS (SELECT DISTINCT vendor_job_id FROM lines WHERE vendor_job_id <> ''),
	known AS MATERIALIZED (SELECT j.id, j.state = 'settled' AS settled, b.pruned_at IS NOT NULL AS going, CASE WHEN j.kind = 'extract' THEN 1
			ELSE greatest(1, ceil(least(greatest(j.url_count, coalesce((j.vendor_reports->>'total')::numeric, 0)), 10000) / 50.0))::integer END AS calls
		FROM named n JOIN jobs j ON j.vendor_job_id = n.vendor_job_id JOIN batches b ON b.id = j.batch_id),
	gone AS MATERIALIZED (SELECT count(*) AS n FROM named n JOIN processed_events pe ON pe.vendor_job_id = n.vendor_job_id AND pe.state = 'pruned'
		WHERE NOT EXISTS (SELECT FROM jobs j WHERE j.vendor_job_id = n.vendor_job_id)),
	ours AS MATERIALIZED (SELECT * FROM known WHERE NOT going),
	frozen AS (INSERT INTO replay_jobs (replay_id, job_id, calls) SELECT ?id, id, calls FROM ours
		ON CONFLICT DO NOTHING RETURNING job_id)
	SELECT (SELECT count(*) FROM lines) AS lines, (SELECT count(*) FROM lines WHERE vendor_job_id = '') AS unnamed,
		(SELECT count(*) FROM named) - (SELECT count(*) FROM known) - (SELECT n FROM gone) AS foreign_jobs,
		(SELECT n FROM gone) + (SELECT count(*) FROM known WHERE going) AS pruned_jobs, count(*) AS jobs, count(*) FILTER (WHERE o.settled) AS settled_before,
		coalesce(sum(o.calls) FILTER (WHERE NOT o.settled), 0) AS calls, coalesce(sum(o.calls) FILTER (WHERE o.settled), 0) AS refetch_calls
	FROM ours o`

// FreezeReplay gives a plan its exact set and says what it holds. What comes
// to match later is not in it.
func (t Tx) FreezeReplay(ctx context.Context, id int64, p ReplayPicks) (Frozen, error) {
	var f Frozen
	if err := t.db.NewRaw(freezeSQL, named{"lines": t.lines(p), "id": id}).Scan(ctx, &f); err != nil {
		return f, translate(err)
	}
	if err := t.freezeRefused(ctx, id, p, &f); err != nil {
		return f, err
	}
	_, err := t.db.NewRaw(`UPDATE replays SET lines = ?, unnamed = ?, foreign_jobs = ?, pruned_jobs = ?, jobs = ?, settled_before = ?, calls = ?,
		refetch_calls = ?, deliveries = ? WHERE id = ?`, f.Lines, f.Unnamed, f.ForeignJobs, f.PrunedJobs, f.Jobs, f.SettledBefore,
		f.Calls, f.RefetchCalls, f.Deliveries, id).Exec(ctx)
	return f, translate(err)
}

// lines are all sources as one query.
func (t Tx) lines(p ReplayPicks) *bun.SelectQuery {
	all := t.db.NewSelect().ColumnExpr("''::text AS vendor_job_id").Where("false")
	for _, each := range t.sources(p) {
		all = all.UnionAll(each)
	}
	return all
}

// freezeRefused adds the refused deliveries of our archive that were picked.
func (t Tx) freezeRefused(ctx context.Context, id int64, p ReplayPicks, f *Frozen) error {
	for _, q := range t.received(p) {
		n, err := affected(t.db.NewRaw(`INSERT INTO replay_deliveries (replay_id, delivery_id) ? ON CONFLICT DO NOTHING`,
			q.ColumnExpr("?::bigint", id).ColumnExpr("d.id").Where(openVerdicts)).Exec(ctx))
		if err != nil {
			return err
		}
		f.Deliveries += n
		f.Lines += n
	}
	return nil
}
