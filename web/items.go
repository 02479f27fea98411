package web

import (
	"context"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

// titleShown is how much of a URL stands in a window's title.
const titleShown = 200

// item is GET /items/{id}.
func (s *Server) item(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	story, err := s.store.PageItem(ctx, id)
	if err != nil {
		return err
	}
	props := itemProps(ctx, story)
	props.Line = itemLine(story.Line, story.Original, story.URL)
	if props.Found, err = s.found(ctx, story); err != nil {
		return fmt.Errorf("place of item %d: %w", id, err)
	}
	if props.Found != nil && props.Found.Parent != "" {
		props.Place = 0
	}
	if props.Columns, err = s.lineColumns(ctx, id); err != nil {
		return err
	}
	if err := s.fillTried(ctx, story, &props); err != nil {
		return fmt.Errorf("answer of item %d: %w", id, err)
	}
	if props.Layout, err = s.layout(c, views.Textf(ctx, "Item %s", clean(story.URL, titleShown)), views.SectionBatches); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Item(props))
}

func itemProps(ctx context.Context, story *store.ItemStory) views.ItemProps {
	p := views.ItemProps{
		ID: idText(story.ID), URL: story.URL, Place: story.Position, State: string(story.State),
		Net: string(orZero(story.Net)), BatchID: idText(story.BatchID), BatchName: story.BatchName,
		HasResult: story.HasResult, Code: story.ErrorCode, Message: story.ErrorMessage, Retryable: story.ErrorRetryable,
		CreatedAt: story.CreatedAt, AnswerAt: orZero(story.EndedAt), Live: story.State == store.ItemOutstanding,
		MayResubmit: story.State == store.ItemFailed || story.State == store.ItemCancelled, Sync: syncCall(story.Sync),
	}
	if story.State == store.ItemStored {
		p.Code, p.Message = "", ""
	}
	if story.ResolvedAt != nil {
		p.Resolved = &views.Resolved{At: *story.ResolvedAt, By: someone(ctx, story.Resolver), Note: story.ResolvedNote}
	}
	for i := range story.Lineage {
		p.Lineage = append(p.Lineage, lineageRow(story, &story.Lineage[i]))
	}
	return p
}

// itemLine says where an item stands in the list that was submitted, and how its URL was spelled there.
func itemLine(number *int, original *string, url string) views.ItemLine {
	var l views.ItemLine
	if number != nil {
		l.Number = views.Known(int64(*number))
	}
	if original != nil {
		l.Original, l.Mended = clean(*original, lineShown), pipeline.Mended(*original, url)
	}
	return l
}

func lineageRow(story *store.ItemStory, step *store.LineageStep) views.LineageRow {
	return views.LineageRow{
		JobID: idText(step.JobID), VendorID: step.VendorJobID, Kind: string(step.Kind), State: string(step.State),
		Net: string(step.Net), InputIndex: step.InputIndex, Origin: string(step.Origin),
		Current: story.CurrentJobID != nil && *story.CurrentJobID == step.JobID,
		Outcome: string(step.Outcome), Code: step.ErrorCode, Message: step.ErrorMessage,
		Charged:   step.Outcome == store.OutcomeSuperseded,
		CreatedAt: step.CreatedAt, SettledAt: orZero(step.EndedAt),
	}
}

func syncCall(call *store.SyncCall) *views.SyncCall {
	if call == nil {
		return nil
	}
	shown := &views.SyncCall{Made: call.CreatedAt, CalledAt: orZero(call.CalledAt), EndedAt: orZero(call.EndedAt), Note: call.Note}
	if call.CalledAt != nil && call.LeaseUntil != nil {
		shown.AtMost = call.LeaseUntil.Sub(*call.CalledAt)
	}
	return shown
}

// fillTried puts the answer itself on the page of a URL that was tried now, when
// there is Markdown to read.
func (s *Server) fillTried(ctx context.Context, story *store.ItemStory, p *views.ItemProps) error {
	if story.Sync == nil || !story.HasResult {
		return nil
	}
	facts, err := s.store.PageResult(ctx, story.ID)
	if err != nil || facts.MarkdownSize < 0 {
		return err
	}
	p.Cut = facts.MarkdownSize > shownRendered
	p.SafeHTML, err = s.readMarkdown(ctx, story.ID, story.URL)
	return err
}

func itemRow(row *store.ItemRow) views.ItemRow {
	v := views.ItemRow{
		ID: idText(row.ID), URL: row.URL, State: string(row.State), Net: string(orZero(row.Net)),
		JobID: idOrNone(row.CurrentJobID), Attempts: row.Attempts, Bytes: row.Bytes, At: latest(row.CreatedAt, row.EndedAt),
	}
	if row.State != store.ItemStored {
		v.Code, v.Message = row.ErrorCode, row.ErrorMessage
	}
	return v
}
