package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"time"

	"github.com/uptrace/bun"
)

// Refetch is a page of a settled job's results that was fetched once more.
type Refetch struct {
	ReplayID, JobID int64
	NextPage        int
	Results         []*Result
	MostKept        int   // Differences that a replay keeps with their content.
	MostBytes       int64 // And how much that may be.
	At              time.Time
}

// Difference is content that was fetched once more and is not what is stored.
type Difference struct {
	bun.BaseModel `bun:"table:replay_differences,alias:df"`
	ReplayID      int64 `bun:",pk"`
	ItemID        int64 `bun:",pk"`
	JobID         int64
	FoundAt       time.Time
	Version       int  // Of the result that it differs from.
	Kept          bool // Its content is here.
	Title         string
	Markdown      []byte
	HTML          []byte `bun:"html"`
	Links         []byte
	Metadata      []byte
	HTTPStatus    *int `bun:"http_status"`
	ReplacedAt    *time.Time
	ReplacedBy    string
}

// NoteRefetched compares a page with what the job stored, keeps what differs,
// and notes how far the job was read. It returns how many of the job's results
// differ so far. The caller holds the replay's lock.
func (t Tx) NoteRefetched(ctx context.Context, r Refetch) (int, error) {
	differing, err := t.differing(ctx, r.JobID, r.Results)
	if err != nil {
		return 0, err
	}
	for _, d := range differing {
		if err := t.keepDifference(ctx, r, d); err != nil {
			return 0, err
		}
	}
	_, err = t.db.NewRaw(`UPDATE replay_jobs SET refetch_page = ?, refetch_tries = 0 WHERE replay_id = ? AND job_id = ? AND state = 'refetching'`,
		r.NextPage, r.ReplayID, r.JobID).Exec(ctx)
	if err != nil {
		return 0, translate(err)
	}
	return t.count(ctx, `SELECT count(*) FROM replay_differences WHERE replay_id = ? AND job_id = ?`, r.ReplayID, r.JobID)
}

// CountRefetchTry counts that a page of a settled job could not be fetched, and
// returns how often that was so; zero when it is not to be fetched any more.
func (q Queries) CountRefetchTry(ctx context.Context, replayID, jobID int64) (int, error) {
	var tries []int
	err := q.db.NewRaw(`UPDATE replay_jobs SET refetch_tries = refetch_tries + 1
		WHERE replay_id = ? AND job_id = ? AND state = 'refetching' RETURNING refetch_tries`, replayID, jobID).Scan(ctx, &tries)
	if err != nil || len(tries) == 0 {
		return 0, translate(err)
	}
	return tries[0], nil
}

// different is a fetched result with the version it differs from.
type different struct {
	*Result
	version int
}

// differing are those that are not, by their digests, what the job stored.
func (t Tx) differing(ctx context.Context, jobID int64, results []*Result) ([]different, error) {
	if len(results) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(results))
	by := make(map[int64]*Result, len(results))
	for i, r := range results {
		ids[i], by[r.ItemID] = r.ItemID, r
	}
	var rows []Result
	err := t.db.NewSelect().Model(&rows).Column("item_id", "markdown_sha256", "html_sha256", "version").
		Where("r.item_id IN (?)", bun.List(ids)).Where("r.job_id = ?", jobID).Order("r.item_id").Scan(ctx)
	if err != nil {
		return nil, translate(err)
	}
	var out []different
	for i := range rows {
		was, is := &rows[i], by[rows[i].ItemID]
		if !bytes.Equal(was.MarkdownSHA256, digest(is.Markdown)) || !bytes.Equal(was.HTMLSHA256, digest(is.HTML)) {
			out = append(out, different{Result: is, version: was.Version})
		}
	}
	return out, nil
}

// keepDifference writes a difference down once, with its content while the
// replay's bounds allow.
func (t Tx) keepDifference(ctx context.Context, r Refetch, d different) error {
	size := int64(len(d.Markdown) + len(d.HTML) + len(d.Links) + len(d.Metadata))
	res, err := t.tx.Tx.ExecContext(ctx, `INSERT INTO replay_differences (replay_id, item_id, job_id, found_at, version, kept, title,
			markdown, html, links, metadata, http_status)
		SELECT $1, $2, $3, $4, $5, k.kept, $6, CASE WHEN k.kept THEN $7::bytea END, CASE WHEN k.kept THEN $8::bytea END,
			CASE WHEN k.kept THEN $9::bytea END, CASE WHEN k.kept THEN $10::bytea END, $11
		FROM (SELECT differing < $12 AND kept_bytes + $13 <= $14 AS kept FROM replays WHERE id = $1) k
		ON CONFLICT DO NOTHING`,
		r.ReplayID, d.ItemID, r.JobID, r.At, d.version, d.Title, d.Markdown, d.HTML, d.Links, d.Metadata, d.HTTPStatus,
		r.MostKept, size, r.MostBytes)
	n, err := affected(res, err)
	if err != nil || n == 0 {
		return err
	}
	_, err = t.db.NewRaw(`UPDATE replays SET differing = differing + 1, kept_bytes = kept_bytes + ?
		WHERE id = ?`, size, r.ReplayID).Exec(ctx)
	return translate(err)
}

