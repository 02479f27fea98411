package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"unicode/utf8"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// CrawlOptions is how far a crawl goes from its seed.
type CrawlOptions struct {
	// Depth is 1 to 10; 1 is the seed alone. The vendor's plan may allow less,
	// which it says when it is asked.
	Depth int `json:"depth"`
	// Limit is the most pages, 1 to 10,000; each costs a request.
	Limit             int  `json:"limit"`
	SameDomainOnly    bool `json:"same_domain_only"`
	IncludeSubdomains bool `json:"include_subdomains"`
}

// What a crawl asks for when nothing is chosen.
const (
	defaultCrawlDepth = 2
	defaultCrawlLimit = 100
)

// withDefaults fills in the numbers that were left zero.
func (c *CrawlOptions) withDefaults() *CrawlOptions {
	if c == nil {
		return nil
	}
	out := *c
	if out.Depth == 0 {
		out.Depth = defaultCrawlDepth
	}
	if out.Limit == 0 {
		out.Limit = defaultCrawlLimit
	}
	return &out
}

// check names each number the vendor cannot take.
func (c *CrawlOptions) check() []FieldError {
	var out []FieldError
	if c == nil {
		return out
	}
	if c.Depth < 1 || c.Depth > geonode.MaxCrawlDepth {
		out = append(out, FieldError{"depth", fmt.Sprintf("the depth is between 1, the seed alone, and %d", geonode.MaxCrawlDepth)})
	}
	if c.Limit < 1 || c.Limit > geonode.MaxCrawlPages {
		out = append(out, FieldError{"limit", fmt.Sprintf("the limit is between 1 and %d pages", geonode.MaxCrawlPages)})
	}
	return out
}

// submitCrawl asks the vendor to crawl from the job's one item.
func (p *Pipeline) submitCrawl(ctx context.Context, c *call) (accepted, error) {
	far := c.options.Crawl.orDefault()
	yes, err := p.vendor.SubmitCrawl(ctx, geonode.CrawlRequest{
		URL: c.items[0].URL, Depth: far.Depth, Limit: far.Limit, SameDomainOnly: far.SameDomainOnly,
		IncludeSubdomains: far.IncludeSubdomains, Options: c.options.vendorOptions(nil),
	})
	if err != nil {
		return accepted{}, err
	}
	return accepted{id: yes.JobID, status: string(yes.Status), date: yes.Reply.Date}, nil
}

// orDefault is the options, or the defaults when there are none.
func (c *CrawlOptions) orDefault() CrawlOptions {
	if c == nil {
		c = &CrawlOptions{}
	}
	return *c.withDefaults()
}

// crawlPages reads a crawl's results. Which pages it has is known only when
// they are read: each becomes an item in the transaction that stores its row.
func (s *settling) crawlPages(ctx context.Context) (*pager, error) {
	seed, err := s.seed(ctx)
	if err != nil {
		return nil, err
	}
	return &pager{
		fetch: func(ctx context.Context, page, size int) (*resultPage, error) {
			got, err := s.vendor.GetCrawl(ctx, s.job.VendorID(), geonode.Page{Number: page, Size: size})
			if err != nil {
				return nil, err
			}
			s.vendorEnd = got.CompletedAt.Time
			return &resultPage{
				reply: got.Reply, status: got.Status, reports: crawlReports(got), last: lastOfCrawl(got, page, size),
				total: got.Total,
				carry: func(ctx context.Context) error {
					return s.carryOver(ctx, func(ctx context.Context, tx store.Tx) (*readPage, error) {
						return s.readCrawl(ctx, tx, got, seed, page, size)
					})
				},
			}, nil
		},
		skip: func(ctx context.Context, offset int) (bool, error) { return s.skipPage(ctx, offset, seed) },
	}, nil
}

// lastOfCrawl reports that no page of results follows: this one is empty, no
// crawl can be longer, or the vendor's count says so, unless there are more rows
// already than it counts.
func lastOfCrawl(got *geonode.CrawlJob, page, size int) bool {
	if end := page * size; len(got.Results) > 0 && end < geonode.MaxCrawlPages {
		more := len(got.Results) == size && int64(end) > got.Total.N
		return got.Total.Known && int64(end) >= got.Total.N && !more
	}
	return true
}

// seed is the item that the crawl was asked for.
func (s *settling) seed(ctx context.Context) (store.SendItem, error) {
	items, err := s.store.SendList(ctx, s.job.ID)
	if err != nil {
		return store.SendItem{}, err
	}
	if len(items) == 0 {
		return store.SendItem{}, errors.New("the crawl carries no seed")
	}
	return items[0], nil
}

