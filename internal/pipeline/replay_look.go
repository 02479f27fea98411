package pipeline

import (
	"context"
	"time"

	"rollcall/store"
)

// replayLook says of the jobs under way which have ended, and how many have not.
// Tasks are looked for before the jobs are read: a job without one then shows
// what its look found.
func (p *Pipeline) replayLook(ctx context.Context, id int64, now time.Time, shut bool) ([]store.ReplayEnd, int, error) {
	before, err := p.store.ReplayInFlight(ctx, id, replayInFlight)
	if err != nil || len(before) == 0 {
		return nil, 0, err
	}
	ids := make([]int64, len(before))
	for i := range before {
		ids[i] = before[i].JobID
	}
	busy, err := p.queue.underWay(ctx, id, ids)
	if err != nil {
		return nil, 0, err
	}
	jobs, err := p.store.ReplayInFlight(ctx, id, replayInFlight)
	if err != nil {
		return nil, 0, err
	}
	r, err := p.store.Replay(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	var ends []store.ReplayEnd
	for i := range jobs {
		j := &jobs[i]
		switch {
		case busy[j.JobID] && !shut && tooLong(j, r.ShutAt, now):
			ends = append(ends, store.ReplayEnd{JobID: j.JobID, Outcome: endedLate(j), Detail: "its task has not ended yet, and goes on by itself"})
		case !busy[j.JobID]:
			ends = append(ends, replayEnd(j))
		}
	}
	return ends, len(jobs) - len(ends), nil
}

// tooLong reports a job that was under way for too long while the vendor could
// be asked.
func tooLong(j *store.ReplayJob, shutAt *time.Time, now time.Time) bool {
	since := *j.WokenAt
	if shutAt != nil && shutAt.After(since) {
		since = *shutAt
	}
	return now.Sub(since) > replayPatience
}

// endedLate is the outcome of a job whose task takes too long.
func endedLate(j *store.ReplayJob) store.ReplayOutcome {
	if j.State == store.ReplayJobRefetching {
		return store.ReplayAlreadySettled
	}
	return store.ReplayError
}

// replayEnd is the one outcome of a job that has no task any more.
func replayEnd(j *store.ReplayJob) store.ReplayEnd {
	end := store.ReplayEnd{JobID: j.JobID}
	if j.State == store.ReplayJobRefetching {
		end.Outcome, end.Refetched, end.Detail = store.ReplayAlreadySettled, store.RefetchedError, "its task is gone"
		return end
	}
	switch j.JobState {
	case store.JobSettled:
		end.Outcome = store.ReplaySettledNow
	case store.JobGivenUp:
		end.Outcome, end.Detail = givenUpOutcome(j)
	case store.JobAccepted:
		end.Outcome, end.Detail = openOutcome(j)
	case store.JobIntended, store.JobCalling, store.JobUncertain, store.JobRefused, store.JobWithdrawn, store.JobSplit:
		end.Outcome, end.Detail = store.ReplayError, "it is no job at the vendor: "+string(j.JobState)
	}
	return end
}

// openOutcome is that of a job which a look left open.
func openOutcome(j *store.ReplayJob) (store.ReplayOutcome, string) {
	switch j.Look {
	case store.LookRunning:
		return store.ReplayStillRunning, "the vendor says " + j.VendorStatus
	case store.LookIncomplete:
		return store.ReplayStillRunning, "it has ended at the vendor, which has not reported all of it yet; it is read once more later"
	case store.LookNotFound:
		return store.ReplayUnknown, "the vendor answered 404"
	case store.LookNoAnswer:
		return store.ReplayError, "the vendor could not be read; it is asked again later"
	}
	return store.ReplayError, "no look came of it"
}

// givenUpOutcome is that of a job which was given up: by this look, or before.
func givenUpOutcome(j *store.ReplayJob) (store.ReplayOutcome, string) {
	if j.ErrorCode == "VENDOR_FORGOT" {
		return store.ReplayUnknown, j.ErrorCode + ": " + j.ErrorMessage
	}
	if j.WokenAt != nil && j.JobEndedAt != nil && !j.JobEndedAt.Before(*j.WokenAt) {
		return store.ReplayFailed, j.ErrorCode + ": " + j.ErrorMessage
	}
	outcome, detail := openOutcome(j)
	if outcome == store.ReplayStillRunning {
		return outcome, detail + "; it was given up before, and is still taken if it ends"
	}
	return outcome, detail
}
