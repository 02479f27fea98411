package store_test

import (
	"crypto/sha256"
	"maps"
	"slices"
	"testing"

	"rollcall/store"
	"rollcall/store/storetest"
)

// site is a batch with one crawl of a made-up site.
type site struct {
	*store.Store
	t          *testing.T
	batch, job int64
	next       int
}

// newSite has a seed that was typed without the slash that the vendor adds.
func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{Store: storetest.New(t), t: t}
	s.batch = s.id(`INSERT INTO batches (name, kind, options, created_at, submitted, accepted)
		VALUES ('site', 'crawl', '{"crawl":{"depth":3,"limit":500}}', now(), 1, 1) RETURNING id`)
	s.job = s.crawl()
	s.item("https://a.example")
	return s
}

func (s *site) id(query string, args ...any) int64 {
	s.t.Helper()
	var id int64
	if err := s.SQL().QueryRowContext(s.t.Context(), query, args...).Scan(&id); err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	return id
}

func (s *site) crawl() int64 {
	s.t.Helper()
	return s.id(`INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at)
		VALUES ($1, 'crawl', 'accepted', 'submit', '\x00', 1, now()) RETURNING id`, s.batch)
}

func (s *site) item(url string) int64 {
	s.t.Helper()
	s.next++
	id := s.id(`INSERT INTO items (batch_id, position, url, url_hash, current_job_id, created_at)
		VALUES ($1, $2, $3, '\x00', $4, now()) RETURNING id`, s.batch, s.next, url, s.job)
	exec(s.t, s.Store, `INSERT INTO job_items (job_id, input_index, item_id) VALUES ($1, $2, $3)`, s.job, s.next-1, id)
	return id
}

// report has a crawl report a page as the vendor spells it.
func (s *site) report(job, item int64, url, parent string, depth int) {
	s.t.Helper()
	hash := sha256.Sum256([]byte(url))
	exec(s.t, s.Store, `INSERT INTO crawl_pages (job_id, url_hash, item_id, parent_url, depth) VALUES ($1, $2, $3, $4, $5)`,
		job, hash[:], item, parent, depth)
}

func (s *site) page(url, parent string, depth int) int64 {
	s.t.Helper()
	id := s.item(url)
	s.report(s.job, id, url, parent, depth)
	return id
}

// level is one level's URLs with how many pages each led to.
func (s *site) level(parent int64) map[string]int64 {
	s.t.Helper()
	rows, err := s.PageCrawl(s.t.Context(), s.batch, parent, -1, 1000)
	if err != nil {
		s.t.Fatal(err)
	}
	got := make(map[string]int64, len(rows))
	for i := range rows {
		got[rows[i].URL] = rows[i].Children
	}
	return got
}

func (s *site) wants(parent int64, want map[string]int64) {
	s.t.Helper()
	if got := s.level(parent); !maps.Equal(got, want) {
		s.t.Errorf("under %d: got %v, want %v", parent, got, want)
	}
}

const seed, seedURL = "https://a.example", "https://a.example/"

// TestCrawlTree: each page under its parent, whatever way the seed is spelled.
func TestCrawlTree(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	root := s.id("SELECT min(id) FROM items")
	s.wants(0, map[string]int64{seed: 0}) // Before anything is reported.
	s.report(s.job, root, seedURL, "", 1)
	guides := s.page(seedURL+"guides", seedURL, 2)
	s.page(seedURL+"about", seedURL, 2)
	deep := s.page(seedURL+"guides/1", seedURL+"guides", 3)

	s.wants(0, map[string]int64{seed: 2})
	s.wants(root, map[string]int64{seedURL + "guides": 1, seedURL + "about": 0})
	s.wants(guides, map[string]int64{seedURL + "guides/1": 0})
	s.wants(deep, map[string]int64{})

	trail, err := s.PageCrawlTrail(t.Context(), s.batch, deep)
	if want := []store.CrawlStep{{ID: root, URL: seed}, {ID: guides, URL: seedURL + "guides"}, {ID: deep, URL: seedURL + "guides/1"}}; err != nil || !slices.Equal(trail, want) {
		t.Errorf("trail: got %v, %v, want %v", trail, err, want)
	}
	item, err := s.Item(t.Context(), guides)
	if err != nil {
		t.Fatal(err)
	}
	page, err := s.PageCrawlPage(t.Context(), item)
	if err != nil || page == nil || page.Children != 1 || page.Depth != 2 || page.ParentURL != seedURL || page.ParentID == nil || *page.ParentID != root {
		t.Errorf("one page: got %+v, %v", page, err)
	}
	for _, nobody := range []int64{1 << 60, root + 1000} {
		if rows, err := s.PageCrawl(t.Context(), s.batch, nobody, -1, 10); len(rows) != 0 || err != nil {
			t.Errorf("under nobody: got %d, %v", len(rows), err)
		}
	}
	if trail, err := s.PageCrawlTrail(t.Context(), s.batch+1, deep); len(trail) != 0 || err != nil {
		t.Errorf("trail in another batch: got %v, %v, want none", trail, err)
	}
}

