package sandbox

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// requestOptions are the members that extract, batch and crawl requests share.
type requestOptions struct {
	Formats      []string          `json:"formats"`
	RenderJS     bool              `json:"render_js"`
	Proxy        *wireProxy        `json:"proxy"`
	Headers      map[string]string `json:"headers"`
	WaitConfig   *wireWait         `json:"wait_config"`
	ExtractLinks bool              `json:"extract_links"`
}

// decode reads a JSON request body; the error is a validation answer.
func decode(body []byte, into any) error {
	err := json.Unmarshal(body, into)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case len(body) == 0:
		return invalid("missing", "A body is needed", "body")
	case errors.As(err, &syntax):
		return invalid("json_invalid", "The body is not valid JSON", "body", syntax.Offset)
	case errors.As(err, &kind):
		loc := []any{"body"}
		if kind.Field != "" {
			for part := range strings.SplitSeq(kind.Field, ".") {
				loc = append(loc, part)
			}
		}
		return invalid("type_error", "The value has the wrong type", loc...)
	default:
		return invalid("json_invalid", "The body is not valid JSON", "body")
	}
}

// options checks the shared members and fills in the defaults.
func (r requestOptions) options() (options, error) {
	o := options{formats: r.Formats, renderJS: r.RenderJS, headers: r.Headers, wait: r.WaitConfig, links: r.ExtractLinks}
	for i, f := range r.Formats {
		if f != "markdown" && f != "html" {
			return o, invalid("enum", "Input should be 'markdown' or 'html'", "body", "formats", i)
		}
	}
	if len(o.formats) == 0 {
		o.formats = []string{"markdown"}
	}
	o.proxy = &wireProxy{Type: "residential"}
	if r.Proxy != nil {
		o.proxy.Country = r.Proxy.Country
		if r.Proxy.Type != "" {
			o.proxy.Type = r.Proxy.Type
		}
	}
	if !slices.Contains([]string{"residential", "datacenter"}, o.proxy.Type) {
		return o, invalid("enum", "Input should be 'residential' or 'datacenter'", "body", "proxy", "type")
	}
	return o, checkWait(o.wait)
}

// checkWait also fills in the default of wait_until.
func checkWait(w *wireWait) error {
	if w == nil {
		return nil
	}
	if w.WaitUntil == "" {
		w.WaitUntil = "domcontentloaded"
	}
	if !slices.Contains([]string{"commit", "domcontentloaded", "load", "networkidle"}, w.WaitUntil) {
		return invalid("enum", "Input should be a known event", "body", "wait_config", "wait_until")
	}
	if w.WaitTimeout != nil && *w.WaitTimeout < 0 {
		return invalid("greater_than_equal", "Input should be 0 or more", "body", "wait_config", "wait_timeout")
	}
	return nil
}

// requireURL checks the one URL of a request.
func requireURL(text *string) error {
	if text == nil {
		return invalid("missing", "A value is needed here", "body", "url")
	}
	if err := checkURL(*text); err != nil {
		return invalid("url_parsing", "Input should be a valid URL: "+err.Error(), "body", "url")
	}
	return nil
}

// query reads the query of a GET, and remembers the first complaint.
type query struct {
	values url.Values
	err    error
}

// number is a whole number in [1, limit]; limit 0 is without limit.
func (q *query) number(name string, normal, limit int) int {
	text := q.values.Get(name)
	if text == "" {
		return normal
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		q.refuse("int_parsing", "Input should be a whole number", name)
	case n < 1:
		q.refuse("greater_than_equal", "Input should be 1 or more", name)
	case limit > 0 && n > limit:
		q.refuse("less_than_equal", "Input should be "+strconv.Itoa(limit)+" or less", name)
	default:
		return n
	}
	return normal
}

// one is a value out of a list; empty when it isn't given.
func (q *query) one(name string, known ...string) string {
	text := q.values.Get(name)
	if text != "" && !slices.Contains(known, text) {
		q.refuse("enum", "Input should be one of: "+strings.Join(known, ", "), name)
	}
	return text
}

// time is a point in time; the zero time when it isn't given.
func (q *query) time(name string) time.Time {
	text := q.values.Get(name)
	if text == "" {
		return time.Time{}
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at
		}
	}
	q.refuse("datetime_parsing", "Input should be a date and time", name)
	return time.Time{}
}

func (q *query) refuse(kind, msg, name string) {
	if q.err == nil {
		q.err = invalid(kind, msg, "query", name)
	}
}

// pageCount is the number of pages of the given size; none when there is nothing.
func pageCount(total, size int) int { return (total + size - 1) / size }
