package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"

	"github.com/uptrace/bun"
)

// CrawlRow is a page of a crawl in its tree: where it was found and how many
// pages were found on it.
type CrawlRow struct {
	ItemRow
	CrawlPlace
	Children int64
}

// CrawlPlace is where a crawl found a page, by the newest crawl that did.
type CrawlPlace struct {
	ItemID    int64
	JobID     int64
	URLHash   []byte `bun:"url_hash"` // Of the URL as the vendor spells it, which for a seed may differ.
	ParentURL string // Empty for the seed.
	ParentID  *int64 // The parent's item, when the crawl reported that page.
	Depth     int
}

// PageCrawl lists one level of the tree of a crawl's pages by position, those
// after the given one: the pages found on the parent item's, or with parent 0
// the roots. A page whose parent the crawl never reported is a root, so that
// none is out of reach.
func (q Queries) PageCrawl(ctx context.Context, batchID, parent int64, after int, limit int64) ([]CrawlRow, error) {
	jobs, err := q.crawlsOf(ctx, batchID)
	if err != nil {
		return nil, err
	}
	level, err := q.crawlLevel(ctx, batchID, parent, jobs)
	if err != nil || level == nil {
		return nil, err
	}
	var items []Item
	err = q.db.NewSelect().Model(&items).Where("i.batch_id = ?", batchID).Where("i.position > ?", after).
		Where("i.id IN (?)", level).Order("i.position").Limit(limit).Scan(ctx)
	if err != nil {
		return nil, translate(err)
	}
	return q.crawlRows(ctx, jobs, items)
}

