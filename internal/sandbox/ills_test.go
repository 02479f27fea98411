package sandbox

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestFaultLateRows(t *testing.T) {
	t.Parallel()
	r, rec, _ := withFault(t, FaultLateRows, func(c *Config) { c.LateFor = 2 * time.Second })
	path := r.batch(MadeURLs(8, 1)...)
	rec.take(t)
	d := r.call("GET", path, nil).want(200)
	if d.str("status") != "completed" || d.num("completed_urls") != 8 || len(d.list("results")) != 6 {
		t.Errorf("got %d rows of a job %s", len(d.list("results")), d.str("status"))
	}
	for len(r.call("GET", path, nil).want(200).list("results")) != 8 {
		sleep(t.Context(), 5*time.Millisecond)
	}
}

func TestFaultForget(t *testing.T) {
	t.Parallel()
	r, rec, _ := withFault(t, FaultForget, nil)
	path := r.batch(MadeURLs(3, 1)...)
	r.call("GET", path, nil).want(404)
	r.call("DELETE", path, nil).want(404)
	if n := len(r.call("GET", "/v1/batch/jobs", nil).want(200).list("jobs")); n != 0 {
		t.Errorf("%d jobs are listed", n)
	}
	b := r.Books()
	if b.Jobs[0].Status != "forgotten" || b.Jobs[0].Outcomes[2].Status != "forgotten" || b.Reserved != 0 || b.Deliveries.Events != 0 {
		t.Errorf("got %+v", b)
	}
	if len(rec.got) != 0 {
		t.Error("a delivery came")
	}
}

func TestFaultOutage(t *testing.T) {
	t.Parallel()
	cfg := quick()
	clock := newClock()
	cfg.Now = clock.now
	cfg.Faults = Faults{FaultOutage: 0.5}
	r := setup(t, cfg)
	down := 0
	for range 40 {
		a := r.call("GET", "/v1/usage", nil)
		if b := r.call("GET", "/v1/usage", nil); b.status != a.status {
			t.Error("the spell ended in the middle")
		}
		if a.status == http.StatusServiceUnavailable {
			down++
		}
		clock.add(2 * time.Second)
	}
	if down < 8 || down > 32 {
		t.Errorf("down %d times of 40", down)
	}
}

func TestFaultKeyRevoked(t *testing.T) {
	t.Parallel()
	r, _, _ := withFault(t, FaultKeyRevoked, nil)
	r.call("GET", "/v1/usage", nil).want(401)
}

func TestFaultBalanceOut(t *testing.T) {
	t.Parallel()
	r, _, _ := withFault(t, FaultBalanceOut, nil)
	r.call("POST", "/v1/batch", `{"urls":["https://shop.sandbox.test/"]}`).want(402)
	r.call("GET", "/v1/usage", nil).want(200)
}

func TestFaultVendorCancel(t *testing.T) {
	t.Parallel()
	r, rec, _ := withFault(t, FaultVendorCancel, func(c *Config) { c.Parallelism = 1 })
	d := r.finish(r.batch(MadeURLs(10, 1)...))
	if d.str("status") != "cancelled" || d.num("completed_urls") != 5 || d.num("cancelled_urls") != 5 {
		t.Errorf("got %v", d.v)
	}
	if got := r.extract("https://shop.sandbox.test/item/1").str("status"); got != "cancelled" {
		t.Errorf("extract: got %s", got)
	}
	if b := r.Books(); b.Charged != 5 || b.Reserved != 0 || len(rec.got) != 0 {
		t.Errorf("got %d charged, %d reserved", b.Charged, b.Reserved)
	}
}

func TestFaultWebhookOff(t *testing.T) {
	t.Parallel()
	r, rec, _ := withFault(t, FaultWebhookOff, nil)
	r.finish(r.batch(MadeURLs(1, 1)...))
	d := r.call("GET", "/v1/webhooks", nil).want(200)
	if d.at("items", 0, "is_active").v != false || len(rec.got) != 0 || r.Books().Deliveries.SwitchedOff != 1 {
		t.Errorf("got %v", d.v)
	}
}

func TestFaultClockSkew(t *testing.T) {
	t.Parallel()
	cfg := quick()
	clock := newClock()
	cfg.Now = clock.now
	cfg.Faults = Faults{FaultClockSkew: 0.5}
	r := setup(t, cfg)
	a := r.call("POST", "/v1/extract", `{"url":"https://shop.sandbox.test/1","processing_mode":"async"}`)
	at, err := http.ParseTime(a.header.Get("Date"))
	if want := clock.start.Add(5 * time.Minute); err != nil || !at.Equal(want) {
		t.Errorf("Date: got %s, want %s", at, want)
	}
	if got := r.finish(a.want(202).str("status_url")).str("created_at"); !strings.HasPrefix(got, "2026-09-14T08:05:00") {
		t.Errorf("created_at: got %s", got)
	}
}

