package pipeline

import (
	"time"

	"rollcall/internal/geonode"
)

// rowOrder watches in what order rows come. Nothing published says it.
type rowOrder struct {
	least, most time.Time
	fell, rose  bool
	page        map[attemptKey]bool // The rows of the page before: pages shift while rows are added.
}

// see looks at the next page.
func (o *rowOrder) see(items []geonode.WebhookDelivery) {
	page := make(map[attemptKey]bool, len(items))
	for i := range items {
		key := attemptKey{items[i].ID, int(items[i].Attempt.N)}
		page[key] = true
		at := items[i].CreatedAt.Time
		if o.page[key] || !usable(at) {
			continue
		}
		if o.most.IsZero() {
			o.least, o.most = at, at
			continue
		}
		o.rose = o.rose || at.Sub(o.least) > timeGrain
		o.fell = o.fell || o.most.Sub(at) > timeGrain
		o.least, o.most = earlier(o.least, at), later(o.most, at)
	}
	o.page = page
}

// newestFirst reports that the rows came so: they went back in time, and never
// forward. Rows of one moment show nothing.
func (o *rowOrder) newestFirst() bool { return o.fell && !o.rose }

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
