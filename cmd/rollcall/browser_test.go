package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"rollcall/internal/sandbox"
)

// chrome is a tab of headless Chromium on a running demo.
type chrome struct {
	t    *testing.T
	ctx  context.Context
	base string
	axe  string
	mu   sync.Mutex
	said []string // What the console said.
}

// findChromium returns the browser's path; `make test` makes sure there is one, and never asks for short tests.
func findChromium(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a browser")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("ROLLCALL_BROWSER") == "required" {
		t.Fatal("no Chromium on PATH, and make test wants one")
	}
	t.Skip("no Chromium on PATH; make test installs it")
	return ""
}

func openChrome(t *testing.T, base string) *chrome {
	t.Helper()
	axe, err := os.ReadFile(filepath.Join("..", "..", "static", "testdata", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(findChromium(t)),
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-software-rasterizer", true), // Nothing here needs a GPU to be played by the processor.
		chromedp.Flag("js-flags", "--min-semi-space-size=32")) // Rather memory than collections.
	allocator, cancelAllocator := chromedp.NewExecAllocator(context.Background(), options...) // It ends in a cleanup, after t.Context is over.
	t.Cleanup(cancelAllocator)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	ctx, cancelTimeout := context.WithTimeout(ctx, 20*time.Minute)
	t.Cleanup(cancelTimeout)
	b := &chrome{t: t, ctx: ctx, base: base, axe: string(axe)}
	b.do(chromedp.EmulateViewport(1280, 900))
	if err := b.theme("light"); err != nil {
		t.Fatal(err)
	}
	b.listen()
	return b
}

// listen collects the console; a page that works says nothing.
func (b *chrome) listen() {
	b.t.Helper()
	messages := chromedp.Console(b.ctx)
	var done sync.WaitGroup
	done.Go(func() {
		for message, err := range messages {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.said = append(b.said, message.String())
			b.mu.Unlock()
		}
	})
	b.t.Cleanup(done.Wait)
	b.t.Cleanup(func() { _ = chromedp.Cancel(b.ctx) })
}

func (b *chrome) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.picture("failed")
		b.t.Fatalf("%v\n%s", err, b.text("body"))
	}
}

func (b *chrome) visit(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.base + path))
}

