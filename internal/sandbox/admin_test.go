package sandbox

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAdmin(t *testing.T) {
	t.Parallel()
	r := setup(t, quick())
	r.extract("https://shop.sandbox.test/item/1")
	var got Books
	if err := json.Unmarshal(r.call("GET", "/_sandbox/books", nil).raw, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, r.Books()); diff != "" {
		t.Errorf("books over HTTP and in Go differ: %s", diff)
	}
	if f := r.call("PUT", "/_sandbox/faults", `{"drop":0.5}`).want(200); f.at("drop").v != 0.5 || r.Faults()[FaultDrop] != 0.5 {
		t.Errorf("got %v", f.v)
	}
	r.call("PUT", "/_sandbox/faults", `dup=0.25`).want(200)
	if f := r.call("GET", "/_sandbox/faults", nil).want(200); f.at("dup").v != 0.25 {
		t.Errorf("got %v", f.v)
	}
	if a := r.call("PUT", "/_sandbox/faults", `drip=1`); a.status != 422 || !strings.Contains(string(a.raw), "drop") {
		t.Errorf("got %d %s", a.status, a.raw)
	}
	r.call("PUT", "/_sandbox/switches", `{"callback_body":"full","signature":{"prefix":"v1="}}`).want(200)
	if w := r.Switches(); w.CallbackBody != "full" || w.Signature.Prefix != "v1=" {
		t.Errorf("got %+v", w)
	}
	for _, bad := range []string{`{"callback_body":"none"}`, `{"unknown":1}`, `x`} {
		if a := r.call("PUT", "/_sandbox/switches", bad); a.status != 422 {
			t.Errorf("%s: got %d", bad, a.status)
		}
	}
}

func TestAdminAccess(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.AdminToken = "letmein"
	r := setup(t, cfg)
	for name, c := range map[string]struct {
		remote, host, token, site string
		want                      int
	}{
		"Loopback":    {"127.0.0.1:5", "127.0.0.1:9", "", "", 200},
		"Localhost":   {"[::1]:5", "localhost:9", "", "none", 200},
		"Remote":      {"192.0.2.1:5", "sandbox:9", "", "", 403},
		"RemoteToken": {"192.0.2.1:5", "sandbox:9", "letmein", "", 200},
		"WrongToken":  {"192.0.2.1:5", "sandbox:9", "letmeout", "", 403},
		"Rebinding":   {"127.0.0.1:5", "evil.test:9", "", "", 403},
		"CrossSite":   {"127.0.0.1:5", "127.0.0.1:9", "", "cross-site", 403},
	} {
		req := httptest.NewRequest(http.MethodGet, "/_sandbox/books", nil)
		req.RemoteAddr, req.Host = c.remote, c.host
		req.Header.Set("X-Sandbox-Admin", c.token)
		req.Header.Set("Sec-Fetch-Site", c.site)
		rec := httptest.NewRecorder()
		r.Handler().ServeHTTP(rec, req)
		if rec.Code != c.want || rec.Header().Get("X-Rollcall-Sandbox") != "1" {
			t.Errorf("%s: got %d, want %d", name, rec.Code, c.want)
		}
	}
}

func TestErrorBodies(t *testing.T) {
	t.Parallel()
	r := setup(t, quick())
	if err := r.SetFaults(Faults{FaultBalanceOut: 1}); err != nil {
		t.Fatal(err)
	}
	for form, want := range map[string]string{
		"empty": "", "html": "<html>", "text": "Not Found\n", "detail": `{"detail":"Not Found"}`, "standard": `"code"`,
	} {
		if err := r.SetSwitches(Switches{ErrorBody: form}); err != nil {
			t.Fatal(err)
		}
		a := r.call("GET", "/v1/extract/none", nil)
		if a.status != 404 || !strings.Contains(string(a.raw), want) || (want == "" && len(a.raw) > 0) {
			t.Errorf("%s: got %d %s", form, a.status, a.raw)
		}
		// A submit that is wrong in itself says so in any case.
		r.call("POST", "/v1/batch", `{"urls":["https://shop.sandbox.test/1"]}`).want(402).str("code")
	}
	for form, want := range map[string]string{"empty": "", "html": "<html>", "text": "Too Many Requests\n", "detail": `{"detail":`} {
		if err := errors.Join(r.SetSwitches(Switches{ErrorBody: form}), r.SetFaults(Faults{FaultRateLimit: 1})); err != nil {
			t.Fatal(err)
		}
		a := r.call("POST", "/v1/batch", `{"urls":["https://shop.sandbox.test/1"]}`)
		if a.status != 429 || !strings.HasPrefix(string(a.raw), want) || (want == "" && len(a.raw) > 0) {
			t.Errorf("%s: got %d %s", form, a.status, a.raw)
		}
	}
}

