package sandbox

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// kind is a kind of job.
type kind string

const (
	kindExtract kind = "extract"
	kindBatch   kind = "batch"
	kindCrawl   kind = "crawl"
	kindSync    kind = "sync"  // A sync extraction: not a job for the caller, but kept in the books.
	kindChild   kind = "child" // One URL of a batch or crawl, when the switches make it an extraction too.
)

// The states of jobs and items.
const (
	stateQueued     = "queued"
	stateProcessing = "processing"
	stateCompleted  = "completed"
	stateFailed     = "failed"
	stateCancelled  = "cancelled"
	stateForgotten  = "forgotten" // Only in the books.
)

// options is what a job asks for each of its URLs.
type options struct {
	formats    []string
	renderJS   bool
	proxy      *wireProxy
	headers    map[string]string
	wait       *wireWait
	links      bool
	sameDomain bool
	subdomains bool
}

func (o options) wants(format string) bool {
	return slices.Contains(o.formats, format)
}

// job is one accepted job. Its fields are guarded by Sandbox.mu, apart from those set before it is accepted.
type job struct {
	id, key   string // key names the content and its turn, the same in every run with the same calls.
	kind      kind
	account   *account
	url       string // The URL of an extraction, the seed of a crawl.
	opts      options
	submitted []string
	invalid   []string

	status    string
	created   stamp
	completed *stamp
	ended     time.Time
	items     []*item
	next      int // The first item not yet started.
	running   int
	charged   int
	reserved  int

	rush   bool      // Runs without the simulated run length.
	never  bool      // Stays processing for ever.
	stale  time.Time // Until then reads show it running.
	done   chan struct{}
	crawl  *crawl
	frozen bool

	lateRows     bool // Hides its last rows for a while.
	vendorCancel bool // Is cancelled by the vendor.
}

// terminal says that the job will not change its status any more.
func (j *job) terminal() bool {
	return j.status == stateCompleted || j.status == stateFailed || j.status == stateCancelled
}

// item is one URL of a job.
type item struct {
	index   int // Position in job.items.
	number  int // input_index of a batch.
	url     string
	parent  string
	depth   int
	ordeal  string // What item_fail holds for it: "", "retryable" or "permanent".
	attempt int    // The how-manieth submission of this URL this is; counted only where it matters.
	edition int    // How often the page had changed when this was submitted.

	status   string
	end      outcome
	links    []string // Of a crawled page, until they were followed.
	child    *job     // The item as an extraction of its own; nil unless the switches want it.
	charged  int
	duration time.Duration
	mdSum    string
	htmlSum  string
	body     span
}

// outcome is how one URL ended, apart from its content.
type outcome struct {
	code       string // Empty for a good page.
	message    string
	retryable  bool
	httpStatus int // 0 when there was no answer.
	finalURL   string
}

// newJob makes a job that is not yet accepted.
func (s *Sandbox) newJob(k kind, a *account, url string, opts options) *job {
	return &job{
		kind: k, account: a, url: url, opts: opts, status: stateQueued, done: make(chan struct{}),
	}
}

// add puts one URL at the end of the job.
func (j *job) add(url, parent string, number, depth int) *item {
	it := &item{index: len(j.items), number: number, url: url, parent: parent, depth: depth, status: stateQueued}
	j.items = append(j.items, it)
	return it
}

// accept takes the job into the books, reserves its tokens and puts it in line.
func (s *Sandbox) accept(j *job) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.urls+len(j.items) > s.cfg.MaxURLs {
		return errUnavailable(http.StatusServiceUnavailable)
	}
	if !j.account.covers(len(j.items)) {
		return errBalance()
	}
	j.account.reserve(j, len(j.items))
	content := append([]string{"job", string(j.kind), j.url}, j.submitted...)
	j.key = strconv.FormatUint(s.dice.number(content...), 36) + "#" + s.turn(content...)
	j.id = s.id("job")
	j.created = s.dice.stampAt(s.clock(), "created", j.key)
	if j.kind != kindSync && s.hits(FaultForget, j.key) {
		s.forget(j)
		return nil
	}
	s.file(j)
	s.doom(j)
	for _, it := range j.items {
		s.foretell(j, it)
	}
	if j.vendorCancel && j.kind == kindExtract {
		s.stop(j)
		return nil
	}
	s.ready = append(s.ready, j)
	s.kick()
	return nil
}

