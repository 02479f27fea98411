package pipeline_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/geonode"
	"rollcall/internal/pipeline"
	"rollcall/store"
)

// ill is what a vendor does instead of answering about a job as it should.
type ill struct {
	name string
	// say answers the nth request about the job, from 1; answer is the right one.
	say func(w http.ResponseWriter, req *http.Request, n int64, answer []byte)
	// strikes is how many requests it is over after; zero: it lasts.
	strikes int64
	// failed is with what code each of the two URLs fails; none: both are stored.
	failed string
	// calls bounds the requests about the job; zero: two dozen.
	calls int64
}

// plainly answers with a body of JSON.
func plainly(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body)
}

// instead says something else altogether.
func instead(status int, body string) func(http.ResponseWriter, *http.Request, int64, []byte) {
	return func(w http.ResponseWriter, _ *http.Request, _ int64, _ []byte) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// changed says the right thing, changed.
func changed(change func(req *http.Request, n int64, body map[string]any)) func(http.ResponseWriter, *http.Request, int64, []byte) {
	return func(w http.ResponseWriter, req *http.Request, n int64, answer []byte) {
		body := map[string]any{}
		dec := json.NewDecoder(bytes.NewReader(answer))
		dec.UseNumber()
		if err := dec.Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		change(req, n, body)
		out, err := json.Marshal(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		plainly(w, out)
	}
}

// members says the right thing with members of the job or of its rows replaced.
func members(job, row map[string]any) func(http.ResponseWriter, *http.Request, int64, []byte) {
	return changed(func(_ *http.Request, _ int64, body map[string]any) {
		maps.Copy(body, job)
		for _, each := range rowsOf(body) {
			maps.Copy(each, row)
		}
	})
}

func rowsOf(body map[string]any) []map[string]any {
	list, _ := body["results"].([]any)
	var out []map[string]any
	for _, each := range list {
		if row, ok := each.(map[string]any); ok {
			out = append(out, row)
		}
	}
	return out
}

// replaced says the right thing with a text of it replaced by another.
func replaced(from, to string) func(http.ResponseWriter, *http.Request, int64, []byte) {
	return func(w http.ResponseWriter, _ *http.Request, _ int64, answer []byte) {
		plainly(w, bytes.Replace(answer, []byte(from), []byte(to), 1))
	}
}

func nested(depth int) string {
	return strings.Repeat(`{"a":[`, depth/2) + strings.Repeat(`]}`, depth/2)
}

// endless writes until the client hangs up.
func endless(w http.ResponseWriter, start, more string) {
	w.Header().Set("Content-Type", "application/json")
	_, err := w.Write([]byte(start))
	for chunk := []byte(strings.Repeat(more, 1000)); err == nil; {
		_, err = w.Write(chunk)
	}
}

// ills are all of them. elsewhere is an address that nobody may follow.
func ills(elsewhere string) []ill {
	const huge = json.Number("1e400")
	var first any // A page of results; the vendor answers about a job one request at a time.
	failing := map[string]any{"status": "failed", "data": nil, "error_code": "B\x00AD\u2028" + strings.Repeat("x", 1<<12), "error_message": "\x00" + strings.Repeat("y", 1<<20)}
	return []ill{
		{name: "a redirect to a private host", strikes: 2, say: func(w http.ResponseWriter, req *http.Request, _ int64, _ []byte) {
			http.Redirect(w, req, elsewhere, http.StatusTemporaryRedirect)
		}},
		{name: "nothing", strikes: 2, say: instead(http.StatusOK, "")},
		{name: "no content", strikes: 2, say: func(w http.ResponseWriter, _ *http.Request, _ int64, _ []byte) { w.WriteHeader(http.StatusNoContent) }},
		{name: "null", strikes: 2, say: instead(http.StatusOK, "null")},
		{name: "a page", strikes: 2, say: instead(http.StatusOK, "<html>all is well</html>")},
		{name: "half of it", strikes: 2, say: func(w http.ResponseWriter, _ *http.Request, _ int64, answer []byte) {
			plainly(w, answer[:len(answer)/2])
		}},
		{name: "another job", strikes: 2, say: members(map[string]any{"job_id": "00000000-0000-4000-8000-000000000000"}, nil)},
		{name: "depth", strikes: 2, say: instead(http.StatusOK, strings.Repeat("[", 1<<20))},
		{name: "depth in a member", strikes: 2, say: replaced(`"status"`, `"x":`+nested(100_000)+`,"status"`)},
		{name: "results that are no list", strikes: 2, say: members(map[string]any{"results": map[string]any{"0": "x"}}, nil)},
		{name: "rows of every type", strikes: 1, say: members(map[string]any{"results": []any{nil, 1, "x", true, []any{}, map[string]any{}}}, nil)},
		{name: "content of the wrong type", strikes: 1, say: members(nil, map[string]any{"data": "text", "metadata": []any{1}})},
		{name: "content that is a number", strikes: 1, say: members(nil, map[string]any{"data": map[string]any{"markdown": 7, "html": []any{}}})},
		{name: "a state of a megabyte", strikes: 2, say: members(map[string]any{"status": strings.Repeat("\x00wait", 200_000)}, nil)},
		{name: "a body without end", say: func(w http.ResponseWriter, _ *http.Request, _ int64, answer []byte) {
			endless(w, string(answer[:len(answer)-1]), " ")
		}, failed: "TOO_LARGE"},
		{name: "an error without end", strikes: 2, say: func(w http.ResponseWriter, _ *http.Request, _ int64, _ []byte) {
			w.WriteHeader(http.StatusBadGateway)
			endless(w, "", "sorry ")
		}},

		{name: "times before time", say: members(map[string]any{"created_at": "0001-01-01T00:00:00Z", "completed_at": "0000-01-01T00:00:00+14:00"}, nil)},
		{name: "times after time", say: members(map[string]any{"created_at": "9999-12-31T23:59:59-14:00", "completed_at": "9999-12-31T23:59:59.999999999-12:00"}, nil)},
		{name: "counts beyond counting", say: members(map[string]any{
			"total_urls": huge, "completed_urls": json.Number("99999999999999999999"), "failed_urls": json.Number("9223372036854775807"), "pending_urls": json.Number("9223372036854775807"),
			"token_summary": map[string]any{"tokens_charged_total": json.Number("9223372036854775807")},
		}, map[string]any{"metadata": map[string]any{
			"http_status": json.Number("9223372036854775807"), "duration_ms": json.Number("9223372036854775807"),
			"retry_count": json.Number("9223372036854775807"), "tokens_charged": json.Number("9223372036854775807"), "x": huge,
		}})},
		{name: "counts below zero", say: members(map[string]any{
			"total_urls": -1, "completed_urls": -2, "cancelled_urls": json.Number("-9223372036854775808"),
		}, map[string]any{"metadata": map[string]any{"http_status": -1, "duration_ms": -5, "retry_count": -9, "tokens_charged": -7}})},
		{name: "metadata without bottom", say: replaced(`"metadata":{`, `"metadata":{"x":`+nested(8000)+`,`)},
		{name: "NUL in names and values", say: members(nil, map[string]any{"metadata": map[string]any{"\x00": "\x00", "title": "a\x00b", "url": "\x00"}})},
		{name: "members twice", say: replaced(`"status"`, `"status":"queued","status":7,"STATUS":null,"status"`)},
		{name: "broken UTF-8", say: replaced(`"metadata":{`, "\"metadata\":{\"x\xff\":\"\xc3\x28\xed\xa0\x80\",")},
		{name: "reasons of a megabyte", say: members(nil, failing), failed: "*"},
		{name: "URLs set aside in every form", say: members(map[string]any{"invalid_urls": []any{nil, 7, "\x00", map[string]any{"url": "\x00"}, []any{}}}, nil)},
		{name: "a page over and over", say: changed(func(_ *http.Request, _ int64, body map[string]any) {
			body["total_urls"] = 1_000_000_000
			if len(rowsOf(body)) > 0 {
				first = body["results"]
			}
			body["results"] = first
		})},
		{name: "a count that grows", say: changed(func(_ *http.Request, n int64, body map[string]any) { body["total_urls"] = n * 1000 })},
		{name: "other rows for ever", say: changed(func(_ *http.Request, n int64, body map[string]any) {
			body["total_urls"] = 1_000_000_000
			list, _ := body["results"].([]any)
			for i := range 50 {
				list = append(list, map[string]any{"input_index": n*50 + int64(i), "url": fmt.Sprintf("https://other.test/%d-%d", n, i), "status": "completed", "data": map[string]any{"markdown": "# other"}})
			}
			body["results"] = list
		})},
		{name: "content for another URL", say: changed(func(_ *http.Request, _ int64, body map[string]any) {
			for i, row := range rowsOf(body) {
				row["input_index"] = []any{-1, json.Number("9223372036854775807"), json.Number("1e30"), "0"}[i%4]
			}
		}), failed: "MISNUMBERED"},
	}
}

// sickVendor stands before the sandbox and has an ill for some jobs.
type sickVendor struct {
	ills map[string]*ill // By name, which is in the job's URLs.

	mu   sync.Mutex
	jobs map[string]*sickJob // By the vendor's id.
}

type sickJob struct {
	ill   *ill
	asked atomic.Int64
}

func (v *sickVendor) intercept(w http.ResponseWriter, req *http.Request, next http.Handler) {
	of := (*ill)(nil)
	if isSubmit(req) {
		of = v.named(peek(req))
	}
	rec := httptest.NewRecorder()
	next.ServeHTTP(rec, req)
	if of != nil {
		var made struct {
			JobID string `json:"job_id"`
		}
		if err := json.Unmarshal(rec.Body.Bytes(), &made); err == nil && made.JobID != "" {
			v.mu.Lock()
			v.jobs[made.JobID] = &sickJob{ill: of}
			v.mu.Unlock()
		}
	}
	if job := v.job(req); job != nil && isJob(req) && rec.Code == http.StatusOK {
		if n := job.asked.Add(1); job.ill.strikes == 0 || n <= job.ill.strikes {
			job.ill.say(w, req, n, rec.Body.Bytes())
			return
		}
	}
	copyAnswer(w, rec)
}

func (v *sickVendor) job(req *http.Request) *sickJob {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.jobs[req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:]]
}

func (v *sickVendor) named(body string) *ill {
	for name, each := range v.ills {
		if strings.Contains(body, "ill="+url.QueryEscape(name)+`"`) {
			return each
		}
	}
	return nil
}

// asked is how often the jobs of an ill were asked about.
func (v *sickVendor) asked(name string) int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	var n int64
	for _, job := range v.jobs {
		if job.ill.name == name {
			n += job.asked.Load()
		}
	}
	return n
}

