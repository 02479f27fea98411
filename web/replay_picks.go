package web

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

// The fields of an address that names what is to be replayed: from says which
// list a filter is of, pick a row that was ticked, of either list, and settle a
// job by our id.
const (
	pickFrom     = "from"
	fromLog      = "log"
	fromReceived = "received"
	pickRow      = "pick"
	pickJob      = "settle"
)

// The lists that replays are picked from.
const (
	receivedPath = "/deliveries"
	logPath      = "/deliveries/log"
)

// replayPicked is what an address or a form says is to be replayed.
type replayPicked struct {
	picks    store.ReplayPicks
	words    func(context.Context) string
	address  string // The list it was picked from.
	backText string
	lines    views.Count
	fields   []views.Option // The same as hidden fields; Text is the value.
	nothing  bool
}

func (p *replayPicked) back() string {
	if p.address == "" {
		return logPath
	}
	return p.address
}

// replayPicks reads what is to be replayed: rows that were ticked or, without
// any, all that match the filter of the list named.
func (s *Server) replayPicks(c echo.Context, values url.Values) (*replayPicked, error) {
	ctx := c.Request().Context()
	p := &replayPicked{backText: views.Textf(ctx, "Deliveries"), words: func(context.Context) string { return "" }}
	rows, jobs := values[pickRow], values[pickJob]
	switch {
	case len(rows)+len(jobs) > maxPicked:
		return nil, tooManyPicked(ctx)
	case len(rows)+len(jobs) > 0:
		err := p.ticked(rows, jobs)
		return p, err
	case values.Get(pickFrom) == fromLog:
		err := s.wholeLog(c, p, values)
		return p, err
	case values.Get(pickFrom) == fromReceived:
		err := s.allReceived(c, p, values)
		return p, err
	}
	p.nothing = true
	return p, nil
}

// ticked reads rows: a number is a delivery of ours, anything with dots a line
// of the vendor's log.
func (p *replayPicked) ticked(rows, jobs []string) error {
	for _, text := range rows {
		if id, err := strconv.ParseInt(text, 10, 64); err == nil && id > 0 {
			p.picks.DeliveryIDs = append(p.picks.DeliveryIDs, id)
		} else if key, ok := logKeyOf(text); ok {
			p.picks.LogRows = append(p.picks.LogRows, key)
		} else {
			return unknownRow()
		}
		p.fields = append(p.fields, views.Option{Value: pickRow, Text: text})
	}
	for _, text := range jobs {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id <= 0 {
			return unknownRow()
		}
		p.picks.JobIDs = append(p.picks.JobIDs, id)
		p.fields = append(p.fields, views.Option{Value: pickJob, Text: text})
	}
	p.lines, p.address = views.Known(int64(len(p.fields))), logPath
	if len(p.picks.LogRows) == 0 {
		p.address = receivedPath
	}
	p.words = func(ctx context.Context) string {
		if len(p.fields) == 1 {
			return views.Textf(ctx, "one row that was picked")
		}
		return views.Textf(ctx, "rows that were ticked")
	}
	return nil
}

func unknownRow() error {
	return badRequest("One of the rows can't be found again. Go back and tick them once more.", nil)
}

// logKeyOf reads webhook.attempt.id, of which the id may hold dots.
func logKeyOf(text string) (store.LogKey, bool) {
	parts := strings.SplitN(text, ".", 3)
	if len(parts) != 3 || parts[2] == "" || len(text) > 400 {
		return store.LogKey{}, false
	}
	webhook, err := strconv.ParseInt(parts[0], 10, 64)
	attempt, err2 := strconv.Atoi(parts[1])
	ok := err == nil && err2 == nil && webhook > 0 && attempt >= 0
	return store.LogKey{Webhook: webhook, Attempt: attempt, VendorID: parts[2]}, ok
}

