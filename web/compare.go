package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

const (
	compareResultsPath = "/compare/results"
	compareBatchesPath = "/compare/batches"
	// comparedNewest is how many batches are offered to compare with.
	comparedNewest = 30
)

// sideOf reads one side of a comparison in an address: an item, such as 12, or
// a version of its result, such as 12.v1 or 12.1.
func (s *Server) sideOf(c echo.Context, name string) (*store.ResultSide, error) {
	text := c.QueryParam(name)
	item, version, versioned := strings.Cut(text, ".")
	id, err := strconv.ParseInt(item, 10, 64)
	v := 0
	if err == nil && versioned {
		v, err = strconv.Atoi(strings.TrimPrefix(version, "v"))
	}
	if err != nil || id <= 0 || versioned && (v < 1 || v > 1<<31-1) {
		return nil, badRequest(views.Textf(c.Request().Context(), "%s: name a result by its item, such as 12, or an earlier version of it, such as 12.v1.", name), nil)
	}
	return s.store.CompareSide(c.Request().Context(), id, v)
}

// compareResults is GET /compare/results?a=12.v1&b=12.
func (s *Server) compareResults(c echo.Context) error {
	a, err := s.sideOf(c, "a")
	if err != nil {
		return err
	}
	b, err := s.sideOf(c, "b")
	if err != nil {
		return err
	}
	props := views.CompareResultsProps{
		A: comparedSide(a), B: comparedSide(b), Blanks: c.QueryParam("blanks") == "ignore", Limit: diffBytes, Lines: linesCompared,
		Other: a.URL != b.URL && a.ItemID != b.ItemID && !sameKey(a, b),
	}
	open, _ := strconv.Atoi(c.QueryParam("open")) // What isn't a line opens nothing.
	if err := s.fillCompared(c.Request().Context(), a, b, c.QueryParam("part"), open, &props); err != nil {
		return fmt.Errorf("compare results of items %d and %d: %w", a.ItemID, b.ItemID, err)
	}
	if props.Layout, err = s.layout(c, "Compare two results", views.SectionBatches); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.CompareResults(props))
}

func sameKey(a, b *store.ResultSide) bool {
	return len(a.PageKey) > 0 && slices.Equal(a.PageKey, b.PageKey)
}

func comparedSide(s *store.ResultSide) views.ComparedSide {
	out := views.ComparedSide{
		Address: idText(s.ItemID), URL: s.URL, ItemID: idText(s.ItemID), BatchID: idText(s.BatchID), Batch: s.Batch, Net: string(s.Net),
		StoredAt: s.StoredAt, Version: s.Version, Latest: s.Latest,
	}
	if !s.Latest {
		out.Address += ".v" + strconv.Itoa(s.Version)
	}
	return out
}

// fillCompared reads the beginning of both contents and compares it.
func (s *Server) fillCompared(ctx context.Context, a, b *store.ResultSide, asked string, open int, p *views.CompareResultsProps) error {
	for _, part := range []struct {
		name store.Part
		in   bool
	}{
		{store.PartMarkdown, a.MarkdownSize >= 0 && b.MarkdownSize >= 0},
		{store.PartHTML, a.HTMLSize >= 0 && b.HTMLSize >= 0},
	} {
		if part.in {
			p.Parts = append(p.Parts, string(part.name))
		}
	}
	if len(p.Parts) == 0 {
		p.Missing = "The two have no content of the same kind: one has Markdown or HTML that the other lacks."
		return nil
	}
	if p.Part = p.Parts[0]; slices.Contains(p.Parts, asked) {
		p.Part = asked
	}
	sumA, sumB, longer := a.MarkdownSHA256, b.MarkdownSHA256, max(a.MarkdownSize, b.MarkdownSize)
	if p.Part == string(store.PartHTML) {
		sumA, sumB, longer = a.HTMLSHA256, b.HTMLSHA256, max(a.HTMLSize, b.HTMLSize)
	}
	if p.Same = len(sumA) > 0 && slices.Equal(sumA, sumB); p.Same {
		return nil
	}
	left, err := s.store.ComparePart(ctx, a, store.Part(p.Part), diffBytes)
	if err != nil {
		return err
	}
	right, err := s.store.ComparePart(ctx, b, store.Part(p.Part), diffBytes)
	if err != nil {
		return err
	}
	first, cutA := firstLines(printable(store.WholeText(left)))
	second, cutB := firstLines(printable(store.WholeText(right)))
	p.Cut = longer > diffBytes || cutA || cutB
	p.Same = !p.Cut && slices.Equal(left, right)
	p.Diff = compareTexts(ctx, s.now, first, second, p.Blanks, open)
	return nil
}

