package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// Again is what sending items once more comes to.
type Again struct {
	Items  int64
	Final  int64 // Of them, failures that the vendor or Rollcall marked as not worth another try.
	Lost   int64 // Of them, those whose first answer never came: the vendor may have done the work.
	Seeds  int64 // Of them, seeds that begin their crawls again.
	Limits int64 // The page limits of those crawls together.
	Jobs   int64 // About how many jobs they are sent in.
}

// lostCodes are how items fail whose answer the vendor may have made, and
// charged, without its coming here.
var lostCodes = []string{"SYNC_LOST", "GAVE_UP", "NOT_REPORTED", "VENDOR_FORGOT", "MISNUMBERED"} //nolint:gochecknoglobals // A constant.

// againColumns are what againSQL needs of the items.
var againColumns = []string{"id", "batch_id", "state", "error_code", "error_retryable", "current_job_id"} //nolint:gochecknoglobals // A constant.

// againSQL sums up chosen items. It is what package pipeline makes of them: a
// batch's together, a crawl's seed as a crawl, everything else by itself.
const againSQL = `WITH by_batch AS (
	SELECT count(*) AS items, count(*) FILTER (WHERE i.error_code IN (?lost)) AS lost,
		count(*) FILTER (WHERE i.state = 'failed' AND NOT i.error_retryable) AS final,
		count(*) FILTER (WHERE seed.yes) AS seeds,
		count(*) FILTER (WHERE seed.yes) * coalesce((b.options->'crawl'->>'limit')::bigint, 0) AS limits,
		count(*) FILTER (WHERE j.kind IS DISTINCT FROM 'batch') + ceil(count(*) FILTER (WHERE j.kind = 'batch') / ?per::numeric)::bigint AS jobs
	FROM (?chosen) i JOIN batches b ON b.id = i.batch_id
	LEFT JOIN jobs j ON j.id = i.current_job_id
	CROSS JOIN LATERAL (SELECT j.kind = 'crawl' AND EXISTS (SELECT FROM job_items ji
		WHERE ji.job_id = j.id AND ji.input_index = 0 AND ji.item_id = i.id) AS yes) seed
	GROUP BY b.id)
SELECT coalesce(sum(items), 0)::bigint AS items, coalesce(sum(lost), 0)::bigint AS lost, coalesce(sum(final), 0)::bigint AS final, coalesce(sum(seeds), 0)::bigint AS seeds,
	coalesce(sum(limits), 0)::bigint AS limits, coalesce(sum(jobs), 0)::bigint AS jobs FROM by_batch`

// PageAgain sums up those of the items that have failed or are cancelled, and
// had by the given time. A job carries at most urlsPerJob of a batch's.
func (q Queries) PageAgain(ctx context.Context, itemIDs []int64, before time.Time, urlsPerJob int) (Again, error) {
	if len(itemIDs) == 0 {
		return Again{}, nil
	}
	return q.again(ctx, q.ended(itemIDs, AsPlanned{Before: before}).Column(againColumns...), urlsPerJob)
}

// PageAgainMatching sums up the failures that match, at most the given number
// of the latest.
func (q Queries) PageAgainMatching(ctx context.Context, f Failed, most int64, urlsPerJob int) (Again, error) {
	chosen := f.where(q.db.NewSelect().Model((*Item)(nil)).Column(againColumns...)).Order("i.ended_at DESC", "i.id DESC").Limit(most)
	return q.again(ctx, chosen, urlsPerJob)
}

func (q Queries) again(ctx context.Context, chosen *bun.SelectQuery, urlsPerJob int) (Again, error) {
	var sum Again
	err := q.db.NewRaw(againSQL, named{"lost": bun.List(lostCodes), "per": max(urlsPerJob, 1), "chosen": chosen}).Scan(ctx, &sum)
	return sum, translate(err)
}

// PageEnded lists those of the items that have failed or are cancelled, and had
// by the given time, in the order of their ids.
func (q Queries) PageEnded(ctx context.Context, itemIDs []int64, before time.Time) ([]ItemRow, error) {
	if len(itemIDs) == 0 {
		return nil, nil
	}
	var items []Item
	if err := q.ended(itemIDs, AsPlanned{Before: before}).Order("i.id").Scan(ctx, &items); err != nil {
		return nil, translate(err)
	}
	return q.itemRows(ctx, items)
}

func (q Queries) ended(itemIDs []int64, as AsPlanned) *bun.SelectQuery {
	return as.narrow(q.db.NewSelect().Model((*Item)(nil)).Where("i.id IN (?)", bun.List(itemIDs)))
}
