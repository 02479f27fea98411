package sandbox

import (
	"cmp"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// snapshot is a job at one moment, with one page of its ended items.
type snapshot struct {
	status            string
	completed         *stamp
	charged, reserved int
	tally             map[string]int
	total             int
	items             []item
	invalid           []any
}

// stillStale says that reads still show the job running although it has ended. The caller holds mu.
func (s *Sandbox) stillStale(j *job) bool { return !j.stale.IsZero() && s.now().Before(j.stale) }

// shown is the status of the job as reads show it. The caller holds mu.
func (s *Sandbox) shown(j *job) string {
	if s.stillStale(j) {
		return stateProcessing
	}
	return j.status
}

// snap takes a snapshot with the items of the given page; size 0 means all of them.
func (s *Sandbox) snap(j *job, page, size int, truth bool) snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := snapshot{status: j.status, total: len(j.items), invalid: s.invalidURLs(j.invalid), items: []item{}}
	if !truth && s.stillStale(j) {
		snap.status, snap.reserved, snap.tally = stateProcessing, len(j.items), map[string]int{stateQueued: len(j.items)}
		return snap
	}
	snap.completed, snap.charged, snap.reserved, snap.tally = j.completed, j.charged, j.reserved, j.tally()
	skip, take := (page-1)*size, size
	if size == 0 {
		skip, take = 0, len(j.items)
	}
	for _, it := range s.resultOrder(j.items[:len(j.items)-s.hiddenRows(j, truth)]) {
		if it.status == stateQueued || it.status == stateProcessing ||
			(it.status == stateCancelled && s.switches.CancelledOmitted) {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		if len(snap.items) == take {
			break
		}
		snap.items = append(snap.items, *it)
	}
	return snap
}

// hiddenRows is how many rows at the end of an ended job are not shown yet. The caller holds mu.
func (s *Sandbox) hiddenRows(j *job, truth bool) int {
	if truth || !j.lateRows || !j.terminal() || j.extracting() || s.now().Sub(j.ended) >= s.cfg.LateFor {
		return 0
	}
	return len(j.items) - len(j.items)*3/4
}

// invalidURLs lists the URLs set aside in the form that the switch says. The caller holds mu.
func (s *Sandbox) invalidURLs(urls []string) []any {
	out := make([]any, len(urls))
	for i, u := range urls {
		if out[i] = u; s.switches.InvalidObjects {
			out[i] = map[string]string{"url": u, "reason": "invalid_url"}
		}
	}
	return out
}

// contentOf is the content of an item in the formats asked for, and all its links; both nil unless it is good.
func (s *Sandbox) contentOf(it *item, o options) (*wireContent, []string) {
	if it.status != stateCompleted {
		return nil, nil
	}
	text := s.text(it)
	c := &wireContent{}
	if o.wants("markdown") {
		c.Markdown = &text.Markdown
	}
	if o.wants("html") {
		c.HTML = &text.HTML
	}
	if o.links {
		c.Links = text.Links
	}
	return c, text.Links
}

// itemMeta is what the vendor reports about an item; nil when it never ran.
func itemMeta(it *item) *wireItemMeta {
	if it.status == stateCancelled {
		return nil
	}
	meta := &wireItemMeta{DurationMS: it.millis(), RetryCount: new(0), TokensCharged: &it.charged}
	if it.end.httpStatus != 0 {
		meta.HTTPStatus = &it.end.httpStatus
	}
	return meta
}

// failure is the code and message of an item; nil for none.
func failure(it *item) (*string, *string) {
	if it.end.code == "" || it.status != stateFailed {
		return nil, nil
	}
	return &it.end.code, &it.end.message
}

// list answers a job list: filtered, in the order that the switch says, one page. match and row are called
// under mu.
func (s *Sandbox) list(
	a *account, k kind, q *query, normalSize int, match func(*job) bool, row func(*job) any,
) (reply, error) {
	status := q.one("status", stateQueued, stateProcessing, stateCompleted, stateFailed, stateCancelled)
	from, to := q.time("start_date"), q.time("end_date")
	page, size := q.number("page", 1, 0), q.number("page_size", normalSize, 100)
	if q.err != nil {
		return reply{}, q.err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := wireJobs{Jobs: []any{}, Page: page, PageSize: size}
	total := 0
	for _, j := range ordered(s, a.lists[k], func(j *job) string { return j.id }) {
		if !s.listed(j) || !within(j.created.Time, from, to) ||
			(status != "" && status != s.shown(j)) || !match(j) {
			continue
		}
		if total++; total > (page-1)*size && total <= page*size {
			out.Jobs = append(out.Jobs, row(j))
		}
	}
	out.PageCount = pageCount(total, size)
	return reply{http.StatusOK, out}, nil
}

// resultOrder is the order in which results are listed. The caller holds mu.
func (s *Sandbox) resultOrder(items []*item) []*item {
	if !s.switches.ResultsShuffled {
		return items
	}
	return shuffled(s.dice, items, func(it *item) string { return it.url + "#" + strconv.Itoa(it.index) })
}

// ordered walks a list that grows at its end in the order that lists have. The caller holds mu.
func ordered[T any](s *Sandbox, list []T, name func(T) string) iter.Seq2[int, T] {
	switch s.switches.ListOrder {
	case "oldest":
		return slices.All(list)
	case "shuffled":
		return slices.All(shuffled(s.dice, list, name))
	default:
		return slices.Backward(list)
	}
}

// shuffled is the list in an order that says nothing and stays the same.
func shuffled[T any](d dice, list []T, name func(T) string) []T {
	return slices.SortedFunc(slices.Values(list), func(a, b T) int {
		return cmp.Compare(d.number("order", name(a)), d.number("order", name(b)))
	})
}

// listed says whether job lists show the job. The caller holds mu.
func (s *Sandbox) listed(j *job) bool {
	return (j.kind != kindSync || s.switches.SyncListed) && (j.kind != kindChild || s.switches.ChildrenListed)
}

// within says that at lies between from and to, both included; a zero bound is open.
func within(at, from, to time.Time) bool {
	return (from.IsZero() || !at.Before(from)) && (to.IsZero() || !at.After(to))
}
