package views_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"rollcall/static"
	"rollcall/views"
)

// A liveBatch is a batch's page in a browser, with a stream that a test writes to.
type liveBatch struct {
	*tab
	messages chan<- string
}

func openLiveBatch(t *testing.T) liveBatch {
	t.Helper()
	browser := startBrowser(t)
	quit, messages := make(chan struct{}), make(chan string, 1)
	mux := http.NewServeMux()
	mux.Handle("/static/", static.Handler())
	mux.HandleFunc("GET /batches/12/live", stream(quit, messages))
	page := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		props := batchProps()
		props.Items.Tabs.State, props.Items.Self = r.URL.Query().Get("state"), r.URL.RequestURI()
		props.Failures = failureGroups()
		ctx := views.WithLanguage(r.Context(), views.LanguageFor(r.URL.Query().Get("lang")))
		if err := views.Batch(props).Render(ctx, w); err != nil { //nolint:contextcheck // templ hands it to each part.
			t.Errorf("render: %v", err)
		}
	}
	mux.HandleFunc("GET /batches/12", page)
	mux.HandleFunc("GET /batches/12/items", page)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(quit) })
	opened := openTab(browser, t, viewports()[0])
	opened.visit(t, server.URL+"/batches/12")
	return liveBatch{opened, messages}
}

// poll waits until the script gives something true.
func poll[T any](ctx context.Context, t *testing.T, script string) T {
	t.Helper()
	value, err := chromedp.Run(ctx, chromedp.Poll[T](script))
	if err != nil {
		t.Fatalf("wait for %s: %v", script, err)
	}
	return value
}

// The page says in its language that it follows; a message of the stream changes the numbers in place, is spoken of once
// at the end, and moves its times into the reader's zone.
func TestLivePageFollowsItsStream(t *testing.T) {
	t.Parallel()
	page := openLiveBatch(t)
	poll[bool](page.ctx, t, `document.querySelector("[data-live-state]").textContent === "Live"`)
	inOther := views.Textf(views.WithLanguage(t.Context(), views.LanguageFor("en-XA")), "Live")
	address := evaluate[string](t, page.tab, `location.href`)
	page.visit(t, address+"?lang=en-XA")
	poll[bool](page.ctx, t, fmt.Sprintf(`document.querySelector("[data-live-state]").textContent === %q`, inOther))
	page.visit(t, address)
	poll[bool](page.ctx, t, `document.querySelector("[data-live-state]").textContent === "Live"`)
	var message bytes.Buffer
	counts := tabs()
	counts.Outstanding = views.Known(0)
	groups := failureGroups()
	slices.Reverse(groups.Groups) // The last has grown most, and is read now.
	groups.Groups[0].Count = views.Known(6000)
	evaluate[bool](t, page.tab, `document.querySelector("#group-91 a").focus(); document.querySelector("#batch-menu").open = true; document.querySelector("main input[type=checkbox]").checked = true`)
	done := views.BatchLiveProps{RollCall: rollCall(2, 3, 6, 0, 0, nets(246, 31, 12, 0, 0)), Jobs: jobRows(), JobsTotal: views.Known(7), Tabs: &counts, Failures: &groups}
	if err := views.BatchLive(done).Render(t.Context(), &message); err != nil {
		t.Fatal(err)
	}
	page.messages <- "data: " + strings.ReplaceAll(message.String(), "\n", "\ndata: ")
	said := poll[string](page.ctx, t, `document.querySelector("#roll-call .term-outstanding .term-count").textContent === "0" && document.getElementById("say").textContent`)
	if !strings.HasPrefix(said, "Finished. 295 of 295 URLs") {
		t.Errorf("said: got %q", said)
	}
	got := evaluate[[]string](t, page.tab, `["jobs-total", "count-outstanding", "count-stored"].map((id) => document.getElementById(id).textContent.trim())`)
	if want := "7 0 241"; strings.Join(got, " ") != want {
		t.Errorf("jobs, outstanding, stored: got %q, want %q", got, want)
	}
	if got := evaluate[string](t, page.tab, `document.querySelector("#batch-failures tbody tr:first-child").textContent`); !strings.Contains(got, "6,000") {
		t.Errorf("the first group of failures is %q", got)
	}
	if !evaluate[bool](t, page.tab, `document.activeElement === document.querySelector("#group-91 a") && document.querySelector("#batch-menu").open && document.querySelector("main input[type=checkbox]").checked`) {
		t.Error("what was read isn't as it was: the focus, the open menu or the tick")
	}
	if got := evaluate[string](t, page.tab, `[...document.querySelectorAll("#job-rows time")].map((e) => e.textContent).find((e) => e.includes("UTC")) ?? ""`); got != "" {
		t.Errorf("a time was left in UTC: %q", got)
	}
	page.messages <- "event: done\ndata: 1"
	poll[bool](page.ctx, t, `document.querySelector("[data-live-state]").hidden`)
	for _, line := range page.said() {
		t.Errorf("console: %s", line)
	}
}

// With scripts a tab is swapped in place, so the stream and what surrounds the items stay; the way to what is new asks
// for the very view again.
func TestItemTabsAreSwappedInPlace(t *testing.T) {
	t.Parallel()
	page := openLiveBatch(t)
	evaluate[bool](t, page.tab, `window.stays = true`)
	evaluate[bool](t, page.tab, `document.querySelector('#item-tabs a[href*="failed"]').click(); true`)
	poll[bool](page.ctx, t, `document.querySelector('#item-tabs a[href*="failed"]').ariaCurrent === "true" && location.pathname + location.search === "/batches/12/items?state=failed"`)
	evaluate[bool](t, page.tab, `document.querySelector("#items tbody tr").remove(); true`)
	evaluate[bool](t, page.tab, `document.querySelector("#items-new").hidden = false; document.querySelector("#items-new a").click(); true`)
	poll[bool](page.ctx, t, `document.querySelectorAll("#items tbody tr").length === 5`)
	if !evaluate[bool](t, page.tab, `window.stays === true && document.querySelector('#item-tabs a[href*="failed"]').ariaCurrent === "true"`) {
		t.Error("the page was loaded anew")
	}
	for _, line := range page.said() {
		t.Errorf("console: %s", line)
	}
}
