package web

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

// deliveries is GET /deliveries.
func (s *Server) deliveries(c echo.Context) error {
	switch about := c.QueryParam("about"); about {
	case views.AboutForeign, views.AboutHeld:
		return s.foreign(c, about)
	}
	from, err := keyParam(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	filter := store.DeliveryFilter{Verdict: verdictParam(c), Event: clean(c.QueryParam("event"), 100)}
	rows, err := s.store.PageDeliveries(ctx, filter, from, pageRows+1)
	if err != nil {
		return fmt.Errorf("list deliveries: %w", err)
	}
	rows, more := cut(rows, pageRows)
	props := views.DeliveriesProps{
		Verdict: string(filter.Verdict), Event: filter.Event, Verdicts: verdictOptions(), Events: eventOptions(filter.Event),
	}
	last := ""
	for i := range rows {
		props.Deliveries = append(props.Deliveries, deliveryRow(&rows[i]))
		last = keyCursor(rows[i].ReceivedAt, rows[i].ID)
	}
	props.Pager = pager(c, cursorParam, more, last)
	if props.Counted, err = s.refusedCounts(ctx, 0); err != nil {
		return err
	}
	return s.showDeliveries(c, props)
}

func verdictParam(c echo.Context) store.Verdict {
	asked := store.Verdict(c.QueryParam("verdict"))
	for _, each := range verdictOptions() {
		if each.Value == string(asked) {
			return asked
		}
	}
	return ""
}

func verdictOptions() []views.Option {
	return []views.Option{
		{Value: string(store.VerdictAccepted), Text: "Accepted"},
		{Value: string(store.VerdictDuplicate), Text: "Duplicate"},
		{Value: string(store.VerdictRefused), Text: "Refused"},
		{Value: string(store.VerdictUnreadable), Text: "Unreadable"},
	}
}

// eventOptions are the vendor's three events, and the one asked for.
func eventOptions(asked string) []views.Option {
	options := make([]views.Option, 0, 4)
	for _, event := range []string{"extract_completed", "batch_completed", "crawl_completed"} {
		options = append(options, views.Option{Value: event, Text: event})
		if event == asked {
			asked = ""
		}
	}
	if asked != "" {
		options = append(options, views.Option{Value: asked, Text: asked})
	}
	return options
}

func deliveryRow(d *store.DeliveryRow) views.DeliveryRow {
	row := views.DeliveryRow{
		ID: idText(d.ID), At: d.ReceivedAt, Event: d.EventType, VendorID: d.VendorJobID, Verdict: string(d.Verdict),
		Status: d.Status, Took: time.Duration(d.Micros) * time.Microsecond, Source: d.Source,
	}
	if d.JobID > 0 {
		row.JobID = idText(d.JobID)
	}
	return row
}

// delivery is GET /deliveries/{id}.
func (s *Server) delivery(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	story, err := s.store.PageDelivery(c.Request().Context(), id)
	if err != nil {
		return err
	}
	props := deliveryProps(story)
	if props.Layout, err = s.layout(c, "Delivery "+props.ID, views.SectionDeliveries); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Delivery(props))
}

func deliveryProps(story *store.DeliveryStory) views.DeliveryProps {
	row := deliveryRow(&story.DeliveryRow)
	p := views.DeliveryProps{
		ID: row.ID, At: row.At, Event: row.Event, VendorID: row.VendorID, JobID: row.JobID, Verdict: row.Verdict,
		Reason: story.Reason, Status: row.Status, Took: row.Took, Source: row.Source, Form: story.SignatureForm,
		BodyBytes: story.BodySize, BodyCut: story.BodySize > int64(len(story.Body)),
	}
	if story.Webhook != nil {
		p.WebhookID = orZero(story.Webhook.VendorWebhookID)
	}
	if story.SecretVersion != nil {
		p.Secret = fmt.Sprintf("version %d", *story.SecretVersion)
	}
	p.Cause = shownCause(&story.Delivery)
	p.Headers, p.ContentType = shownHeaders(story.Headers)
	p.Body, p.BodyIsHex = shownBody(story.Body)
	return p
}

// shownHeaders reads the headers as the pipeline keeps them: JSON, a list of
// values by name. Values that open doors elsewhere are masked; a signature is
// none, it opens nothing without its body and secret, and it is what one looks
// for here.
func shownHeaders(kept []byte) ([]views.Pair, string) {
	var headers map[string][]string
	if json.Unmarshal(kept, &headers) != nil {
		return nil, "" // Removed with the body after the time they are kept for.
	}
	var pairs []views.Pair
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		for _, value := range headers[name] {
			pairs = append(pairs, views.Pair{Name: name, Value: maskedHeader(name, clean(value, 4000))})
		}
	}
	return pairs, http.Header(headers).Get(echo.HeaderContentType)
}

func maskedHeader(name, value string) string {
	switch strings.ToLower(name) {
	case "authorization", "cookie", "proxy-authorization", "x-api-key":
		return "••••••"
	}
	return value
}

// hexShown bounds the dump of a body that isn't text.
const hexShown = 16 << 10

// shownBody is the body as text, or as a hex dump when it isn't any.
func shownBody(body []byte) (string, bool) {
	text := body
	// The part that is kept may end inside a character.
	for cutOff := 0; cutOff < utf8.UTFMax && len(text) > 0 && !utf8.Valid(text); cutOff++ {
		text = text[:len(text)-1]
	}
	if utf8.Valid(text) && !bytes.ContainsRune(text, 0) {
		return string(text), false
	}
	return hex.Dump(body[:min(len(body), hexShown)]), true
}
