package web

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

// fillLinks reads the links that the vendor found, those that fit the filter.
func fillLinks(c echo.Context, r shownResult, p *views.ResultProps) error {
	raw, err := r.part(c.Request().Context(), store.PartLinks, readSmall)
	if err != nil {
		return err
	}
	all := resultLinks(raw, r.URL)
	p.LinkFilter = views.LinkFilter{Kind: c.QueryParam("kind"), Text: strings.TrimSpace(clean(c.QueryParam("find"), filterText)), Known: raw != nil}
	if !validKind(p.LinkFilter.Kind) {
		p.LinkFilter.Kind = ""
	}
	for _, link := range all {
		if link.External {
			p.LinkFilter.External++
		} else {
			p.LinkFilter.Internal++
		}
		if fits(link, p.LinkFilter) {
			p.Links = append(p.Links, link)
		}
	}
	p.LinkFilter.Fit = len(p.Links)
	p.Truncated = len(p.Links) > shownLinks
	p.Links = p.Links[:min(len(p.Links), shownLinks)]
	return nil
}

func validKind(kind string) bool {
	return kind == "" || kind == views.LinksInternal || kind == views.LinksExternal
}

func fits(link views.Link, f views.LinkFilter) bool {
	if f.Kind != "" && link.External != (f.Kind == views.LinksExternal) {
		return false
	}
	text := strings.ToLower(f.Text)
	return strings.Contains(strings.ToLower(link.URL), text) || strings.Contains(strings.ToLower(link.Text), text)
}

// resultLinks reads the vendor's list: addresses, or objects that have one.
// Those relative to the page are made whole.
func resultLinks(raw []byte, page string) []views.Link {
	var entries []json.RawMessage
	if json.Unmarshal(raw, &entries) != nil {
		return nil // None, or cut short: nothing that could be shown.
	}
	base, err := url.Parse(page)
	if err != nil {
		base = &url.URL{}
	}
	links := make([]views.Link, 0, len(entries))
	for _, entry := range entries {
		var object struct {
			URL  string `json:"url"`
			Href string `json:"href"`
			Text string `json:"text"`
		}
		if json.Unmarshal(entry, &object.URL) != nil && json.Unmarshal(entry, &object) != nil {
			continue
		}
		if to := object.URL + object.Href; to != "" {
			links = append(links, resultLink(base, clean(to, longestLink), clean(object.Text, longestLink)))
		}
	}
	return links
}

// longestLink is how much of an address, or of its words, a page shows.
const longestLink = 4000

// resultLink says where a link leads. Only what a browser fetches or mails to
// is a link on the page; all else is text.
func resultLink(page *url.URL, to, text string) views.Link {
	link := views.Link{URL: to, Text: text, External: true}
	u, err := page.Parse(strings.TrimSpace(to))
	if err != nil {
		return link
	}
	switch u.Scheme {
	case "http", "https":
		link.Href = u.String()
		link.External = bareHost(u) != bareHost(page)
	case "mailto":
		link.Href = u.String()
	}
	return link
}

// bareHost is a host without the www that many sites answer to as well.
func bareHost(u *url.URL) string {
	return strings.TrimPrefix(strings.ToLower(u.Hostname()), "www.")
}
