package web

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
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
	query := c.QueryParams()
	filter, err := deliveryFilterOf(query, readerZone(c))
	props := views.DeliveriesProps{Filter: typedFilter(c, receivedPath, deliveryValues(filter), mistakesOf(c.Request().Context(), err))}
	props.Filter.Verdicts = verdictOptions()
	if props.Filter.Webhooks, err = s.webhookOptions(c, props.Filter.Webhook); err != nil {
		return err
	}
	if len(props.Filter.Errors) > 0 {
		return s.showDeliveries(c, http.StatusUnprocessableEntity, props)
	}
	if err := s.fillDeliveries(c, filter, from, &props); err != nil {
		return fmt.Errorf("list deliveries: %w", err)
	}
	return s.showDeliveries(c, http.StatusOK, props)
}

func (s *Server) fillDeliveries(c echo.Context, filter store.DeliveryFilter, from store.Key, props *views.DeliveriesProps) error {
	ctx := c.Request().Context()
	rows, err := s.store.PageDeliveries(ctx, filter, from, pageRows+1)
	if err != nil {
		return err
	}
	n, known, err := s.store.CountDeliveries(ctx, filter)
	if err != nil {
		return err
	}
	props.Filter.Total = countOf(n, known)
	rows, more := cut(rows, pageRows)
	last := ""
	for i := range rows {
		props.Deliveries = append(props.Deliveries, deliveryRow(ctx, &rows[i]))
		last = keyCursor(rows[i].ReceivedAt, rows[i].ID)
	}
	props.Pager = pager(c, cursorParam, more, last)
	props.ReplayAll = replayAllPath(deliveryValues(filter), fromReceived)
	props.Counted, err = s.refusedCounts(ctx, filter.Webhook)
	return err
}

// replayAllPath is the plan for all that fit a filter of one of the lists.
func replayAllPath(values url.Values, list string) string {
	values.Set(pickFrom, list)
	return address("/replays/new", values)
}

// typedFilter is a filter's form with what was typed, right or wrong, and with
// the choices that don't depend on the list. said is the filter as it was
// understood.
func typedFilter(c echo.Context, path string, said url.Values, wrong views.Errors) views.DeliveryFilter {
	r, zone := newFilterReader(c.QueryParams()), readerZone(c)
	return views.DeliveryFilter{
		Path: path, Webhook: r.typed("webhook"), Event: r.typed("event"), Verdict: r.typed("verdict"), Standing: r.typed("standing"),
		Status: r.typed("status"), Class: r.typed("class"), HTTP: r.typed("http"), Attempt: r.typed("attempt"), Job: r.typed("job"),
		Batch: r.typed("batch"), Since: asTyped(r.typed("since"), zone), Until: asTyped(r.typed("until"), zone), Events: eventOptions(r.typed("event")),
		Zone: zone.String(), Filtered: len(said) > 0 || len(wrong) > 0, Errors: wrong,
	}
}

// asTyped is a time as a person in the zone would type it, when an address says
// it the way that is the same everywhere.
func asTyped(text string, zone *time.Location) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	if at.Second() == 0 {
		return at.In(zone).Format("2006-01-02 15:04")
	}
	return at.In(zone).Format(time.DateTime)
}

// webhookOptions are all webhooks there ever were, and the one asked for.
func (s *Server) webhookOptions(c echo.Context, asked string) ([]views.Option, error) {
	names, err := s.store.PageWebhookNames(c.Request().Context())
	if err != nil {
		return nil, fmt.Errorf("name the webhooks: %w", err)
	}
	options := make([]views.Option, 0, len(names)+1)
	for _, name := range names {
		text := idText(name.ID) + ": " + name.EventType
		if name.State == store.WebhookRemoved {
			text = views.Textf(c.Request().Context(), "%s, removed", text)
		}
		options = append(options, views.Option{Value: idText(name.ID), Text: text})
	}
	return withAsked(options, asked), nil
}

// withAsked adds what is asked for, when it isn't among the choices.
func withAsked(options []views.Option, asked string) []views.Option {
	if asked == "" || slices.ContainsFunc(options, func(o views.Option) bool { return o.Value == asked }) {
		return options
	}
	return append(options, views.Option{Value: asked, Text: asked})
}

func verdictOptions() []views.Option {
	options := make([]views.Option, 0, 4)
	for _, each := range verdicts() {
		word := string(each)
		options = append(options, views.Option{Value: word, Text: strings.ToUpper(word[:1]) + word[1:]})
	}
	return options
}

// eventOptions are the vendor's three events, and the one asked for.
func eventOptions(asked string) []views.Option {
	options := make([]views.Option, 0, 4)
	for _, event := range []string{"extract_completed", "batch_completed", "crawl_completed"} {
		options = append(options, views.Option{Value: event, Text: event})
	}
	return withAsked(options, asked)
}

func deliveryRow(ctx context.Context, d *store.DeliveryRow) views.DeliveryRow {
	return views.DeliveryRow{
		ID: idText(d.ID), At: d.ReceivedAt, Event: d.EventType, Webhook: idOrNone(d.WebhookID), VendorID: d.VendorJobID,
		JobID: knownID(d.JobID), Verdict: string(d.Verdict), Reason: shortReason(&d.Delivery), RecoveredAt: orZero(d.RecoveredAt),
		Status: d.Status, Took: time.Duration(d.Micros) * time.Microsecond, Source: d.Source,
		Secret: secretText(ctx, &d.Delivery), Form: d.SignatureForm,
	}
}

// knownID is an id, or nothing when it is zero.
func knownID(id int64) string {
	if id == 0 {
		return ""
	}
	return idText(id)
}

