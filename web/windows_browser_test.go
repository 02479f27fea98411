package web

import (
	"context"
	"fmt"
	"testing"
	"time"

	cdp "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"rollcall/store"
)

// window opens another window of the same browser.
func (o *tab) window(t *testing.T) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(o.ctx)
	t.Cleanup(cancel)
	ctx, cancelTimeout := context.WithTimeout(ctx, 20*time.Minute)
	t.Cleanup(cancelTimeout)
	return &tab{ctx: ctx}
}

// focusedEarly has the window focused before the scripts of its pages have looked at them, as it may be.
func (o *tab) focusedEarly(t *testing.T) {
	t.Helper()
	early := cdp.AddScriptToEvaluateOnNewDocumentParams{Source: `document.addEventListener("DOMContentLoaded", () => window.dispatchEvent(new Event("focus")))`}
	if _, err := chromedp.Call(o.ctx, cdp.AddScriptToEvaluateOnNewDocument, early); err != nil {
		t.Fatal(err)
	}
}

const (
	isLive   = `document.querySelector("[data-live-state]")?.textContent === "Live"`
	isPaused = `document.querySelector("[data-live-state]")?.textContent.startsWith("Paused")`
)

// TestManyWindowsOfABrowser: a browser keeps six connections to a host, and
// eight windows of a live page in sight still load what is asked of them. The
// ones used last follow their streams, and one that was opened out of sight
// begins when it is seen. Being focused before htmx is ready loses none.
func TestManyWindowsOfABrowser(t *testing.T) {
	t.Parallel()
	o := openTab(t)
	b := setup(t)
	b.addUser(t, "alice", store.RoleAnalyst)
	s := b.seed(t, "november", 8)
	path := fmt.Sprintf("/batches/%d", s.batch)
	o.open(t, b.url+path)
	o.until(t, `document.querySelector("input[name=next]")?.value === "`+path+`"`)
	o.signIn(t, "alice")
	o.until(t, isLive)
	windows := []*tab{o}
	for len(windows) < 8 {
		next := o.window(t)
		next.focusedEarly(t)
		next.open(t, b.url+path)
		next.until(t, isLive)
		windows = append(windows, next)
	}
	for i, each := range windows[:5] {
		each.until(t, isPaused)
		if i == 0 {
			b.streams(t, 3)
		}
	}
	for _, each := range windows {
		each.open(t, b.url+path+"/items?state=failed")
		each.until(t, `location.search === "?state=failed" && `+isLive)
	}
	windows[0].until(t, isPaused)
	windows[0].run(t, `document.querySelector("h1").dispatchEvent(new PointerEvent("pointerdown", { bubbles: true }))`)
	windows[0].until(t, isLive)
	b.streams(t, 3)

	hidden := o.window(t)
	unseen := cdp.AddScriptToEvaluateOnNewDocumentParams{Source: `{
		const ask = window.fetch;
		window.asked = [];
		window.fetch = (...args) => { if (!window.seen) window.asked.push(String(args[0])); return ask(...args); };
		Object.defineProperty(document, "hidden", { get: () => !window.seen });
	}`}
	if _, err := chromedp.Call(hidden.ctx, cdp.AddScriptToEvaluateOnNewDocument, unseen); err != nil {
		t.Fatal(err)
	}
	hidden.open(t, b.url+"/")
	hidden.until(t, `document.querySelector("#live") !== null`)
	hidden.run(t, `window.seen = true; document.dispatchEvent(new Event("visibilitychange"))`)
	hidden.until(t, isLive+` && window.asked.length === 0`)
}

// streams waits until the process keeps so many.
func (b *bench) streams(t *testing.T, want int) {
	t.Helper()
	got := -1
	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(10 * time.Millisecond) {
		b.server.live.mu.Lock()
		got = b.server.live.streams
		b.server.live.mu.Unlock()
		if got == want {
			return
		}
	}
	t.Fatalf("got %d streams, want %d", got, want)
}
