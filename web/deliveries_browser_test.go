package web

import (
	"fmt"
	"strings"
	"testing"

	"rollcall/store"
)

// TestDeliveriesInABrowser: an operator narrows the vendor's log, walks it,
// ticks rows and comes to the plan that replays them, opens a delivery, and
// sees what a reading brings while it is read; an analyst reads along and can
// do none of it.
func TestDeliveriesInABrowser(t *testing.T) {
	t.Parallel()
	o := openTab(t)
	b := setup(t)
	b.pipeline.logs = 1
	b.addUser(t, "olga", store.RoleOperator)
	b.addUser(t, "alice", store.RoleAnalyst)
	s := b.seed(t, "november", 8)
	webhook := b.attempts(t, s.vendorID, 120)
	o.open(t, b.url+"/deliveries/log")
	o.until(t, `document.querySelector("#password") !== null`)
	o.signIn(t, "olga")
	o.until(t, `location.pathname === "/deliveries/log" && document.querySelector("[data-testid=total]")?.textContent === "120 attempts" && `+logHas(50))
	filterTheLog(t, o)
	tickAndOpen(t, o, b.url)
	followAReading(t, o, b, webhook)
	readAlong(t, o, b.url)
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, line := range o.console {
		// Refusals are answers too: of the bad filter, and of the analyst.
		if !strings.Contains(line, "422") && !strings.Contains(line, "403") && !strings.Contains(line, "net::ERR_") {
			t.Errorf("console: %s", line)
		}
	}
}

// logHas is that the page shows so many rows of the vendor's log.
func logHas(n int) string {
	return fmt.Sprintf(`document.querySelectorAll("[data-testid=log] tbody tr").length === %d`, n)
}

// filterTheLog: filters are chosen, in the address, wrong, and cleared.
func filterTheLog(t *testing.T, o *tab) {
	t.Helper()
	o.run(t, `document.querySelector("#standing").value = "refused"; document.querySelector("[data-testid=filter] button").click()`)
	o.until(t, `new URLSearchParams(location.search).get("standing") === "refused" && `+logHas(24)+` && document.querySelector("#standing").value === "refused"`)
	o.run(t, `document.querySelector(".filter-more summary").click(); document.querySelector("#since").value = "yesterday"; document.querySelector("[data-testid=filter] button").click()`)
	o.until(t, `document.querySelector("#since-error")?.textContent.includes("yesterday") && document.querySelector("#since").value === "yesterday" &&
		document.querySelector(".filter-more").open && document.activeElement.id === "error-summary"`)
	o.run(t, `document.querySelector("[data-testid=filter] a.btn-link").click()`)
	o.until(t, `location.search === "" && `+logHas(50))
}

// tickAndOpen: the second page, two ticks, and the plan for them; a refused
// delivery, from the list of what was received.
func tickAndOpen(t *testing.T, o *tab, at string) {
	t.Helper()
	o.run(t, `document.querySelector(".pager a[rel=next]").click()`)
	o.until(t, `location.search.startsWith("?from=") && `+logHas(50))
	o.run(t, `document.querySelectorAll("input[name=pick]").forEach((box, i) => { if (i < 2) box.click() }); document.querySelector("[data-testid=replay-bar] button").click()`)
	o.until(t, `location.pathname === "/replays/new" && new URLSearchParams(location.search).getAll("pick").length === 2 &&
		document.querySelector("h1") !== null && document.querySelector("main form") !== null`)
	o.open(t, at+"/deliveries/log?standing=refused")
	o.until(t, logHas(24))
	o.run(t, `document.querySelector("[data-testid=replay-bar] a").click()`)
	o.until(t, `location.pathname === "/replays/new" && new URLSearchParams(location.search).get("standing") === "refused" && document.querySelector("main form") !== null`)

	o.open(t, at+"/deliveries?verdict=refused")
	o.until(t, `document.querySelectorAll("[data-testid=deliveries] tbody tr").length === 24`)
	o.run(t, `document.querySelector("[data-testid=deliveries] th a").click()`)
	o.until(t, `document.querySelector("[data-testid=diagnosis]")?.textContent.includes("retired secret") && document.querySelector("[data-testid=timeline]") !== null`)
	o.run(t, `document.querySelector("details.more summary").click()`)
	o.until(t, `document.querySelector("details.more").open && document.querySelector("#bytes").textContent.includes("78")`)
}

// followAReading: one that is under way brings a row; what was ticked stays
// ticked.
func followAReading(t *testing.T, o *tab, b *bench, webhook int64) {
	t.Helper()
	o.open(t, b.url+"/deliveries/log")
	o.until(t, logHas(50))
	o.run(t, `document.querySelector("form[action='/deliveries/log/read'] button").click()`)
	o.until(t, `document.querySelector(".note-success")?.textContent.includes("being read")`)
	if got := b.pipeline.logReads.Load(); got != 1 {
		t.Errorf("asked %d times, want once", got)
	}
	if err := b.store.AskLogRead(t.Context(), []int64{webhook}, b.clock.now()); err != nil {
		t.Fatal(err)
	}
	o.open(t, b.url+"/deliveries/log?status=parked")
	o.until(t, `document.querySelector("[data-testid=readings]")?.textContent.includes("is being read") && `+logHas(0))
	b.exec(t, `INSERT INTO delivery_log (webhook_id, vendor_id, attempt, status, created_at, seen_at) VALUES ($1, 'new', 1, 'parked', now(), now())`, webhook)
	o.until(t, logHas(1))
	o.run(t, `document.querySelector("input[name=pick]").click()`)
	b.exec(t, `INSERT INTO delivery_log (webhook_id, vendor_id, attempt, status, created_at, seen_at) VALUES ($1, 'newer', 1, 'parked', now(), now())`, webhook)
	if err := b.store.AnswerLogRead(t.Context(), webhook); err != nil {
		t.Fatal(err)
	}
	o.until(t, logHas(2)+` && document.querySelectorAll("input[name=pick]:checked").length === 1 && !document.querySelector("#follow").hasAttribute("hx-get")`)
}

// readAlong: an analyst sees the log, and can do nothing with it.
func readAlong(t *testing.T, o *tab, at string) {
	t.Helper()
	o.run(t, `document.querySelector("form[action='/sign-out'] button").click()`)
	o.until(t, `document.querySelector("#password") !== null`)
	o.signIn(t, "alice")
	o.until(t, `location.pathname === "/"`)
	o.open(t, at+"/deliveries/log")
	o.until(t, logHas(50)+` && document.querySelectorAll("input[name=pick], [data-testid=replay-bar], form[action='/deliveries/log/read']").length === 0`)
	o.run(t, `fetch("/deliveries/log/read", {method: "POST", body: new URLSearchParams({csrf_token: document.querySelector("input[name=csrf_token]").value})})
		.then((answer) => { document.title = "answered " + answer.status })`)
	o.until(t, `document.title === "answered 403"`)
}
