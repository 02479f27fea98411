package web

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

// itemFilterProps reads the filter of a batch's items, its times in the zone,
// and fills in its form; a state that isn't one shows all items.
func itemFilterProps(ctx context.Context, values url.Values, zone *time.Location, b *store.Batch, props *views.BatchItemsProps) store.ItemFilter {
	typed := maps.Clone(values)
	typed.Del("batch")
	typed.Del("state")
	f, err := itemFilterOf(typed, zone)
	kept := itemFilterValues(f)
	get := func(name string) string { return clean(typed.Get(name), filterText) }
	props.Filter = views.ItemFilter{
		BatchID: idText(b.ID), State: props.Tabs.State, Table: props.Tabs.Crawl, URL: get("url"), Host: get("host"), Code: get("code"), Net: get("net"),
		HTTP: get("http"), MinBytes: get("min_bytes"), MaxBytes: get("max_bytes"), MinMS: get("min_ms"), MaxMS: get("max_ms"),
		Mark: get("mark"), Standing: get("standing"), Since: get("since"), Until: get("until"),
		Query: kept.Encode(), Used: len(kept) > 0 || err != nil, Errors: mistakesOf(ctx, err),
	}
	props.Tabs.Query = props.Filter.Query
	f.Batch = b.ID
	if props.Tabs.State != views.StateRejected {
		f.State = store.ItemState(props.Tabs.State)
	}
	return f
}

// fitItems lists the items that fit the filter and counts them, in as far as
// one look goes.
func (s *Server) fitItems(c echo.Context, b *store.Batch, f store.ItemFilter, after int, props *views.BatchItemsProps) error {
	ctx := c.Request().Context()
	found, err := s.store.PageFitItems(ctx, f, after, pageRows+1)
	if err != nil {
		return err
	}
	items, more := cut(found.Rows, pageRows)
	last := ""
	for i := range items {
		props.Items = append(props.Items, itemRow(&items[i]))
		last = placeCursor(int64(items[i].Position))
	}
	if found.Looked > 0 {
		more, last = true, placeCursor(int64(found.LookedTo))
		props.Looked = views.Known(found.Looked)
	}
	props.Pager = pager(c, cursorParam, more, last)
	if props.Filter.Used {
		n, err := s.store.CountFitItems(ctx, f)
		if err != nil {
			return err
		}
		props.Filter.Found = capped(n)
		if candidates(b, f.State) > f.Look() && n <= store.CountLimit {
			props.Filter.Among = views.Known(f.Look())
		}
	}
	if props.Tabs.Crawl {
		return s.withPlaces(ctx, items, props.Items)
	}
	return nil
}

// candidates is how many items a batch has in a state; all of them without.
func candidates(b *store.Batch, state store.ItemState) int64 {
	switch state {
	case store.ItemOutstanding:
		return b.Outstanding
	case store.ItemStored:
		return b.Stored()
	case store.ItemFailed:
		return b.Failed
	case store.ItemCancelled:
		return b.Cancelled
	}
	return b.Accepted
}

// itemRowsLive is GET /batches/{id}/items/rows: the present state of rows that a
// page shows, each for its place.
func (s *Server) itemRowsLive(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	ids, err := pickedIDs(c.Request().Context(), c.QueryParams(), "id")
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	batch, err := s.store.Batch(ctx, id)
	if err != nil {
		return err
	}
	rows, err := s.store.PageItemsByID(ctx, id, ids[:min(len(ids), 2*pageRows)])
	if err != nil {
		return fmt.Errorf("rows of batch %d: %w", id, err)
	}
	shown := make([]views.ItemRow, len(rows))
	for i := range rows {
		shown[i] = itemRow(&rows[i])
	}
	crawl := batch.Kind == store.KindCrawl
	if crawl {
		if err := s.withPlaces(ctx, rows, shown); err != nil {
			return err
		}
	}
	waiting, err := s.store.CountFailures(ctx, store.Failed{})
	if err != nil {
		return err
	}
	return render(c, http.StatusOK, views.ItemRowsLive(shown, crawl, capped(waiting)))
}
