package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/riverqueue/river"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// notTheVendor is a 403 that is not in the vendor's own words: something on the
// way, such as a firewall, refused it, and that passes. In its own words the
// vendor refuses this request and no other.
func notTheVendor(e *geonode.Error) bool {
	return e.Status == http.StatusForbidden && e.Shape != geonode.ShapeStandard
}

// declined records a call that brought no id.
func (p *Pipeline) declined(ctx context.Context, c *call, cause error) error {
	job := c.job
	if geonode.CertaintyOf(cause) == geonode.Unknown {
		return p.uncertain(ctx, job, cause)
	}
	wait, account, err := p.gates.failed(ctx, store.GateSubmit, cause)
	if err != nil {
		return err
	}
	var e *geonode.Error
	if !errors.As(cause, &e) {
		return cause
	}
	paused := account && !errors.Is(cause, geonode.ErrThrottled)
	switch {
	case account || e.Retryable() || e.Status == 0 || notTheVendor(e):
		late, err := p.gates.late(ctx, store.GateSubmit, job.CreatedAt, p.now())
		if err != nil {
			return err
		}
		// A paused account is ours to mend: its jobs wait for as long as it takes.
		if late && !paused && job.CallNo >= leastTries {
			return p.refuse(ctx, job, "GAVE_UP", "the vendor took no call for it in time: "+vendorCode(e), true)
		}
		if wait == 0 {
			wait = jitter(doubling(time.Second, maxRetryGap, job.CallNo)) + time.Second/4
		}
		return p.release(ctx, job, e, wait)
	case e.PlanLimit() && len(c.items) > 1 && job.Depth < maxSplits:
		return p.split(ctx, c, e)
	}
	return p.refuse(ctx, job, vendorCode(e), vendorMessage(e), false)
}

// uncertain leaves the job to adopt: the vendor may have taken the call.
func (p *Pipeline) uncertain(ctx context.Context, job *store.Job, cause error) error {
	now := p.now()
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		ok, err := tx.MarkUncertain(ctx, job.ID, job.CallNo, now)
		if err != nil || !ok {
			return err
		}
		return tx.InsertEvents(ctx, []store.JobEvent{{
			JobID: job.ID, At: now, Kind: "uncertain",
			Detail: store.CleanText(clip(cause.Error(), 300)),
		}})
	})
	if err != nil {
		return fmt.Errorf("mark job %d uncertain: %w", job.ID, err)
	}
	p.log.WarnContext(ctx, "vendor answer lost, job uncertain", slog.Int64("job_id", job.ID), slog.Any("error", cause))
	return p.queue.adopt(ctx, []int64{job.ID})
}

// release gives the claim back for another call later.
func (p *Pipeline) release(ctx context.Context, job *store.Job, e *geonode.Error, wait time.Duration) error {
	now := p.now()
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		ok, err := tx.ReleaseJob(ctx, job.ID, job.CallNo)
		if err != nil || !ok || !told(job.CallNo) {
			return err
		}
		return tx.InsertEvents(ctx, []store.JobEvent{{
			JobID: job.ID, At: now, Kind: "declined",
			Detail: fmt.Sprintf("%s, again in %s", vendorCode(e), wait.Round(time.Millisecond)),
		}})
	})
	if err != nil {
		return fmt.Errorf("release job %d: %w", job.ID, err)
	}
	return river.JobSnooze(wait)
}

// told reports whether a declined call gets a line in the timeline: a vendor
// that is away for a day would fill it otherwise.
func told(callNo int) bool { return callNo <= toldCalls || callNo&(callNo-1) == 0 }

// refuse ends a job that the vendor will not take, and its items with it.
func (p *Pipeline) refuse(ctx context.Context, job *store.Job, code, message string, retryable bool) error {
	now := p.now()
	err := p.inTx(ctx, func(ctx context.Context, tx store.Tx) error {
		items, err := tx.SendList(ctx, job.ID)
		if err != nil {
			return err
		}
		ok, err := tx.EndJob(ctx, job.ID, job.CallNo, store.JobRefused, store.CleanText(code), store.CleanText(message), now)
		if err != nil || !ok {
			return err
		}
		ends := make([]store.Ending, len(items))
		for i, it := range items {
			ends[i] = store.Ending{ItemID: it.ItemID, Code: code, Message: message, Retryable: retryable}
		}
		return p.failAll(ctx, tx, job, ends, "refused", code+": "+message, now)
	})
	if err != nil {
		return fmt.Errorf("refuse job %d: %w", job.ID, err)
	}
	p.log.WarnContext(ctx, "job refused", slog.Int64("job_id", job.ID), slog.String("code", code))
	return nil
}

// failAll fails items with their job's end, and counts them last.
func (p *Pipeline) failAll(ctx context.Context, tx store.Tx, job *store.Job, ends []store.Ending, kind, detail string, now time.Time) error {
	failed, err := tx.FailItems(ctx, job.ID, ends, now)
	if err != nil {
		return err
	}
	if err := tx.ReportItems(ctx, job.ID, reportsOf(ends, store.OutcomeFailed), now); err != nil {
		return err
	}
	event := store.JobEvent{JobID: job.ID, At: now, Kind: kind, Detail: store.CleanText(clip(detail, 300))}
	if err := tx.InsertEvents(ctx, []store.JobEvent{event}); err != nil {
		return err
	}
	return tx.CountLast(ctx, job.BatchID, store.Counts{Net: store.NetPoll, Failed: int64(len(failed))}, now)
}

func reportsOf(ends []store.Ending, outcome store.Outcome) []store.Report {
	out := make([]store.Report, len(ends))
	for i, e := range ends {
		out[i] = store.Report{ItemID: e.ItemID, Outcome: outcome, Code: e.Code, Message: e.Message}
	}
	return out
}

// errTakenOver reports an answer whose job another lost call was given.
var errTakenOver = errors.New("another job adopted the one that this call made")

// taken ends a call that was answered with the id of another job. When that
// one only adopted it, this call outlived its claim and the other took what it
// had made: whether the other's own call made a job too is what adopt finds out
// for this one. Else the vendor gives one id twice.
func (p *Pipeline) taken(ctx context.Context, job *store.Job, vendorID string) error {
	known, err := p.store.KnownVendorIDs(ctx, []string{vendorID})
	if err != nil {
		return fmt.Errorf("look for the holder of vendor job of job %d: %w", job.ID, err)
	}
	if known[vendorID].Adopted {
		return p.uncertain(ctx, job, errTakenOver)
	}
	return p.refuse(ctx, job, "VENDOR_ID_REUSED", "the vendor answered with the id of another job", false)
}

// vendorCode is the vendor's own code, or one made of the status.
func vendorCode(e *geonode.Error) string {
	switch {
	case e.Code != "":
		return clip(e.Code, 100)
	case e.Status != 0:
		return fmt.Sprintf("HTTP_%d", e.Status)
	}
	return "NOT_REACHED"
}

// vendorMessage is the vendor's own words, or the fields it refused.
func vendorMessage(e *geonode.Error) string {
	if e.Message != "" {
		return clip(e.Message, 500)
	}
	if len(e.Fields) > 0 {
		return clip(fmt.Sprintf("%v: %s", e.Fields[0].Loc, e.Fields[0].Msg), 500)
	}
	return "the vendor refused the request and did not say why"
}
