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

const (
	// syncLost is how an item ends whose sync call brought no certain answer. The
	// vendor may have fetched the page and charged it; nobody asks again by itself.
	syncLost = "SYNC_LOST"
	// syncPatience is how long a person is kept waiting for an open gate.
	syncPatience = 30 * time.Second
	// syncSlack is what a sync task takes besides its call.
	syncSlack = 20 * time.Second
)

// TryNow makes a batch of one URL that is fetched in sync mode: a task asks the
// vendor and the item ends when the call does. Kind is set for the caller. It
// returns *InvalidSubmission, having written nothing, when a field is wrong.
func (p *Pipeline) TryNow(ctx context.Context, s Submission) (Submitted, error) {
	s.Kind = store.KindSync
	s = s.withDefaults()
	lines, err := check(ctx, s)
	if err != nil {
		return Submitted{}, err
	}
	b, err := p.newBatch(s, lines)
	if err != nil {
		return Submitted{}, err
	}
	err = p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := tx.InsertBatch(ctx, b); err != nil {
			return err
		}
		items := itemsOf(b, lines.urls, nil)
		if err := tx.InsertItems(ctx, items); err != nil {
			return err
		}
		lines.first = items[0].ID
		if err := tx.InsertSyncCall(ctx, lines.first, b.CreatedAt); err != nil {
			return err
		}
		if err := p.queue.sync(ctx, tx, []int64{lines.first}); err != nil {
			return err
		}
		return p.auditSubmit(ctx, tx, "batch.try", b)
	})
	if errors.Is(err, store.ErrTaken) && b.SubmitToken != nil {
		return p.submittedBefore(ctx, *b.SubmitToken)
	}
	if err != nil {
		return Submitted{}, fmt.Errorf("write the try: %w", err)
	}
	return submitted(b, lines), nil
}

// syncArgs asks that a sync call be made. Running twice is harmless: the call
// is claimed before it is made, and who finds the claim does not call.
type syncArgs struct {
	ItemID int64 `json:"item_id" river:"unique"`
}

// Kind implements river.JobArgs.
func (syncArgs) Kind() string { return "sync" }

type syncWorker struct {
	river.WorkerDefaults[syncArgs]
	p *Pipeline
}

// Timeout implements river.Worker: the vendor holds a sync call until the page
// is there.
func (w *syncWorker) Timeout(*river.Job[syncArgs]) time.Duration {
	return w.p.vendor.SyncTimeout() + maxWaitMS*time.Millisecond + syncSlack
}

// Work implements river.Worker.
func (w *syncWorker) Work(ctx context.Context, task *river.Job[syncArgs]) error {
	return ofTask(w.p.sync(ctx, task.Args.ItemID), "sync call of item", task.Args.ItemID)
}

// sync makes an item's one call, if nobody has.
func (p *Pipeline) sync(ctx context.Context, itemID int64) error {
	made, err := p.store.SyncCall(ctx, itemID)
	if errors.Is(err, store.ErrNotFound) || (err == nil && made.EndedAt != nil) {
		return nil
	}
	if err != nil {
		return err
	}
	c, err := p.prepareSync(ctx, itemID)
	if err != nil {
		return err
	}
	if made.CalledAt != nil {
		return p.syncHolderGone(ctx, c, made)
	}
	if held, err := p.syncHeld(ctx, c, made); held || err != nil {
		return err
	}
	now := p.now()
	request := c.extractRequest()
	lease := now.Add(p.vendor.SyncTimeout() + time.Duration(c.options.WaitTimeoutMS)*time.Millisecond + syncSlack)
	claimed, err := p.store.ClaimSync(ctx, itemID, now, lease)
	if err != nil || !claimed {
		return err
	}
	got, callErr := p.vendor.ExtractSync(ctx, request)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if callErr != nil {
		return p.syncDeclined(ctx, c, made, callErr)
	}
	return p.syncAnswered(ctx, c, got)
}

// prepareSync is the call of an item without a job.
func (p *Pipeline) prepareSync(ctx context.Context, itemID int64) (*call, error) {
	item, err := p.store.Item(ctx, itemID)
	if err != nil {
		return nil, err
	}
	c := &call{items: []store.SendItem{{ItemID: item.ID, URL: item.URL}}}
	if c.batch, err = p.store.Batch(ctx, item.BatchID); err != nil {
		return nil, err
	}
	c.options, c.headers, err = p.readOptions(c.batch)
	return c, err
}

