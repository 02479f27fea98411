package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

// jobsParam is the cursor of the jobs on a batch's page, beside its items'.
const jobsParam = "jobs"

// batches is GET /batches.
func (s *Server) batches(c echo.Context) error {
	from, err := keyParam(c)
	if err != nil {
		return err
	}
	name := clean(c.QueryParam("name"), 200)
	rows, err := s.store.PageBatches(c.Request().Context(), name, from, pageRows+1)
	if err != nil {
		return fmt.Errorf("list batches: %w", err)
	}
	l, err := s.layout(c, "Batches", views.SectionBatches)
	if err != nil {
		return err
	}
	rows, more := cut(rows, pageRows)
	props := views.BatchesProps{Layout: l, Name: name, Batches: batchRows(c.Request().Context(), rows)}
	last := ""
	if more {
		last = keyCursor(rows[len(rows)-1].CreatedAt, rows[len(rows)-1].ID)
	}
	props.Pager = pager(c, cursorParam, more, last)
	return render(c, http.StatusOK, views.Batches(props))
}

func batchRows(ctx context.Context, rows []store.BatchRow) []views.BatchRow {
	shown := make([]views.BatchRow, len(rows))
	for i := range rows {
		b := &rows[i]
		shown[i] = views.BatchRow{
			ID: idText(b.ID), Name: b.Name, Kind: string(b.Kind), By: someone(ctx, b.By), CreatedAt: b.CreatedAt,
			RollCall: rollCall(&b.Batch),
		}
	}
	return shown
}

// batch is GET /batches/{id} and, with a tab of items chosen, /batches/{id}/items.
func (s *Server) batch(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	row, err := s.store.PageBatch(ctx, id)
	if err != nil {
		return err
	}
	props := views.BatchProps{
		Rejected: row.Invalid+row.Duplicate > 0 && row.PrunedAt == nil, PrunedAt: orZero(row.PrunedAt),
		ID: idText(id), Name: row.Name, Kind: string(row.Kind), By: someone(ctx, row.By), CreatedAt: row.CreatedAt,
		RollCall: rollCall(&row.Batch), MayCancel: mayCancelBatch(&row.Batch), CancelAt: orZero(row.CancelRequestedAt),
	}
	if props.Options, err = batchOptions(&row.Batch); err != nil {
		return err
	}
	if props.Crawl, err = s.crawlSettings(ctx, &row.Batch); err != nil {
		return err
	}
	if err := s.batchJobs(c, id, &props); err != nil {
		return fmt.Errorf("jobs of batch %d: %w", id, err)
	}
	if err := s.batchFacts(ctx, &row.Batch, &props); err != nil {
		return fmt.Errorf("facts of batch %d: %w", id, err)
	}
	if props.Items, err = s.batchItems(c, &row.Batch); err != nil {
		return fmt.Errorf("items of batch %d: %w", id, err)
	}
	// A stream shows the newest jobs; a page with older ones stands still.
	props.Live = row.EndedAt == nil && c.QueryParam(jobsParam) == ""
	if props.Live {
		props.Items.Self = itemsPath(c, props.ID)
	}
	if props.Layout, err = s.layout(c, row.Name, views.SectionBatches); err != nil {
		return err
	}
	if props.Live {
		props.Layout.Scripts = append(props.Layout.Scripts, "batch.js")
	}
	status := http.StatusOK
	if len(props.Items.Filter.Errors) > 0 {
		status = http.StatusUnprocessableEntity
	}
	return render(c, status, views.Batch(props))
}

// batchGroups is how many groups of its failures a batch's page shows.
const batchGroups = 5

// batchFacts is what a batch's page shows beside its items and jobs.
func (s *Server) batchFacts(ctx context.Context, b *store.Batch, props *views.BatchProps) error {
	var err error
	if props.Pace, err = s.pace(ctx, b); err != nil {
		return err
	}
	if props.Stuck, err = s.stuckOf(ctx, b, stuckShown); err != nil {
		return err
	}
	if props.Rerun, err = s.rerunLineOf(ctx, b); err != nil {
		return err
	}
	if props.CancelBy, err = s.cancelledBy(ctx, b); err != nil {
		return err
	}
	props.Failures, err = s.batchFailures(ctx, b)
	return err
}

