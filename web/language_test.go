package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"rollcall/store"
	"rollcall/views"
)

// askIn is ask of somebody whose browser accepts the pseudo-language, in which each text of the catalog stands in brackets.
func (b *bench) askIn(t *testing.T, c caller, method, path string, form url.Values) page {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://desk.example"+path, strings.NewReader(form.Encode()))
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Accept-Language", "en-XA")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.AddCookie(&http.Cookie{Name: "rollcall", Value: c.cookie})
	w := httptest.NewRecorder()
	b.server.Handler().ServeHTTP(w, r)
	doc, err := goquery.NewDocumentFromReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return page{status: w.Code, doc: doc}
}

// speaksItsReadersLanguage: what package web makes of values, on pages and in notes, is whole sentences of the catalog.
func (b *bench) speaksItsReadersLanguage(t *testing.T, c caller, things map[string]int64) {
	t.Helper()
	id := func(kind string) string { return idText(things[kind]) }
	many := url.Values{csrfField: {c.csrf}}
	for n := range maxPicked + 1 {
		many.Add("job", idText(int64(n+1)))
	}
	for _, each := range []struct {
		method, path string
		form         url.Values
		want         []string
	}{
		{http.MethodGet, "/", nil, []string{"[a delivery was refused]"}},
		{http.MethodGet, "/batches/" + id("/batches"), nil, []string{"[the command line]"}},
		{http.MethodGet, "/jobs/" + id("/jobs"), nil, []string{"[Job " + id("/jobs") + "]", "[call 1]", "[Delivery refused]", "[batch_completed, answered 200]", "[2 results]"}},
		{http.MethodGet, "/items/" + id("/items"), nil, []string{"[Item]"}},
		{http.MethodGet, "/results/" + id("/items") + "?tab=story", nil, []string{"[in november]"}},
		{http.MethodGet, "/deliveries/" + id("/deliveries"), nil, []string{"[Delivery " + id("/deliveries") + "]"}},
		{http.MethodGet, "/deliveries?http=x&since=never", nil, []string{"[This is a whole number from 100 to 999.]", `["never" is no time. Write it like 2026-11-29 14:00, or 2026-11-29 for the day.]`}},
		{http.MethodGet, "/audit?id=3", nil, []string{`[Choose what "3" is the id or the name of.]`}},
		{http.MethodGet, "/schedules", nil, []string{"[Every day at 06:00]"}},
		{http.MethodGet, "/webhooks/" + id("/webhooks") + "/sent/" + id("/webhooks/:batch"), nil, []string{"[by [webhook]]"}},
		{http.MethodGet, "/exports/new?state=stored&batch=" + id("/batches"), nil, []string{"[[items of batch " + id("/batches") + ", november], with [state stored]]"}},
		{http.MethodPost, "/jobs/cancel", many, []string{"[At most 1,000 rows can be picked at once.]"}},
		{http.MethodPost, "/preflights", url.Values{csrfField: {c.csrf}, "urls": {"https://a.example/1"}, "headers": {"x"}}, []string{"[Line 1 isn't of the form Name: value.]"}},
		{http.MethodPost, "/account/settings", url.Values{csrfField: {c.csrf}, "time_zone": {"Moon"}}, []string{`[No time zone is called "Moon". They are named like Europe/Berlin.]`}},
	} {
		got := b.askIn(t, c, each.method, each.path, each.form)
		for _, want := range each.want {
			if !strings.Contains(got.text("html"), want) {
				t.Errorf("%s %s: got %d %q, want %q in it", each.method, each.path, got.status, got.text("title, main"), want)
			}
		}
	}
	// What is kept with a thing is there for everybody.
	b.askIn(t, c, http.MethodGet, "/batches/"+id("/batches")+"/export?format=csv", nil)
	if kept := b.id(t, `SELECT count(*) FROM exports WHERE picked = $1`, fmt.Sprintf("items of batch %s, november", id("/batches"))); kept != 1 {
		t.Errorf("%d exports have in English what they hold, want 1", kept)
	}
	// A live page's part is in the language of its page.
	live, err := b.server.news(views.WithLanguage(t.Context(), "en-XA"), overviewTopic, false)
	if err != nil || !strings.Contains(string(live.data), "[a delivery was refused]") {
		t.Errorf("live overview: got %v %s", err, live.data)
	}
}

// TestWordsOfSentences: each word of the database that a sentence has is one of the catalog.
func TestWordsOfSentences(t *testing.T) {
	t.Parallel()
	ctx := views.WithLanguage(t.Context(), "en-XA")
	var said []string
	for _, each := range nets() {
		said = append(said, netWord(ctx, each))
	}
	for _, each := range verdicts() {
		said = append(said, verdictTitle(ctx, each))
	}
	for _, each := range []store.ReplayState{store.ReplayPlanned, store.ReplayRunning, store.ReplayPaused, store.ReplayDone, store.ReplayCancelled} {
		said = append(said, replayWord(ctx, each))
	}
	for _, each := range said {
		if !strings.HasPrefix(each, "[") {
			t.Errorf("%q is in no catalog", each)
		}
	}
}
