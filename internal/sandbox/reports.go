package sandbox

import (
	"net/http"
	"time"
)

// getUsage is GET /v1/usage.
func (s *Sandbox) getUsage(c *call) (reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := wireUsage{Concurrency: wireConcurrency{InUse: s.cfg.Parallelism - s.slots, Limit: s.cfg.Parallelism}}
	if a := c.account; a.limited {
		used := a.charged + a.reserved
		out.Tokens = &wireQuota{Limit: max(0, a.balance) + used, Used: used, Remaining: max(0, a.balance)}
	}
	return reply{http.StatusOK, out}, nil
}

// getStatistics is GET /v1/statistics, by default over the last 30 days.
func (s *Sandbox) getStatistics(c *call) (reply, error) {
	q := &query{values: c.r.URL.Query()}
	from, to := q.time("start_date"), q.time("end_date")
	if q.err != nil {
		return reply{}, q.err
	}
	if to.IsZero() {
		s.mu.Lock()
		to = s.clock()
		s.mu.Unlock()
	}
	if from.IsZero() {
		from = to.AddDate(0, 0, -30)
	}
	if from.After(to) {
		return reply{}, invalid("value_error", "start_date is after end_date", "query", "start_date")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return reply{http.StatusOK, s.statistics(c.account, from, to)}, nil
}

// dayLayout is a whole day as the statistics show it.
const dayLayout = "2006-01-02T15:04:05Z"

// statistics adds up the ended items of the account. The caller holds mu.
func (s *Sandbox) statistics(a *account, from, to time.Time) wireStatistics {
	out := wireStatistics{Requests: []wireDayRequest{}, TokensUsed: []wireDayTokens{}}
	days := map[time.Time]int{}
	good, total := 0, time.Duration(0)
	for _, k := range []kind{kindExtract, kindBatch, kindCrawl} {
		for _, j := range a.lists[k] {
			if at := j.created.Time; within(at, from.Add(from.Sub(to)), from) && at.Before(from) {
				out.PreviousExtractionCount += j.countEnded(nil)
				continue
			} else if !within(at, from, to) {
				continue
			}
			day := j.created.Truncate(24 * time.Hour)
			i, known := days[day]
			if !known {
				i = len(out.Requests)
				days[day] = i
				out.Requests = append(out.Requests, wireDayRequest{Date: stamp{day, dayLayout}})
				out.TokensUsed = append(out.TokensUsed, wireDayTokens{Date: stamp{day, dayLayout}})
			}
			out.ExtractionCount += j.countEnded(func(it *item) {
				if it.status == stateFailed {
					out.Requests[i].Failed++
					return
				}
				good++
				total += it.duration
				out.Requests[i].Success++
				out.TokensUsed[i].Tokens += it.charged
				out.PeriodTokensUsed += it.charged
			})
		}
	}
	if out.ExtractionCount > 0 {
		out.SuccessRate = float64(good) / float64(out.ExtractionCount)
	}
	if good > 0 {
		out.AverageDuration = float64(total.Milliseconds()) / float64(good)
	}
	return out
}

// countEnded counts the items that were done or failed, and shows each to see.
func (j *job) countEnded(see func(*item)) int {
	n := 0
	for _, it := range j.items {
		if it.status != stateCompleted && it.status != stateFailed {
			continue
		}
		n++
		if see != nil {
			see(it)
		}
	}
	return n
}
