package web

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"rollcall/store"
)

// tab is a tab of a real browser, and what its console said.
type tab struct {
	ctx     context.Context
	mu      sync.Mutex
	console []string
}

func openTab(t *testing.T) *tab {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a browser")
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
	browser, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	ctx, cancelTimeout := context.WithTimeout(browser, 20*time.Minute)
	t.Cleanup(cancelTimeout)
	opened := &tab{ctx: ctx}
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	messages := chromedp.Console(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		for message, err := range messages {
			if err != nil {
				return
			}
			opened.mu.Lock()
			opened.console = append(opened.console, message.String())
			opened.mu.Unlock()
		}
	})
	t.Cleanup(done.Wait)
	t.Cleanup(func() { _ = chromedp.Cancel(browser) })
	return opened
}

func (o *tab) open(t *testing.T, url string) {
	t.Helper()
	if err := chromedp.Do(o.ctx, chromedp.Navigate(url)); err != nil {
		t.Fatalf("open %s: %v", url, err)
	}
}

// run evaluates a script for what it does.
func (o *tab) run(t *testing.T, script string) {
	t.Helper()
	if _, err := chromedp.Run(o.ctx, chromedp.Evaluate[bool](script+";true")); err != nil {
		t.Fatalf("%s: %v", script, err)
	}
}

// until waits for an expression to become true of a whole page: of one that is
// still coming a form may be there without its end, or a button without the
// script that hears it, and looking into what isn't there would end the looking.
// A page that is left while it waits ends the waiting, so it begins again on the
// next.
func (o *tab) until(t *testing.T, expression string) {
	t.Helper()
	whole := `(() => { try { return document.readyState === "complete" && (` + expression + `); } catch { return false; } })()`
	var err error
	for range 10 {
		_, err = chromedp.Run(o.ctx, chromedp.Poll[bool](whole, chromedp.WithPollingTimeout(patience)))
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "navigated") && !strings.Contains(err.Error(), "context") {
			break
		}
	}
	shown, _ := chromedp.Run(o.ctx, chromedp.Evaluate[string]("location.href + ' ' + document.body.innerText"))
	t.Fatalf("%s: %v\n%s", expression, err, shown)
}

func (o *tab) signIn(t *testing.T, name string) {
	t.Helper()
	o.run(t, fmt.Sprintf(`document.querySelector("#name").value = %q; document.querySelector("#password").value = %q; document.querySelector("form").submit()`,
		name, password))
}

// TestLiveInABrowser: a page that is open follows what happens, keeps to its
// policy, stops when the batch has ended, and leaves when the session does.
func TestLiveInABrowser(t *testing.T) {
	t.Parallel()
	o := openTab(t)
	b := setupWith(t, Config{Sandbox: true, beat: 200 * time.Millisecond})
	user := b.addUser(t, "alice", store.RoleAnalyst)
	s, other := b.seed(t, "november", 8), b.seed(t, "december", 8)
	page := fmt.Sprintf("/batches/%d", s.batch)
	o.open(t, b.url+page)
	o.until(t, `document.querySelector("input[name=next]")?.value === "`+page+`"`)
	o.signIn(t, "alice")
	o.until(t, `location.pathname === "`+page+`" && document.querySelector("#count-stored")?.textContent === "4"`)
	o.until(t, `document.querySelector("[data-live-state]")?.textContent === "Live"`)

	b.exec(t, `UPDATE items SET state = 'stored', net = 'poll', ended_at = now() WHERE id = $1`, s.items[2])
	b.exec(t, `UPDATE batches SET stored_poll = stored_poll + 1 WHERE id = $1`, s.batch)
	if err := b.store.Notify(t.Context(), s.batch); err != nil {
		t.Fatal(err)
	}
	o.until(t, `document.querySelector("#count-stored")?.textContent === "5" && document.querySelector("#roll-call [data-net=poll]") !== null`)
	o.until(t, fmt.Sprintf(`document.querySelector("#items a[href='/results/%d']") !== null`, s.items[2]))

	b.exec(t, `UPDATE batches SET stored_poll = stored_poll + 1, ended_at = now() WHERE id = $1`, s.batch)
	if err := b.store.Notify(t.Context(), s.batch); err != nil {
		t.Fatal(err)
	}
	o.until(t, `document.querySelector("#count-stored")?.textContent === "6" && document.querySelector("[data-live-state]").hidden`)

	// What was ticked and opened stays so while rows come, which are shown at a press.
	o.open(t, fmt.Sprintf("%s/batches/%d/items?state=failed", b.url, other.batch))
	o.until(t, `document.querySelector("[data-live-state]")?.textContent === "Live"`)
	o.run(t, `document.querySelector("#items .tick").click(); document.querySelector("#item-filter-more").open = true`)
	b.exec(t, `UPDATE items SET state = 'failed', error_code = 'X', ended_at = now() WHERE id = $1`, other.items[2])
	b.exec(t, `UPDATE batches SET failed = failed + 1 WHERE id = $1`, other.batch)
	if err := b.store.Notify(t.Context(), other.batch); err != nil {
		t.Fatal(err)
	}
	o.until(t, `!document.querySelector("#items-new").hidden && document.querySelector("#items-new").innerText.includes("1 new: show")`)
	o.until(t, `document.querySelectorAll("#items .tick").length === 2`)
	o.run(t, `document.querySelector("#items-new a").click()`)
	o.until(t, `document.querySelector("#item-filter-more").open && document.querySelector("#items-new").hidden && document.activeElement.id === "items-title"`)
	o.until(t, `document.querySelectorAll("#items .tick").length === 3 && document.querySelector("#items .tick").checked && document.querySelectorAll("#items .tick:checked").length === 1`)
	for _, line := range o.hear() {
		if !strings.Contains(line, "net::ERR_") {
			t.Errorf("console: %s", line)
		}
	}
	if _, err := b.store.DeleteUserSessions(t.Context(), user.ID, nil); err != nil {
		t.Fatal(err)
	}
	o.until(t, `location.pathname === "/sign-in"`)
}

// TestPreviewInABrowser: a page that isn't ours in its frame runs nothing, whatever
// it tries.
func TestPreviewInABrowser(t *testing.T) {
	t.Parallel()
	o := openTab(t)
	b := setup(t)
	b.addUser(t, "alice", store.RoleAnalyst)
	s := b.seed(t, "november", 4)
	b.put(t, s.items[0], []byte("# x"), []byte(`<h1 id=shown>Hi</h1><script>parent.document.title = "owned"</script>
		<img src=x onerror="parent.postMessage('owned', '*')"><meta http-equiv=refresh content="0;url=javascript:1"><form action=/sign-out method=post><button>x</button></form>`))
	path := fmt.Sprintf("/results/%d", s.items[0])
	o.open(t, b.url+path+"?tab=preview")
	o.signIn(t, "alice")
	o.until(t, `document.querySelector("iframe")?.getAttribute("src") === "`+path+`/preview"`)
	o.run(t, `window.heard = "nothing"; addEventListener("message", (e) => { window.heard = e.data })`)
	o.run(t, `window.loads = 0; const f = document.querySelector("iframe"); f.addEventListener("load", () => window.loads++); f.src = f.src`)
	o.until(t, `window.loads > 0`)
	o.until(t, `window.heard === "nothing" && !document.title.includes("owned") && document.querySelector("iframe").contentDocument === null`)
}
