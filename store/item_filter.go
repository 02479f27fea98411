package store

import (
	"time"

	"github.com/uptrace/bun"
)

// ItemFilter narrows items; zero members don't. What it asks of a result (HTTP
// status, size, duration, mark) only a stored item fits.
type ItemFilter struct {
	Batch int64
	State ItemState
	Net   Net
	// HTTPStatus is one status of the page, HTTPClass the hundreds of one: 2, 4, 5.
	HTTPStatus int
	HTTPClass  int
	Code       string
	Host       string // As in the URL, in lower case, without a port.
	URLPart    string // Anywhere in the URL, without regard to case.
	// Bytes are those of the Markdown and the HTML together, both ends included.
	MinBytes, MaxBytes int64
	// MS is how long the vendor took for the page, both ends included.
	MinMS, MaxMS int64
	// From is the first moment of the answer, Until the first one after the last.
	From, Until time.Time
	Mark        string
	Standing    FailureStanding
}

// FailureStanding is where a failure stands with people.
type FailureStanding string

// The standings of a failure: it waits for somebody, or a person resolved it.
const (
	FailureWaiting  FailureStanding = "waiting"
	FailureResolved FailureStanding = "resolved"
)

// FailureStandings are all of them, as a page offers them.
func FailureStandings() []FailureStanding { return []FailureStanding{FailureWaiting, FailureResolved} }

// narrow keeps what fits the filter of a query over items AS i. It joins
// nothing, so the query may join what it likes.
func (f ItemFilter) narrow(q *bun.SelectQuery) *bun.SelectQuery {
	if f.Batch > 0 {
		q = q.Where("i.batch_id = ?", f.Batch)
	}
	if f.State != "" {
		q = q.Where("i.state = ?", f.State)
	}
	if f.Net != "" {
		q = q.Where("i.net = ?", f.Net)
	}
	if f.Code != "" {
		q = q.Where("i.error_code = ? AND i.state <> 'stored'", CleanText(f.Code))
	}
	if f.Host != "" {
		q = q.Where("i.host = ?", CleanText(f.Host))
	}
	if f.URLPart != "" {
		q = q.Where("i.url ILIKE ?", "%"+likeLiteral(CleanText(f.URLPart))+"%")
	}
	q = between(f.Standing.narrow(q), "i.ended_at", f.From, f.Until)
	return f.narrowResult(q)
}

func (s FailureStanding) narrow(q *bun.SelectQuery) *bun.SelectQuery {
	switch s {
	case FailureWaiting:
		return q.Where("i.state = 'failed' AND i.resolved_at IS NULL")
	case FailureResolved:
		return q.Where("i.state = 'failed' AND i.resolved_at IS NOT NULL")
	}
	return q
}

// ofResult reports a filter that asks something of the result.
func (f ItemFilter) ofResult() bool {
	return f.HTTPStatus > 0 || f.HTTPClass > 0 || f.MinBytes > 0 || f.MaxBytes > 0 || f.MinMS > 0 || f.MaxMS > 0 || f.Mark != ""
}

// resultBytes is the size of a result; that of a stored value is known without
// unpacking it.
const resultBytes = "coalesce(octet_length(fit.markdown), 0)::bigint + coalesce(octet_length(fit.html), 0)"

func (f ItemFilter) narrowResult(q *bun.SelectQuery) *bun.SelectQuery {
	if !f.ofResult() {
		return q
	}
	fit := q.NewSelect().TableExpr("results AS fit").ColumnExpr("true").Where("fit.item_id = i.id")
	if f.HTTPStatus > 0 {
		fit = fit.Where("fit.http_status = ?", f.HTTPStatus)
	}
	if f.HTTPClass > 0 {
		fit = fit.Where("fit.http_status BETWEEN ? AND ?", f.HTTPClass*100, f.HTTPClass*100+99)
	}
	if f.MinBytes > 0 {
		fit = fit.Where(resultBytes+" >= ?", f.MinBytes)
	}
	if f.MaxBytes > 0 {
		fit = fit.Where(resultBytes+" <= ?", f.MaxBytes)
	}
	if f.MinMS > 0 {
		fit = fit.Where("fit.duration_ms >= ?", f.MinMS)
	}
	if f.MaxMS > 0 {
		fit = fit.Where("fit.duration_ms <= ?", f.MaxMS)
	}
	if f.Mark != "" {
		fit = fit.Where("fit.mark = ?", CleanText(f.Mark))
	}
	// Not EXISTS, which the planner may turn into a join with all results.
	return q.Where("i.state = 'stored' AND (?)", fit)
}
