package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

// How far a crawl may go, and goes when nothing else is typed.
const (
	crawlMaxDepth = 10
	crawlMaxLimit = 10_000
	crawlDepth    = "2"
	crawlLimit    = "100"
)

// newCrawl is GET /crawls/new.
func (s *Server) newCrawl(c echo.Context) error {
	return s.showNewCrawl(c, http.StatusOK, views.NewCrawlProps{
		Depth: crawlDepth, Limit: crawlLimit, SameDomain: true, Fetch: views.Fetch{Markdown: true},
	})
}

func (s *Server) showNewCrawl(c echo.Context, status int, props views.NewCrawlProps) error {
	l, err := s.layout(c, "New crawl", views.SectionNewBatch)
	if err != nil {
		return err
	}
	props.Layout, props.MaxDepth, props.MaxLimit, props.Fetch = l, crawlMaxDepth, crawlMaxLimit, once(props.Fetch)
	return render(c, status, views.NewCrawl(props))
}

// submitCrawl is POST /crawls. A crawl that can't be taken brings the form back
// with everything that was typed.
func (s *Server) submitCrawl(c echo.Context) error {
	if err := parseForm(c.Request()); err != nil {
		return err
	}
	props := typedCrawl(c)
	submission, errs := crawlOf(c.Request().Context(), props, personOf(c).ID)
	if len(errs) > 0 {
		props.Errors = errs
		return s.showNewCrawl(c, http.StatusUnprocessableEntity, props)
	}
	done, err := s.pipeline.Submit(c.Request().Context(), submission)
	if invalid, ok := errors.AsType[*pipeline.InvalidSubmission](err); ok {
		props.Errors = oneLineErrors(c.Request().Context(), invalid)
		return s.showNewCrawl(c, http.StatusUnprocessableEntity, props)
	}
	if err != nil {
		return fmt.Errorf("submit crawl: %w", err)
	}
	return c.Redirect(http.StatusSeeOther, "/batches/"+idText(done.BatchID))
}

func typedCrawl(c echo.Context) views.NewCrawlProps {
	r := c.Request()
	return views.NewCrawlProps{
		Name: field(c, "name", 1000), Seed: field(c, "urls", maxTypedURL), Depth: field(c, "depth", 20), Limit: field(c, "limit", 20),
		SameDomain: r.PostFormValue("same_domain") != "", Subdomains: r.PostFormValue("subdomains") != "", Fetch: typedFetch(c),
	}
}

// maxTypedURL bounds what is kept of a single URL; the pipeline takes less.
const maxTypedURL = 20_000

// crawlOf turns the form into what the pipeline takes, or says by field why it
// can't.
func crawlOf(ctx context.Context, p views.NewCrawlProps, by int64) (pipeline.Submission, views.Errors) {
	options, errs := fetchOptions(p.Fetch)
	options.Crawl = &pipeline.CrawlOptions{SameDomainOnly: p.SameDomain, IncludeSubdomains: p.Subdomains}
	var ok bool
	if options.Crawl.Depth, ok = typedNumber(p.Depth, crawlMaxDepth); !ok {
		errs["depth"] = views.Textf(ctx, "Give a whole number from 1, the seed alone, to %d.", crawlMaxDepth)
	}
	if options.Crawl.Limit, ok = typedNumber(p.Limit, crawlMaxLimit); !ok {
		errs["limit"] = views.Textf(ctx, "Give a whole number from 1 to %s.", number(crawlMaxLimit))
	}
	if p.Seed == "" {
		errs["urls"] = "Enter the page to begin at."
	}
	return pipeline.Submission{
		Name: p.Name, Kind: store.KindCrawl, Text: p.Seed, CreatedBy: &by, Options: options, Token: p.Once,
	}, errs
}

// typedNumber reads a whole number from 1 to most, with or without commas.
func typedNumber(text string, most int) (int, bool) {
	n, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
	return n, err == nil && n >= 1 && n <= most
}

// oneLineErrors is what was wrong with the form of a single URL, whose one line
// is a field.
func oneLineErrors(ctx context.Context, invalid *pipeline.InvalidSubmission) views.Errors {
	errs := fieldErrors(invalid)
	if len(invalid.Lines) > 0 {
		errs["urls"] = views.Textf(ctx, "This URL can't be fetched: it %s.", invalid.Lines[0].Reason)
	}
	return errs
}
