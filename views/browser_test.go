package views_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"rollcall/static"
)

// policy is what package web sends with every page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-src 'self'; base-uri 'none'"

// A view is a window's width, the theme of the system, and what axe-core is asked there.
type view struct {
	name  string
	width int64
	theme string
	axe   string
}

// Everything is checked once; colors in both themes, and in a narrow window what depends on the width. Whoever wants
// pictures gets the fourth combination too.
func viewports() []view {
	views := []view{
		{"wide-light", 1280, "light", `{}`},
		{"wide-dark", 1280, "dark", `{runOnly: ["color-contrast"]}`},
		{"narrow-light", 360, "light", `{runOnly: ["scrollable-region-focusable", "target-size", "bypass", "label", "button-name", "link-name", "page-has-heading-one", "region"]}`},
	}
	if os.Getenv("ROLLCALL_SCREENSHOTS") != "" {
		views = append(views, view{"narrow-dark", 360, "dark", `{}`})
	}
	return views
}

// In a real browser, under the real policy: axe-core finds nothing, nothing is wider than the window, the console is
// silent. Each story is opened once and then looked at in each view, as a window that is turned and dimmed would be.
// ROLLCALL_SCREENSHOTS names a folder for pictures; ROLLCALL_STORY takes stories with that in their name only.
func TestStoriesInABrowser(t *testing.T) {
	t.Parallel()
	browser := startBrowser(t)
	axe, err := os.ReadFile(filepath.Join("..", "static", "testdata", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	server := storybook(t)
	var shown []string
	for _, each := range stories() {
		if strings.Contains(each.name, os.Getenv("ROLLCALL_STORY")) && (os.Getenv("ROLLCALL_SCREENSHOTS") != "" || !twin(each.name)) {
			shown = append(shown, each.name)
		}
	}
	const tabs = 2
	for at := range tabs {
		t.Run(fmt.Sprintf("tab %d", at+1), func(t *testing.T) {
			t.Parallel()
			tab := openTab(browser, t, viewports()[0])
			for i, name := range shown {
				if i%tabs == at {
					tab.visit(t, server.URL+"/stories/"+name)
					evaluate[bool](t, tab, string(axe)+";true")
					for _, size := range viewports() {
						tab.resize(t, size)
						tab.check(t, name)
					}
				}
			}
		})
	}
}

// twin tells of a story that is made of nothing but what others show: its golden file says enough, unless somebody wants
// its picture.
func twin(name string) bool {
	return slices.Contains([]string{
		"preflight-nothing", "batch-new-kept", "crawl-fresh", "crawl-level-empty", "cancel-jobs", "cancel-late", "cancel-none", "resubmit-none", "try-errors", "deliveries-held",
		"deliveries-none", "delivery-recovered", "delivery-gone", "delivery-log-none", "deliveries-filtered", "delivery-odd",
		"delivery-refused-analyst", "audit-further", "audit-none", "check-fixed", "check-nothing", "link-path", "invite-reset",
		"replay-paused", "replay-planned-nothing", "replay-difference-replaced", "replay-new-nothing", "replays-none",
		"rotation-calling", "rotation-failed", "rotation-gone", "rotation-none", "send-one-failed", "send-one-retried", "send-one-waiting",
		"exports-none", "export-sent", "export-failed", "export-cancelled", "export-expired", "export-new-large",
		"compare-results-same", "compare-results-missing", "compare-batches-missing", "compare-batches-none", "compare-batches-failed", "compare-batches-gone",
		"rerun-nothing", "schedules-none", "schedule-paused", "schedule-removed", "schedule-remove", "schedule-change",
		"user-self", "webhook-adopt-none", "webhook-gone", "webhook-paused", "webhooks-none", "webhooks-fresh",
	}, name)
}

func startBrowser(t *testing.T) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("short")
	}
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" && os.Getenv("ROLLCALL_BROWSER") == "required" {
		t.Fatal("no Chromium on PATH, and make test wants one")
	}
	if path == "" {
		t.Skip("no Chromium on PATH")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-software-rasterizer", true), // Nothing here needs a GPU to be played by the processor.
		chromedp.Flag("js-flags", "--min-semi-space-size=32")) // Rather memory than collections.
	allocator, cancelAllocator := chromedp.NewExecAllocator(context.Background(), options...) // It ends in a cleanup, after t.Context is over.
	t.Cleanup(cancelAllocator)
	browser, cancelBrowser := chromedp.NewContext(allocator)
	t.Cleanup(cancelBrowser)
	t.Cleanup(func() {
		if err := chromedp.Cancel(browser); err != nil {
			t.Logf("close the browser: %v", err)
		}
	})
	if err := chromedp.Do(browser); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return browser
}

