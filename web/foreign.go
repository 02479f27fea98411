package web

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

// foreign is GET /deliveries?about=foreign, or held: the jobs that were
// delivered here and aren't, or aren't yet, known to be ours.
func (s *Server) foreign(c echo.Context, about string) error {
	from, err := eventParam(c)
	if err != nil {
		return err
	}
	rows, err := s.store.PageEvents(c.Request().Context(), store.EventState(about), from, pageRows+1)
	if err != nil {
		return fmt.Errorf("list foreign jobs: %w", err)
	}
	rows, more := cut(rows, pageRows)
	props := views.DeliveriesProps{About: about}
	last := ""
	for i := range rows {
		row := views.EventRow{
			VendorID: rows[i].VendorJobID, Event: rows[i].EventType, At: rows[i].ReceivedAt, Deliveries: views.Known(rows[i].Deliveries),
		}
		if rows[i].DeliveryID > 0 {
			row.DeliveryID = idText(rows[i].DeliveryID)
		}
		props.Jobs = append(props.Jobs, row)
		last = eventCursor(&rows[i])
	}
	props.Pager = pager(c, cursorParam, more, last)
	return s.showDeliveries(c, http.StatusOK, props)
}

// showDeliveries adds what every page of deliveries has.
func (s *Server) showDeliveries(c echo.Context, status int, props views.DeliveriesProps) error {
	var err error
	if props.Foreign, props.Held, err = s.countForeign(c.Request().Context()); err != nil {
		return err
	}
	if props.Layout, err = s.layout(c, "Deliveries", views.SectionDeliveries); err != nil {
		return err
	}
	return render(c, status, views.Deliveries(props))
}

// countForeign counts foreign and held jobs.
func (s *Server) countForeign(ctx context.Context) (views.Count, views.Count, error) {
	foreign, err := s.store.CountEvents(ctx, store.EventForeign)
	if err != nil {
		return views.Count{}, views.Count{}, fmt.Errorf("count foreign jobs: %w", err)
	}
	held, err := s.store.CountEvents(ctx, store.EventHeld)
	if err != nil {
		return views.Count{}, views.Count{}, fmt.Errorf("count held jobs: %w", err)
	}
	return capped(foreign), capped(held), nil
}

func (s *Server) overviewForeign(ctx context.Context, p *views.OverviewProps) error {
	var err error
	p.Foreign, p.Held, err = s.countForeign(ctx)
	return err
}

// maxVendorID is the longest id of a vendor's job, in bytes.
const maxVendorID = 800

// eventParam reads where a list by time and vendor's id goes on.
func eventParam(c echo.Context) (store.EventKey, error) {
	text := c.QueryParam(cursorParam)
	if text == "" {
		return store.EventKey{}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) <= 8 || len(raw) > 8+maxVendorID {
		return store.EventKey{}, damagedLink()
	}
	at := time.UnixMicro(int64(binary.BigEndian.Uint64(raw[:8]))).UTC() //nolint:gosec // The same bits back.
	id := string(raw[8:])
	if at.Year() < 1 || at.Year() > 9999 || store.CleanText(id) != id {
		return store.EventKey{}, damagedLink()
	}
	return store.EventKey{At: at, VendorJobID: id}, nil
}

func eventCursor(row *store.EventRow) string {
	raw := binary.BigEndian.AppendUint64(nil, uint64(row.ReceivedAt.UnixMicro()))
	return base64.RawURLEncoding.EncodeToString(append(raw, row.VendorJobID...))
}