func TestListOrder(t *testing.T) {
	t.Parallel()
	r := setup(t, quick())
	var made []string
	for i := range uint64(12) {
		made = append(made, r.finish(r.batch(MadeURLs(1, i)...)).str("job_id"))
	}
	listed := func(order string) []string {
		if err := r.SetSwitches(Switches{ListOrder: order}); err != nil {
			t.Fatal(err)
		}
		var ids []string
		for page := 1; page <= 3; page++ {
			rows := r.call("GET", "/v1/batch/jobs?page_size=5&page="+strconv.Itoa(page), nil).want(200)
			for i := range rows.list("jobs") {
				ids = append(ids, rows.str("jobs", i, "job_id"))
			}
		}
		return ids
	}
	oldest, newest, shuffled := listed("oldest"), listed("newest"), listed("shuffled")
	if !slices.Equal(oldest, made) || !slices.Equal(shuffled, listed("shuffled")) {
		t.Errorf("oldest first: got %v, want %v", oldest, made)
	}
	if slices.Equal(shuffled, oldest) || slices.Equal(shuffled, newest) {
		t.Error("shuffled is one of the other orders")
	}
	slices.Sort(made)
	slices.Reverse(oldest)
	slices.Sort(shuffled)
	if !slices.Equal(newest, oldest) || !slices.Equal(shuffled, made) {
		t.Errorf("newest first: got %v; shuffled: got %v", newest, shuffled)
	}
}

func TestResultsShuffled(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.Switches.ResultsShuffled = true
	r := setup(t, cfg)
	path := r.finish(r.batch(MadeURLs(12, 1)...)).str("job_id")
	var indexes []int
	for page := 1; page <= 3; page++ {
		rows := r.call("GET", "/v1/batch/"+path+"?page_size=4&page="+strconv.Itoa(page), nil).want(200)
		for i := range rows.list("results") {
			indexes = append(indexes, rows.num("results", i, "input_index"))
		}
	}
	if slices.IsSorted(indexes) {
		t.Errorf("got %v, which is an order", indexes)
	}
	slices.Sort(indexes)
	if !slices.Equal(indexes, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}) {
		t.Errorf("got %v, want each once", indexes)
	}
}

func TestPlanDetail(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.MaxURLsPerBatch = 2
	r := setup(t, cfg)
	body := map[string]any{"urls": MadeURLs(3, 1)}
	if got := r.call("POST", "/v1/batch", body).want(422).str("code"); got != "VALIDATION_ERROR" {
		t.Errorf("got %s", got)
	}
	if err := r.SetSwitches(Switches{PlanDetail: true}); err != nil {
		t.Fatal(err)
	}
	if got := r.call("POST", "/v1/batch", body).want(422).str("detail", 0, "type"); got != "too_long" {
		t.Errorf("got %s", got)
	}
}

func TestLogWithoutJob(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.Switches.LogWithoutJob = true
	r := setup(t, cfg)
	rec := newReceiver(t, nil)
	id, _ := r.hook(rec, "batch_completed")
	r.batch(MadeURLs(1, 1)...)
	rec.take(t)
	if !r.call("GET", "/v1/webhooks/"+id+"/deliveries", nil).want(200).isNull("items", 0, "job_id") {
		t.Error("the row names a job")
	}
}

func TestSwitchesOfBatch(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.Parallelism = 1
	cfg.Switches = Switches{
		IndexAccepted: true, InvalidObjects: true, ListOrder: "oldest", CancelFreezes: true, CancelledOmitted: true,
		EventsForCancelled: true, EventsForFailed: true,
	}
	r := setup(t, cfg)
	rec := newReceiver(t, nil)
	r.hook(rec, "batch_completed")
	r.hook(rec, "extract_completed")
	a := r.call("POST", "/v1/batch", `{"urls":["x","https://shop.sandbox.test/slow/1s","https://shop.sandbox.test/2"]}`).want(202)
	if a.str("invalid_urls", 0, "url") != "x" {
		t.Errorf("invalid_urls: %v", a.at("invalid_urls").v)
	}
	path := a.str("status_url")
	r.until("started", func(b Books) bool { return b.Jobs[0].Outcomes[0].Status == "processing" })
	r.call("DELETE", path, nil).want(202)
	if got := rec.take(t).doc(t).str("data", "status"); got != "cancelled" {
		t.Errorf("event: got %s", got)
	}
	r.until("frozen", func(b Books) bool { return b.Reserved == 0 })
	d := r.call("GET", path, nil).want(200)
	if d.num("cancelled_urls") != 2 || len(d.list("results")) != 0 || r.Books().Charged != 0 {
		t.Errorf("got %v", d.v)
	}
	r.extract("https://shop.sandbox.test/fail/X")
	if got := rec.take(t).doc(t).str("data", "status"); got != "failed" {
		t.Errorf("event: got %s", got)
	}
	second := r.finish(r.batch("y", "https://shop.sandbox.test/2"))
	if second.num("results", 0, "input_index") != 0 {
		t.Errorf("got %v", second.at("results").v)
	}
	if got := r.call("GET", "/v1/batch/jobs?page_size=5", nil).want(200).str("jobs", 1, "job_id"); got != second.str("job_id") {
		t.Error("the newest job is not last")
	}
}