// storybook serves every story under the policy, and the frame of the preview under its own.
func storybook(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/static/", static.Handler())
	mux.HandleFunc("GET /results/{id}/preview", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; sandbox")
		fmt.Fprint(w, "<!doctype html><html lang=en><title>A kettle</title><main><h1>Copper kettle</h1>")
	})
	quit := make(chan struct{})
	mux.HandleFunc("GET /live", stream(quit, nil))
	mux.HandleFunc("GET /reconcile/live", stream(quit, nil))
	mux.HandleFunc("GET /webhooks/{id}/sent/{batch}/live", stream(quit, nil))
	mux.HandleFunc("GET /webhooks/{id}/rotation/live", stream(quit, nil))
	mux.HandleFunc("GET /exports/live", stream(quit, nil))
	mux.HandleFunc("GET /schedules/next", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<p>No run.</p>") })
	mux.HandleFunc("GET /compare/batches/live", stream(quit, nil))
	for _, noun := range []string{"batches", "items", "jobs", "replays", "exports"} {
		mux.HandleFunc("GET /"+noun+"/{id}/live", stream(quit, nil))
	}
	for _, each := range stories() {
		mux.HandleFunc("GET /stories/"+each.name, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Security-Policy", policy)
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			if err := each.page.Render(r.Context(), w); err != nil {
				t.Errorf("render %s: %v", each.name, err)
			}
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(quit) })
	return server
}

// stream answers with server-sent events until the test ends or the reader leaves.
func stream(quit <-chan struct{}, messages <-chan string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: ping\ndata: 1\n\n")
		for {
			if err := http.NewResponseController(w).Flush(); err != nil {
				return
			}
			select {
			case <-quit:
				return
			case <-r.Context().Done():
				return
			case message := <-messages:
				fmt.Fprint(w, message+"\n\n")
			}
		}
	}
}

// A tab is a page of the browser that collects what its console says.
type tab struct {
	ctx     context.Context
	size    view
	mu      sync.Mutex
	console []string
}

func openTab(browser context.Context, t *testing.T, size view) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	ctx, cancelTimeout := context.WithTimeout(ctx, 20*time.Minute)
	t.Cleanup(cancelTimeout)
	opened := &tab{ctx: ctx}
	opened.resize(t, size)
	if _, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: storyClock}); err != nil {
		t.Fatalf("set the clock: %v", err)
	}
	opened.listen(t)
	return opened
}

// storyClock sets the browser's clock to ten minutes after the stories' present: what they show must not be another thing
// on another day.
var storyClock = fmt.Sprintf(`{ const ahead = %d - Date.now(); const now = Date.now; Date.now = () => now() + ahead; }`, now().Add(10*time.Minute).UnixMilli())

// resize gives the window a view.
func (o *tab) resize(t *testing.T, size view) {
	t.Helper()
	if o.size == size {
		return
	}
	o.size = size
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: size.theme},
		{Name: "prefers-reduced-motion", Value: "reduce"},
	}}
	if err := chromedp.Do(o.ctx, chromedp.EmulateViewport(size.width, 900)); err != nil {
		t.Fatalf("size the window: %v", err)
	}
	if _, err := chromedp.Call(o.ctx, emulation.SetEmulatedMedia, media); err != nil {
		t.Fatalf("set the theme: %v", err)
	}
}

func (o *tab) listen(t *testing.T) {
	t.Helper()
	messages := chromedp.Console(o.ctx)
	var done sync.WaitGroup
	done.Go(func() {
		for message, err := range messages {
			if err != nil {
				return
			}
			o.mu.Lock()
			o.console = append(o.console, message.String())
			o.mu.Unlock()
		}
	})
	t.Cleanup(done.Wait)
	t.Cleanup(func() { _ = chromedp.Cancel(o.ctx) })
}

func (o *tab) said() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	said := o.console
	o.console = nil
	return said
}

func (o *tab) visit(t *testing.T, url string) {
	t.Helper()
	if err := chromedp.Do(o.ctx, chromedp.Navigate(url)); err != nil {
		t.Fatalf("open %s: %v", url, err)
	}
}

func evaluate[T any](t *testing.T, o *tab, script string) T {
	t.Helper()
	value, err := chromedp.Run(o.ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("evaluate: %v", err)
	}
	return value
}