// cancelledBy is who asked that a batch be cancelled; empty when nobody did,
// and when the audit log has forgotten.
func (s *Server) cancelledBy(ctx context.Context, b *store.Batch) (string, error) {
	if b.CancelRequestedAt == nil {
		return "", nil
	}
	return s.store.CancelledBy(ctx, b.ID, *b.CancelRequestedAt)
}

// batchFailures are the largest groups of a batch's failures that wait.
func (s *Server) batchFailures(ctx context.Context, b *store.Batch) (views.FailureGroups, error) {
	if b.Failed == 0 {
		return views.FailureGroups{}, nil
	}
	return s.failureGroups(ctx, store.Failed{BatchID: b.ID, Standing: store.FailureWaiting}, batchGroups)
}

// itemsPath is where the items of this very view can be asked for again.
func itemsPath(c echo.Context, id string) string {
	kept := url.Values{}
	for _, name := range append([]string{"view", "parent", cursorParam}, itemFilterNames()...) {
		if value := c.QueryParam(name); value != "" {
			kept.Set(name, value)
		}
	}
	return address("/batches/"+id+"/items", kept)
}

func (s *Server) batchJobs(c echo.Context, id int64, props *views.BatchProps) error {
	before, err := placeParam(c, jobsParam, 0)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	jobs, err := s.store.PageJobs(ctx, id, before, jobRows+1)
	if err != nil {
		return err
	}
	total, err := s.store.CountJobs(ctx, id)
	if err != nil {
		return err
	}
	jobs, more := cut(jobs, jobRows)
	if props.Vendor, err = s.atWork(ctx, id); err != nil {
		return err
	}
	props.Jobs, props.JobsTotal = jobRowsOf(jobs), capped(total)
	last := ""
	if more {
		last = placeCursor(jobs[len(jobs)-1].ID)
	}
	props.JobsPager = pager(c, jobsParam, more, last)
	return nil
}

// atWork is how far the vendor says it is with a batch.
func (s *Server) atWork(ctx context.Context, id int64) (views.AtWork, error) {
	sum, err := s.store.PageAtWork(ctx, id)
	return views.AtWork{
		Jobs: views.Known(sum.Jobs), Reported: views.Known(sum.Reported), Done: views.Known(sum.Done), Total: views.Known(sum.Total),
	}, err
}

func (s *Server) batchItems(c echo.Context, b *store.Batch) (views.BatchItemsProps, error) {
	props := views.BatchItemsProps{Tabs: itemTabs(b, c.QueryParam("state"))}
	if asTree(c, b) {
		props.Tabs.Tree = true
		err := s.treeLevel(c, b, &props)
		return props, err
	}
	after, err := positionParam(c, -1)
	if err != nil {
		return props, err
	}
	ctx := c.Request().Context()
	filter := itemFilterProps(c.Request().Context(), c.QueryParams(), readerZone(c), b, &props)
	if props.Tabs.State == views.StateRejected {
		lines, err := s.store.PageRejected(ctx, b.ID, after, pageRows+1)
		lines, more := cut(lines, pageRows)
		last := ""
		for _, line := range lines {
			props.Rejected = append(props.Rejected, views.RejectedLine{
				Number: line.Line, Text: line.Text, State: line.Kind, Reason: line.Reason, StoredItem: idOrNone(line.StoredItem),
			})
			last = placeCursor(int64(line.Line))
		}
		props.Pager = pager(c, cursorParam, more, last)
		return props, err
	}
	if len(props.Filter.Errors) > 0 {
		return props, nil
	}
	err = s.fitItems(c, b, filter, after, &props)
	return props, err
}

