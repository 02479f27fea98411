package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/riverqueue/river"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// ended is how a job stands once all its results have been read.
type ended struct {
	status  geonode.Status
	invalid []geonode.InvalidURL // What the vendor set aside.
	// total is how many pages a crawl says it has; unknown for other jobs.
	total geonode.Count
}

// endPass closes a job whose results have all been read. Items it did not
// report make it come back for one more read; what two whole reads miss ends
// here, with the reason.
func (s *settling) endPass(ctx context.Context, e ended) error { return s.endWith(ctx, nil, e) }

// endWith is endPass that first writes a page, the only one of its job, in the
// same transaction.
func (s *settling) endWith(ctx context.Context, page *readPage, e ended) error {
	now, waits := s.now(), false
	err := s.inTx(ctx, func(ctx context.Context, tx store.Tx) error {
		counts := store.Counts{Net: s.net}
		var err error
		if page != nil {
			if counts, err = s.write(ctx, tx, page, now); err != nil {
				return err
			}
		}
		waits, err = s.endIn(ctx, tx, e, &counts, now)
		if err != nil {
			return err
		}
		// Last, as they lock the batch until the commit.
		if waits {
			return tx.AddCounts(ctx, s.job.BatchID, counts, now)
		}
		return tx.CountLast(ctx, s.job.BatchID, counts, now)
	})
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if waits && s.job.State == store.JobGivenUp {
		return river.JobSnooze(s.secondRead(now).Sub(now)) // No poll comes back for it.
	}
	return nil
}

// endIn closes the job, or reports that it waits for one more read. What ends
// is added to the counts.
func (s *settling) endIn(ctx context.Context, tx store.Tx, e ended, counts *store.Counts, now time.Time) (bool, error) {
	carried, err := tx.Carried(ctx, s.job.ID)
	if err != nil {
		return false, err
	}
	missing := s.missing(carried)
	ends := s.setAside(&missing, e.invalid)
	shown, lacks, err := s.lacksPages(ctx, tx, e.total)
	if err != nil {
		return false, err
	}
	if len(missing) > 0 || lacks {
		passes, err := tx.NotePass(ctx, store.Pass{
			JobID: s.job.ID, At: now, Vendor: s.heardAt, Gap: s.passGap(e.status), Next: s.secondRead(now),
		})
		if err != nil {
			return false, err
		}
		if passes < completeReads {
			if s.job.State == store.JobGivenUp {
				return true, nil
			}
			return true, finish(ctx, tx, s.task)
		}
	}
	if lacks {
		if err := s.noteLack(ctx, tx, shown, e.total, now); err != nil {
			return false, err
		}
	}
	return false, s.close(ctx, tx, e.status, carried, missing, ends, counts, now)
}

// inTx is store.InTx that says which batches have ended with it.
func (p *Pipeline) inTx(ctx context.Context, do func(context.Context, store.Tx) error) error {
	var ends []store.BatchEnd
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		err := do(ctx, tx)
		ends = tx.Ended()
		return err
	})
	if err != nil {
		return err
	}
	for _, b := range ends {
		p.log.InfoContext(ctx, "batch ended", slog.Int64("batch_id", b.ID), slog.Int64("stored", b.Stored),
			slog.Int64("failed", b.Failed), slog.Int64("cancelled", b.Cancelled))
	}
	return nil
}

// lacksPages reports a crawl that counts more pages than it has shown, and how
// many those are.
func (s *settling) lacksPages(ctx context.Context, tx store.Tx, total geonode.Count) (int, bool, error) {
	if !total.Known {
		return 0, false, nil
	}
	shown, err := tx.CountCrawlPages(ctx, s.job.ID)
	return shown, int64(shown) < total.N, err
}

// noteLack says on the crawl's page that its vendor counts pages that it never
// showed: nobody knows which, so there is no item to fail.
func (s *settling) noteLack(ctx context.Context, tx store.Tx, shown int, total geonode.Count, now time.Time) error {
	return tx.InsertEvents(ctx, []store.JobEvent{{
		JobID: s.job.ID, At: now, Kind: "pages_lacking",
		Detail: fmt.Sprintf("the vendor counts %d pages, and two complete reads show %d", total.N, shown),
	}})
}

// passGap is how far apart two reads are that both count an item missing. The
// pages that ran when a job was cancelled may still come in for a while, and
// are charged: they are waited for.
func (s *settling) passGap(status geonode.Status) time.Duration {
	if status == geonode.StatusCancelled {
		return max(s.cfg.CancelGrace, s.cfg.MissingGap)
	}
	return s.cfg.MissingGap
}

// secondRead is when to read a job again that left items unreported.
func (s *settling) secondRead(now time.Time) time.Time {
	return now.Add(s.cfg.MissingGap + jitter(s.cfg.MissingGap/4))
}

// missing are the items this job still owes an answer for.
func (s *settling) missing(carried []store.CarriedItem) []store.CarriedItem {
	var out []store.CarriedItem
	for _, c := range carried {
		if c.Current && c.State == store.ItemOutstanding && (c.Outcome == nil || *c.Outcome != store.OutcomeRetry) {
			out = append(out, c)
		}
	}
	return out
}

// setAside takes out of missing what the vendor said it never accepted.
func (s *settling) setAside(missing *[]store.CarriedItem, invalid []geonode.InvalidURL) []store.Ending {
	aside := s.invalidURLs(invalid)
	var ends []store.Ending
	*missing = slices.DeleteFunc(*missing, func(c store.CarriedItem) bool {
		if !slices.Contains(aside, c.URL) {
			return false
		}
		ends = append(ends, store.Ending{ItemID: c.ItemID, Code: "INVALID_URL", Message: "the vendor does not accept this URL"})
		return true
	})
	return ends
}

