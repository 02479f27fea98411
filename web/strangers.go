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

// strangers is GET /deliveries?about=foreign, or held: the jobs that were
// delivered here and aren't, or aren't yet, known to be ours.
func (s *Server) strangers(c echo.Context, about string) error {
	from, err := strangerParam(c)
	if err != nil {
		return err
	}
	rows, err := s.store.PageStrangers(c.Request().Context(), store.EventState(about), from, pageRows+1)
	if err != nil {
		return fmt.Errorf("list strangers: %w", err)
	}
	rows, more := cut(rows, pageRows)
	props := views.DeliveriesProps{About: about}
	last := ""
	for i := range rows {
		row := views.StrangerRow{
			VendorID: rows[i].VendorJobID, Event: rows[i].EventType, At: rows[i].ReceivedAt, Deliveries: views.Known(rows[i].Deliveries),
		}
		if rows[i].DeliveryID > 0 {
			row.DeliveryID = idText(rows[i].DeliveryID)
		}
		props.Strangers = append(props.Strangers, row)
		last = strangerCursor(&rows[i])
	}
	props.Pager = pager(c, cursorParam, more, last)
	return s.showDeliveries(c, props)
}

// showDeliveries adds what every page of deliveries has.
func (s *Server) showDeliveries(c echo.Context, props views.DeliveriesProps) error {
	var err error
	if props.Foreign, props.Held, err = s.countStrangers(c.Request().Context()); err != nil {
		return err
	}
	if props.Layout, err = s.layout(c, "Deliveries", views.SectionDeliveries); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Deliveries(props))
}

// countStrangers counts foreign and held jobs.
func (s *Server) countStrangers(ctx context.Context) (views.Count, views.Count, error) {
	foreign, err := s.store.CountStrangers(ctx, store.EventForeign)
	if err != nil {
		return views.Count{}, views.Count{}, fmt.Errorf("count foreign jobs: %w", err)
	}
	held, err := s.store.CountStrangers(ctx, store.EventHeld)
	if err != nil {
		return views.Count{}, views.Count{}, fmt.Errorf("count held jobs: %w", err)
	}
	return capped(foreign), capped(held), nil
}

func (s *Server) overviewStrangers(ctx context.Context, p *views.OverviewProps) error {
	var err error
	p.Foreign, p.Held, err = s.countStrangers(ctx)
	return err
}

// maxVendorID is the longest id of a vendor's job, in bytes.
const maxVendorID = 800

// strangerParam reads where a list by time and vendor's id goes on.
func strangerParam(c echo.Context) (store.StrangerKey, error) {
	text := c.QueryParam(cursorParam)
	if text == "" {
		return store.StrangerKey{}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) <= 8 || len(raw) > 8+maxVendorID {
		return store.StrangerKey{}, damagedLink()
	}
	at := time.UnixMicro(int64(binary.BigEndian.Uint64(raw[:8]))).UTC() //nolint:gosec // The same bits back.
	id := string(raw[8:])
	if at.Year() < 1 || at.Year() > 9999 || store.CleanText(id) != id {
		return store.StrangerKey{}, damagedLink()
	}
	return store.StrangerKey{At: at, VendorJobID: id}, nil
}

func strangerCursor(row *store.StrangerRow) string {
	raw := binary.BigEndian.AppendUint64(nil, uint64(row.ReceivedAt.UnixMicro()))
	return base64.RawURLEncoding.EncodeToString(append(raw, row.VendorJobID...))
}
