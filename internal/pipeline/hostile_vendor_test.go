package pipeline_test

import (
	"bytes"
	"encoding/json"
	"fmt"
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