func secretText(ctx context.Context, d *store.Delivery) string {
	if d.SecretVersion == nil {
		return ""
	}
	return views.Textf(ctx, "version %d", *d.SecretVersion)
}

// shortReason says in a few words why a delivery was refused: as it was looked
// into later, or as it was said at once.
func shortReason(d *store.Delivery) string {
	if d.Verdict != store.VerdictRefused && d.Verdict != store.VerdictUnreadable {
		return ""
	}
	if cause := shownCause(d); cause.Title != "" {
		return cause.Title
	}
	return d.Reason
}

// The bounds of what the page of a delivery shows of its body, in bytes.
const (
	textShown = 64 << 10
	hexShown  = 16 << 10
)

// delivery is GET /deliveries/{id}.
func (s *Server) delivery(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	story, err := s.store.PageDelivery(ctx, id, textShown)
	if err != nil {
		return err
	}
	props := deliveryProps(ctx, story)
	if story.JobID > 0 {
		job, err := s.store.PageJob(ctx, story.JobID)
		if err != nil {
			return fmt.Errorf("job of delivery %d: %w", id, err)
		}
		props.JobTimeline = timeline(ctx, job)
	}
	if props.Layout, err = s.layout(c, views.Textf(ctx, "Delivery %s", props.ID), views.SectionDeliveries); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Delivery(props))
}

func deliveryProps(ctx context.Context, story *store.DeliveryStory) views.DeliveryProps {
	row := deliveryRow(ctx, &story.DeliveryRow)
	p := views.DeliveryProps{
		ID: row.ID, At: row.At, Event: row.Event, VendorID: row.VendorID, JobID: row.JobID, Verdict: row.Verdict,
		Reason: story.Reason, RecoveredAt: row.RecoveredAt, SecretLost: story.SecretLost && story.RecoveredAt == nil,
		Status: row.Status, Took: row.Took, Source: row.Source, Webhook: row.Webhook, VendorName: story.VendorDeliveryID,
		Secret: row.Secret, Form: story.SignatureForm, BodyBytes: story.BodySize, KeptBytes: story.Kept,
		Gone: story.Kept == 0 && story.BodySize > 0, Cause: shownCause(&story.Delivery),
	}
	_, p.Unread = pipeline.Unread(&story.Delivery)
	if story.Webhook != nil {
		p.WebhookID = orZero(story.Webhook.VendorWebhookID)
	}
	if a := story.Attempt; a != nil {
		p.Attempt = attemptText(ctx, a)
		p.AttemptPath = attemptPath(a)
		if joined := orZero(a.DeliveryID); joined != 0 && joined != story.ID {
			p.SharedWith = idText(joined)
		}
	}
	p.Headers, p.ContentType = shownHeaders(story.Headers)
	p.Body, p.TextCut = shownText(story.Body, story.Kept)
	p.Dump, p.DumpCut = hex.Dump(story.Body[:min(len(story.Body), hexShown)]), story.Kept > hexShown
	return p
}

// attemptPath is the part of the vendor's log that an attempt is in.
func attemptPath(a *store.LogRow) string {
	f := store.LogFilter{Job: a.VendorJobID}
	if f.Job == "" {
		f = store.LogFilter{Webhook: a.WebhookID, From: a.CreatedAt, Until: a.CreatedAt.Add(time.Second)}
	}
	return address(logPath, logValues(f))
}

// attemptText is what the vendor's log says of an attempt, in a line.
func attemptText(ctx context.Context, a *store.LogRow) string {
	said := []string{}
	if a.Attempt > 0 {
		said = append(said, views.Textf(ctx, "attempt %d", a.Attempt))
	}
	if a.Status != "" {
		said = append(said, a.Status)
	}
	if a.HTTPStatus != nil {
		said = append(said, strconv.Itoa(*a.HTTPStatus))
	}
	if len(said) == 0 {
		return views.Textf(ctx, "listed")
	}
	return strings.Join(said, ", ")
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
	name = strings.ToLower(name)
	for _, part := range []string{"authorization", "cookie", "api-key", "apikey", "token", "secret", "password"} {
		if strings.Contains(name, part) {
			return "••••••"
		}
	}
	return value
}

// shownText is the beginning of a body as text, and whether more of it is kept;
// nothing when it isn't any.
func shownText(body []byte, kept int64) (string, bool) {
	text := body
	// The part that is read may end inside a character.
	for cutOff := 0; cutOff < utf8.UTFMax && len(text) > 0 && !utf8.Valid(text); cutOff++ {
		text = text[:len(text)-1]
	}
	if !utf8.Valid(text) || bytes.ContainsRune(text, 0) {
		return "", false
	}
	return string(text), kept > int64(len(body))
}

// deliveryBody is GET /deliveries/{id}/body: the bytes as they came, as far as
// they are kept, to be saved and never to be shown.
func (s *Server) deliveryBody(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	body, err := s.store.DeliveryBody(ctx, id)
	if err != nil {
		return err
	}
	if c.Request().Method != http.MethodHead {
		err := s.store.Audit(ctx, s.now(), store.Change{
			What: "export.delivery", Kind: "delivery", ID: idText(id), After: map[string]int{"bytes": len(body)},
		})
		if err != nil {
			return fmt.Errorf("download delivery %d: %w", id, err)
		}
	}
	header := c.Response().Header()
	header.Set(echo.HeaderContentDisposition, `attachment; filename="delivery-`+idText(id)+`.bin"`)
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	return c.Blob(http.StatusOK, echo.MIMEOctetStream, body)
}