// TestHostileVendor: whatever the vendor says of a job, in JSON or not, the job
// ends, in few calls, with what is true of its URLs and nothing else; no answer
// keeps another job waiting, nothing follows where it points, and what it says
// is kept within bounds.
func TestHostileVendor(t *testing.T) {
	t.Parallel()
	var followed atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Add(1) }))
	t.Cleanup(elsewhere.Close)
	v := &sickVendor{ills: map[string]*ill{}, jobs: map[string]*sickJob{}}
	r := newRig(t, setup{
		noWebhooks: true, pipeline: silent(func(c *pipeline.Config) { c.Mode = pipeline.ModePoll }),
		client: func(c *geonode.Config) { c.Transport, c.MaxResponse = nil, 1<<20 },
	})
	r.front.set(v.intercept)
	batches := map[string]int64{}
	all := ills(elsewhere.URL)
	for i := range all {
		v.ills[all[i].name] = &all[i]
	}
	for i := range all {
		page := "https://shop.sandbox.test/item/%d?ill=" + url.QueryEscape(all[i].name)
		batches[all[i].name] = r.submit(store.KindBatch, fmt.Sprintf(page, 1), fmt.Sprintf(page, 2))
	}
	for i := range all {
		r.wantSurvived(v, &all[i], batches[all[i].name])
	}
	if n := followed.Load(); n > 0 {
		t.Errorf("%d redirects were followed", n)
	}
	if n := r.number(`SELECT max(greatest(length(vendor_status), length(error_code), length(error_message))) FROM jobs`); n > 1000 {
		t.Errorf("%d characters of what the vendor said stand at a job", n)
	}
	r.balanced()
}