// overflow lists the elements that reach beyond the window, unless something around them scrolls, and at a laptop's
// width the tables that have to; and the strips that scroll and don't show where the reader is.
const overflow = `(() => {
  const scrolls = (e) => { for (let p = e.parentElement; p && p !== document.body; p = p.parentElement) { if (["auto", "scroll"].includes(getComputedStyle(p).overflowX)) return true; } return false; };
  const wide = [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e));
  const page = document.documentElement.scrollWidth > innerWidth ? ["the page itself, by " + (document.documentElement.scrollWidth - innerWidth)] : [];
  const tables = innerWidth < 1000 ? [] : [...document.querySelectorAll(".scroll")].filter((e) => e.scrollWidth > e.clientWidth + 1);
  const within = (a, b) => a.left < b.right && a.right > b.left;
  const lost = [...document.querySelectorAll(".menu, .tabs")].filter((e) => { const current = e.querySelector("[aria-current=page], [aria-current=true]"); return current && !within(current.getBoundingClientRect(), e.getBoundingClientRect()); });
  return page.concat(lost.map((e) => "the " + e.className + ", whose current entry is out of sight"), tables.map((e) => "the table of " + [...e.querySelectorAll("th")].slice(0, 3).map((th) => th.textContent.trim()).join(", ") + ", by " + (e.scrollWidth - e.clientWidth)), wide.slice(0, 5).map((e) => e.tagName + "." + (e.className.baseVal ?? e.className)));
})()`

// tall lists the links of lists, and the headings, that take more than three lines, whatever URL they show.
const tall = `[...document.querySelectorAll(".table th.url a, .found-title a, .found-url, .url-head")].filter((e) => e.getBoundingClientRect().height > 3.5 * parseFloat(getComputedStyle(e).lineHeight)).map((e) => e.outerHTML.slice(0, 120))`

// ragged lists the tables whose names don't begin below each other, whether or not their row has a box to tick.
const ragged = `[...document.querySelectorAll("table")].filter((e) => new Set([...e.querySelectorAll(".ticked > :last-child")].map((a) => Math.round(a.getBoundingClientRect().left))).size > 1).map((e) => e.dataset.testid ?? "")`

// settled waits, three seconds at most, until the page has followed its window, and says in which theme it stands.
const settled = `new Promise((done) => {
  const till = Date.now() + 3000;
  const look = () => {
    const want = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    const is = document.documentElement.dataset.bsTheme;
    if (is === want || Date.now() > till) requestAnimationFrame(() => done(is)); else requestAnimationFrame(look);
  };
  look();
})`

func (o *tab) check(t *testing.T, name string) {
	t.Helper()
	if got := evaluate[string](t, o, settled); got != o.size.theme {
		t.Errorf("%s: theme: got %q, want %q", name, got, o.size.theme)
	}
	for _, element := range evaluate[[]string](t, o, overflow) {
		t.Errorf("%s: wider than %d px: %s", name, o.size.width, element)
	}
	for _, element := range evaluate[[]string](t, o, tall) {
		t.Errorf("%s: higher than three lines: %s", name, element)
	}
	for _, table := range evaluate[[]string](t, o, ragged) {
		t.Errorf("%s: names in the table %q don't begin below each other", name, table)
	}
	o.screenshot(t, name)
	found := evaluate[string](t, o, `axe.run(Object.assign({iframes: false}, `+o.size.axe+`)).then((r) => JSON.stringify(r.violations.map((v) => ({id: v.id, help: v.help, nodes: v.nodes.slice(0, 3).map((n) => n.html + " " + (n.any[0]?.message ?? n.failureSummary))}))))`)
	var violations []struct {
		ID    string   `json:"id"`
		Help  string   `json:"help"`
		Nodes []string `json:"nodes"`
	}
	if err := json.Unmarshal([]byte(found), &violations); err != nil {
		t.Fatalf("%s: read axe-core's findings: %v", name, err)
	}
	for _, each := range violations {
		t.Errorf("%s, %s: %s: %s\n\t%s", name, o.size.name, each.ID, each.Help, strings.Join(each.Nodes, "\n\t"))
	}
	for _, line := range o.said() {
		t.Errorf("%s: console: %s", name, line)
	}
}

func (o *tab) screenshot(t *testing.T, name string) {
	t.Helper()
	folder := os.Getenv("ROLLCALL_SCREENSHOTS")
	if folder == "" {
		return
	}
	picture, err := chromedp.Run(o.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatalf("%s: screenshot: %v", name, err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+"-"+o.size.name+".png"), picture, 0o644); err != nil {
		t.Fatal(err)
	}
}
