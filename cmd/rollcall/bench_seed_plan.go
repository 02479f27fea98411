package main

import (
	"fmt"
	"time"

	"rollcall/store"
)

// seedDays is the time that the work of a million items spans, up to now.
const seedDays = 90

// seedState is what became of one item.
type seedState byte

const (
	seedOutstanding seedState = iota
	seedStored
	seedFailed
	seedCancelled
)

func (s seedState) name() store.ItemState {
	return [...]store.ItemState{store.ItemOutstanding, store.ItemStored, store.ItemFailed, store.ItemCancelled}[s]
}

// seedBatch is a batch with where its items and jobs begin.
type seedBatch struct {
	id       int
	kind     store.Kind
	size     int
	items    int // Those of the batches before it: its first item has the next id.
	jobs     int // The same of jobs.
	perJob   int
	created  time.Time
	open     bool // It has outstanding items.
	counts   [4]int
	byNet    map[store.Net]int
	rejected int
}

// jobCount is how many jobs carry the batch.
func (b *seedBatch) jobCount() int { return (b.size + b.perJob - 1) / b.perJob }

// ended is when the item at a place of the batch, counted from 0, came to its end.
func (b *seedBatch) ended(at int) time.Time {
	return b.created.Add(time.Minute + time.Duration(float64(time.Hour)*float64(at)/float64(b.size)))
}

// jobEnded is when a job of the batch, counted from 0, was settled.
func (b *seedBatch) jobEnded(job int) time.Time {
	return b.ended(min(b.size, (job+1)*b.perJob) - 1).Add(time.Second)
}

// seedNet is by what net an item or a job with that id comes home: mostly by webhook.
func seedNet(id int) store.Net {
	switch id % 50 {
	case 7, 23:
		return store.NetPoll
	case 31:
		return store.NetReconcile
	case 49:
		return store.NetReplay
	}
	return store.NetWebhook
}

// seedShape is batch after batch as a desk has them: each night a large one, and many small ones by day.
func seedShape(n int) (store.Kind, int, int) {
	switch {
	case n%20 == 0 && n%40 == 0:
		return store.KindBatch, 20_000, 1000
	case n%20 == 0:
		return store.KindExtract, 20_000, 1
	case n%20 == 10:
		return store.KindBatch, 4_000, 500
	case n%20 == 13:
		return store.KindCrawl, 800, 800
	case n%3 == 0:
		return store.KindBatch, 100, 50
	}
	return store.KindExtract, 20, 1
}

// plan decides which batches there are and what becomes of each item.
func (d *seeder) plan() {
	d.states = make([]seedState, d.Items)
	largest := max(20, d.Items/20)
	span := time.Duration(d.share(seedDays)) * 24 * time.Hour
	items, jobs, stored := 0, 0, 0
	for n := 0; items < d.Items; n++ {
		kind, size, perJob := seedShape(n)
		size = min(size, largest, d.Items-items)
		b := seedBatch{id: n + 1, kind: kind, size: size, items: items, jobs: jobs, perJob: min(perJob, max(1, size)), byNet: map[store.Net]int{}}
		b.created = d.began.Add(-span + time.Duration(float64(span-3*time.Hour)*float64(items)/float64(d.Items)))
		b.open = d.Items-items-size <= d.Items/50
		if kind != store.KindExtract {
			b.rejected = size / 50
		}
		// Whole batches are stored or cancelled, so that results lie together as they do.
		keep := float64(stored) <= float64(d.Results)*float64(items)/float64(d.Items)
		for at := range size {
			state := d.fate(&b, at, keep, stored)
			d.states[items+at] = state
			b.counts[state]++
			if state == seedStored {
				stored++
				b.byNet[seedNet(items+at+1)]++
			}
		}
		d.batches = append(d.batches, b)
		items, jobs = items+size, jobs+b.jobCount()
	}
}

// fate is what becomes of one item, such that in the end exactly as many are stored as were asked for.
func (d *seeder) fate(b *seedBatch, at int, keep bool, stored int) seedState {
	left := d.Items - b.items - at
	switch chance := (b.items + at) * 37 % 100; {
	case d.Results-stored >= left:
		return seedStored
	case stored == d.Results && keep:
		return seedCancelled
	case b.open && chance >= 70:
		return seedOutstanding
	case chance < 4:
		return seedFailed
	case keep && chance < 95:
		return seedStored
	}
	return seedCancelled
}

// seedURL is the address of the item with that id. The same pages are fetched again and again, a hundred batches apart.
func (d *seeder) url(item int) string {
	page := item % (d.Items/4 + 1)
	return fmt.Sprintf("https://www.host%d.example/pages/%d", page%200, page)
}

// everyItem makes a row of each item of each batch; nil makes none.
func (d *seeder) everyItem(row func(b *seedBatch, at, item int, state seedState) []any) func() ([]any, bool) {
	at := 0
	return rowsOf(d.Items, func(i int) []any {
		for i >= d.batches[at].items+d.batches[at].size {
			at++
		}
		b := &d.batches[at]
		return row(b, i-b.items, i+1, d.states[i])
	})
}

// everyJob makes a row of each job of each batch; nil makes none.
func (d *seeder) everyJob(row func(b *seedBatch, at, job int) []any) func() ([]any, bool) {
	at := 0
	return rowsOf(d.jobTotal(), func(i int) []any {
		for i >= d.batches[at].jobs+d.batches[at].jobCount() {
			at++
		}
		b := &d.batches[at]
		return row(b, i-b.jobs, i+1)
	})
}

func (d *seeder) jobTotal() int {
	last := &d.batches[len(d.batches)-1]
	return last.jobs + last.jobCount()
}

// isOpen reports a job, counted from 0, with an outstanding item.
func (d *seeder) isOpen(b *seedBatch, job int) bool {
	for at := job * b.perJob; at < min(b.size, (job+1)*b.perJob); at++ {
		if d.states[b.items+at] == seedOutstanding {
			return true
		}
	}
	return false
}