// wantSurvived waits for the end of an ill's batch.
func (r *rig) wantSurvived(v *sickVendor, of *ill, batch int64) {
	r.t.Helper()
	b := r.ended(batch)
	want := [2]int64{2, 0}
	if of.failed != "" {
		want = [2]int64{0, 2}
	}
	if b.Stored() != want[0] || b.Failed != want[1] || b.Cancelled != 0 {
		r.t.Errorf("%s: got %d stored, %d failed, %d cancelled, want %d and %d", of.name, b.Stored(), b.Failed, b.Cancelled, want[0], want[1])
	}
	if got := r.text(`SELECT string_agg(DISTINCT error_code, ' ') FROM items WHERE batch_id = $1`, batch); of.failed != "*" && got != of.failed {
		r.t.Errorf("%s: failed as %.100q, want %q", of.name, got, of.failed)
	}
	eventually(r.t, "the end of the job with "+of.name, func() bool {
		return r.number(`SELECT count(*) FROM jobs WHERE batch_id = $1 AND state <> 'settled'`, batch) == 0
	})
	if n, most := v.asked(of.name), max(of.calls, 24); n > most {
		r.t.Errorf("%s: the vendor was asked %d times, want at most %d", of.name, n, most)
	}
	if of.failed == "" {
		r.likeBooks(batch)
	}
}