// itemTabs counts from the batch's own counters; a state that isn't one shows
// all items.
func itemTabs(b *store.Batch, state string) views.ItemTabs {
	switch state {
	case views.StateRejected, string(store.ItemOutstanding), string(store.ItemStored), string(store.ItemFailed),
		string(store.ItemCancelled):
	default:
		state = views.StateAll
	}
	return views.ItemTabs{
		BatchID: idText(b.ID), Crawl: b.Kind == store.KindCrawl, State: state, All: views.Known(b.Accepted), Outstanding: views.Known(b.Outstanding),
		Stored: views.Known(b.Stored()), Failed: views.Known(b.Failed), Cancelled: views.Known(b.Cancelled),
		Rejected: views.Known(b.Invalid + b.Duplicate),
	}
}

func batchOptions(b *store.Batch) (views.BatchOptions, error) {
	var o pipeline.Options
	if err := json.Unmarshal(b.Options, &o); err != nil {
		return views.BatchOptions{}, fmt.Errorf("options of batch %d: %w", b.ID, err)
	}
	shown := views.BatchOptions{
		Formats: o.Formats, RenderJS: o.RenderJS, ProxyCountry: o.ProxyCountry, ProxyType: o.ProxyType,
		WaitUntil: o.WaitUntil, WaitFor: o.WaitFor, ExtractLinks: o.ExtractLinks,
	}
	if o.WaitTimeoutMS > 0 {
		shown.WaitTimeout = (time.Duration(o.WaitTimeoutMS) * time.Millisecond).String()
	}
	if len(b.HeadersSealed) > 0 {
		shown.HeaderNames = []string{"Custom headers"}
	}
	return shown, nil
}

// batchLive is GET /batches/{id}/live.
func (s *Server) batchLive(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	if _, err := s.store.Batch(c.Request().Context(), id); err != nil {
		return err
	}
	return s.live.serve(c, id)
}

// batchMoved is what may have moved in a batch, the same for everybody who
// looks: the groups of its failures when they are asked for, and at the end. The
// second value says that the batch has ended.
func (s *Server) batchMoved(ctx context.Context, id int64, failures bool) (views.BatchLiveProps, bool, error) {
	b, err := s.store.Batch(ctx, id)
	if err != nil {
		return views.BatchLiveProps{}, false, err
	}
	jobs, err := s.store.PageJobs(ctx, id, 0, jobRows)
	if err != nil {
		return views.BatchLiveProps{}, false, err
	}
	total, err := s.store.CountJobs(ctx, id)
	if err != nil {
		return views.BatchLiveProps{}, false, err
	}
	vendor, err := s.atWork(ctx, id)
	if err != nil {
		return views.BatchLiveProps{}, false, err
	}
	by, err := s.cancelledBy(ctx, b)
	if err != nil {
		return views.BatchLiveProps{}, false, err
	}
	pace, err := s.pace(ctx, b)
	if err != nil {
		return views.BatchLiveProps{}, false, err
	}
	tabs, over := itemTabs(b, views.StateAll), b.EndedAt != nil && still(jobs)
	moved := views.BatchLiveProps{
		Pace: pace, RollCall: rollCall(b), Vendor: vendor, Jobs: jobRowsOf(jobs), JobsTotal: capped(total), Tabs: &tabs,
		ID: idText(id), MayCancel: mayCancelBatch(b), CancelAt: orZero(b.CancelRequestedAt), CancelBy: by,
	}
	if failures || over {
		groups, err := s.batchFailures(ctx, b)
		if err != nil {
			return views.BatchLiveProps{}, false, err
		}
		moved.Failures = &groups
	}
	return moved, over, nil
}

// mayCancelBatch reports a batch of which something may be left to stop.
func mayCancelBatch(b *store.Batch) bool { return b.EndedAt == nil && b.Kind != store.KindSync }

// still reports whether none of the jobs will change by itself any more: the
// last one settles a moment after its last item is stored.
func still(jobs []store.JobRow) bool {
	for i := range jobs {
		if !ended(jobs[i].State) {
			return false
		}
	}
	return true
}