func TestChildren(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.Switches = Switches{ChildrenListed: true, ChildrenFire: true}
	r := setup(t, cfg)
	rec := newReceiver(t, nil)
	r.hook(rec, "extract_completed")
	r.finish(r.batch("https://shop.sandbox.test/item/1", "https://shop.sandbox.test/fail/X", "https://shop.sandbox.test/item/2"))
	list := r.call("GET", "/v1/extract/jobs", nil).want(200)
	if len(list.list("jobs")) != 3 || list.str("jobs", 1, "status") != "failed" {
		t.Errorf("got %v", list.v)
	}
	child := r.call("GET", "/v1/extract/"+list.str("jobs", 0, "job_id"), nil).want(200)
	if child.str("status") != "completed" || child.str("data", "markdown") == "" {
		t.Errorf("got %v", child.v)
	}
	got := map[string]bool{}
	for range 2 {
		got[rec.take(t).doc(t).str("data", "job_id")] = true
	}
	if !got[list.str("jobs", 0, "job_id")] || !got[list.str("jobs", 2, "job_id")] {
		t.Errorf("got %v", got)
	}
	if n := len(r.Books().Jobs); n != 1 {
		t.Errorf("%d jobs are in the books", n)
	}
}

func TestSyncFires(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.Switches = Switches{SyncFires: true}
	r := setup(t, cfg)
	rec := newReceiver(t, nil)
	r.hook(rec, "extract_completed")
	r.call("POST", "/v1/extract", `{"url":"https://shop.sandbox.test/item/1"}`).want(200)
	d := rec.take(t).doc(t)
	if d.str("data", "metadata", "processing_mode") != "sync" {
		t.Errorf("got %v", d.v)
	}
	r.call("GET", "/v1/extract/"+d.str("data", "job_id"), nil).want(200)
}

func TestURLsAreBounded(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.MaxURLs = 20
	r := setup(t, cfg)
	path := r.call("POST", "/v1/crawl", `{"url":"https://shop.sandbox.test/","depth":3,"limit":100}`).want(202).str("status_url")
	if n := r.finish(path).num("total_pages"); n != 20 {
		t.Errorf("the crawl found %d pages", n)
	}
	r.call("POST", "/v1/batch", `{"urls":["https://shop.sandbox.test/"]}`).want(503)
}

// TestEverythingAtOnce runs many jobs under all faults together and sees that the books add up and nothing hangs.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.EarlyWait = 200 * time.Millisecond
	cfg.SpellLength = 20 * time.Millisecond
	cfg.LateFor = 20 * time.Millisecond
	cfg.Faults = Faults{}
	for _, name := range FaultNames() {
		cfg.Faults[name] = 0.05
	}
	cfg.Faults[FaultNever] = 0
	r := setup(t, cfg)
	rec := newReceiver(t, func(n int) int { return []int{200, 200, 503}[n%3] })
	for _, event := range eventTypes() {
		for r.tolerant("POST", "/v1/webhooks", map[string]any{"url": rec.url, "event_type": event}) != 201 {
		}
	}
	for i := range uint64(20) {
		r.tolerant("POST", "/v1/batch", map[string]any{"urls": MadeURLs(10, i)})
		r.tolerant("POST", "/v1/extract", map[string]any{"url": MadeURLs(1, i)[0], "processing_mode": "async"})
		r.tolerant("POST", "/v1/extract", map[string]any{"url": MadeURLs(1, i)[0]})
		r.tolerant("POST", "/v1/crawl", map[string]any{"url": "https://forum.sandbox.test/", "limit": 10})
		r.tolerant("GET", "/v1/batch/jobs", nil)
	}
	b := r.until("all ended", func(b Books) bool {
		d := b.Deliveries
		return b.Reserved == 0 && d.Events == d.Delivered+d.Dropped+d.Abandoned
	})
	charged, seen := 0, map[string]int{}
	for _, j := range b.Jobs {
		for _, o := range j.Outcomes {
			seen[o.Status]++
			charged += o.Charged
			if (o.Status == "completed") != (o.Charged == 1) || (o.Status == "completed") != (o.MarkdownSHA256 != "") {
				t.Errorf("%s %s: %+v", j.Kind, j.Status, o)
			}
		}
	}
	if int64(charged) != b.Charged || seen["completed"] == 0 {
		t.Errorf("charged %d, the books say %d; %v", charged, b.Charged, fmt.Sprint(seen))
	}
}

// tolerant sends a call that may fail in any way; 0 is no answer.
func (r *rig) tolerant(method, path string, body any) int {
	r.t.Helper()
	a, err := r.try(method, path, body)
	if err != nil {
		return 0
	}
	return a.status
}