// TestCrawlTreeLosesNoPage: a page whose parent was never reported is at the
// root, and pages that name each other as parents don't hang the way up.
func TestCrawlTreeLosesNoPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.report(s.job, s.id("SELECT min(id) FROM items"), seedURL, "", 1)
	lost := s.page(seedURL+"lost", seedURL+"never-reported", 3)
	s.page(seedURL+"below", seedURL+"lost", 4)
	s.wants(0, map[string]int64{seed: 0, seedURL + "lost": 1})
	s.wants(lost, map[string]int64{seedURL + "below": 0})
	a := s.page(seedURL+"a", seedURL+"b", 2)
	s.page(seedURL+"b", seedURL+"a", 2)
	if trail, err := s.PageCrawlTrail(t.Context(), s.batch, a); len(trail) != 2 || err != nil {
		t.Errorf("a ring: got %v, %v, want both pages once", trail, err)
	}
}

// TestCrawlTreeOfTwoCrawls: a page that a later crawl found elsewhere moves,
// and one that only the first found stays.
func TestCrawlTreeOfTwoCrawls(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	root := s.id("SELECT min(id) FROM items")
	s.report(s.job, root, seedURL, "", 1)
	first, moved := s.page(seedURL+"first", seedURL, 2), s.page(seedURL+"moved", seedURL+"first", 3)
	s.page(seedURL+"only", seedURL+"first", 3)
	again := s.crawl()
	s.report(again, root, seedURL, "", 1)
	s.report(again, first, seedURL+"first", seedURL, 2)
	s.report(again, moved, seedURL+"moved", seedURL, 2)
	s.wants(0, map[string]int64{seed: 2})
	s.wants(root, map[string]int64{seedURL + "first": 1, seedURL + "moved": 0})
	s.wants(first, map[string]int64{seedURL + "only": 0})
}

// grow fills a crawl with pages: a thousand under the seed, nine under each.
func (s *site) grow() {
	s.t.Helper()
	s.report(s.job, s.id("SELECT min(id) FROM items"), seedURL, "", 1)
	exec(s.t, s.Store, `INSERT INTO items (batch_id, position, url, url_hash, current_job_id, created_at)
		SELECT $1, 1 + g, 'https://a.example/' || CASE WHEN g <= 1000 THEN g::text ELSE (1 + g % 1000) || '/' || g END, '\x00', $2, now()
		FROM generate_series(1, 9999) g`, s.batch, s.job)
	exec(s.t, s.Store, `INSERT INTO crawl_pages (job_id, url_hash, item_id, parent_url, depth)
		SELECT $1, sha256(url::bytea), id, CASE WHEN position <= 1001 THEN 'https://a.example/' ELSE 'https://a.example/' || split_part(url, '/', 4) END,
			CASE WHEN position <= 1001 THEN 2 ELSE 3 END
		FROM items WHERE batch_id = $2 AND position > 1`, s.job, s.batch)
	exec(s.t, s.Store, "ANALYZE")
}

// TestCrawlTreeIsWalkedByKey: of ten thousand pages each is shown once, some at
// a time, and no statement reads a whole table.
func TestCrawlTreeIsWalkedByKey(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.grow()
	root, after, pages, below := s.id("SELECT min(id) FROM items"), -1, 0, int64(0)
	for {
		rows, err := s.PageCrawl(t.Context(), s.batch, root, after, 300)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) == 0 {
			break
		}
		for i := range rows {
			if rows[i].Position <= after {
				t.Fatalf("position %d comes after %d", rows[i].Position, after)
			}
			after, pages, below = rows[i].Position, pages+1, below+rows[i].Children
		}
	}
	if pages != 1000 || pages+int(below) != 9999 {
		t.Errorf("got %d pages under the seed with %d under them, want 1000 and 8999", pages, below)
	}
	s.checkPlans(root)
}

func (s *site) checkPlans(root int64) {
	s.t.Helper()
	ctx := s.t.Context()
	checkPlans(s.t, s.Store, map[string]func(*store.Store) error{
		"roots":    func(w *store.Store) error { _, err := w.PageCrawl(ctx, s.batch, 0, -1, 50); return err },
		"children": func(w *store.Store) error { _, err := w.PageCrawl(ctx, s.batch, root, 400, 50); return err },
		"leaves":   func(w *store.Store) error { _, err := w.PageCrawl(ctx, s.batch, root+7, -1, 50); return err },
		"trail":    func(w *store.Store) error { _, err := w.PageCrawlTrail(ctx, s.batch, root+5000); return err },
		"places": func(w *store.Store) error {
			_, err := w.PageCrawlPlaces(ctx, []int64{root, root + 1, root + 5000})
			return err
		},
		"item": func(w *store.Store) error { _, err := w.PageItemStamp(ctx, root); return err },
		"job":  func(w *store.Store) error { _, err := w.PageJobStamp(ctx, s.job); return err },
	})
}