// close ends the job in the transaction that ends its last items, makes the
// retry job, and completes the task. The caller adds the counts.
func (s *settling) close(ctx context.Context, tx store.Tx, status geonode.Status, carried, missing []store.CarriedItem, fails []store.Ending, counts *store.Counts, now time.Time) error {
	var cancels []store.Ending
	for _, m := range missing {
		end := s.unreported(status, m)
		if status == geonode.StatusCancelled {
			cancels = append(cancels, end)
		} else {
			fails = append(fails, end)
		}
	}
	failed, err := tx.FailItems(ctx, s.job.ID, fails, now)
	if err != nil {
		return err
	}
	cancelled, err := tx.CancelItems(ctx, s.job.ID, cancels, now)
	if err != nil {
		return err
	}
	counts.Failed += int64(len(failed))
	counts.Cancelled += int64(len(cancelled))
	if err := tx.ReportItems(ctx, s.job.ID, append(reportsOf(fails, store.OutcomeFailed), reportsOf(cancels, store.OutcomeCancelled)...), now); err != nil {
		return err
	}
	settled, err := tx.SettleJob(ctx, s.job.ID, s.net, s.clock.ourTime(s.vendorEnd), now)
	if err != nil {
		return err
	}
	if settled {
		if err := s.settled(ctx, tx, status, carried, now); err != nil {
			return err
		}
	}
	return finish(ctx, tx, s.task)
}

// unreported is how an item ends that two whole reads did not find.
func (s *settling) unreported(status geonode.Status, c store.CarriedItem) store.Ending {
	end := store.Ending{
		ItemID: c.ItemID, Code: "NOT_REPORTED", Retryable: true,
		Message: "the job ended and two complete reads do not hold this URL",
	}
	switch {
	case status == geonode.StatusCancelled:
		end = store.Ending{ItemID: c.ItemID, Code: "VENDOR_CANCELLED", Message: "the job was cancelled at the vendor"}
	case s.job.Misnumbered && s.job.Kind != store.KindCrawl: // A crawl's rows are not numbered.
		end.Code, end.Message = "MISNUMBERED", "the vendor's results do not match the URLs that were sent"
	case status == geonode.StatusFailed:
		end.Code, end.Message = "VENDOR_FAILED", "the job failed at the vendor without a word on this URL"
	}
	return end
}

// settled notes the end and sends what is to be retried on its way.
func (s *settling) settled(ctx context.Context, tx store.Tx, status geonode.Status, carried []store.CarriedItem, now time.Time) error {
	event := store.JobEvent{JobID: s.job.ID, At: now, Kind: "settled", Net: s.net, Detail: summary(status, carried)}
	if err := tx.InsertEvents(ctx, []store.JobEvent{event}); err != nil {
		return err
	}
	return s.retry(ctx, tx, carried, now)
}

// summary counts what the job itself said of its items.
func summary(status geonode.Status, carried []store.CarriedItem) string {
	n := map[store.Outcome]int{}
	for _, c := range carried {
		if c.Outcome != nil {
			n[*c.Outcome]++
		}
	}
	return fmt.Sprintf("vendor says %s: %d stored, %d failed, %d cancelled, %d to retry, %d superseded", status,
		n[store.OutcomeStored], n[store.OutcomeFailed], n[store.OutcomeCancelled], n[store.OutcomeRetry], n[store.OutcomeSuperseded])
}

// retry sends what failed in a way that passes on its way again, after a gap
// that grows with the tries.
func (s *settling) retry(ctx context.Context, tx store.Tx, carried []store.CarriedItem, now time.Time) error {
	parts, tries := s.retryParts(carried)
	if len(parts) == 0 {
		return nil
	}
	b, err := tx.Batch(ctx, s.job.BatchID)
	if err != nil {
		return err
	}
	// Read again: a cancel may have come since the look began. The new job is
	// made all the same, and withdrawn in place of its call.
	job, err := tx.Job(ctx, s.job.ID)
	if err != nil {
		return err
	}
	c := &call{job: job, batch: b}
	// Where the headers are lost with their key, too: dispatch says so when it
	// withdraws the new job, and this one ends.
	if c.options, c.headers, err = s.readOptions(b); err != nil && !errors.Is(err, errHeadersLost) {
		return err
	}
	gap := s.cfg.RetryGaps[min(tries, len(s.cfg.RetryGaps)-1)]
	var at time.Time // With no gap at once: what has a time waits for the queue's timer.
	if gap > 0 {
		at = now.Add(gap/2 + jitter(gap))
	}
	return s.succeed(ctx, tx, c, parts, store.OriginRetry, now, at)
}

// retryParts are the jobs that a retry makes: of a crawl only its seed is crawled
// again, a page of it is fetched by itself.
func (s *settling) retryParts(carried []store.CarriedItem) ([]part, int) {
	all, tries := part{kind: s.job.Kind}, 0
	var out []part
	for _, c := range carried {
		if !c.Current || c.State != store.ItemOutstanding || c.Outcome == nil || *c.Outcome != store.OutcomeRetry {
			continue
		}
		tries = max(tries, c.Retries)
		item := store.SendItem{ItemID: c.ItemID, URL: c.URL}
		if s.job.Kind == store.KindCrawl && c.InputIndex > 0 {
			out = append(out, part{kind: store.KindExtract, items: []store.SendItem{item}})
			continue
		}
		all.items = append(all.items, item)
	}
	if len(all.items) > 0 {
		out = append(out, all)
	}
	return out, tries
}
