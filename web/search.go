package web

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

const (
	searchPath = "/search"
	// searchRows is how many results a page of the search shows.
	searchRows = 20
	// searchBudget is how long a search may take before it shows what it has, and
	// searchPatience when that is a page: it then says how many there are at least,
	// and shows the best of those.
	searchBudget   = 2 * time.Second
	searchPatience = 60 * time.Millisecond
	// searchText is how long what is searched for may be, in characters.
	searchText = 400
)

// search is GET /search.
func (s *Server) search(c echo.Context) error {
	after, err := searchPlaceParam(c)
	if err != nil {
		return err
	}
	props := views.SearchProps{Order: views.OrderNewest, Zone: readerZone(c).String()}
	q, wrong := searchOf(c.QueryParams(), readerZone(c), &props)
	props.Errors = mistakesOf(c.Request().Context(), wrong)
	q.After, q.Limit, q.Now, q.Patience, q.Budget = after, searchRows, s.now, searchPatience, searchBudget
	status := http.StatusOK
	switch {
	case len(wrong) > 0:
		status = http.StatusUnprocessableEntity
	case props.Query != "":
		if err := s.fillSearch(c, q, &props); err != nil {
			return fmt.Errorf("search: %w", err)
		}
	}
	if err := s.searchBacklog(c, &props); err != nil {
		return fmt.Errorf("backlog of the search: %w", err)
	}
	if props.Layout, err = s.layout(c, "Search", views.SectionSearch); err != nil {
		return err
	}
	return render(c, status, views.Search(props))
}

// searchOf reads a search from an address, its times in the zone, and puts the
// fields back as they were typed.
func searchOf(values url.Values, zone *time.Location, props *views.SearchProps) (store.Search, filterError) {
	r := newFilterReader(values)
	props.Query = strings.TrimSpace(clean(values.Get("q"), 4*searchText+utf8.UTFMax))
	props.Batch, props.Host, props.Since, props.Until = r.typed("batch"), r.typed("host"), r.typed("since"), r.typed("until")
	if utf8.RuneCountInString(props.Query) > searchText {
		r.wrong["q"] = func(ctx context.Context) string {
			return views.Textf(ctx, "A search is at most %d characters long.", searchText)
		}
	}
	if r.word("order", []string{views.OrderNewest, views.OrderBest}) == views.OrderBest {
		props.Order = views.OrderBest
	}
	q := store.Search{
		Text: pipeline.SearchText(props.Query), BatchID: r.number("batch", 1, math.MaxInt64),
		Host: strings.ToLower(r.text("host")), Best: props.Order == views.OrderBest,
	}
	q.From, q.Until = r.period(zone)
	return q, r.wrong
}

func (s *Server) fillSearch(c echo.Context, q store.Search, props *views.SearchProps) error {
	ctx := c.Request().Context()
	found, err := s.store.Search(ctx, q)
	if errors.Is(err, store.ErrUnsearchable) {
		props.Errors = views.Errors{"q": "One of these words is too long to look for."}
		return nil
	}
	if err != nil {
		return err
	}
	props.Blank, props.Without = found.Blank, found.Without
	if found.Blank || found.Without {
		return nil
	}
	props.Asked = true
	props.Total = views.Count{N: min(found.Total, store.SearchDepth), Known: true, More: found.Total > store.SearchDepth || found.AtLeast}
	props.Cut, props.Back = found.Cut, found.Back
	rest := found.Rest
	if n := len(found.Hits); n > 0 && !found.Cut {
		rest = found.Hits[n-1].Place
	}
	props.Pager = pager(c, cursorParam, found.More || found.Cut, searchCursor(rest))
	props.Rows, err = s.searchHits(c, q.Text, found.Hits)
	return err
}

// searchHits are the rows of what was found, each with a snippet.
func (s *Server) searchHits(c echo.Context, text string, hits []store.SearchHit) ([]views.SearchRow, error) {
	texts := make([]string, len(hits))
	for i := range hits {
		texts[i] = snippetText(&hits[i])
	}
	snippets, err := s.store.Snippets(c.Request().Context(), text, texts)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, 2*len(hits))
	for i := range hits {
		names = append(names, hits[i].Title, hits[i].URL)
	}
	if names, err = s.store.Marked(c.Request().Context(), text, names); err != nil {
		return nil, err
	}
	rows := make([]views.SearchRow, len(hits))
	for i := range hits {
		h := &hits[i]
		rows[i] = views.SearchRow{
			ItemID: idText(h.ItemID), Title: h.Title, URL: h.URL, BatchID: idText(h.BatchID), BatchName: h.BatchName,
			StoredAt: h.StoredAt, Status: orZero(h.HTTPStatus), Mark: string(h.Mark), Snippet: pieces(snippets[i]),
			TitlePieces: pieces(names[2*i]), URLPieces: pieces(names[2*i+1]),
		}
	}
	return rows, nil
}

// snippetText is the text that a snippet is cut from: what a reader reads,
// without the marks of Markdown and the addresses of its links.
func snippetText(h *store.SearchHit) string {
	return pipeline.ReadableText(h.Markdown, h.HTML)
}

// pieces takes a snippet apart at the words that were looked for.
func pieces(snippet string) []views.Piece {
	var out []views.Piece
	put := func(text string, hit bool) {
		if text != "" {
			out = append(out, views.Piece{Text: text, Hit: hit})
		}
	}
	for snippet != "" {
		before, rest, found := strings.Cut(snippet, store.SnippetOn)
		put(before, false)
		if !found {
			break
		}
		hit, after, _ := strings.Cut(rest, store.SnippetOff)
		put(hit, true)
		snippet = after
	}
	return out
}

func (s *Server) searchBacklog(c echo.Context, props *views.SearchProps) error {
	backlog, err := s.store.SearchBacklog(c.Request().Context())
	if err != nil {
		return err
	}
	props.Waiting, props.Older = capped(backlog.Waiting), backlog.Older
	if backlog.From.Year() < farAway {
		props.From = backlog.From
	}
	return nil
}

// farAway is the year of a time that stands for none yet.
const farAway = 9000

// searchPlaceParam reads where a list of what was found goes on.
func searchPlaceParam(c echo.Context) (store.SearchPlace, error) {
	raw, err := cursorBytes(c, cursorParam, 12)
	if raw == nil || err != nil {
		return store.SearchPlace{}, err
	}
	rank := math.Float32frombits(binary.BigEndian.Uint32(raw[:4]))
	if math.IsNaN(float64(rank)) {
		return store.SearchPlace{}, damagedLink()
	}
	return store.SearchPlace{Rank: rank, Seq: int64(binary.BigEndian.Uint64(raw[4:]))}, nil //nolint:gosec // The same bits back.
}

func searchCursor(p store.SearchPlace) string {
	raw := binary.BigEndian.AppendUint32(nil, math.Float32bits(p.Rank))
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(raw, uint64(p.Seq))) //nolint:gosec // Only its bits are kept.
}