// TestIDsOfEveryForm: a job whose id the vendor made up of whatever a path may
// choke on is settled by that id, and one whose id can't be one leads nowhere
// else.
func TestIDsOfEveryForm(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(func(c *pipeline.Config) { c.Mode = pipeline.ModePoll }), client: func(c *geonode.Config) { c.Transport = nil }})
	ids := []string{
		"../../jobs?page=2#x%2F..%00", "a/../b;c=d&e", "%2e%2e", " ", "jobs/", "\u00e4 \u65e5\u672c", strings.Repeat("/..?#%\u00fc", 28) + "....", "http://127.0.0.1/",
	}
	var mu sync.Mutex
	alias, actual := map[string]string{}, map[string]string{}
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if isJob(req) {
			id, err := url.PathUnescape(strings.TrimPrefix(req.URL.EscapedPath(), "/v1/batch/"))
			mu.Lock()
			req.URL.Path, req.URL.RawPath = "/v1/batch/"+actual[id], ""
			mu.Unlock()
			if err != nil || actual[id] == "" {
				t.Errorf("a call about %q: %v", req.URL, err)
			}
		}
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, req)
		var said struct {
			JobID string `json:"job_id"`
		}
		if err := json.Unmarshal(rec.Body.Bytes(), &said); err != nil || said.JobID == "" {
			copyAnswer(w, rec)
			return
		}
		mu.Lock()
		if isSubmit(req) && len(alias) < len(ids) {
			id := ids[len(alias)]
			alias[said.JobID], actual[id] = id, said.JobID
		}
		id, known := alias[said.JobID]
		mu.Unlock()
		if !known {
			t.Errorf("%s of a job too many", req.URL)
		}
		rec.Header().Del("Content-Length")
		quoted, err := json.Marshal(id)
		if err != nil {
			t.Error(err)
		}
		rec.Body = bytes.NewBuffer(bytes.ReplaceAll(rec.Body.Bytes(), []byte(`"`+said.JobID+`"`), quoted))
		copyAnswer(w, rec)
	})
	for i := range ids {
		id := r.submit(store.KindBatch, fmt.Sprintf("https://shop.sandbox.test/item/%d", i+1))
		r.wantBatch(r.ended(id), 1, 0, 0)
	}
	for _, id := range ids {
		eventually(t, "the end of the job "+strconv.Quote(id), func() bool {
			return r.number(`SELECT count(*) FROM jobs WHERE vendor_job_id = $1 AND state = 'settled'`, id) == 1
		})
	}
}

// TestAYearOfRetryAfter: the vendor asks for a year's patience, as seconds, as a
// date, and by a clock that is off by centuries; it gets a quarter of an hour.
func TestAYearOfRetryAfter(t *testing.T) {
	t.Parallel()
	clock := &shifted{}
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(func(c *pipeline.Config) {
		c.Mode, c.Now = pipeline.ModePoll, clock.now
	}), client: func(c *geonode.Config) { c.Transport, c.Now = nil, clock.now }})
	for i, c := range []struct{ after, date string }{
		{"31536000", ""},
		{strings.Repeat("9", 4000), ""},
		{"Fri, 31 Dec 9999 23:59:59 GMT", ""},
		{"Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:01 GMT"},
		{"Mon, 01 Jan 0001 00:00:01 GMT", "Fri, 31 Dec 9999 23:59:59 GMT"},
	} {
		var asked atomic.Int64
		r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
			if c.date != "" {
				w.Header().Set("Date", c.date)
			}
			if isSubmit(req) && asked.Add(1) == 1 {
				w.Header().Set("Retry-After", c.after)
				answerJSON(w, http.StatusTooManyRequests, refusal("RATE_LIMITED", true), "")
				return
			}
			next.ServeHTTP(w, req)
		})
		id := r.submit(store.KindBatch, fmt.Sprintf("https://shop.sandbox.test/item/%d", i+1))
		eventually(t, "the call's time to come again", func() bool {
			return r.number(`SELECT count(*) FROM job_events AS e JOIN jobs AS j ON j.id = e.job_id WHERE e.kind = 'declined' AND j.batch_id = $1`, id) == 1 &&
				r.number(`SELECT count(*) FROM river_job WHERE kind = 'dispatch' AND state IN ('scheduled', 'available', 'completed')`) > int64(i)
		})
		if n := r.number(`SELECT count(*) FROM gates WHERE closed_until > $1`, clock.now().Add(15*time.Minute)); n > 0 {
			t.Errorf("%.40s by %q: the gate is closed for more than a quarter of an hour", c.after, c.date)
		}
		clock.forward(15*time.Minute + time.Second)
		r.exec(`UPDATE river_job SET scheduled_at = now() WHERE state = 'scheduled'`) // The queue goes by the real time.
		r.wantBatch(r.ended(id), 1, 0, 0)
	}
	eventually(t, "jobs that are settled, at times that can be", func() bool {
		return r.number(`SELECT count(*) FROM jobs WHERE state = 'settled' AND (vendor_ended_at IS NULL OR vendor_ended_at BETWEEN '0001-01-01' AND '9999-12-31')`) == 5
	})
}