func (b *chrome) text(selector string) string {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ""`, selector)))
	if err != nil {
		return err.Error()
	}
	return text
}

func (b *chrome) value(script string) string {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("evaluate: %v", err)
	}
	return text
}

// until waits until the selector's text matches.
func (b *chrome) until(selector, pattern string) string {
	b.t.Helper()
	limit := time.After(patience)
	for {
		text := b.text(selector)
		if regexp.MustCompile(pattern).MatchString(text) {
			return text
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-limit:
			b.picture("stuck")
			b.t.Fatalf("%s never matched %s; it reads:\n%s", selector, pattern, text)
		}
	}
}

// fill types a value and fires what typing fires.
func (b *chrome) fill(selector, value string) {
	b.t.Helper()
	b.once(selector, fmt.Sprintf(`e.value = %q; e.dispatchEvent(new Event("input", {bubbles: true}));`, value))
}

// click clicks what the selector finds. A button that is disabled for now can't be pressed.
func (b *chrome) click(selector string) {
	b.t.Helper()
	b.once(selector, `if (!e.offsetParent || e.disabled) return ""; e.click();`)
}

// once does something to what the selector finds once it is there, found and used in one step: a live page may replace its
// rows at any moment. Of a page that is still coming a list may be there without its options, a form without its end, and a
// button without the script that hears it.
func (b *chrome) once(selector, do string) {
	b.t.Helper()
	script := fmt.Sprintf(`(() => { const e = document.querySelector(%q); if (!e || document.readyState !== "complete") return ""; %s return "done"; })()`, selector, do)
	limit := time.After(patience)
	for b.value(script) == "" {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-limit:
			b.picture("stuck")
			b.t.Fatalf("%s never came", selector)
		}
	}
}

// check holds the page as it is against axe-core, the window's width and the console.
func (b *chrome) check(name string) {
	b.t.Helper()
	b.once("main", "") // A page that is still coming lacks half of what it is held against.
	b.picture(name)
	found := b.value(b.axe + `; axe.run({iframes: false}).then((r) => r.violations.map((v) => v.id + ": " + v.nodes.slice(0, 2).map((n) => n.html).join(" ")).join("\n"))`)
	if found != "" {
		b.t.Errorf("%s: axe-core found\n%s", name, found)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, line := range b.said {
		if strings.Contains(line, "status of 422") {
			continue // Chromium's note that a form was answered with its mistakes.
		}
		b.t.Errorf("%s: the console says %s", name, line)
	}
	b.said = nil
}

// theme is the system's. Nothing moves on the way to another color: a button halfway there has neither's contrast.
func (b *chrome) theme(name string) error {
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	return err
}

// picture keeps a screenshot when ROLLCALL_SCREENSHOTS names a folder, wide
// and narrow, light and dark.
func (b *chrome) picture(name string) {
	b.t.Helper()
	folder := os.Getenv("ROLLCALL_SCREENSHOTS")
	if folder == "" {
		return
	}
	for _, look := range []struct {
		name, theme string
		width       int64
	}{{"narrow-dark", "dark", 360}, {"wide-dark", "dark", 1280}, {"narrow-light", "light", 360}, {"wide-light", "light", 1280}} {
		if err := b.theme(look.theme); err != nil {
			b.t.Log(err)
			return
		}
		_ = chromedp.Do(b.ctx, chromedp.EmulateViewport(look.width, 900))
		png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
		if err != nil {
			b.t.Log(err)
			return
		}
		if err := os.WriteFile(filepath.Join(folder, "desk-"+name+"-"+look.name+".png"), png, 0o644); err != nil {
			b.t.Log(err)
		}
	}
}

func (b *chrome) signIn(name, password string) {
	b.t.Helper()
	b.fill("#name", name)
	b.fill("#password", password)
	b.click("form [type=submit]")
	b.until("h1", "Overview")
}

// TestAnalystInABrowser is the main job as a person does it: sign in, submit,
// be told of a bad line, watch the batch fill, read a result.
func TestAnalystInABrowser(t *testing.T) {
	t.Parallel()
	findChromium(t) // Before anything is started for it.
	run := start(t, nil, "demo", "--urls", "60", "--listen", freeAddress(t))
	base := run.log.match(t, regexp.MustCompile(`Open +(\S+)`))
	alice := run.log.match(t, regexp.MustCompile(`alice +(\S+)`))
	b := openChrome(t, base)

	b.visit("/")
	b.until("body", "Sign in")
	b.check("sign-in")
	b.signIn("alice", alice)
	b.check("overview")

	b.visit("/batches/new")
	urls := sandbox.MadeURLs(40, 9)
	b.fill("#urls", strings.Join(urls[:20], "\n")+"\njavascript:alert(1)\n"+strings.Join(urls[20:], "\n"))
	b.fill("#name", "From the browser")
	b.click("main form [formaction='/batches']")
	b.until("main", "javascript:alert")
	if typed := b.value(`document.querySelector("#urls").value`); !strings.Contains(typed, urls[39]) {
		t.Errorf("what was typed is gone: %q", typed)
	}
	b.check("bad-line")
	b.click("[name=skip_bad]")
	b.click("main form [formaction='/batches']")

	b.until("h1", "From the browser")
	// No reload from here on: the page follows by itself.
	b.value(`window.untouched = "yes"`)
	b.until("#roll-call", `(?s)41\s+Submitted.*40\s+Accepted.*1\s+Invalid`)
	b.until("#roll-call", `(?s)\b0\s+Outstanding`)
	b.until("#roll-call", "The sum balances")
	if b.value(`window.untouched ?? ""`) != "yes" {
		t.Error("the page was loaded again instead of following")
	}
	b.check("batch")
	b.readResult()
	b.searchResult()
	b.checksAnUpload(sandbox.MadeURLs(2, 11))
	b.runsAgain("From a file")
	b.signOut()
}

// readResult opens the first stored item of the batch shown and reads it.
func (b *chrome) readResult() {
	b.t.Helper()
	b.until("[data-testid=items]", "Stored")
	b.click("[data-testid=items] tbody tr a[href^='/results/']")
	b.until("[data-testid=prose]", `\w{3,}`)
	b.check("result")
}

func (b *chrome) signOut() {
	b.t.Helper()
	b.click("form[action='/sign-out'] button")
	b.until("body", "Sign in")
	b.visit("/batches")
	b.until("body", "Sign in")
}

// TestOperatorInABrowser looks at what an operator looks at: a job with its
// timeline, deliveries, failures, and runs the reconciler.
func TestOperatorInABrowser(t *testing.T) {
	t.Parallel()
	findChromium(t) // Before anything is started for it.
	run := start(t, nil, "demo", "--urls", "60", "--faults", "drop=0.2,dup=0.3,wrong_sig=0.3,item_fail=0.3", "--listen", freeAddress(t))
	base := run.log.match(t, regexp.MustCompile(`Open +(\S+)`))
	otto := run.log.match(t, regexp.MustCompile(`otto +(\S+)`))
	b := openChrome(t, base)
	b.visit("/sign-in")
	b.signIn("otto", otto)
	b.until("main", `0\s+Outstanding|Outstanding\s+0|Nothing is running`)

	b.visit("/batches")
	b.click("main table a, main .batch a")
	b.until("#roll-call", `(?s)\b0\s+Outstanding`)
	b.click("[data-testid=jobs] tbody tr a")
	b.until("main", "(?is)settled|retr")
	b.check("job")
	for _, page := range []string{"/failures", "/deliveries", "/reconcile"} {
		b.visit(page)
		b.check(strings.TrimPrefix(page, "/"))
	}
	b.click("form[action='/reconcile'] button")
	b.until("body", "A run is queued")
	b.check("reconcile-asked")
	// The page follows the runs, and what was said stays.
	const newest = `document.querySelector("[data-testid=runs] time")?.dateTime ?? ""`
	before := b.value(newest)
	eventually(t, "another run to show", patience, func() bool { return b.value(newest) != before })
	b.until("body", "A run is queued")
}
