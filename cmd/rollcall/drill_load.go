package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

const (
	urlsPerBatch = 100
	leastBatches = 4
	mostBatches  = 60
	crawlPages   = 20
)

// drillBatch is a batch of the drill, and what was submitted as it.
type drillBatch struct {
	id        int64
	name      string
	kind      store.Kind
	urls      []string // Good ones, each once.
	lines     int64    // All of them.
	invalid   int64
	duplicate int64
	crawl     int // The most pages of a crawl; 0 for a list.
}

// load is what the drill submits: every third URL in an extract job of its own, a crawl now and then, batch jobs else.
// Each list has a line that is no URL, one that comes twice, and some pages that fail.
func (c *drillCmd) load() []drillBatch {
	n := min(max(c.URLs/urlsPerBatch, leastBatches), mostBatches)
	urls := sandbox.MadeURLs(c.URLs, c.Seed)
	kinds := []store.Kind{store.KindBatch, store.KindExtract, store.KindBatch, store.KindCrawl, store.KindBatch, store.KindExtract, store.KindMixed}
	all := make([]drillBatch, n)
	for i := range all {
		b := drillBatch{name: fmt.Sprintf("drill %d", i+1), kind: kinds[i%len(kinds)]}
		from, to := len(urls)*i/n, len(urls)*(i+1)/n
		if b.kind == store.KindCrawl {
			b.urls, b.lines, b.crawl = []string{fmt.Sprintf("https://shop%d.sandbox.test/", i)}, 1, min(to-from, crawlPages)
			all[i] = b
			continue
		}
		b.urls = slices.Clone(urls[from:to])
		for j, path := range oddPages() {
			b.urls = append(b.urls, fmt.Sprintf("https://news.sandbox.test/%s?of=%d-%d", path, i, j))
		}
		b.lines, b.invalid, b.duplicate = int64(len(b.urls))+2, 1, 1
		all[i] = b
	}
	return all
}

// askedURLs tells how the URLs that were asked for become those that are accepted.
type askedURLs struct {
	URLs      int `json:"urls"`      // As --urls says.
	Listed    int `json:"listed"`    // Of them in lists.
	Lists     int `json:"lists"`     // Batches of URLs.
	Odd       int `json:"odd"`       // Pages added that fail, or whose content is odd.
	Invalid   int `json:"invalid"`   // Lines added that are no URL.
	Duplicate int `json:"duplicate"` // Lines added that come twice.
	Crawls    int `json:"crawls"`    // Batches that are crawls: each takes the place of a list.
}

// asked says what load makes of the URLs that were asked for.
func (c *drillCmd) asked() askedURLs {
	a := askedURLs{URLs: c.URLs}
	for _, b := range c.load() {
		if b.crawl > 0 {
			a.Crawls++
			continue
		}
		a.Lists++
		a.Odd += len(oddPages())
		a.Listed += len(b.urls) - len(oddPages())
		a.Invalid += int(b.invalid)
		a.Duplicate += int(b.duplicate)
	}
	return a
}

// oddPages are paths of pages that fail for good, fail once, or have content that is odd.
func oddPages() []string { return []string{"fail/GONE", "fail-retryable/1", "latin1", "nul"} }

// submission is the batch as it is submitted. Its token makes a second try after an answer that was lost harmless.
func (b *drillBatch) submission() pipeline.Submission {
	s := pipeline.Submission{
		Name: b.name, Kind: b.kind, Text: b.urls[0], LeaveOutBad: true, Token: b.name,
		Options: pipeline.Options{Formats: []string{"markdown", "html"}},
	}
	if b.crawl > 0 {
		s.Options.Crawl = &pipeline.CrawlOptions{Depth: demoDepth, Limit: b.crawl, SameDomainOnly: true}
		return s
	}
	s.Text = strings.Join(b.urls, "\n") + "\nno url at all\n" + b.urls[0]
	return s
}

const submitGap = 250 * time.Millisecond

// submit submits a batch, again and again while the database is away.
func (d *drill) submit(ctx context.Context, b drillBatch) error {
	for {
		got, err := d.pipeline.Submit(ctx, b.submission())
		if err == nil {
			b.id = got.BatchID
			d.mu.Lock()
			d.batches = append(d.batches, b)
			d.mu.Unlock()
			return nil
		}
		d.log.InfoContext(ctx, "batch not submitted yet", slog.String("batch", b.name), slog.Any("error", err))
		if !pauseFor(ctx, submitGap) {
			return fmt.Errorf("submit %s: %w", b.name, err)
		}
	}
}