// readCrawl adds the pages to the batch and sorts what the vendor says of them.
// A page that is reported again, under whichever parent, is the same item.
func (s *settling) readCrawl(ctx context.Context, tx store.Tx, got *geonode.CrawlJob, seed store.SendItem, page, size int) (*readPage, error) {
	next, nextSize := turn(page*size, size)
	read := &readPage{status: got.Status, reports: crawlReports(got), next: next, size: nextSize}
	rows, pages := s.crawlRows(got, seed, read)
	if err := tx.LockCrawl(ctx, s.job.BatchID); err != nil {
		return nil, err
	}
	ids, fresh, err := tx.AddCrawlPages(ctx, s.job, pages, s.now())
	if err != nil {
		return nil, err
	}
	read.found = fresh
	items, err := carriedBy(ctx, tx, s.job.ID, ids)
	if err != nil {
		return nil, err
	}
	seen := map[int64]bool{}
	for i := range rows {
		row, item := rows[i], items[ids[pages[i].URL]]
		if item == nil || seen[item.ItemID] || (row.Problem != "" && row.Status == geonode.StatusCompleted) {
			continue // Shown twice, or content that could not be read whole, which is none.
		}
		seen[item.ItemID] = row.Status == geonode.StatusCompleted
		if row.Data != nil && len(row.Data.Links) == 0 {
			row.Data.Links = row.Links
		}
		read.add(s, item, row.Status, row.Data, row.Err, row.Metadata, row.Metadata.TokensCharged)
	}
	if s.job.State == store.JobGivenUp {
		read.leaveNoneOpen(items)
	}
	return read, nil
}

// leaveNoneOpen fails what a crawl that was given up leaves open: nobody asks
// about it any more. What a later row brings is stored all the same.
func (r *readPage) leaveNoneOpen(items map[int64]*store.CarriedItem) {
	answered := map[int64]bool{}
	for _, res := range r.results {
		answered[res.ItemID] = true
	}
	for _, end := range slices.Concat(r.fails, r.cancels) {
		answered[end.ItemID] = true
	}
	for id, item := range items {
		if answered[id] || !item.Current || item.State != store.ItemOutstanding {
			continue
		}
		end := store.Ending{ItemID: id, Code: "NOT_REPORTED", Message: "the crawl was given up, and came late without this page", Retryable: true}
		r.fails = append(r.fails, end)
		r.reported = append(r.reported, reportsOf([]store.Ending{end}, store.OutcomeFailed)...)
	}
}

// carriedBy is what the job carries of the items, by item.
func carriedBy(ctx context.Context, tx store.Tx, jobID int64, ids map[string]int64) (map[int64]*store.CarriedItem, error) {
	list := make([]int64, 0, len(ids))
	for _, id := range ids {
		list = append(list, id)
	}
	carried, err := tx.CarriedOf(ctx, jobID, list)
	out := map[int64]*store.CarriedItem{}
	for i := range carried {
		out[carried[i].ItemID] = &carried[i]
	}
	return out, err
}

// crawlRows are the rows that name a page that can be one, the good ones
// first: of a page that is shown twice, the content counts.
func (s *settling) crawlRows(got *geonode.CrawlJob, seed store.SendItem, read *readPage) ([]*geonode.CrawlPage, []store.CrawlPage) {
	var rows []*geonode.CrawlPage
	var pages []store.CrawlPage
	for _, good := range []bool{true, false} {
		for i := range got.Results {
			row := &got.Results[i]
			if (row.Status == geonode.StatusCompleted) != good {
				continue
			}
			if !crawlable(row.URL) {
				read.misnumbered = true
				continue
			}
			rows = append(rows, row)
			pages = append(pages, store.CrawlPage{
				URL: row.URL, ParentURL: store.CleanText(clip(row.ParentURL, MaxURL)), Depth: depthOf(row), Seed: sameURL(seed.URL, row.URL),
			})
		}
	}
	return rows, pages
}

