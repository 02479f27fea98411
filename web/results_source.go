package web

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

// Bounds of what a page shows of a source: more lines, or more text, make
// further pages.
const (
	sourceLines = 4000
	sourceBytes = 1 << 20
)

// lineParam says in an address which line of a source a page begins with.
const lineParam = "line"

// resultSource is the part of a source that an address asks for, in lines.
func resultSource(c echo.Context, r shownResult, part store.Part) (views.Source, error) {
	content, err := r.part(c.Request().Context(), part, shownSource)
	if err != nil {
		return views.Source{}, err
	}
	lines := strings.Split(printable(store.WholeText(content)), "\n")
	if n := len(lines); n > 1 && lines[n-1] == "" {
		lines = lines[:n-1] // The last line ended.
	}
	first := 1
	if n, err := strconv.Atoi(c.QueryParam(lineParam)); err == nil {
		first = max(1, min(n, len(lines)))
	}
	out := views.Source{First: first, Total: len(lines), Empty: len(content) == 0}
	size := 0
	for _, line := range lines[first-1:] {
		if len(out.Lines) == sourceLines || (len(out.Lines) > 0 && size+len(line) > sourceBytes) {
			break
		}
		size += len(line)
		out.Lines = append(out.Lines, strings.TrimSuffix(line, "\r"))
	}
	if after := first + len(out.Lines); after <= len(lines) {
		out.Next = addressWith(c.Request().URL.RequestURI(), lineParam, strconv.Itoa(after))
	}
	if first > 1 {
		out.Begin = addressWith(c.Request().URL.RequestURI(), lineParam, "")
	}
	return out, nil
}

// addressWith is an address of ours with one parameter set, or without it.
func addressWith(path, name, value string) string {
	u, err := url.ParseRequestURI(path)
	if err != nil {
		return path
	}
	query := u.Query()
	if query.Del(name); value != "" {
		query.Set(name, value)
	}
	return address(u.Path, query)
}
