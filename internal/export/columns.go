package export

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// kind is what a column holds.
type kind int

const (
	text kind = iota
	number
	moment
	content
)

// column is one column of every format: how it is called, what it means, and
// where its value comes from. The getter of its kind is set, the others not.
type column struct {
	name, about string
	kind        kind
	// chosen tells whether it goes in; nil: always.
	chosen func(c *Choices) bool
	text   func(r *Row) string
	number func(r *Row) (int64, bool) // The second: it is known.
	moment func(r *Row) time.Time
	part   func(r *Row) *Part
	json   bool // A content that is JSON.
	extra  bool // One of the batch's own.
	cut    bool // Names the cells that are not whole.
}

// Column is a line of the table that documents the files.
type Column struct{ Name, About string }

// Columns are those that files may have, in their order, for people to read. A
// batch's own columns follow them.
func Columns() []Column {
	var out []Column
	for _, c := range table() {
		out = append(out, Column{c.name, c.about})
	}
	return out
}

// table is the one list of columns.
func table() []column {
	return []column{
		{name: "id", about: "Number of the item.", kind: number, number: func(r *Row) (int64, bool) { return r.ItemID, true }},
		{name: "batch_id", about: "Number of the batch.", kind: number, number: func(r *Row) (int64, bool) { return r.BatchID, true }},
		{name: "batch", about: "Name of the batch.", text: func(r *Row) string { return r.Batch }},
		{name: "position", about: "Place in the batch, from 1.", kind: number, number: func(r *Row) (int64, bool) { return int64(r.Position), true }},
		{name: "line", about: "Line of the file or the pasted text, as the preflight counts; empty when it comes from no list.", kind: number, number: func(r *Row) (int64, bool) { return known(r.Line) }},
		{name: "url", about: "The URL as the vendor got it.", text: func(r *Row) string { return r.URL }},
		{name: "original", about: "What the line held, where the URL was mended.", text: func(r *Row) string { return r.Original }},
		{name: "host", about: "Its host, in lower case, without a port.", text: func(r *Row) string { return r.Host }},
		{name: "state", about: "outstanding, stored, failed or cancelled.", text: func(r *Row) string { return r.State }},
		{name: "net", about: "What brought the result home: webhook, poll, reconcile, replay or sync.", text: func(r *Row) string { return r.Net }},
		{name: "http_status", about: "HTTP status of the page.", kind: number, number: func(r *Row) (int64, bool) { return known(r.HTTPStatus) }},
		{name: "error_code", about: "Why it failed, as a word.", text: func(r *Row) string { return r.ErrorCode }},
		{name: "error_message", about: "Why it failed, in words.", text: func(r *Row) string { return r.ErrorMessage }},
		{name: "title", about: "Title of the page.", text: func(r *Row) string { return r.Title }},
		{name: "submitted_at", about: "When it was submitted: RFC 3339, UTC, as all times.", kind: moment, moment: func(r *Row) time.Time { return r.SubmittedAt }},
		{name: "ended_at", about: "When it was answered for.", kind: moment, moment: func(r *Row) time.Time { return r.EndedAt }},
		{name: "stored_at", about: "When what is stored now was stored.", kind: moment, moment: func(r *Row) time.Time { return r.StoredAt }},
		{name: "version", about: "1, and one more for each time the result was replaced.", kind: number, number: func(r *Row) (int64, bool) { return int64(r.Version), r.Stored }},
		{name: "mark", about: "Set when the page looks empty or blocked.", text: func(r *Row) string { return r.Mark }},
		{name: "bytes", about: "Size of Markdown and HTML together.", kind: number, number: func(r *Row) (int64, bool) { return r.Bytes, r.Stored }},
		{name: "markdown_sha256", about: "SHA-256 of the Markdown as it is stored.", text: func(r *Row) string { return hex.EncodeToString(r.MarkdownSHA) }},
		{name: "html_sha256", about: "SHA-256 of the HTML as it is stored.", text: func(r *Row) string { return hex.EncodeToString(r.HTMLSHA) }},
		{name: "tokens", about: "What the vendor charged.", kind: number, number: func(r *Row) (int64, bool) { return known(r.Tokens) }},
		{name: "duration_ms", about: "How long the vendor took for the page.", kind: number, number: func(r *Row) (int64, bool) { return known(r.DurationMS) }},
		{name: "markdown", about: "The Markdown.", kind: content, chosen: func(c *Choices) bool { return c.Markdown }, part: func(r *Row) *Part { return &r.Markdown }},
		{name: "html", about: "The HTML, by choice.", kind: content, chosen: func(c *Choices) bool { return c.HTML }, part: func(r *Row) *Part { return &r.HTML }},
		{name: "links", about: "The links as JSON, by choice.", kind: content, chosen: func(c *Choices) bool { return c.Links }, part: func(r *Row) *Part { return &r.Links }, json: true},
		{name: "metadata", about: "What else the vendor said, as JSON, by choice.", kind: content, chosen: func(c *Choices) bool { return c.Metadata }, part: func(r *Row) *Part { return &r.Metadata }, json: true},
	}
}