func (s *Server) wholeLog(c echo.Context, p *replayPicked, values url.Values) error {
	zone := readerZone(c)
	f, err := logFilterOf(values, zone)
	if err != nil {
		return wrongFilter(c.Request().Context(), err)
	}
	said := logValues(f)
	p.picks.Log = &f
	p.words = func(ctx context.Context) string {
		return filterWords(ctx, views.Textf(ctx, "all of the vendor's delivery log"), said, f.From, f.Until, zone)
	}
	p.takeFilter(fromLog, logPath, said)
	if c.Request().Method == http.MethodPost {
		return nil // It is about to be counted exactly.
	}
	n, known, err := s.store.CountLog(c.Request().Context(), f)
	p.lines = countOf(n, known)
	return err
}

func (s *Server) allReceived(c echo.Context, p *replayPicked, values url.Values) error {
	zone := readerZone(c)
	f, err := deliveryFilterOf(values, zone)
	if err != nil {
		return wrongFilter(c.Request().Context(), err)
	}
	said := deliveryValues(f)
	p.picks.Received = &f
	p.words = func(ctx context.Context) string {
		return filterWords(ctx, views.Textf(ctx, "all deliveries received"), said, f.From, f.Until, zone)
	}
	p.takeFilter(fromReceived, receivedPath, said)
	if c.Request().Method == http.MethodPost {
		return nil // It is about to be counted exactly.
	}
	n, known, err := s.store.CountDeliveries(c.Request().Context(), f)
	p.lines = countOf(n, known)
	return err
}

// countOf is a count that the database may not have come to in time.
func countOf(n int64, known bool) views.Count {
	if !known {
		return views.Count{}
	}
	return capped(n)
}

// wrongFilter answers for a filter in the address of a page that has no form
// for it.
func wrongFilter(ctx context.Context, cause error) error {
	if wrong, ok := errors.AsType[filterError](cause); ok {
		return badRequest(views.Textf(ctx, "The filter can't be read. %s", wrong.in(ctx)), cause)
	}
	return cause
}

// takeFilter keeps a filter for the form, and the address of its list.
func (p *replayPicked) takeFilter(from, path string, said url.Values) {
	p.address = address(path, said)
	p.fields = []views.Option{{Value: pickFrom, Text: from}}
	for _, name := range slices.Sorted(maps.Keys(said)) {
		p.fields = append(p.fields, views.Option{Value: name, Text: said.Get(name)})
	}
}

// filterWords says what a filter matches, its times in the reader's zone.
func filterWords(ctx context.Context, all string, said url.Values, since, until time.Time, zone *time.Location) string {
	words := []string{all}
	value := func(name string) string { return strings.ReplaceAll(said.Get(name), "_", " ") }
	for _, each := range []struct{ name, text string }{
		{"webhook", views.Textf(ctx, "of webhook %s", value("webhook"))},
		{"event", views.Textf(ctx, "with the event %s", value("event"))},
		{"status", views.Textf(ctx, "with status %s", value("status"))},
		{"verdict", views.Textf(ctx, "with the verdict %s", value("verdict"))},
		{"class", views.Textf(ctx, "with an answer of class %s", value("class"))},
		{"http", views.Textf(ctx, "with HTTP status %s", value("http"))},
		{"attempt", views.Textf(ctx, "of attempt %s", value("attempt"))},
		{"job", views.Textf(ctx, "about job %s", value("job"))},
		{"batch", views.Textf(ctx, "of batch %s", value("batch"))},
		{"standing", views.Textf(ctx, "seen from here as %s", value("standing"))},
	} {
		if said.Get(each.name) != "" {
			words = append(words, each.text)
		}
	}
	if !since.IsZero() {
		words = append(words, views.Textf(ctx, "since %s", zonedText(since, zone)))
	}
	if !until.IsZero() {
		words = append(words, views.Textf(ctx, "until %s", zonedText(until, zone)))
	}
	return strings.Join(words, " ")
}