// compareBatches is GET /compare/batches?a=&b=: what became of the pages of a in
// b. With one of the two it is compared with the batch that it runs again, or
// with one like it.
func (s *Server) compareBatches(c echo.Context) error {
	props, err := s.compareProps(c)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if len(props.Errors) > 0 {
		status = http.StatusUnprocessableEntity
	}
	newest, err := s.store.PageBatches(c.Request().Context(), "", store.Key{}, comparedNewest)
	if err != nil {
		return fmt.Errorf("batches to compare with: %w", err)
	}
	for i := range newest {
		if id := idText(newest[i].ID); id != props.B.ID && newest[i].PrunedAt == nil {
			props.Others = append(props.Others, views.Option{Value: id, Text: newest[i].Name})
		}
	}
	if props.Layout, err = s.layout(c, "Compare two batches", views.SectionBatches); err != nil {
		return err
	}
	return render(c, status, views.CompareBatches(props))
}

func (s *Server) compareProps(c echo.Context) (views.CompareBatchesProps, error) {
	ctx := c.Request().Context()
	props := views.CompareBatchesProps{Self: c.Request().URL.RequestURI(), Chosen: clean(strings.TrimSpace(c.QueryParam("a")), 40)}
	after := c.QueryParam("b")
	if after == "" {
		after, props.Chosen = props.Chosen, ""
	}
	b, err := s.batchNamed(ctx, after)
	if err != nil {
		return props, err
	}
	props.B = comparedBatch(b)
	if props.Chosen == "" {
		id, err := s.store.CompareWith(ctx, b)
		if errors.Is(err, store.ErrNotFound) {
			return props, nil
		}
		if err != nil {
			return props, err
		}
		props.Chosen = idText(id)
	}
	a, err := s.batchNamed(ctx, props.Chosen)
	if err != nil && asProblem(c.Request().Context(), err).status != http.StatusNotFound {
		return props, err
	}
	if a == nil || a.ID == 0 {
		props.Errors = views.Errors{"a": "There is no batch of that number."}
		return props, nil
	}
	if a.ID == b.ID {
		props.Errors = views.Errors{"a": "It is the same batch: choose another one."}
		return props, nil
	}
	props.A, props.Picked = comparedBatch(a), true
	if why := pruned(ctx, a, b); why != "" {
		props.Errors = views.Errors{"a": why}
		return props, nil
	}
	err = s.fillComparison(c, a, b, &props)
	return props, err
}

// pruned says of which of two batches nothing is left to compare, if of one.
func pruned(ctx context.Context, both ...*store.Batch) string {
	for _, b := range both {
		if b.PrunedAt != nil {
			return views.Textf(ctx, "The items of batch %s were removed after the time for which batches are kept. There is nothing to compare.", idText(b.ID))
		}
	}
	return ""
}

// batchNamed is the batch that an address or a person names.
func (s *Server) batchNamed(ctx context.Context, text string) (*store.Batch, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 {
		return nil, notFound()
	}
	return s.store.Batch(ctx, id)
}

func comparedBatch(b *store.Batch) views.ComparedBatch {
	return views.ComparedBatch{ID: idText(b.ID), Name: b.Name, At: b.CreatedAt, Stored: views.Known(b.Stored())}
}