func known[N int | int64](n *N) (int64, bool) {
	if n == nil {
		return 0, false
	}
	return int64(*n), true
}

// columnsOf are the columns of one file. In a ZIP contents are files.
func columnsOf(o *Options) []column {
	var out []column
	for _, c := range table() {
		if c.chosen == nil || c.chosen(&o.Choices) && o.Format != ZIP {
			out = append(out, c)
		}
	}
	switch o.Format {
	case ZIP:
		out = append(out, fileColumns()...)
	case Parquet:
		out = append(out, column{name: "cut", cut: true})
	case CSV, JSONL:
	}
	return append(out, extraColumns(o, out)...)
}

// fileColumns name the files of a ZIP in its index.
func fileColumns() []column {
	return []column{
		{name: "markdown_file", text: func(r *Row) string { return r.markdownFile }},
		{name: "html_file", text: func(r *Row) string { return r.htmlFile }},
	}
}

// longestName bounds the name of a batch's own column, in characters.
const longestName = 100

// extraColumns are the batch's own, under names that nothing else has.
func extraColumns(o *Options, taken []column) []column {
	if len(o.Columns) == 0 {
		return []column{{name: "extra", extra: true, text: allExtra}}
	}
	used := make(map[string]bool)
	for _, c := range taken {
		used[c.name] = true
	}
	out := make([]column, len(o.Columns))
	for i, name := range o.Columns {
		out[i] = column{name: unused(columnName(name), used), extra: true, text: func(r *Row) string {
			if i < len(r.ExtraValues) {
				return r.ExtraValues[i]
			}
			return ""
		}}
	}
	return out
}

// columnName is a name that any reader takes.
func columnName(name string) string {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(name, "\uFFFD"))
	name = strings.Join(strings.Fields(name), " ")
	if runes := []rune(name); len(runes) > longestName {
		name = string(runes[:longestName])
	}
	if name == "" {
		return "column"
	}
	return name
}

// unused is the name, or the name with a number that makes it the only one in
// whatever case.
func unused(name string, used map[string]bool) string {
	free := name
	for n := 2; used[strings.ToLower(free)]; n++ {
		free = name + "_" + strconv.Itoa(n)
	}
	used[strings.ToLower(free)] = true
	return free
}

// allExtra is every column of the batch's own as one JSON object.
func allExtra(r *Row) string {
	pairs := extraPairs(r)
	if len(pairs) == 0 {
		return ""
	}
	encoded, err := json.Marshal(pairs)
	if err != nil {
		return "" // Text always becomes JSON.
	}
	return string(encoded)
}

func extraPairs(r *Row) map[string]string {
	pairs := make(map[string]string, len(r.ExtraValues))
	used := make(map[string]bool)
	for i, value := range r.ExtraValues {
		name := "column"
		if i < len(r.ExtraNames) {
			name = r.ExtraNames[i]
		}
		pairs[unused(columnName(name), used)] = strings.ToValidUTF8(value, "\uFFFD")
	}
	return pairs
}

// momentText is RFC 3339 in UTC, to the microsecond that is kept; "" for none.
func momentText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00")
}
