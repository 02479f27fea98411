package store

import (
	"strconv"
	"time"

	"github.com/uptrace/bun"
)

// DeliveryFilter narrows the deliveries that were received; zero members don't.
type DeliveryFilter struct {
	Webhook int64
	Event   string
	Verdict Verdict
	// Class is the hundreds of the status that was answered: 2, 4, 5.
	Class  int
	Status int
	// Job is our id of a job, or the vendor's.
	Job   string
	Batch int64
	// From is the first moment, Until the first one after the last.
	From, Until time.Time
}

// LogFilter narrows the vendor's delivery log; zero members don't.
type LogFilter struct {
	Webhook int64
	Event   string
	// Status is the vendor's word.
	Status string
	// Class is the hundreds of the HTTP status that the vendor notes.
	Class      int
	HTTPStatus int
	Attempt    int
	// Job is our id of a job, or the vendor's.
	Job      string
	Batch    int64
	Standing Standing
	// From is the first moment, Until the first one after the last.
	From, Until time.Time
}

// Standing is what an attempt of the vendor's log comes to, seen from here.
type Standing string

// The standings; an attempt has one of them.
const (
	// StandingReceived was delivered and received, at once or from quarantine.
	StandingReceived Standing = "received"
	// StandingAbsent was delivered, they say, but nothing came in here.
	StandingAbsent Standing = "absent"
	// StandingRefused came in here and was refused.
	StandingRefused Standing = "refused"
	// StandingGivenUp was given up by the vendor, and nothing of it is here.
	StandingGivenUp Standing = "given_up"
	// StandingPending was not attempted yet.
	StandingPending Standing = "pending"
	// StandingLost failed, and nothing of it is here.
	StandingLost Standing = "lost"
)

// Standings are all of them, as a page offers them.
func Standings() []Standing {
	return []Standing{StandingReceived, StandingAbsent, StandingRefused, StandingGivenUp, StandingPending, StandingLost}
}

// Few reports a filter of which an index finds all rows, which are then put in
// order: walking the newest first could look at every row for one of them.
func (f DeliveryFilter) few() bool { return f.Job != "" || f.Batch > 0 }

func (f LogFilter) few() bool {
	return f.Job != "" || f.Batch > 0 || f.Standing == StandingRefused
}

// narrow keeps what fits the filter of a query over deliveries AS d.
func (f DeliveryFilter) narrow(q *bun.SelectQuery) *bun.SelectQuery {
	if f.Webhook > 0 {
		q = q.Where("d.webhook_id = ?", f.Webhook)
	}
	if f.Event != "" {
		q = q.Where("d.event_type = ?", CleanText(f.Event))
	}
	if f.Verdict != "" {
		q = q.Where("d.verdict = ?", f.Verdict)
	}
	if f.Verdict != "" && f.Verdict != VerdictAccepted {
		// Said in the index's own words, or the planner can't use it.
		q = q.Where("d.verdict <> 'accepted'")
	}
	if f.Class > 0 {
		q = q.Where("d.status BETWEEN ? AND ?", f.Class*100, f.Class*100+99)
	}
	if f.Status > 0 {
		q = q.Where("d.status = ?", f.Status)
	}
	if f.Class > 0 && f.Class != 2 || f.Status > 0 && f.Status != 200 {
		q = q.Where("d.status <> 200")
	}
	q = aboutJob(q, "d.vendor_job_id", f.Job, f.Batch)
	return between(q, "d.received_at", f.From, f.Until)
}

// narrow keeps what fits the filter of a query over delivery_log AS dl.
func (f LogFilter) narrow(q *bun.SelectQuery) *bun.SelectQuery {
	if f.Webhook > 0 {
		q = q.Where("dl.webhook_id = ?", f.Webhook)
	}
	if f.Event != "" {
		q = q.Where("dl.event_type = ?", CleanText(f.Event))
	}
	if f.Status != "" {
		q = q.Where("dl.status = ?", CleanText(f.Status))
	}
	if f.Class > 0 {
		q = q.Where("dl.http_status / 100 = ?", f.Class)
	}
	if f.HTTPStatus > 0 {
		q = q.Where("dl.http_status = ?", f.HTTPStatus)
	}
	if f.Attempt > 0 {
		q = q.Where("dl.attempt = ?", f.Attempt)
	}
	q = f.Standing.narrow(q)
	q = aboutJob(q, "dl.vendor_job_id", f.Job, f.Batch)
	return between(q, "dl.created_at", f.From, f.Until)
}

// refusedHere are the deliveries that were refused and not taken up since; the
// quarantine's bounds keep them few.
const refusedHere = "SELECT id FROM deliveries WHERE verdict IN ('refused', 'unreadable')"

// absentWith are the attempts that are no delivery here, by how they ended;
// said in the index's own words, or the planner can't use it.
const absentWith = `dl.delivery_id IS NULL AND
	CASE WHEN dl.status IN ('success', 'abandoned', 'pending') THEN dl.status ELSE 'failed' END = ?`

// narrow keeps the attempts of a standing. It says in SQL what standingOf says
// of a row.
func (s Standing) narrow(q *bun.SelectQuery) *bun.SelectQuery {
	switch s {
	case StandingReceived:
		return q.Where("dl.delivery_id IS NOT NULL AND dl.delivery_id NOT IN (" + refusedHere + ")")
	case StandingRefused:
		// There are few: as an array each is looked up, and the log isn't read for them.
		return q.Where("dl.delivery_id = ANY (ARRAY(" + refusedHere + "))")
	case StandingAbsent:
		return q.Where(absentWith, "success")
	case StandingGivenUp:
		return q.Where(absentWith, "abandoned")
	case StandingPending:
		return q.Where(absentWith, "pending")
	case StandingLost:
		return q.Where(absentWith, "failed")
	}
	return q
}

// standingOf is the standing of an attempt with the vendor's status: of one
// that is a delivery here, whether that was refused decides.
func standingOf(status string, here, refused bool) Standing {
	switch {
	case refused:
		return StandingRefused
	case here:
		return StandingReceived
	case status == "success":
		return StandingAbsent
	case status == "abandoned":
		return StandingGivenUp
	case status == "pending":
		return StandingPending
	}
	return StandingLost
}

// aboutJob keeps what is about one job, by our id or the vendor's, and about
// the jobs of one batch.
func aboutJob(q *bun.SelectQuery, column, job string, batch int64) *bun.SelectQuery {
	name := bun.Safe(column)
	if job != "" {
		// A vendor's id may be digits alone.
		ours, err := strconv.ParseInt(job, 10, 64)
		if err != nil {
			ours = 0
		}
		q = q.Where("? = ANY (ARRAY[?, (SELECT j.vendor_job_id FROM jobs AS j WHERE j.id = ?)])", name, CleanText(job), ours)
	}
	if batch > 0 {
		q = q.Where("? IN (SELECT j.vendor_job_id FROM jobs AS j WHERE j.batch_id = ?)", name, batch)
	}
	if job != "" || batch > 0 {
		// Said in the index's own words, or the planner can't use it.
		q = q.Where("? <> ''", name)
	}
	return q
}

// between keeps what lies from one moment on until before another.
func between(q *bun.SelectQuery, column string, from, until time.Time) *bun.SelectQuery {
	if !from.IsZero() {
		q = q.Where("? >= ?", bun.Safe(column), from)
	}
	if !until.IsZero() {
		q = q.Where("? < ?", bun.Safe(column), until)
	}
	return q
}