// CrawlPageItems finds the items that a crawl's pages became.
func (q Queries) CrawlPageItems(ctx context.Context, jobID int64, urls []string) (map[string]int64, error) {
	out := map[string]int64{}
	if len(urls) == 0 {
		return out, nil
	}
	hashes, by := make([][]byte, len(urls)), make(map[string]string, len(urls))
	for i, url := range urls {
		hash := sha256.Sum256([]byte(url))
		hashes[i], by[string(hash[:])] = hash[:], url
	}
	var rows []struct {
		URLHash []byte
		ItemID  int64
	}
	err := q.db.NewRaw(`SELECT url_hash, item_id FROM crawl_pages WHERE job_id = ? AND url_hash IN (?)`, jobID, bun.List(hashes)).Scan(ctx, &rows)
	for _, row := range rows {
		out[by[string(row.URLHash)]] = row.ItemID
	}
	return out, translate(err)
}

// Difference is one of them, whole; ErrNotFound when there is none.
func (q Queries) Difference(ctx context.Context, replayID, itemID int64) (*Difference, error) {
	d := &Difference{}
	err := q.db.NewSelect().Model(d).Where("df.replay_id = ?", replayID).Where("df.item_id = ?", itemID).Scan(ctx)
	return d, translate(err)
}

// ReplaceResult puts a difference in place of the result it differs from, whose
// present version is kept apart. It returns the number of that version, and
// false when the result is another by now, or the difference was used up or
// not kept.
func (t Tx) ReplaceResult(ctx context.Context, replayID, itemID int64, by string, now time.Time) (int, bool, error) {
	n, err := affected(t.db.NewRaw(`UPDATE replay_differences SET replaced_at = ?, replaced_by = ?
		WHERE replay_id = ? AND item_id = ? AND kept AND replaced_at IS NULL`, now, CleanText(by), replayID, itemID).Exec(ctx))
	if err != nil || n == 0 {
		return 0, false, err
	}
	var version []int
	err = t.db.NewRaw(`INSERT INTO result_versions (item_id, version, job_id, net, stored_at, replaced_at, title, markdown, html, links,
			metadata, markdown_sha256, html_sha256)
		SELECT r.item_id, r.version, r.job_id, r.net, r.stored_at, ?, r.title, r.markdown, r.html, r.links, r.metadata, r.markdown_sha256, r.html_sha256
		FROM results r JOIN replay_differences d ON d.item_id = r.item_id AND d.replay_id = ? AND d.version = r.version
		WHERE r.item_id = ? FOR NO KEY UPDATE OF r RETURNING version`, now, replayID, itemID).Scan(ctx, &version)
	if err != nil {
		return 0, false, translate(err)
	}
	if len(version) == 0 {
		return 0, false, t.unreplace(ctx, replayID, itemID)
	}
	_, err = t.db.NewRaw(`UPDATE results r SET version = r.version + 1, stored_at = ?now, title = d.title, markdown = d.markdown, html = d.html,
			links = d.links, metadata = d.metadata, http_status = coalesce(d.http_status, r.http_status),
			markdown_sha256 = sha256(d.markdown), html_sha256 = sha256(d.html)
		FROM replay_differences d WHERE d.replay_id = ?replay AND d.item_id = ?item AND r.item_id = ?item`,
		named{"now": now, "replay": replayID, "item": itemID}).Exec(ctx)
	return version[0], true, translate(err)
}

// unreplace takes back that the difference was used up.
func (t Tx) unreplace(ctx context.Context, replayID, itemID int64) error {
	_, err := t.db.NewRaw(`UPDATE replay_differences SET replaced_at = NULL, replaced_by = '' WHERE replay_id = ? AND item_id = ?`,
		replayID, itemID).Exec(ctx)
	return translate(err)
}