// PageCrawlPage is one page of a crawl in its tree; nil when the item is none,
// or was not reported yet.
func (q Queries) PageCrawlPage(ctx context.Context, item *Item) (*CrawlRow, error) {
	jobs, err := q.crawlsOf(ctx, item.BatchID)
	if err != nil || len(jobs) == 0 {
		return nil, err
	}
	rows, err := q.crawlRows(ctx, jobs, []Item{*item})
	if err != nil || rows[0].JobID == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// maxCrawls bounds the crawls of one batch that its tree is made of: the first
// and those of its seed's resubmissions.
const maxCrawls = 100

// crawlsOf lists the crawls of a batch, the newest first.
func (q Queries) crawlsOf(ctx context.Context, batchID int64) ([]int64, error) {
	var jobs []int64
	err := q.db.NewRaw(`SELECT id FROM jobs WHERE batch_id = ? AND kind = 'crawl' ORDER BY id DESC LIMIT ?`, batchID, maxCrawls).
		Scan(ctx, &jobs)
	return jobs, translate(err)
}

// newestPlace narrows c to each item's newest place; one crawl has no other.
func newestPlace(jobs []int64) string {
	if len(jobs) < 2 {
		return ""
	}
	return ` AND NOT EXISTS (SELECT FROM crawl_pages n WHERE n.item_id = c.item_id AND n.job_id > c.job_id)`
}

// crawlLevel selects the items of one level; nil when there can't be any.
func (q Queries) crawlLevel(ctx context.Context, batchID, parent int64, jobs []int64) (*bun.RawQuery, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	if parent == 0 {
		return q.crawlRoots(batchID, jobs), nil
	}
	places, err := q.PageCrawlPlaces(ctx, []int64{parent})
	if err != nil || places[parent].JobID == 0 {
		return nil, err
	}
	url, err := q.reportedURL(ctx, places[parent], "")
	if err != nil || url == "" {
		return nil, err
	}
	return q.db.NewRaw(`SELECT c.item_id FROM crawl_pages c WHERE c.job_id IN (?jobs)
		AND md5(c.parent_url) = md5(?url) AND c.parent_url = ?url`+newestPlace(jobs),
		named{"jobs": bun.List(jobs), "url": url}), nil
}

// crawlRoots begins with the parents, of which there are far fewer than pages,
// and takes those that no page is. The seed is one before it is reported, too.
func (q Queries) crawlRoots(batchID int64, jobs []int64) *bun.RawQuery {
	return q.db.NewRaw(`WITH parents AS MATERIALIZED (
			SELECT DISTINCT job_id, parent_url FROM crawl_pages WHERE job_id IN (?jobs)),
		unknown AS MATERIALIZED (
			SELECT p.job_id, p.parent_url FROM parents p WHERE NOT EXISTS (SELECT FROM crawl_pages c
				WHERE c.job_id = p.job_id AND c.url_hash = sha256(convert_to(p.parent_url, 'UTF8'))))
		SELECT c.item_id FROM unknown u JOIN crawl_pages c ON c.job_id = u.job_id
			AND md5(c.parent_url) = md5(u.parent_url) AND c.parent_url = u.parent_url`+newestPlace(jobs)+`
		UNION ALL
		SELECT s.id FROM (SELECT id FROM items WHERE batch_id = ?batch ORDER BY position LIMIT 1) s
			WHERE NOT EXISTS (SELECT FROM crawl_pages c WHERE c.item_id = s.id)`,
		named{"jobs": bun.List(jobs), "batch": batchID})
}

// PageCrawlPlaces finds where a crawl found the items; those that none did are
// left out.
func (q Queries) PageCrawlPlaces(ctx context.Context, itemIDs []int64) (map[int64]CrawlPlace, error) {
	places := make(map[int64]CrawlPlace, len(itemIDs))
	if len(itemIDs) == 0 {
		return places, nil
	}
	var rows []CrawlPlace
	err := q.db.NewRaw(`SELECT c.item_id, c.job_id, c.url_hash, c.parent_url, c.depth, p.item_id AS parent_id
		FROM (SELECT DISTINCT ON (item_id) * FROM crawl_pages WHERE item_id IN (?) ORDER BY item_id, job_id DESC) c
		LEFT JOIN crawl_pages p ON p.job_id = c.job_id AND p.url_hash = sha256(convert_to(c.parent_url, 'UTF8'))`,
		bun.List(itemIDs)).Scan(ctx, &rows)
	for _, row := range rows {
		places[row.ItemID] = row
	}
	return places, translate(err)
}

// reportedURL is a page's URL as its children name it. Where the item's own is
// spelled otherwise, which only a seed's may be, a child tells; "" when there
// is no child.
func (q Queries) reportedURL(ctx context.Context, place CrawlPlace, url string) (string, error) {
	if url == "" {
		if err := q.db.NewRaw("SELECT url FROM items WHERE id = ?", place.ItemID).Scan(ctx, &url); err != nil {
			return "", translate(err)
		}
	}
	if own := sha256.Sum256([]byte(url)); bytes.Equal(own[:], place.URLHash) {
		return url, nil
	}
	err := q.db.NewRaw(`SELECT parent_url FROM crawl_pages WHERE job_id = ? AND sha256(convert_to(parent_url, 'UTF8')) = ? LIMIT 1`,
		place.JobID, place.URLHash).Scan(ctx, &url)
	if errors.Is(translate(err), ErrNotFound) {
		return "", nil
	}
	return url, translate(err)
}

// crawlRows adds to items their place in the tree.
func (q Queries) crawlRows(ctx context.Context, jobs []int64, items []Item) ([]CrawlRow, error) {
	listed, err := q.itemRows(ctx, items)
	if err != nil || len(listed) == 0 {
		return nil, err
	}
	ids := make([]int64, len(listed))
	for i := range listed {
		ids[i] = listed[i].ID
	}
	places, err := q.PageCrawlPlaces(ctx, ids)
	if err != nil {
		return nil, err
	}
	rows, urls := make([]CrawlRow, len(listed)), make([]string, len(listed))
	for i := range listed {
		rows[i] = CrawlRow{ItemRow: listed[i], CrawlPlace: places[listed[i].ID]}
		if rows[i].JobID == 0 {
			continue
		}
		if urls[i], err = q.reportedURL(ctx, rows[i].CrawlPlace, listed[i].URL); err != nil {
			return nil, err
		}
	}
	return rows, q.countChildren(ctx, jobs, rows, urls)
}

func (q Queries) countChildren(ctx context.Context, jobs []int64, rows []CrawlRow, urls []string) error {
	var counts []struct {
		ParentURL string
		Children  int64
	}
	err := q.db.NewRaw(`SELECT c.parent_url, count(*) AS children FROM crawl_pages c WHERE c.job_id IN (?jobs)
			AND md5(c.parent_url) = ANY (SELECT md5(u) FROM unnest(ARRAY[?urls]::text[]) u) AND c.parent_url IN (?urls)`+
		newestPlace(jobs)+` GROUP BY c.parent_url`,
		named{"jobs": bun.List(jobs), "urls": bun.List(urls)}).Scan(ctx, &counts)
	for _, count := range counts {
		for i := range rows {
			if urls[i] != "" && urls[i] == count.ParentURL {
				rows[i].Children = count.Children
			}
		}
	}
	return translate(err)
}

// CrawlStep is a page on the way from the root of a crawl's tree.
type CrawlStep struct {
	ID  int64
	URL string
}

// maxTrail bounds the way up; a crawl goes ten levels down at most.
const maxTrail = 20

// PageCrawlTrail is the way from the root to a page, both included. It is empty
// when the batch has no such page.
func (q Queries) PageCrawlTrail(ctx context.Context, batchID, itemID int64) ([]CrawlStep, error) {
	var steps []CrawlStep
	seen := map[int64]bool{}
	for id := itemID; id != 0 && !seen[id] && len(steps) < maxTrail; {
		seen[id] = true
		var step []CrawlStep
		if err := q.db.NewRaw("SELECT id, url FROM items WHERE id = ? AND batch_id = ?", id, batchID).Scan(ctx, &step); err != nil {
			return nil, translate(err)
		}
		if len(step) == 0 {
			break
		}
		steps = append(step, steps...)
		places, err := q.PageCrawlPlaces(ctx, []int64{id})
		if err != nil {
			return nil, err
		}
		place := places[id]
		id = 0
		if place.ParentID != nil {
			id = *place.ParentID
		}
	}
	return steps, nil
}
