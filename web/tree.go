package web

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

// asTree reports whether the pages of a batch are to be shown as a tree: those
// of a crawl are, unless a table or one state of them is asked for.
func asTree(c echo.Context, b *store.Batch) bool {
	return b.Kind == store.KindCrawl && c.QueryParam("view") != "table" && c.QueryParam("state") == ""
}

// treeLevel fills in one level of a crawl's pages.
func (s *Server) treeLevel(c echo.Context, b *store.Batch, props *views.BatchItemsProps) error {
	after, err := positionParam(c, -1)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	tree := &views.Tree{BatchID: idText(b.ID)}
	parent, err := s.treeTrail(c, b, tree)
	if err != nil {
		return err
	}
	rows, err := s.store.PageCrawl(ctx, b.ID, parent, after, pageRows+1)
	if err != nil {
		return err
	}
	rows, more := cut(rows, pageRows)
	last := ""
	for i := range rows {
		tree.Pages = append(tree.Pages, treePage(&rows[i]))
		last = placeCursor(int64(rows[i].Position))
	}
	props.Tree, props.Pager = tree, pager(c, cursorParam, more, last)
	return nil
}

// treeTrail reads which page the level is under; 0 for the roots.
func (s *Server) treeTrail(c echo.Context, b *store.Batch, tree *views.Tree) (int64, error) {
	text := c.QueryParam("parent")
	if text == "" {
		return 0, nil
	}
	parent, err := strconv.ParseInt(text, 10, 64)
	if err != nil || parent <= 0 {
		return 0, notFound()
	}
	trail, err := s.store.PageCrawlTrail(c.Request().Context(), b.ID, parent)
	if err != nil {
		return 0, err
	}
	if len(trail) == 0 {
		return 0, notFound()
	}
	for _, step := range trail {
		tree.Trail = append(tree.Trail, views.TreeStep{ID: idText(step.ID), URL: step.URL})
	}
	return parent, nil
}

func treePage(row *store.CrawlRow) views.TreePage {
	shown := itemRow(&row.ItemRow)
	return views.TreePage{
		ID: shown.ID, URL: shown.URL, State: shown.State, Net: shown.Net, Code: shown.Code, Message: shown.Message,
		Depth: row.CrawlPlace.Depth, Children: views.Known(row.Children), Bytes: shown.Bytes, At: shown.At,
	}
}

// withPlaces tells of each page of a crawl in a table where it was found.
func (s *Server) withPlaces(ctx context.Context, items []store.ItemRow, rows []views.ItemRow) error {
	ids := make([]int64, len(items))
	for i := range items {
		ids[i] = items[i].ID
	}
	places, err := s.store.PageCrawlPlaces(ctx, ids)
	if err != nil {
		return err
	}
	for i, id := range ids {
		place := places[id]
		rows[i].Depth, rows[i].Parent, rows[i].ParentID = place.Depth, place.ParentURL, idOrNone(place.ParentID)
	}
	return nil
}

// crawlSettings is how far a crawl was told to go, and from where.
func (s *Server) crawlSettings(ctx context.Context, b *store.Batch) (*views.CrawlSettings, error) {
	if b.Kind != store.KindCrawl {
		return nil, nil
	}
	var o pipeline.Options
	if err := json.Unmarshal(b.Options, &o); err != nil {
		return nil, fmt.Errorf("options of batch %d: %w", b.ID, err)
	}
	seed, err := s.store.PageItems(ctx, b.ID, "", -1, 1)
	if err != nil || o.Crawl == nil || len(seed) == 0 {
		return nil, err
	}
	return &views.CrawlSettings{
		Seed: seed[0].URL, SeedItem: idText(seed[0].ID), Depth: o.Crawl.Depth, Limit: o.Crawl.Limit,
		SameDomain: o.Crawl.SameDomainOnly, Subdomains: o.Crawl.IncludeSubdomains,
	}, nil
}

// found is where a crawl found an item; nil when none did.
func (s *Server) found(ctx context.Context, story *store.ItemStory) (*views.Found, error) {
	if story.BatchKind != store.KindCrawl {
		return nil, nil
	}
	page, err := s.store.PageCrawlPage(ctx, &story.Item)
	if err != nil || page == nil {
		return nil, err
	}
	return &views.Found{
		Depth: page.CrawlPlace.Depth, Parent: page.ParentURL, ParentID: idOrNone(page.ParentID), Children: views.Known(page.Children),
		TreePath: "/batches/" + idText(story.BatchID) + "/items?view=tree&parent=" + idText(story.ID) + "#items",
	}, nil
}
