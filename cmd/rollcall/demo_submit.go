package main

import (
	"context"
	"fmt"
	"strings"

	"rollcall/internal/geonode"
	"rollcall/internal/pipeline"
	"rollcall/store"
)

const (
	// demoSeed is the page that a demo crawls from, and demoDepth how far: far enough for its limit.
	demoSeed  = "https://shop.sandbox.test/"
	demoDepth = 5
	// demoCrawlPart is the part of the URLs of a mixed demo that is left to its crawl.
	demoCrawlPart = 10
)

// submit submits what the flags ask for: a list of URLs, a crawl, or both. It returns the batches.
func (c *demoCmd) submit(ctx context.Context, d *demo, text string, by *int64) ([]int64, error) {
	all := []pipeline.Submission{c.list(text)}
	switch store.Kind(c.Kind) {
	case store.KindCrawl:
		all = []pipeline.Submission{c.crawl(text, countLines(text))}
	case store.KindMixed:
		all = c.both(text)
	case store.KindBatch, store.KindExtract, store.KindSync:
	}
	var ids []int64
	for i := range all {
		all[i].CreatedBy = by
		got, err := d.pipeline.Submit(ctx, all[i])
		if err != nil {
			return nil, fmt.Errorf("submit %s: %w", all[i].Name, err)
		}
		ids = append(ids, got.BatchID)
	}
	return ids, nil
}

func (c *demoCmd) list(text string) pipeline.Submission {
	return pipeline.Submission{
		Name: "Demo", Kind: store.Kind(c.Kind), Text: text, LeaveOutBad: true,
		Options: pipeline.Options{Formats: []string{"markdown", "html"}},
	}
}

// both leaves a part of the made pages to the crawl; a file of real ones is sent whole, and crawled from besides.
func (c *demoCmd) both(text string) []pipeline.Submission {
	limit := max(countLines(text)/demoCrawlPart, 1)
	lines := strings.Split(text, "\n")
	if c.URLsFile == "" && len(lines) > limit {
		text = strings.Join(lines[:len(lines)-limit], "\n")
	}
	return []pipeline.Submission{c.list(text), c.crawl(text, limit)}
}

// crawl is a crawl from the made shop, or from the first URL of the file.
func (c *demoCmd) crawl(text string, limit int) pipeline.Submission {
	s := pipeline.Submission{
		Name: "Demo crawl", Kind: store.KindCrawl, Text: demoSeed,
		Options: pipeline.Options{Formats: []string{"markdown", "html"}, Crawl: &pipeline.CrawlOptions{
			Depth: demoDepth, Limit: min(limit, geonode.MaxCrawlPages), SameDomainOnly: true,
		}},
	}
	if c.URLsFile != "" {
		s.Text = firstURL(text)
	}
	return s
}

// firstURL is the first line that can be fetched, or all of the text when none can: what is wrong with it Submit says.
func firstURL(text string) string {
	for line := range strings.SplitSeq(text, "\n") {
		if url, err := pipeline.CheckURL(line); err == nil {
			return url
		}
	}
	return text
}

func countLines(text string) int { return strings.Count(strings.TrimSpace(text), "\n") + 1 }
