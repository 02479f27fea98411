package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"rollcall/store"
)

// TestSearchPage: what is typed stays in the boxes, what is found is shown as
// text, and nothing typed brings a fault.
func TestSearchPage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := newShelf(t, b)
	other := b.seed(t, "december", 4)
	if got := v.get("/search"); got.status != http.StatusOK || !strings.Contains(got.text("main"), "Search everything stored") || !strings.Contains(got.text("[data-testid=backlog]"), "newer results are not searchable yet") {
		t.Errorf("nothing asked: got %d %q", got.status, got.text("main"))
	}
	s.put(t, []byte("# A kettle\n\nMade of <b>copper</b> & [brass](https://x.example/y), for tea."))
	found := v.get("/search?q=copper")
	row := found.doc.Find("[data-testid=found] li")
	if row.Length() != 1 || found.text(".found-text mark") != "copper" || !strings.Contains(found.text(".found-text"), "Made of <b") || found.doc.Find(".found-text b").Length() != 0 {
		t.Errorf("found: got %q", found.text("#found"))
	}
	if found.text("#found h2") != "1 result" || found.doc.Find("#q").AttrOr("value", "") != "copper" || found.doc.Find("[data-testid=backlog]").Length() != 0 {
		t.Errorf("found: got %q, the box holds %q", found.text("#found h2"), found.doc.Find("#q").AttrOr("value", ""))
	}
	for query, want := range map[string]int{
		"q=page": 5, "q=page&host=A.EXAMPLE": 5, "q=page&host=b.example": 0, "q=page&batch=" + idText(other.batch): 2, "q=page&batch=999": 0,
		"q=page&since=2026-01-01": 5, "q=page&until=2026-01-01": 0, "q=kettle+OR+page&order=best": 6, "q=-page+kettle": 1, `q="a+kettle"`: 1, "q=kettle+page": 0,
	} {
		if got := v.get("/search?" + query); got.status != http.StatusOK || got.doc.Find("[data-testid=found] li").Length() != want {
			t.Errorf("%s: got %d %q, want %d results", query, got.status, got.text("main"), want)
		}
	}
	for query, want := range map[string]string{
		"q=-page": "Only words to leave out", "q=%22%22": "There is no word in that", "q=nosuchword": "Nothing found", "q=nosuchword&host=a.example": "Search without the filters",
	} {
		if got := v.get("/search?" + query); got.status != http.StatusOK || !strings.Contains(got.text("main"), want) {
			t.Errorf("%s: got %d %q, want %q", query, got.status, got.text("main"), want)
		}
	}
	s.put(t, []byte("# Brass & <b>bold</b> brass\n\nNothing."))
	named := v.get("/search?q=brass+-copper").doc.Find("[data-testid=found] li").First()
	if got := named.Find(".found-title mark").Text(); got != "Brassbrass" || !strings.Contains(named.Find(".found-title").Text(), "Brass & ") || named.Find("b").Length() != 0 {
		t.Errorf("a title: got %q marked in %q", got, named.Find(".found-title").Text())
	}
	placed := v.get("/search?q=example").doc.Find("[data-testid=found] li .found-url").First()
	if placed.Find("mark").Text() != "example" || !strings.HasPrefix(strings.TrimSpace(placed.Text()), "https://a.example/") {
		t.Errorf("an address: got %q marked in %q", placed.Find("mark").Text(), placed.Text())
	}
	b.hostileSearches(t, v)
}

func (b *bench) hostileSearches(t *testing.T, v *visitor) {
	t.Helper()
	wrong := v.get("/search?q=page&batch=x&since=yesterday&host=h%00&until=2026-13-01&order=worst")
	if wrong.status != http.StatusUnprocessableEntity || wrong.doc.Find("#batch.is-invalid, #since.is-invalid, #until.is-invalid").Length() != 3 || wrong.doc.Find("#since").AttrOr("value", "") != "yesterday" {
		t.Errorf("wrong filters: got %d %q", wrong.status, wrong.text("main"))
	}
	typed := append(hostile(), `"`, `"a`, `a" OR "`, "OR", "OR OR -", "- - -", "!&|()<->:*'\\", "a <-> b:* & !c", strings.Repeat("a ", 199), strings.Repeat("x", 400), strings.Repeat("é", 401), `-"-"-`, "\x02a\x03")
	for _, text := range typed {
		for _, field := range []string{"q", "batch", "host", "since", "until", "order", "from"} {
			values := url.Values{"q": {"page"}}
			values.Set(field, text)
			path := "/search?" + values.Encode()
			got := v.get(path)
			if got.status >= http.StatusInternalServerError {
				t.Errorf("%s=%.60q: got %d", field, text, got.status)
			}
			v.wantHarmless(path, got)
		}
	}
	page := b.seed(t, "many", 80)
	b.exec(t, `INSERT INTO search_words (item_id, seq, version, stored_at, tags, words)
		SELECT item_id, item_id + 1000000, 1, stored_at, ARRAY['b:' || ((item_id + 1000000) >> 9)], to_tsvector('simple', 'manifold') FROM results WHERE job_id = $1`, page.job)
	b.exec(t, `INSERT INTO search_buckets SELECT DISTINCT (item_id + 1000000) >> 9, now() - interval '1 h', now() + interval '1 h' FROM results WHERE job_id = $1 ON CONFLICT DO NOTHING`, page.job)
	for _, order := range []string{"", "&order=best"} {
		path, seen := "/search?q=manifold"+order, map[string]bool{}
		for range 3 {
			got := v.get(path)
			for _, each := range got.doc.Find("[data-testid=found] li h3 a").Nodes {
				seen[each.Attr[0].Val] = true
			}
			path = got.doc.Find("a[rel=next]").AttrOr("href", "")
			if path == "" {
				break
			}
		}
		if len(seen) != 40 || path != "" {
			t.Errorf("pages%s: got %d results, and on to %q", order, len(seen), path)
		}
	}
}