// syncHolderGone is a rerun that finds the call made: it waits until the call
// must have ended, and then nobody will learn its answer.
func (p *Pipeline) syncHolderGone(ctx context.Context, c *call, made *store.SyncCall) error {
	if left := made.LeaseUntil.Sub(p.now()); left > 0 {
		return river.JobSnooze(left + time.Second)
	}
	return p.failSync(ctx, c, syncLost, "the process that asked has ended; the page may have been fetched and charged", true)
}

// syncHeld waits at the gate, for as long as a person would.
func (p *Pipeline) syncHeld(ctx context.Context, c *call, made *store.SyncCall) (bool, error) {
	wait, err := p.gates.wait(ctx, store.GateSubmit)
	if err != nil || wait == 0 {
		return false, err
	}
	if p.now().Add(wait).Sub(made.CreatedAt) > syncPatience {
		return true, p.failSync(ctx, c, "NOT_SENT", "the vendor takes no calls at present; nothing was asked and nothing charged", true)
	}
	return true, river.JobSnooze(wait)
}

// syncDeclined ends a call that brought no page.
func (p *Pipeline) syncDeclined(ctx context.Context, c *call, made *store.SyncCall, cause error) error {
	e, ok := errors.AsType[*geonode.Error](cause)
	switch {
	case errors.Is(cause, geonode.ErrTooLarge):
		return p.failSync(ctx, c, tooLargeCode, "the page is larger than Rollcall reads", false)
	case !ok || e.Status == http.StatusGatewayTimeout || geonode.CertaintyOf(cause) == geonode.Unknown:
		// A 504, even in the vendor's own words, says that waiting ended: the page may run on, and be charged.
		p.log.WarnContext(ctx, "sync answer lost", slog.Int64("item_id", c.items[0].ItemID), slog.Any("error", cause))
		return p.failSync(ctx, c, syncLost, "the vendor's answer was lost; the page may have been fetched and charged", true)
	}
	wait, account, err := p.gates.failed(ctx, store.GateSubmit, cause)
	if err != nil {
		return err
	}
	if account && p.now().Add(wait).Sub(made.CreatedAt) <= syncPatience {
		if err := p.store.ReleaseSync(ctx, c.items[0].ItemID); err != nil {
			return err
		}
		return river.JobSnooze(wait)
	}
	return p.failSync(ctx, c, vendorCode(e), vendorMessage(e), account || e.Retryable())
}

// syncAnswered stores the page through the same guarded move as a settled job's.
func (p *Pipeline) syncAnswered(ctx context.Context, c *call, got *geonode.ExtractResult) error {
	p.hearClock(ctx, got.Reply.Date)
	if got.Data.Empty() {
		return p.failSync(ctx, c, "NO_CONTENT", "the vendor answered without content", true)
	}
	now, charged := p.now(), got.TokensCharged
	if !charged.Known {
		charged = got.Metadata.TokensCharged
	}
	if charged.N > maxCharge {
		charged = geonode.Count{}
	}
	result := newResult(c.items[0].ItemID, c.items[0].URL, nil, store.NetSync, now, got.Data, got.Metadata, charged)
	err := p.inTx(ctx, func(ctx context.Context, tx store.Tx) error {
		counts, _, err := tx.StoreItems(ctx, 0, store.NetSync, []*store.Result{result}, now)
		if err != nil {
			return err
		}
		if err := tx.EndSync(ctx, c.items[0].ItemID, "answered", now); err != nil {
			return err
		}
		counts.Charged = charged.Or(1)
		if counts.Stored == 0 {
			counts.ChargedTwice = counts.Charged // A job that was asked meanwhile has stored it.
		}
		return tx.AddCounts(ctx, c.batch.ID, counts, now)
	})
	if err != nil {
		return fmt.Errorf("store the answer: %w", err)
	}
	return p.gates.passed(ctx, store.GateSubmit)
}

// failSync parks the item, unless another has answered it.
func (p *Pipeline) failSync(ctx context.Context, c *call, code, message string, retryable bool) error {
	now, id := p.now(), c.items[0].ItemID
	return p.inTx(ctx, func(ctx context.Context, tx store.Tx) error {
		failed, err := tx.FailItems(ctx, 0, []store.Ending{{ItemID: id, Code: code, Message: message, Retryable: retryable}}, now)
		if err != nil {
			return err
		}
		if err := tx.EndSync(ctx, id, code, now); err != nil {
			return err
		}
		return tx.AddCounts(ctx, c.batch.ID, store.Counts{Net: store.NetSync, Failed: int64(len(failed))}, now)
	})
}
