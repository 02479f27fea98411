package views_test

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

func (o *tab) press(t *testing.T, keys string) {
	t.Helper()
	if err := chromedp.Do(o.ctx, chromedp.KeyEvent(keys)); err != nil {
		t.Fatalf("press %q: %v", keys, err)
	}
}

// The keyboard alone reaches the list of keys, the rows and their ticks, and another page; while somebody types, and
// where keys are switched off, a letter is a letter.
func TestPagesAreWorkedByKeyboard(t *testing.T) {
	t.Parallel()
	o := openTab(startBrowser(t), t, viewports()[0])
	server := storybook(t)
	o.visit(t, server.URL+"/stories/failures")

	o.press(t, "?")
	if !poll[bool](o.ctx, t, `document.getElementById("keys").open`) {
		t.Error("no list of keys")
	}
	o.press(t, "\x1b")
	poll[bool](o.ctx, t, `!document.getElementById("keys").open`)

	const inRow = `(document.activeElement.closest("tbody tr, [data-row]")?.innerText ?? "")`
	o.press(t, "j")
	first := evaluate[string](t, o, inRow)
	o.press(t, "j")
	second := evaluate[string](t, o, inRow)
	o.press(t, "k")
	if again := evaluate[string](t, o, inRow); first == "" || second == first || again != first {
		t.Errorf("j, j, k: got rows %q, %q, %q", first, second, again)
	}

	o.press(t, "x")
	if got := evaluate[bool](t, o, `document.activeElement.closest("tr, [data-row]").querySelector("input[type=checkbox]")?.checked ?? false`); !got {
		t.Error("x did not tick the row")
	}

	evaluate[bool](t, o, `(() => { const f = document.createElement("input"); f.id = "typed"; document.querySelector("main").append(f); f.focus(); return true; })()`)
	o.press(t, "j?")
	if got := evaluate[string](t, o, `document.getElementById("typed").value`); got != "j?" {
		t.Errorf("typed: got %q, want j?", got)
	}
	evaluate[bool](t, o, `(() => { document.getElementById("typed").remove(); document.querySelector("[data-keys-on]").click(); return true; })()`)
	o.press(t, "?")
	if evaluate[bool](t, o, `document.getElementById("keys").open`) {
		t.Error("keys work although they are switched off")
	}
	evaluate[bool](t, o, `(() => { document.querySelector("[data-keys-on]").click(); return true; })()`)
	evaluate[bool](t, o, `(() => { document.querySelector("[data-go=b]").addEventListener("click", (e) => { e.preventDefault(); window.went = e.currentTarget.pathname; }); return true; })()`)
	o.press(t, "gb")
	if got := evaluate[string](t, o, `window.went ?? ""`); got != "/batches" {
		t.Errorf("g b went to %q, want /batches", got)
	}
}

// Times are in the reader's zone until UTC is asked for, which the browser remembers.
func TestTimesInUTCAtAPress(t *testing.T) {
	t.Parallel()
	o := openTab(startBrowser(t), t, viewports()[0])
	if _, err := chromedp.Call(o.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Tokyo"}); err != nil {
		t.Fatal(err)
	}
	page := storybook(t).URL + "/stories/failures"
	const says = `[document.querySelector("[data-zone-name]").textContent, document.querySelector("[data-zone-switch]").textContent, document.querySelector("main time").title].join("|")`
	o.visit(t, page)
	own := strings.Split(evaluate[string](t, o, says), "|")
	if _, err := chromedp.RunResponse(o.ctx, chromedp.Click(chromedp.CSS("[data-zone-switch]"))); err != nil { // It waits for the page that the press loads.
		t.Fatal(err)
	}
	utc := strings.Split(evaluate[string](t, o, says), "|")
	if own[0] != "Asia/Tokyo" || own[1] != "Show UTC" || utc[0] != "UTC" || utc[1] != "Show Asia/Tokyo" {
		t.Errorf("zone and button: got %q, then %q", own[:2], utc[:2])
	}
	if own[2] == utc[2] {
		t.Errorf("a time reads %q in both zones", own[2])
	}
}
