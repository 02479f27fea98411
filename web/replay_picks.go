package web

import (
	"fmt"
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
	words    string
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
	p := &replayPicked{backText: "Deliveries"}
	rows, jobs := values[pickRow], values[pickJob]
	switch {
	case len(rows)+len(jobs) > maxPicked:
		return nil, badRequest(fmt.Sprintf("At most %d rows can be picked at once.", maxPicked), nil)
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
	if p.words = "rows that were ticked"; len(p.fields) == 1 {
		p.words = "one row that was picked"
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
		return damagedFilter(err)
	}
	said := logValues(f)
	p.picks.Log, p.words = &f, filterWords("all of the vendor's delivery log", said, f.From, f.Until, zone)
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
		return damagedFilter(err)
	}
	said := deliveryValues(f)
	p.picks.Received, p.words = &f, filterWords("all deliveries received", said, f.From, f.Until, zone)
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

func damagedFilter(cause error) error {
	return badRequest("The filter can't be read. "+cause.Error(), cause)
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
func filterWords(all string, said url.Values, since, until time.Time, zone *time.Location) string {
	words := []string{all}
	for _, each := range []struct{ name, text string }{
		{"webhook", "of webhook"},
		{"event", "with the event"},
		{"status", "with status"},
		{"verdict", "with the verdict"},
		{"class", "with an answer of class"},
		{"http", "with HTTP status"},
		{"attempt", "of attempt"},
		{"job", "about job"},
		{"batch", "of batch"},
		{"standing", "seen from here as"},
	} {
		if value := said.Get(each.name); value != "" {
			words = append(words, each.text, strings.ReplaceAll(value, "_", " "))
		}
	}
	if !since.IsZero() {
		words = append(words, "since", zonedText(since, zone))
	}
	if !until.IsZero() {
		words = append(words, "until", zonedText(until, zone))
	}
	return strings.Join(words, " ")
}
