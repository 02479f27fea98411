package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// Bounds of fetching settled jobs once more.
const (
	// refetchTries is how often the vendor is asked before it counts as an error.
	refetchTries = 8
	// What a replay keeps of content that differs; what goes beyond is counted.
	refetchKept  = 1000
	refetchBytes = 128 << 20
)

type refetchWorker struct {
	river.WorkerDefaults[refetchArgs]
	p *Pipeline
}

// Work implements river.Worker.
func (w *refetchWorker) Work(ctx context.Context, task *river.Job[refetchArgs]) error {
	return ofTask(w.p.refetch(ctx, task), "refetch job", task.Args.JobID)
}

// Timeout implements river.Worker, as settle's.
func (w *refetchWorker) Timeout(*river.Job[refetchArgs]) time.Duration { return taskTimeout + turnWait }

// refetching is one run over a settled job: some pages of its results.
type refetching struct {
	*settling
	replay int64
}

// refetch asks the vendor for a settled job once more and notes where that is
// not what is stored. Nothing that is stored changes by it.
func (p *Pipeline) refetch(ctx context.Context, task *river.Job[refetchArgs]) error {
	row, err := p.store.ReplayJob(ctx, task.Args.ReplayID, task.Args.JobID)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil || row.State != store.ReplayJobRefetching {
		return err
	}
	job, err := p.store.Job(ctx, row.JobID)
	if err != nil {
		return err
	}
	leave, err := p.turnAtVendor(ctx, p.looks, task.JobRow)
	if err != nil {
		return err
	}
	defer leave()
	wait, err := p.gates.wait(ctx, store.GateRead)
	if err != nil {
		return err
	}
	if wait > 0 {
		return river.JobSnooze(wait)
	}
	r := &refetching{
		settling: &settling{Pipeline: p, job: job, net: store.NetReplay}, replay: task.Args.ReplayID,
	}
	page, began := row.RefetchPage, p.now()
	for n := range mostPages {
		if err := r.mayGoOn(ctx, n); err != nil {
			return err
		}
		last, err := r.page(ctx, page)
		if err != nil || last {
			return err
		}
		page++
		if r.sliced(n+1, began) {
			break
		}
	}
	return again()
}

// page fetches one page, compares it, and reports whether that was the end.
func (r *refetching) page(ctx context.Context, page int) (bool, error) {
	got, err := r.fetch(ctx, page)
	if err != nil {
		return true, r.declined(ctx, err)
	}
	if err := r.answered(ctx, got.reply); err != nil {
		return true, err
	}
	now := r.now()
	return got.last, r.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if _, err := tx.LockReplay(ctx, r.replay); err != nil {
			return err
		}
		differs, err := tx.NoteRefetched(ctx, store.Refetch{
			ReplayID: r.replay, JobID: r.job.ID, NextPage: page + 1, Results: got.results, MostKept: refetchKept, MostBytes: refetchBytes, At: now,
		})
		if err != nil || !got.last {
			return err
		}
		end := store.ReplayEnd{JobID: r.job.ID, Outcome: store.ReplayAlreadySettled, Refetched: store.RefetchedSame}
		if differs > 0 {
			end.Refetched = store.RefetchedDiffers
		}
		return tx.EndReplayJobs(ctx, r.replay, []store.ReplayEnd{end}, now)
	})
}

// declined ends a fetch that the vendor did not answer with content: that is
// tried again, unless it is about this job and for good.
func (r *refetching) declined(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	wait, account, err := r.gates.failed(ctx, store.GateRead, cause)
	switch {
	case err != nil:
		return err
	case account:
		return river.JobSnooze(wait)
	case errors.Is(cause, geonode.ErrNotFound):
		return r.end(ctx, store.RefetchedUnknown, "the vendor answered 404")
	case errors.Is(cause, geonode.ErrTooLarge):
		return r.end(ctx, store.RefetchedError, "the answer is larger than Rollcall reads")
	case errors.Is(cause, errNotEnded):
		return r.end(ctx, store.RefetchedError, "the vendor says that it has not ended")
	}
	tries, err := r.store.CountRefetchTry(ctx, r.replay, r.job.ID)
	if err != nil {
		return err
	}
	if tries < refetchTries {
		return river.JobSnooze(jitter(doubling(time.Second, maxRetryGap, tries)) + time.Second/4)
	}
	r.log.DebugContext(ctx, "settled job not fetched once more", slog.Int64("job_id", r.job.ID), slog.Any("error", cause))
	return r.end(ctx, store.RefetchedError, "the vendor could not be read")
}

func (r *refetching) end(ctx context.Context, what store.Refetched, why string) error {
	return r.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if _, err := tx.LockReplay(ctx, r.replay); err != nil {
			return err
		}
		return tx.EndReplayJobs(ctx, r.replay, []store.ReplayEnd{{
			JobID: r.job.ID, Outcome: store.ReplayAlreadySettled, Refetched: what, Detail: why,
		}}, r.now())
	})
}