// file puts the job into the lists. The caller holds mu.
func (s *Sandbox) file(j *job) {
	s.jobs[j.id] = j
	switch j.kind {
	case kindSync:
		s.syncs = append(s.syncs, j)
		j.account.lists[kindExtract] = append(j.account.lists[kindExtract], j)
	case kindChild:
		j.account.lists[kindExtract] = append(j.account.lists[kindExtract], j)
	case kindExtract, kindBatch, kindCrawl:
		s.jobList = append(s.jobList, j)
		j.account.lists[j.kind] = append(j.account.lists[j.kind], j)
	}
}

// forget loses a job at once: only the books know of it. The caller holds mu.
func (s *Sandbox) forget(j *job) {
	j.status = stateForgotten
	for _, it := range j.items {
		it.status = stateForgotten
		j.account.release(j, it)
	}
	j.next = len(j.items)
	s.urls += len(j.items)
	s.jobList = append(s.jobList, j)
	close(j.done)
}

// doom settles what the faults hold for a job. The caller holds mu.
func (s *Sandbox) doom(j *job) {
	if j.kind == kindSync {
		return
	}
	j.never = s.hits(FaultNever, j.key)
	j.lateRows = s.hits(FaultLateRows, j.key)
	j.vendorCancel = s.hits(FaultVendorCancel, j.key)
	j.rush = !j.never && !j.vendorCancel && s.hits(FaultEarly, j.key)
}

// extracting says that the job reads like an extraction.
func (j *job) extracting() bool {
	return j.kind == kindExtract || j.kind == kindSync || j.kind == kindChild
}

// event is the event type of the job.
func (j *job) event() string {
	if j.extracting() {
		return "extract_completed"
	}
	return string(j.kind) + "_completed"
}

// visible says whether reads and lists know the job. The caller holds mu.
func (s *Sandbox) visible(j *job) bool {
	switch j.kind {
	case kindSync:
		return s.switches.SyncListed || s.switches.SyncFires
	case kindChild:
		return s.switches.ChildrenListed || s.switches.ChildrenFire
	case kindExtract, kindBatch, kindCrawl:
		return true
	default:
		return false
	}
}

// adopt makes an item of a batch or crawl an extraction of its own, when the switches want that. The caller holds mu.
func (s *Sandbox) adopt(j *job, it *item) {
	if j.extracting() || (!s.switches.ChildrenListed && !s.switches.ChildrenFire) {
		return
	}
	it.child = &job{
		id: s.id("child"), key: j.key + "/" + strconv.Itoa(it.index), kind: kindChild, account: j.account, url: it.url,
		opts: j.opts, status: stateQueued, items: []*item{it}, created: j.created,
	}
	s.file(it.child)
}

// foretell settles, when an item is made, what the faults hold for it, so that it doesn't depend on who runs first.
// The caller holds mu.
func (s *Sandbox) foretell(j *job, it *item) {
	s.urls++
	s.adopt(j, it)
	if !isSteady(it.url) && s.hits(FaultItemFail, it.url) {
		it.ordeal = "permanent"
		if s.dice.pick(2, "ordeal", it.url) == 0 {
			it.ordeal = "retryable"
		}
	}
	if it.ordeal == "retryable" || isFailRetryable(it.url) {
		name := j.account.name + " " + it.url
		s.attempts[name]++
		it.attempt = s.attempts[name]
	}
	if s.cfg.PagesChange > 0 {
		it.edition = s.look(j, it.url)
	}
}

// covers says whether the account can pay for n more pages.
func (a *account) covers(n int) bool { return !a.limited || a.balance >= int64(n) }

func (a *account) reserve(j *job, n int) {
	a.balance -= int64(n)
	a.reserved += int64(n)
	j.reserved += n
}

// release gives back one reservation, and charges it when the page was good.
func (a *account) release(j *job, it *item) {
	a.reserved--
	j.reserved--
	if it.status != stateCompleted {
		a.balance++
		return
	}
	a.charged++
	j.charged++
	it.charged = 1
}

// find looks a job of the account up; a job of another account or kind does not exist for it.
func (s *Sandbox) find(a *account, k kind, id string) (*job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobs[strings.ToLower(id)]; j != nil && j.account == a && s.visible(j) &&
		(j.kind == k || (k == kindExtract && j.extracting())) {
		return j, nil
	}
	return nil, errNotFound("job")
}

// tally counts the items of the job by state. The caller holds mu.
func (j *job) tally() map[string]int {
	n := map[string]int{}
	for _, it := range j.items {
		n[it.status]++
	}
	return n
}
