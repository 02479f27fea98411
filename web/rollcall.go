package web

import (
	"context"
	"strconv"
	"time"

	"rollcall/store"
	"rollcall/views"
)

// rollCall is a batch's counters as the pages show them. A crawl that isn't at
// its end still grows.
func rollCall(b *store.Batch) views.RollCall {
	r := answers(b)
	r.Submitted, r.Invalid, r.Duplicate = views.Known(b.Submitted), views.Known(b.Invalid), views.Known(b.Duplicate)
	r.SoFar = b.Kind == store.KindCrawl && b.EndedAt == nil
	return r
}

// answers leaves out the lines that became no item.
func answers(b *store.Batch) views.RollCall {
	return views.RollCall{
		Accepted: views.Known(b.Accepted), Stored: views.Known(b.Stored()), Failed: views.Known(b.Failed),
		Cancelled: views.Known(b.Cancelled), Outstanding: views.Known(b.Outstanding),
		Nets: views.Nets{
			Webhook: views.Known(b.StoredWebhook), Poll: views.Known(b.StoredPoll),
			Reconcile: views.Known(b.StoredReconcile), Replay: views.Known(b.StoredReplay), Sync: views.Known(b.StoredSync),
		},
	}
}

// add sums counters; the rest of a batch is left alone.
func add(to, b *store.Batch) {
	to.Submitted += b.Submitted
	to.Invalid += b.Invalid
	to.Duplicate += b.Duplicate
	to.Accepted += b.Accepted
	to.StoredWebhook += b.StoredWebhook
	to.StoredPoll += b.StoredPoll
	to.StoredReconcile += b.StoredReconcile
	to.StoredReplay += b.StoredReplay
	to.StoredSync += b.StoredSync
	to.Failed += b.Failed
	to.Cancelled += b.Cancelled
	to.Outstanding += b.Outstanding
}

func idText(id int64) string { return strconv.FormatInt(id, 10) }

// idOrNone is "" for an id that isn't there.
func idOrNone(id *int64) string {
	if id == nil {
		return ""
	}
	return idText(*id)
}

// orZero is the zero value for what isn't there.
func orZero[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// latest is when an item had its answer, or else when it was made.
func latest(made time.Time, ended *time.Time) time.Time {
	if ended != nil {
		return *ended
	}
	return made
}

// someone names who did a thing; nobody is named when a command did it.
func someone(ctx context.Context, name string) string {
	if name == "" {
		return views.Textf(ctx, "the command line")
	}
	return name
}
