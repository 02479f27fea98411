package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

// item is GET /items/{id}.
func (s *Server) item(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	story, err := s.store.PageItem(c.Request().Context(), id)
	if err != nil {
		return err
	}
	l, err := s.layout(c, "Item", views.SectionBatches)
	if err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Item(itemProps(l, story)))
}

func itemProps(l views.Layout, story *store.ItemStory) views.ItemProps {
	p := views.ItemProps{
		Layout: l, ID: idText(story.ID), URL: story.URL, Line: story.Position, State: string(story.State),
		Net: string(orZero(story.Net)), BatchID: idText(story.BatchID), BatchName: story.BatchName,
		HasResult: story.HasResult, Code: story.ErrorCode, Message: story.ErrorMessage, Retryable: story.ErrorRetryable,
		CreatedAt: story.CreatedAt, AnswerAt: orZero(story.EndedAt),
	}
	if story.State == store.ItemStored {
		p.Code, p.Message = "", ""
	}
	for _, step := range story.Lineage {
		p.Lineage = append(p.Lineage, views.LineageRow{
			JobID: idText(step.JobID), VendorID: step.VendorJobID, State: string(step.State), Net: string(step.Net),
			InputIndex: step.InputIndex, Current: story.CurrentJobID != nil && *story.CurrentJobID == step.JobID,
			CreatedAt: step.CreatedAt, SettledAt: orZero(step.EndedAt),
		})
	}
	return p
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