func (s *Server) fillComparison(c echo.Context, a, b *store.Batch, p *views.CompareBatchesProps) error {
	ctx := c.Request().Context()
	found, err := s.store.ComparisonOf(ctx, a.ID, b.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil // Nobody has asked.
	case err != nil:
		return err
	}
	p.State, p.Reason, p.At = found.State, found.Reason, orZero(found.EndedAt)
	p.Live = found.State == store.ComparisonWaiting
	if found.State != store.ComparisonDone {
		return nil
	}
	p.Stale = found.AStored != a.Stored() || found.BStored != b.Stored() ||
		found.AWithout != a.Failed+a.Cancelled || found.BWithout != b.Failed+b.Cancelled
	p.Pages, p.A.Pages, p.B.Pages = found.Pages(), found.APages, found.BPages
	kind := store.ComparedKind(c.QueryParam("kind"))
	if !slices.Contains(store.ComparedKinds(), kind) {
		kind = store.ComparedChanged
	}
	p.Kind = string(kind)
	for _, each := range store.ComparedKinds() {
		p.Kinds = append(p.Kinds, views.ComparedKind{Word: string(each), Count: views.Known(found.Of(each))})
	}
	return s.fillCompare(c, found.ID, kind, p)
}

// fillCompare reads a page of one of the lists.
func (s *Server) fillCompare(c echo.Context, id int64, kind store.ComparedKind, p *views.CompareBatchesProps) error {
	from, err := positionParam(c, 0)
	if err != nil {
		return err
	}
	rows, err := s.store.PageCompared(c.Request().Context(), id, kind, from, pageRows+1)
	if err != nil {
		return fmt.Errorf("list compared pages: %w", err)
	}
	rows, more := cut(rows, pageRows)
	last := ""
	for i := range rows {
		r := &rows[i]
		p.Rows = append(p.Rows, views.ComparedRow{
			URL: r.URL,
			A:   views.ComparedSidePage{Item: idOrNone(r.AItemID), State: string(r.AState), Size: knownOr(r.ASize)},
			B:   views.ComparedSidePage{Item: idOrNone(r.BItemID), State: string(r.BState), Size: knownOr(r.BSize)},
		})
		last = placeCursor(int64(r.N))
	}
	p.Pager = pager(c, cursorParam, more, last)
	return nil
}

// knownOr is a number, or that it isn't known.
func knownOr(n *int64) views.Count {
	if n == nil {
		return views.Count{}
	}
	return views.Known(*n)
}

// askComparison is POST /compare/batches.
func (s *Server) askComparison(c echo.Context) error {
	if err := parseForm(c.Request()); err != nil {
		return err
	}
	ctx := c.Request().Context()
	a, err := s.batchNamed(ctx, field(c, "a", 40))
	if err != nil {
		return err
	}
	b, err := s.batchNamed(ctx, field(c, "b", 40))
	if err != nil {
		return err
	}
	if a.ID == b.ID {
		return badRequest("It is the same batch: choose another one.", nil)
	}
	if why := pruned(ctx, a, b); why != "" {
		return badRequest(why, nil)
	}
	if err := s.pipeline.CompareBatches(ctx, a.ID, b.ID); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, compareBatchesPath+"?a="+idText(a.ID)+"&b="+idText(b.ID))
}

// compareLive is GET /compare/batches/live.
func (s *Server) compareLive(c echo.Context) error {
	a, err := s.batchNamed(c.Request().Context(), c.QueryParam("a"))
	if err != nil {
		return err
	}
	b, err := s.batchNamed(c.Request().Context(), c.QueryParam("b"))
	if err != nil {
		return err
	}
	return s.follow(c, overviewTopic, func(ctx context.Context) (string, bool, error) {
		found, err := s.store.ComparisonOf(ctx, a.ID, b.ID)
		if err != nil {
			return "", false, err
		}
		return found.State + idText(found.AskedAt.UnixMicro()), found.State != store.ComparisonWaiting, nil
	})
}
