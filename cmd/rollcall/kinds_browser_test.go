package main

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"rollcall/internal/geonode"
	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
	"rollcall/store/storetest"
)

// show is a whole Rollcall of this process with a vendor that does wrong what it is told to, and a person looking at it
// in a browser.
type show struct {
	*demo
	*chrome
	t     *testing.T
	calls *front // What stands before the vendor.
}

// openShow is in a hurry where a person would wait for minutes; only a person resumes a paused account.
func openShow(t *testing.T) *show {
	t.Helper()
	box, err := sandbox.New(sandbox.Config{
		Seed: 7, MaxCrawlDepth: 3, RunTime: 100 * time.Millisecond, APIKeys: map[string]string{testVendorKey: sandbox.DefaultAccount},
		Switches: sandbox.Switches{CancelFreezes: true}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	calls := &front{vendor: box.Handler()}
	vendor := httptest.NewServer(calls)
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
		vendor.Close()
	})
	config := readConfig(t, map[string]string{
		"DATABASE_URL": storetest.DSN(t), "ROLLCALL_DATA_DIR": t.TempDir(), "GEONODE_SCRAPER_API_KEY": testVendorKey,
		"SCRAPER_API_BASE_URL": vendor.URL, "ROLLCALL_SECRET_KEY": strings.Repeat("ab", 32), "ROLLCALL_VENDOR_RPS": "100",
		"ROLLCALL_POLL_FIRST": "200ms", "ROLLCALL_POLL_CAP": "1s", "ROLLCALL_WEBHOOK_FALLBACK": "1s", "ROLLCALL_RECONCILE_EVERY": "1h",
	})
	s := &show{t: t, demo: &demo{stack: newStack(config, slog.New(slog.DiscardHandler), time.Now), sandbox: box}, calls: calls}
	t.Cleanup(func() {
		if err := s.close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	s.serve(freeAddress(t))
	s.chrome = openChrome(t, s.url)
	s.chrome.visit("/sign-in")
	s.signIn("otto", "correct horse battery")
	return s
}

func (s *show) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// serve opens the pages and what is behind them.
func (s *show) serve(address string) {
	s.t.Helper()
	ctx := s.t.Context()
	s.must(s.ownDatabase(ctx))
	s.must(s.openStore(ctx))
	s.must(s.openVendor())
	listener, err := listenNear(ctx, address)
	s.must(err)
	front := openDoor(listener, s.log, s.now)
	s.onClose("server", front.close)
	s.url = front.url()
	s.config.PublicURL = s.url
	s.must(s.openPipeline(ctx, func(c *pipeline.Config) {
		c.PollTick, c.ListEvery = 100*time.Millisecond, 300*time.Millisecond
		c.RetryGaps, c.ProbeEvery = []time.Duration{}, time.Hour
		c.MissingGap, c.CancelGrace = 300*time.Millisecond, 500*time.Millisecond
	}))
	s.must(s.openWeb(front))
	front.admit(s.web.Handler())
	_, err = s.pipeline.RegisterWebhooks(ctx)
	s.must(err)
	s.must(s.addUser(ctx, "otto", store.RoleOperator, "correct horse battery"))
}

// submit submits a list of URLs on its page and waits for the batch's.
func (s *show) submit(name string, urls ...string) {
	s.t.Helper()
	s.visit("/batches/new")
	s.fill("#name", name)
	s.fill("#urls", strings.Join(urls, "\n"))
	s.until("[data-testid=cost]", fmt.Sprintf("Up to %d for the line", len(urls)))
	s.click("main form [formaction='/batches']")
	s.until("h1", name)
}

// home waits until the batch shown has no URL outstanding, without loading its page again.
func (s *show) home() {
	s.t.Helper()
	s.until("#roll-call", `(?s)\b0\s+Outstanding`)
	s.until("#roll-call", "The sum balances")
}

// path is where the browser is.
func (s *show) path() string {
	s.t.Helper()
	return s.value("location.pathname")
}

// TestKindsInABrowser drives everything that isn't the main job: each kind, each way to stop or repeat something, and
// each trouble that has a page.
func TestKindsInABrowser(t *testing.T) {
	t.Parallel()
	findChromium(t) // Before anything is started for it.
	s := openShow(t)
	s.crawl()
	s.crawlTooDeep()
	s.tryOne()
	s.exportAndCompare()
	s.tryAndLose()
	s.cancelBatch()
	s.resubmitTicked()
	s.resubmitAll()
	s.groupFailures()
	s.foreign()
	s.pausedAccount()
	s.modeSwitch()
}

// crawl goes from the form to a page at the third level of the tree, and to the table.
func (s *show) crawl() {
	s.t.Helper()
	s.visit("/batches/new")
	s.click(".kinds a[href='/crawls/new']")
	s.until("h1", "New crawl")
	s.fill("#urls", "ftp://shop.sandbox.test/")
	s.fill("#depth", "3")
	s.fill("#limit", "1234")
	s.until("[data-testid=cost]", "1,234 requests")
	s.fill("#limit", "0")
	s.click("main form [type=submit]")
	s.until("#limit-error", "1 to 10,000")
	s.check("crawl-errors")
	s.fill("#limit", "40")
	s.click("main form [type=submit]")
	s.until("#urls-error", "http")
	s.fill("#urls", "https://shop.sandbox.test/")
	s.click("main form [type=submit]")
	s.until("[data-testid=seed]", "https://shop.sandbox.test/")
	s.value(`window.untouched = "yes"`)
	s.home()
	s.until("#roll-call", `(?s)40\s+Accepted\s+(=|\d)`) // No longer "so far".
	s.until("[data-testid=tree]", `\d+ pages`)
	if s.value(`window.untouched ?? ""`) != "yes" {
		s.t.Error("the crawl's page was loaded again instead of following")
	}
	s.check("crawl")
	s.click("[data-testid=tree] .open-level")
	s.until(".trail", "Root")
	s.until("[data-testid=tree]", "Stored")
	if s.value(`document.querySelector("[data-testid=tree] .open-level")?.textContent ?? ""`) != "" {
		s.click("[data-testid=tree] .open-level")
		s.until(".trail", `(?s)Root.*https.*https`)
	}
	s.check("crawl-level")
	s.click("#item-tabs a[href$='view=table#items']")
	s.until("[data-testid=items]", "Parent")
	s.check("crawl-table")
	s.click("[data-testid=items] tbody tr:nth-child(2) th a")
	s.until("[data-testid=prose]", `\w{3,}`)
	s.click(".tabs a[href$='tab=links']")
	s.until("[data-testid=links]", "https://")
}

// crawlTooDeep is refused by the plan, in the vendor's words.
func (s *show) crawlTooDeep() {
	s.t.Helper()
	s.visit("/crawls/new")
	s.fill("#urls", "https://docs.sandbox.test/")
	s.fill("#depth", "9")
	s.click("main form [type=submit]")
	s.until("#roll-call", `(?s)1\s+Failed`)
	s.until("[data-testid=tree]", "(?i)depth")
	s.until("[data-testid=jobs]", "(?is)refused|depth")
	s.check("crawl-refused")
}

// tryOne sees the call under way, and then its answer on the same page.
func (s *show) tryOne() {
	s.t.Helper()
	s.visit("/try")
	s.check("try")
	s.fill("#urls", "https://news.sandbox.test/story/76")
	asked := s.calls.holding(false, submits)
	s.click("main form [type=submit]")
	s.until("[data-testid=asking]", "sking the vendor|About to ask")
	s.value(`window.untouched = "yes"`)
	asked.release()
	s.until("[data-testid=prose]", `\w{3,}`)
	s.until("main", `(?s)Stored.*Sync`)
	if s.value(`window.untouched ?? ""`) != "yes" {
		s.t.Error("the page of the try was loaded again instead of following")
	}
	s.check("tried")
}

// tryAndLose has the answer cut off, and fetches the page as a job instead.
func (s *show) tryAndLose() {
	s.t.Helper()
	s.must(s.sandbox.SetFaults(sandbox.Faults{sandbox.FaultResetAfterAccept: 1}))
	s.visit("/try")
	s.fill("#urls", "https://news.sandbox.test/story/77")
	s.click("main form [type=submit]")
	s.until("[data-testid=failure]", "(?s)SYNC_LOST.*won't ask for it again by itself")
	s.check("try-lost")
	s.must(s.sandbox.SetFaults(nil))
	s.click("[data-testid=failure] a[href^='/resubmit']")
	s.until("[data-testid=plan]", "may be charged a second time")
	s.click(".plan-foot form [type=submit]")
	s.until(".note-success", "1 URL was resubmitted")
	s.until("[data-testid=lineage]", `(?s)One call.*SYNC_LOST.*resubmitted by a person.*Stored`)
	s.check("try-again")
}

// cancelBatch plans, cancels, and sees every URL answered for.
func (s *show) cancelBatch() {
	s.t.Helper()
	urls := make([]string, 6)
	for i := range urls {
		urls[i] = fmt.Sprintf("https://shop.sandbox.test/slow/8m?n=%d", i)
	}
	s.submit("To be cancelled", urls...)
	s.until("[data-testid=jobs]", "Accepted")
	s.check("batch-running")
	s.click("[data-testid=jobs] tbody tr a")
	s.until("h1", "Job")
	job := s.path()
	s.click("form[action$='/settle'] button")
	s.until(".note-success", "as soon as it has come")
	s.until("[data-testid=timeline]", "Woken")
	s.click(".crumbs a")
	s.click("a[href$='/cancel']")
	s.until("[data-testid=plan]", `(?s)1 job at the vendor with 6 URLs.*may still land`)
	s.check("cancel-plan")
	s.click(".plan-foot form [type=submit]")
	s.until(".note-success", "the vendor is asked to stop 1 job")
	s.until("#roll-call", `(?s)6\s+Cancelled`)
	s.home()
	s.visit(job)
	s.until("[data-testid=timeline]", "(?s)Cancel asked for.*Settled")
	s.check("cancelled-job")
}

// resubmitTicked fails a page, ticks it, and brings it home the second time.
func (s *show) resubmitTicked() {
	s.t.Helper()
	s.must(s.sandbox.SetFaults(sandbox.Faults{sandbox.FaultItemFail: 1}))
	s.submit("Fails at first", sandbox.MadeURLs(4, 3)...)
	s.home()
	s.until("#roll-call", `(?s)4\s+Failed`)
	s.must(s.sandbox.SetFaults(nil))
	batch := s.path()
	s.click("#item-tabs a[href*='state=failed']")
	s.until("[data-testid=items]", "Failed")
	s.check("batch-failures")
	s.click(".tick-bar button")
	s.until("main", "Nothing is ticked")
	s.visit(batch + "/items?state=failed")
	s.click("[data-testid=items] tbody tr:first-child .tick")
	s.click(".tick-bar button")
	s.until("[data-testid=plan]", `(?s)1 URL is asked for again.*Up to 1 request, in 1 job`)
	s.check("resubmit-plan")
	s.click(".plan-foot form [type=submit]")
	s.until("[data-testid=lineage]", `(?s)submitted.*Failed.*resubmitted by a person.*Stored`)
	s.check("resubmitted")
}

// resubmitAll takes the rest of the failures by a filter in the address.
func (s *show) resubmitAll() {
	s.t.Helper()
	s.visit("/failures?host=shop.sandbox.test")
	s.click("[data-testid=failures] a[href^='/failures?batch=']")
	s.until(".filters-total", "3 failures")
	s.check("failures-filtered")
	s.click(".tick-bar a")
	s.until("[data-testid=plan]", "3 URLs are asked for again")
	s.click(".plan-foot form [type=submit]")
	s.until(".note-success", "3 URLs were resubmitted")
	s.until("[data-testid=number]", "Batch") // Nothing that fits the filter is left: the batch shows what comes of them.
}

// foreign has another program use the account.
func (s *show) foreign() {
	s.t.Helper()
	ctx := s.t.Context()
	_, err := s.vendor.SubmitExtract(ctx, geonode.ExtractRequest{URL: "https://news.sandbox.test/another-program"})
	s.must(err)
	limit := time.After(patience)
	for held := int64(0); held == 0; {
		held, err = s.store.CountEvents(ctx, store.EventHeld)
		s.must(err)
		select {
		case <-time.After(50 * time.Millisecond):
		case <-limit:
			s.t.Fatal("the delivery of another program's job never came")
		}
	}
	s.visit("/deliveries?about=held")
	s.until("[data-testid=foreign]", "extract_completed")
	s.check("held")
	// Nobody's yet, for ten minutes; they are over now.
	_, err = s.store.SQL().ExecContext(ctx, `UPDATE processed_events SET received_at = received_at - interval '1 hour' WHERE state = 'held'`)
	s.must(err)
	for foreign := int64(0); foreign == 0; {
		s.must(s.pipeline.Sweep(ctx))
		foreign, err = s.store.CountEvents(ctx, store.EventForeign)
		s.must(err)
		select {
		case <-time.After(50 * time.Millisecond):
		case <-limit:
			s.t.Fatal("another program's job never counted as foreign")
		}
	}
	s.visit("/")
	s.click("[data-testid=foreign] a")
	s.until("[data-testid=about]", "never fetches them")
	s.until("[data-testid=foreign]", "extract_completed")
	s.check("foreign")
}

// pausedAccount runs out of credit, is told on every page, and resumes.
func (s *show) pausedAccount() {
	s.t.Helper()
	s.must(s.sandbox.SetFaults(sandbox.Faults{sandbox.FaultBalanceOut: 1}))
	s.submit("Waits for credit", sandbox.MadeURLs(3, 5)...)
	batch := s.path()
	for _, page := range []string{"/failures", "/deliveries", "/reconcile", "/try", "/crawls/new", batch, "/"} {
		s.visit(page)
		for i := 0; i < 50 && s.text(".note-danger") == ""; i++ { // The first look may be before the vendor's answer.
			s.visit(page)
		}
		s.until(".note-danger", `(?s)paused.*402.*wait.*Since`)
	}
	s.check("paused")
	s.must(s.sandbox.SetFaults(nil))
	s.click("form[action='/dispatch/resume'] button")
	s.until(".note-success", "Dispatch goes on")
	s.visit(batch)
	s.home()
}

// modeSwitch has the vendor switch a webhook off: the next reconcile finds out, and auto mode polls.
func (s *show) modeSwitch() {
	s.t.Helper()
	s.visit("/")
	s.until("[data-testid=system]", "(?i)by webhook")
	s.must(s.sandbox.SetFaults(sandbox.Faults{sandbox.FaultWebhookOff: 1}))
	s.submit("Comes home by polling", sandbox.MadeURLs(4, 6)...)
	s.home()
	s.visit("/reconcile")
	s.click("form[action='/reconcile'] button")
	s.until(".note-success", "What it finds shows here")
	s.until("[data-testid=runs]", "a person")
	s.check("reconciled")
	s.visit("/")
	s.until("[data-testid=system]", "(?i)by polling")
	s.until(".note-danger", "switched it off")
	s.check("mode-switched")
}
