package pipeline_test

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"rollcall/internal/pipeline"
)

// shelf is a vendor of extract jobs that a test makes up: it says which of them
// are listed and how, and how the list misbehaves.
type shelf struct {
	r     *rig
	clock *stopped

	mu         sync.Mutex
	status     map[string]string
	created    map[string]time.Time
	foreign    int           // Jobs that are not ours, listed as running.
	unfiltered bool          // The list takes no notice of the status asked for.
	uncounted  bool          // It tells no page_count.
	unreadable int           // So many rows of each page are no objects.
	ahead      time.Duration // Of the vendor's clock.
	refuse     int           // The status that lists are answered with instead.

	lists []string       // The calls for lists, by status and page.
	reads map[string]int // And for single jobs.
}

// stopped is a clock that moves only when a test puts it forward.
type stopped struct {
	mu sync.Mutex
	at time.Time
}

func (c *stopped) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *stopped) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// newShelf is a rig whose pipeline does nothing by itself but settle, with a
// shelf as its vendor. Due jobs wait for the test to call ListPoll or Poll.
func newShelf(t *testing.T, tune ...func(*pipeline.Config)) *shelf {
	t.Helper()
	s := &shelf{
		clock: &stopped{at: time.Now().UTC().Truncate(time.Second)}, status: map[string]string{}, created: map[string]time.Time{}, reads: map[string]int{},
	}
	s.r = newRig(t, setup{noWebhooks: true, pipeline: func(c *pipeline.Config) {
		deaf(c)
		c.Mode, c.Now, c.ListEvery = pipeline.ModePoll, s.clock.now, 2*time.Second
		c.PollFirst, c.PollCap = time.Second, 30*time.Second
		for _, do := range tune {
			do(c)
		}
	}})
	s.r.front.set(s.serve)
	s.r.exec(`INSERT INTO batches (name, kind, options, created_at) VALUES ('b', 'extract', '{}', now())`)
	return s
}

// open makes n jobs that were accepted so long ago and are due, with the status
// noted here and the one at the vendor; "" there means that no list shows them.
func (s *shelf) open(n int, age time.Duration, noted, actual string) []string {
	s.r.t.Helper()
	at := s.clock.now().Add(-age)
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("job-%04d", len(s.created))
		s.created[ids[i]], s.status[ids[i]] = at, actual
		s.r.exec(`INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, called_at, accepted_at,
				next_poll_at, vendor_job_id, vendor_status, account)
			VALUES (1, 'extract', 'accepted', 'submit', '', 1, $1, $1, $1, $1, $2, $3, 'test')`, at, ids[i], noted)
	}
	return ids
}

// end makes jobs end at the vendor.
func (s *shelf) end(ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		s.status[id] = "completed"
	}
}

// change changes the shelf under its lock.
func (s *shelf) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

func (s *shelf) serve(w http.ResponseWriter, req *http.Request, next http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Date", s.clock.now().Add(s.ahead).UTC().Format(http.TimeFormat))
	switch {
	case req.URL.Path == "/v1/extract/jobs":
		s.list(w, req)
	case isJob(req):
		id := path.Base(req.URL.Path)
		s.reads[id]++
		status := s.status[id]
		if status == "" {
			status = "processing"
		}
		answerJSON(w, http.StatusOK, map[string]any{"job_id": id, "status": status}, "a job without content")
	default:
		next.ServeHTTP(w, req)
	}
}

func (s *shelf) list(w http.ResponseWriter, req *http.Request) {
	q := req.URL.Query()
	page, _ := strconv.Atoi(q.Get("page"))
	s.lists = append(s.lists, q.Get("status")+" "+q.Get("page"))
	if s.refuse != 0 {
		answerJSON(w, s.refuse, refusal("BUSY", s.refuse != http.StatusUnprocessableEntity), "")
		return
	}
	rows := []any{}
	for _, id := range s.matching(q.Get("status"), q.Get("start_date"), q.Get("end_date")) {
		rows = append(rows, map[string]any{"job_id": id, "status": s.shown(id)})
	}
	for i := range s.foreign {
		rows = append(rows, map[string]any{"job_id": fmt.Sprint("foreign-", i), "status": "processing"})
	}
	pages := (len(rows) + 99) / 100
	rows = rows[min(len(rows), (page-1)*100):min(len(rows), page*100)]
	for i := range min(s.unreadable, len(rows)) {
		rows[i] = "not an object"
	}
	body := map[string]any{"jobs": rows, "page": page, "page_size": 100, "page_count": pages}
	if s.uncounted {
		delete(body, "page_count")
	}
	why := ""
	if s.uncounted || s.unreadable > 0 {
		why = "a list with holes"
	}
	answerJSON(w, http.StatusOK, body, why)
}

// shown is the status of a row; foreign jobs all run.
func (s *shelf) shown(id string) string { return s.status[id] }

// matching lists the ids that the filters keep, the newest first.
func (s *shelf) matching(status, start, end string) []string {
	var ids []string
	for id, at := range s.created {
		made := at.Add(s.ahead).UTC().Format("2006-01-02T15:04:05.000Z")
		if s.status[id] == "" || made < start || made > end {
			continue
		}
		if s.unfiltered || s.status[id] == status {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	return ids
}

// sweep runs ListPoll once and waits until what it woke is looked at.
func (s *shelf) sweep(p *pipeline.Pipeline) int {
	s.r.t.Helper()
	n, err := p.ListPoll(s.r.t.Context())
	if err != nil {
		s.r.t.Fatal(err)
	}
	s.quiet()
	return n
}

// quiet waits until no settle task is left.
func (s *shelf) quiet() {
	s.r.t.Helper()
	eventually(s.r.t, "the settle tasks", func() bool {
		return s.r.number(`SELECT count(*) FROM river_job WHERE kind = 'settle' AND state NOT IN ('completed', 'cancelled', 'discarded')`) == 0
	})
}

// wantLists compares the calls for lists since the last time.
func (s *shelf) wantLists(want ...string) {
	s.r.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := strings.Join(s.lists, ", "); got != strings.Join(want, ", ") {
		s.r.t.Errorf("got the lists %s, want %s", got, strings.Join(want, ", "))
	}
	s.lists = nil
}

// wantRead compares how many single jobs were asked about since the last time.
func (s *shelf) wantRead(want int) {
	s.r.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	got := 0
	for _, n := range s.reads {
		got += n
	}
	if got != want {
		s.r.t.Errorf("got %d reads of single jobs, want %d: %v", got, want, s.reads)
	}
	clear(s.reads)
}

// settled is how many jobs are settled.
func (s *shelf) settled() int64 {
	return s.r.number(`SELECT count(*) FROM jobs WHERE state = 'settled'`)
}
