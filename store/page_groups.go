package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// FailureGroup are failures with the same code, host and kind of message.
type FailureGroup struct {
	Key     string // Names the group in a filter.
	Code    string
	Host    string
	Message string // With # for what differs between them, such as a number or an id.
	// Count is exact up to CountLimit, and one more beyond.
	Count       int64
	First, Last time.Time
	// Sample is the id of one of them, with its URL, message and batch.
	Sample        int64
	SampleURL     string `bun:"sample_url"`
	SampleMessage string
	BatchID       int64
	Retryable     bool // What the sample is marked as.
}

// FailureGroups are the largest groups among the newest failures.
type FailureGroups struct {
	Groups []FailureGroup
	Others int64 // Smaller groups that were found beside them.
	// Looked is how many failures were looked at for groups, the newest; Cut says
	// that there are older ones, which may form further groups. The counts of the
	// listed ones include those.
	Looked int64
	Cut    bool
}

// PageFailureGroups groups the newest 10,000 of the failures that match and
// returns the largest groups.
func (q Queries) PageFailureGroups(ctx context.Context, f Failed, limit int) (FailureGroups, error) {
	var out FailureGroups
	newest := f.where(q.db.NewSelect().Model((*Item)(nil)).Column("failure_group", "ended_at", "id")).
		Order("i.ended_at DESC", "i.id DESC").Limit(searchDepth)
	var rows []struct {
		FailureGroup
		Found, Seen int64
	}
	err := q.db.NewRaw(`SELECT failure_group AS key, count(*) AS count, min(ended_at) AS first, max(ended_at) AS last, max(id) AS sample,
			count(*) OVER () AS found, sum(count(*)) OVER ()::bigint AS seen
		FROM (?) AS newest GROUP BY failure_group ORDER BY count DESC, last DESC, key LIMIT ?`, newest, limit).Scan(ctx, &rows)
	if err != nil || len(rows) == 0 {
		return out, translate(err)
	}
	for i := range rows {
		out.Groups = append(out.Groups, rows[i].FailureGroup)
	}
	out.Looked, out.Cut = rows[0].Seen, rows[0].Seen == searchDepth
	out.Others = rows[0].Found - int64(len(rows))
	if out.Cut {
		if err := q.countGroups(ctx, f, out.Groups); err != nil {
			return out, err
		}
	}
	return out, q.sampleGroups(ctx, out.Groups)
}

// countGroups counts each group whole: all its failures stand together in an
// index.
func (q Queries) countGroups(ctx context.Context, f Failed, groups []FailureGroup) error {
	for i := range groups {
		g := &groups[i]
		f.Group = g.Key
		n, err := q.CountFailed(ctx, f, CountLimit)
		if err != nil {
			return err
		}
		g.Count = n
		err = f.where(q.db.NewSelect().Model((*Item)(nil)).Column("ended_at")).Order("i.ended_at", "i.id").Limit(1).Scan(ctx, &g.First)
		if err != nil {
			return translate(err)
		}
	}
	return nil
}

func (q Queries) sampleGroups(ctx context.Context, groups []FailureGroup) error {
	ids, place := make([]int64, len(groups)), make(map[int64]int, len(groups))
	for i := range groups {
		ids[i], place[groups[i].Sample] = groups[i].Sample, i
	}
	var rows []FailureGroup
	err := q.db.NewRaw(`SELECT id AS sample, error_code AS code, host, failure_message(error_message) AS message, url AS sample_url,
			error_message AS sample_message, batch_id, error_retryable AS retryable
		FROM items WHERE id IN (?)`, bun.List(ids)).Scan(ctx, &rows)
	for i := range rows {
		g := &groups[place[rows[i].Sample]]
		rows[i].Key, rows[i].Count, rows[i].First, rows[i].Last = g.Key, g.Count, g.First, g.Last
		*g = rows[i]
	}
	return translate(err)
}