// errNotEnded reports a job that is settled here and runs at the vendor.
var errNotEnded = errors.New("the job has not ended at the vendor")

// fetchedPage is one page of a settled job, read again.
type fetchedPage struct {
	reply   geonode.Reply
	results []*store.Result
	last    bool
}

// fetch reads one page of what the job is, by its kind.
func (r *refetching) fetch(ctx context.Context, page int) (*fetchedPage, error) {
	switch r.job.Kind {
	case store.KindExtract:
		return r.fetchExtract(ctx)
	case store.KindCrawl:
		return r.fetchCrawl(ctx, page)
	case store.KindBatch, store.KindMixed, store.KindSync:
	}
	return r.fetchBatch(ctx, page)
}

func (r *refetching) fetchExtract(ctx context.Context) (*fetchedPage, error) {
	got, err := r.vendor.GetExtract(ctx, r.job.VendorID())
	if err != nil {
		return nil, err
	}
	if !got.Status.Terminal() {
		return nil, errNotEnded
	}
	out := &fetchedPage{reply: got.Reply, last: true}
	carried, err := r.store.Carried(ctx, r.job.ID)
	if err != nil {
		return nil, err
	}
	if len(carried) > 0 && got.Problem == "" {
		out.add(r, &carried[0], got.Status, got.Data, got.Metadata)
	}
	return out, nil
}

func (r *refetching) fetchBatch(ctx context.Context, page int) (*fetchedPage, error) {
	got, err := r.vendor.GetBatch(ctx, r.job.VendorID(), geonode.Page{Number: page, Size: geonode.MaxResultPage})
	if err != nil {
		return nil, err
	}
	if !got.Status.Terminal() {
		return nil, errNotEnded
	}
	carried, err := r.store.Carried(ctx, r.job.ID)
	if err != nil {
		return nil, err
	}
	out := &fetchedPage{
		reply: got.Reply,
		last:  lastOfBatch(got, carried, page, geonode.MaxResultPage),
	}
	number := numberItems(carried, r.invalidURLs(got.InvalidURLs.List))
	for i := range got.Results {
		row := &got.Results[i]
		if item := number.find(row); item != nil && row.Problem == "" {
			out.add(r, item, row.Status, row.Data, row.Metadata)
		}
	}
	return out, nil
}

func (r *refetching) fetchCrawl(ctx context.Context, page int) (*fetchedPage, error) {
	got, err := r.vendor.GetCrawl(ctx, r.job.VendorID(), geonode.Page{Number: page, Size: geonode.MaxResultPage})
	if err != nil {
		return nil, err
	}
	if !got.Status.Terminal() {
		return nil, errNotEnded
	}
	out := &fetchedPage{reply: got.Reply, last: lastOfCrawl(got, page, geonode.MaxResultPage)}
	urls := make([]string, len(got.Results))
	for i := range got.Results {
		urls[i] = got.Results[i].URL
	}
	items, err := r.store.CrawlPageItems(ctx, r.job.ID, urls)
	if err != nil {
		return nil, err
	}
	for i := range got.Results {
		row := &got.Results[i]
		id, known := items[row.URL]
		if !known || row.Problem != "" {
			continue
		}
		if row.Data != nil && len(row.Data.Links) == 0 {
			row.Data.Links = row.Links
		}
		out.add(r, &store.CarriedItem{ItemID: id}, row.Status, row.Data, row.Metadata)
	}
	return out, nil
}

// add takes the content of a completed row, each item's once.
func (f *fetchedPage) add(r *refetching, item *store.CarriedItem, status geonode.Status, data *geonode.Content, meta geonode.Metadata) {
	if status != geonode.StatusCompleted || data.Empty() {
		return
	}
	for _, each := range f.results {
		if each.ItemID == item.ItemID {
			return
		}
	}
	f.results = append(f.results, r.result(item, data, meta, geonode.Count{}))
}

// ReplaceResult puts what a replay fetched in place of what is stored and keeps
// the earlier version. It reports false when the result is not the one that was
// compared any more, or was replaced by this difference before.
func (p *Pipeline) ReplaceResult(ctx context.Context, replayID, itemID int64) (bool, error) {
	now, done := p.now(), false
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		var version int
		var err error
		if version, done, err = tx.ReplaceResult(ctx, replayID, itemID, store.ActorOf(ctx).Name, now); err != nil || !done {
			return err
		}
		return tx.Audit(ctx, now, replaceChange(replayID, itemID, version))
	})
	if err != nil {
		return false, ofTask(err, "replace the result of item", itemID)
	}
	return done, nil
}