// crawlable reports a URL that a page of a crawl can have. The rows of a vendor
// that says otherwise are about nothing that can be kept.
func crawlable(raw string) bool {
	if len(raw) > MaxURL || !utf8.ValidString(raw) || store.CleanText(raw) != raw {
		return false
	}
	u, err := url.Parse(raw)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// depthOf is the page's depth as reported, 1 when it is not.
func depthOf(row *geonode.CrawlPage) int {
	if !row.Depth.Known || row.Depth.N < 1 || row.Depth.N > 1<<30 {
		return 1
	}
	return int(row.Depth.N)
}

// skipPage passes over a row that is larger than Rollcall reads. Which page it
// is the vendor cannot tell without sending it; the first is the seed's. It
// reports the last row that the crawl may have: when the vendor's answer is
// over the bound without any row, it is so for every row there isn't.
func (s *settling) skipPage(ctx context.Context, offset int, seed store.SendItem) (bool, error) {
	limit, err := s.crawlLimit(ctx)
	if err != nil {
		return false, err
	}
	next, nextSize := turn(offset+1, 1)
	return offset+1 >= limit, s.carryOver(ctx, func(ctx context.Context, tx store.Tx) (*readPage, error) {
		read := &readPage{status: geonode.Status(s.job.VendorStatus), next: next, size: nextSize}
		event := store.JobEvent{JobID: s.job.ID, At: s.now(), Kind: "page_too_large", Detail: fmt.Sprintf("row %d is larger than Rollcall reads", offset+1)}
		if err := tx.InsertEvents(ctx, []store.JobEvent{event}); err != nil || offset > 0 {
			return read, err
		}
		items, err := carriedBy(ctx, tx, s.job.ID, map[string]int64{seed.URL: seed.ItemID})
		if err == nil && items[seed.ItemID] != nil {
			read.fail(s, items[seed.ItemID], tooLargeCode, "the page is larger than Rollcall reads", false)
		}
		return read, err
	})
}

// crawlLimit is how many pages the crawl was asked for at most.
func (s *settling) crawlLimit(ctx context.Context) (int, error) {
	b, err := s.store.Batch(ctx, s.job.BatchID)
	if err != nil {
		return 0, err
	}
	var o Options
	if err := json.Unmarshal(b.Options, &o); err != nil {
		return 0, fmt.Errorf("options of batch %d: %w", b.ID, err)
	}
	return o.Crawl.orDefault().Limit, nil
}

// crawlReports are the vendor's own counters, shown and never summed.
func crawlReports(got *geonode.CrawlJob) json.RawMessage {
	return reports(map[string]geonode.Count{
		"total": got.Total, "completed": got.Completed, "failed": got.Failed, "cancelled": got.Cancelled,
		"charged": got.Tokens.Charged, "reserved": got.Tokens.Reserved,
	})
}

// compareCrawl holds a crawl found in the list against what was asked. The
// vendor echoes neither depth nor limit. While another crawl of the same seed
// is in doubt, one is taken only when it ended and went as far as was asked:
// less could be the other's. That is waited for a while only, since two crawls
// of which neither went further have the same pages.
func (p *Pipeline) compareCrawl(ctx context.Context, c *call, id string) (candidate, error) {
	got, err := p.vendor.GetCrawl(ctx, id, geonode.Page{Number: 1})
	if errors.Is(err, geonode.ErrNotFound) {
		return notOurs, nil
	}
	if err != nil {
		return notOurs, err
	}
	if !sameURL(c.items[0].URL, got.URL) || !sameOptions(c, got.Config) {
		return notOurs, nil
	}
	deepest, err := p.deepest(ctx, id, got)
	if err != nil {
		return notOurs, err
	}
	far := c.options.Crawl.orDefault()
	if !sameReach(far, got, deepest) {
		return notOurs, nil
	}
	others, err := p.store.OtherCrawls(ctx, c.job.ID)
	if err != nil {
		return notOurs, err
	}
	exhausted := got.Status.Terminal() && (deepest == int64(far.Depth) || got.Total.Or(0) == int64(far.Limit))
	if others > 0 && !exhausted && p.now().Sub(calledAt(c.job)) < 2*p.cfg.AdoptGap {
		return maybeOur, nil
	}
	return ours, nil
}

// deepest is how deep the crawl went, as its first page of results and its last
// show.
func (p *Pipeline) deepest(ctx context.Context, id string, first *geonode.CrawlJob) (int64, error) {
	rows := first.Results
	if last := (first.Total.Or(0) + geonode.MaxResultPage - 1) / geonode.MaxResultPage; last > 1 {
		got, err := p.vendor.GetCrawl(ctx, id, geonode.Page{Number: int(min(last, geonode.MaxCrawlPages/geonode.MaxResultPage))})
		if err != nil {
			return 0, err
		}
		rows = append(rows, got.Results...)
	}
	deepest := int64(0)
	for i := range rows {
		deepest = max(deepest, rows[i].Depth.Or(1))
	}
	return deepest, nil
}

// sameReach reports that nothing shows a crawl to go further than was asked.
func sameReach(far CrawlOptions, got *geonode.CrawlJob, deepest int64) bool {
	if echo := got.Config.SameDomainOnly; echo != nil && *echo != far.SameDomainOnly {
		return false
	}
	if echo := got.Config.IncludeSubdomains; echo != nil && *echo != far.IncludeSubdomains {
		return false
	}
	return deepest <= int64(far.Depth) && got.Total.Or(0) <= int64(far.Limit)
}

// listCrawls reads one page of the crawl list.
func (p *Pipeline) listCrawls(ctx context.Context, c *call, window geonode.ListParams) (*found, error) {
	got, err := p.vendor.ListCrawls(ctx, window)
	if err != nil {
		return nil, err
	}
	out := &found{page: got.ListPage, rows: len(got.Jobs), reply: got.Reply}
	for i := range got.Jobs {
		row := &got.Jobs[i]
		if sameURL(c.items[0].URL, row.URL) && sameOptions(c, row.Config) {
			out.ids = append(out.ids, row.JobID)
		}
	}
	return out, nil
}
