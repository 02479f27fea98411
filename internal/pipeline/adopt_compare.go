package pipeline

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// compareExtract looks at the job itself, which echoes its options once it has
// ended. Before that it may be another call's for the same address.
func (p *Pipeline) compareExtract(ctx context.Context, c *call, id string) (candidate, error) {
	got, err := p.vendor.GetExtract(ctx, id)
	if errors.Is(err, geonode.ErrNotFound) {
		return notOurs, nil
	}
	if err != nil {
		return notOurs, err
	}
	if !got.Status.Terminal() {
		return maybeOur, nil
	}
	// One that failed may echo nothing, and will never tell more.
	if got.Metadata.Raw != nil && !sameOptions(c, got.Metadata.Config) {
		return notOurs, nil
	}
	return ours, nil
}

// seenBatches remembers of each of the vendor's batches that was looked at one
// URL that it holds: a batch that was read for one lost call and is not its
// own need not be read again for every other. It is only a saving of calls.
type seenBatches struct {
	mu sync.Mutex
	by map[string]string // The vendor's id, and a URL as normalURL spells it.
}

// seenMost bounds what is remembered; a lost call is looked for within minutes.
const seenMost = 5000

// note remembers a URL of the batch.
func (s *seenBatches) note(id string, rows []geonode.BatchItem) {
	if len(rows) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil || len(s.by) >= seenMost {
		s.by = map[string]string{}
	}
	s.by[id] = normalURL(rows[0].URL)
}

// other reports a batch that is known to hold a URL that the call did not send.
func (s *seenBatches) other(id string, c *call) bool {
	s.mu.Lock()
	url, ok := s.by[id]
	s.mu.Unlock()
	return ok && !c.sends(url)
}

// sends reports whether the call sent a URL, as normalURL spells it.
func (c *call) sends(url string) bool {
	if c.normal == nil {
		c.normal = map[string]bool{}
		for _, it := range c.items {
			c.normal[normalURL(it.URL)] = true
		}
	}
	return c.normal[url]
}

// compareBatch reads all of a batch's results and holds them against what was
// sent. A batch that still runs has not shown all its URLs.
func (p *Pipeline) compareBatch(ctx context.Context, c *call, id string) (candidate, error) {
	if p.seen.other(id, c) {
		return notOurs, nil
	}
	carried := make([]store.CarriedItem, len(c.items))
	for i, it := range c.items {
		carried[i] = store.CarriedItem{InputIndex: it.InputIndex, ItemID: it.ItemID, URL: it.URL}
	}
	seen, pages := 0, len(c.items)/geonode.MaxResultPage+1
	for page := 1; page <= pages; page++ {
		got, err := p.vendor.GetBatch(ctx, id, geonode.Page{Number: page})
		if errors.Is(err, geonode.ErrNotFound) {
			return notOurs, nil
		}
		if err != nil {
			return notOurs, err
		}
		p.seen.note(id, got.Results)
		var aside []string
		for _, u := range got.InvalidURLs.List {
			aside = append(aside, u.URL)
		}
		number := numberItems(carried, aside)
		for i := range got.Results {
			if number.find(&got.Results[i]) == nil {
				return notOurs, nil
			}
		}
		seen += len(got.Results)
		if !got.Status.Terminal() && page == 1 && seen+len(aside) < len(c.items) {
			return maybeOur, nil
		}
		if seen+len(aside) >= len(c.items) {
			return ours, nil
		}
		if len(got.Results) == 0 || page == pages {
			if p.mayShowMore(got) {
				return maybeOur, nil
			}
			break
		}
	}
	// Ended without having shown every URL: too little to tell by.
	return notOurs, nil
}

// mayShowMore reports a batch that ended a moment ago: for as long as settle
// waits for rows that such a one lacks, they may yet come. An end far in the
// vendor's future is no moment.
func (p *Pipeline) mayShowMore(b *geonode.BatchJob) bool {
	ended := b.CompletedAt.Time
	return !ended.IsZero() && p.clock.vendorTime(p.now()).Sub(ended).Abs() < completeReads*p.cfg.MissingGap
}

// sameOptions compares the vendor's echo with what was asked; a member that
// was not echoed says nothing either way.
func sameOptions(c *call, echo geonode.JobConfig) bool {
	if echo.RenderJS != nil && *echo.RenderJS != c.options.RenderJS {
		return false
	}
	if !sameFormats(c.options.Formats, echo.Formats) {
		return false
	}
	if echo.Proxy != nil && c.options.ProxyCountry != "" && !strings.EqualFold(echo.Proxy.Country, c.options.ProxyCountry) {
		return false
	}
	if echo.Wait != nil && (c.options.WaitFor != "" || echo.Wait.For != "") && echo.Wait.For != c.options.WaitFor {
		return false
	}
	return true
}

func sameFormats(asked []string, echo []geonode.Format) bool {
	if len(echo) == 0 {
		return true
	}
	got := make([]string, len(echo))
	for i, f := range echo {
		got[i] = string(f)
	}
	return slices.Equal(slices.Sorted(slices.Values(asked)), slices.Sorted(slices.Values(got)))
}
