package store

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/uptrace/bun"
)

// CrawlPage is one page of a crawl as the vendor reported it. URL is text that
// Postgres takes; Seed marks the page that the crawl was asked for, however
// the vendor spells it.
type CrawlPage struct {
	URL       string
	ParentURL string
	Depth     int
	Seed      bool
}

// crawlLock is the class of the advisory locks that put the settling of one
// batch's crawls in a row.
const crawlLock = 0x63726177

// LockCrawl keeps other transactions that add pages to the batch waiting until
// this one ends: a page that two of them see is added once.
func (t Tx) LockCrawl(ctx context.Context, batchID int64) error {
	_, err := t.db.NewRaw(`SELECT pg_advisory_xact_lock(?, (? % 2147483647)::int)`, crawlLock, batchID).Exec(ctx)
	return translate(err)
}

// AddCrawlPages makes the pages items of the job: a page that the batch has
// already, from an earlier crawl of the same seed, joins that item's lineage,
// and any other is a new, outstanding item. It returns the item of each URL
// and how many items are new; the caller adds those to the batch's counters.
// The caller holds LockCrawl.
func (t Tx) AddCrawlPages(ctx context.Context, job *Job, pages []CrawlPage, now time.Time) (map[string]int64, int64, error) {
	known, err := t.crawlItems(ctx, job, pages)
	if err != nil {
		return nil, 0, err
	}
	var fresh []*Item
	for _, p := range pages {
		if _, ok := known[p.URL]; ok {
			continue
		}
		known[p.URL] = 0 // So that a URL that comes twice is added once.
		hash := sha256.Sum256([]byte(p.URL))
		fresh = append(fresh, &Item{
			BatchID: job.BatchID, URL: p.URL, URLHash: hash[:], State: ItemOutstanding, CurrentJobID: &job.ID, CreatedAt: now,
		})
	}
	if err := t.insertPages(ctx, job.BatchID, fresh); err != nil {
		return nil, 0, err
	}
	for _, it := range fresh {
		known[it.URL] = it.ID
	}
	return known, int64(len(fresh)), t.joinCrawl(ctx, job.ID, pages, known)
}

// insertPages writes new items behind the last of the batch.
func (t Tx) insertPages(ctx context.Context, batchID int64, items []*Item) error {
	if len(items) == 0 {
		return nil
	}
	last, err := t.count(ctx, `SELECT coalesce(max(position), 0) FROM items WHERE batch_id = ?`, batchID)
	if err != nil {
		return err
	}
	for i, it := range items {
		it.Position = last + 1 + i
	}
	return t.InsertItems(ctx, items)
}

// crawlItems finds the items that the pages are already: the seed's, and those
// of the batch with the same URL.
func (t Tx) crawlItems(ctx context.Context, job *Job, pages []CrawlPage) (map[string]int64, error) {
	out := map[string]int64{}
	if len(pages) == 0 {
		return out, nil
	}
	hashes := make([][]byte, len(pages))
	for i, p := range pages {
		hash := sha256.Sum256([]byte(p.URL))
		hashes[i] = hash[:]
	}
	var rows []Item
	err := t.db.NewSelect().Model(&rows).Column("id", "url").
		Where("batch_id = ?", job.BatchID).Where("url_hash IN (?)", bun.List(hashes)).Scan(ctx)
	if err != nil {
		return nil, translate(err)
	}
	for i := range rows {
		out[rows[i].URL] = rows[i].ID
	}
	var seed []int64
	err = t.db.NewRaw(`SELECT item_id FROM job_items WHERE job_id = ? AND input_index = 0`, job.ID).Scan(ctx, &seed)
	for _, p := range pages {
		if p.Seed && len(seed) == 1 {
			out[p.URL] = seed[0]
		}
	}
	return out, translate(err)
}

// joinCrawl adds what is not there yet: the pages of the job, and the job to
// the lineage of their items.
func (t Tx) joinCrawl(ctx context.Context, jobID int64, pages []CrawlPage, items map[string]int64) error {
	hashes, ids := make([][]byte, len(pages)), make([]int64, len(pages))
	parents, depths := make([]string, len(pages)), make([]int, len(pages))
	for i, p := range pages {
		hash := sha256.Sum256([]byte(p.URL))
		hashes[i], ids[i], parents[i], depths[i] = hash[:], items[p.URL], p.ParentURL, p.Depth
		if p.Seed {
			parents[i], depths[i] = "", 1
		}
	}
	_, err := t.tx.Tx.ExecContext(ctx, `INSERT INTO job_items (job_id, input_index, item_id)
		SELECT $1, (SELECT coalesce(max(input_index), 0) FROM job_items WHERE job_id = $1) + row_number() OVER (ORDER BY id), id
		FROM (SELECT DISTINCT u.id FROM unnest($2::bigint[]) AS u (id)
			WHERE NOT EXISTS (SELECT FROM job_items ji WHERE ji.job_id = $1 AND ji.item_id = u.id)) new`, jobID, ids)
	if err != nil {
		return translate(err)
	}
	_, err = t.tx.Tx.ExecContext(ctx, `INSERT INTO crawl_pages (job_id, url_hash, item_id, parent_url, depth)
		SELECT $1, u.hash, u.id, u.parent, u.depth
		FROM unnest($2::bytea[], $3::bigint[], $4::text[], $5::int[]) AS u (hash, id, parent, depth)
		ON CONFLICT (job_id, url_hash) DO NOTHING`, jobID, hashes, ids, parents, depths)
	return translate(err)
}

// CountCrawlPages counts the distinct pages that the job reported.
func (q Queries) CountCrawlPages(ctx context.Context, jobID int64) (int, error) {
	return q.count(ctx, `SELECT count(*) FROM crawl_pages WHERE job_id = ?`, jobID)
}

// OtherCrawls counts the crawls of the same seed whose call is under way or in
// doubt, besides the job's own: the vendor's echo does not tell them apart.
func (q Queries) OtherCrawls(ctx context.Context, jobID int64) (int, error) {
	return q.count(ctx, `SELECT count(*) FROM jobs j
		JOIN job_items ji ON ji.job_id = j.id AND ji.input_index = 0 JOIN items i ON i.id = ji.item_id
		WHERE j.state IN ('calling', 'uncertain') AND j.kind = 'crawl' AND j.id <> ?0 AND i.url_hash =
			(SELECT s.url_hash FROM items s JOIN job_items si ON si.item_id = s.id WHERE si.job_id = ?0 AND si.input_index = 0)`,
		jobID)
}
