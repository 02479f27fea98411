package store

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"
)

// PageReplays lists replays, newest first, those before the given id; zero
// begins.
func (q Queries) PageReplays(ctx context.Context, before, limit int64) ([]Replay, error) {
	var rows []Replay
	query := q.db.NewSelect().Model(&rows).Order("rp.id DESC").Limit(limit)
	if before > 0 {
		query = query.Where("rp.id < ?", before)
	}
	return rows, translate(query.Scan(ctx))
}

// The lists of a replay's jobs beside those by outcome.
const (
	ReplayListWaiting = "waiting"
	ReplayListUnder   = "under_way"
)

// PageReplayJobs lists a replay's jobs by id, those after the given one: all,
// those of one outcome, those that wait, or those under way.
func (q Queries) PageReplayJobs(ctx context.Context, replayID int64, list string, afterJob int64, limit int) ([]ReplayJob, error) {
	var where string
	var arg any
	switch list {
	case "":
		where = "AND ?::text IS NULL"
	case ReplayListWaiting:
		where, arg = "AND rj.state = ?", ReplayJobWaiting
	case ReplayListUnder:
		where, arg = "AND rj.state <> 'ended' AND rj.state <> ?", ReplayJobWaiting
	default:
		where, arg = "AND rj.state = 'ended' AND rj.outcome = ?", list
	}
	var rows []ReplayJob
	err := q.db.NewRaw(replayJobSQL+where+` AND rj.job_id > ? ORDER BY rj.job_id LIMIT ?`, replayID, arg, afterJob, limit).Scan(ctx, &rows)
	return rows, translate(err)
}

// CountReplayUnder counts the jobs that a replay has under way, which a bound
// keeps few.
func (q Queries) CountReplayUnder(ctx context.Context, replayID int64) (int64, error) {
	n, err := q.count(ctx, `SELECT count(*) FROM replay_jobs WHERE replay_id = ? AND state <> 'ended' AND state IN ('woken', 'refetching')`, replayID)
	return int64(n), err
}

// ReplayedDelivery is a refused delivery of a replay, without its content, and
// what verifying it again came to.
type ReplayedDelivery struct {
	Delivery
	Outcome string // Empty while it has none.
}

// PageReplayDeliveries lists the newest refused deliveries that a replay
// verifies again.
func (q Queries) PageReplayDeliveries(ctx context.Context, replayID int64, limit int) ([]ReplayedDelivery, error) {
	var rows []ReplayedDelivery
	err := q.db.NewRaw(`SELECT d.id, d.received_at, d.verdict, d.status, d.reason, d.diagnosis, d.body_size, coalesce(rd.outcome, '') AS outcome
		FROM replay_deliveries rd JOIN deliveries d ON d.id = rd.delivery_id
		WHERE rd.replay_id = ? ORDER BY rd.delivery_id DESC LIMIT ?`, replayID, limit).Scan(ctx, &rows)
	return rows, translate(err)
}

// PageReplayStamp is a word that differs whenever the page of a replay would,
// and whether nothing of it moves any more.
func (q Queries) PageReplayStamp(ctx context.Context, replayID int64) (Stamp, error) {
	r, err := q.Replay(ctx, replayID)
	if err != nil {
		return Stamp{}, err
	}
	under, err := q.CountReplayUnder(ctx, replayID)
	return Stamp{
		Text:  fmt.Sprint(r.State, r.Ended(), r.Recovered, r.Refused, r.Refetched, r.Differing, under),
		Ended: r.Over() && under == 0,
	}, err
}

// DifferenceRow is a difference in a list, without its content.
type DifferenceRow struct {
	Difference
	URL                    string
	MarkdownSize, HTMLSize int64 // As fetched; -1 when there is none.
}

// PageDifferences lists what a replay found to differ, those after the given
// item.
func (q Queries) PageDifferences(ctx context.Context, replayID, afterItem int64, limit int) ([]DifferenceRow, error) {
	var rows []DifferenceRow
	err := q.db.NewRaw(`SELECT d.replay_id, d.item_id, d.job_id, d.found_at, d.version, d.kept, d.title, d.replaced_at, d.replaced_by, i.url,
			coalesce(octet_length(d.markdown), -1) AS markdown_size, coalesce(octet_length(d.html), -1) AS html_size
		FROM replay_differences d JOIN items i ON i.id = d.item_id
		WHERE d.replay_id = ? AND d.item_id > ? ORDER BY d.item_id LIMIT ?`, replayID, afterItem, limit).Scan(ctx, &rows)
	return rows, translate(err)
}

// Comparison is a difference beside what is, or was, stored: the version that
// it was compared with.
type Comparison struct {
	Difference
	URL    string
	Stored Result // Its content is cut like the difference's.
	// Current is the version that is stored now.
	Current int
}

// PageComparison is one difference with the beginning of both contents;
// ErrNotFound when there is none.
func (q Queries) PageComparison(ctx context.Context, replayID, itemID, limit int64) (*Comparison, error) {
	c := &Comparison{}
	err := q.db.NewSelect().Model(&c.Difference).ExcludeColumn("markdown", "html", "links", "metadata").
		ColumnExpr("substring(df.markdown FROM 1 FOR ?) AS markdown", limit).ColumnExpr("substring(df.html FROM 1 FOR ?) AS html", limit).
		Where("df.replay_id = ?", replayID).Where("df.item_id = ?", itemID).Scan(ctx)
	if err != nil {
		return nil, translate(err)
	}
	err = q.db.NewRaw(`SELECT i.url, r.version FROM items i JOIN results r ON r.item_id = i.id WHERE i.id = ?`, itemID).Scan(ctx, &c.URL, &c.Current)
	if err != nil {
		return nil, translate(err)
	}
	from := bun.Safe("results")
	if c.Current != c.Version {
		from = "result_versions"
	}
	err = q.db.NewRaw(`SELECT item_id, version, stored_at, title, substring(markdown FROM 1 FOR ?) AS markdown, substring(html FROM 1 FOR ?) AS html
		FROM ? WHERE item_id = ? AND version = ?`, limit, limit, from, itemID, c.Version).Scan(ctx, &c.Stored)
	return c, translate(err)
}
