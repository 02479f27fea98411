package pipeline

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"rollcall/store"
)

const (
	quarantineQueue = 256 // Refused deliveries that wait to be kept.
	quarantineTrim  = 64  // Rows written between two trims.
)

// quarantine keeps refused deliveries with a writer of its own, so that a
// flood of them can't slow the good ones. What does not fit is counted in the
// log, a line a second at most.
type quarantine struct {
	p       *Pipeline
	queue   chan *store.Delivery
	mu      sync.RWMutex
	ended   bool
	written map[int64]int
	dropped atomic.Int64 // Since the last line in the log.
	told    atomic.Int64 // Unix seconds of that line.
}

func newQuarantine(p *Pipeline) *quarantine {
	return &quarantine{p: p, queue: make(chan *store.Delivery, quarantineQueue), written: map[int64]int{}}
}

func (q *quarantine) start(loops *sync.WaitGroup) { loops.Go(q.run) }

func (q *quarantine) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.ended {
		q.ended = true
		close(q.queue)
	}
}

// add hands a refused delivery to the writer; when it is behind, the delivery
// is not kept.
func (q *quarantine) add(ctx context.Context, d *store.Delivery) {
	d.Micros = q.p.now().Sub(d.ReceivedAt).Microseconds()
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.ended {
		return
	}
	select {
	case q.queue <- d:
	default:
		q.drop(ctx, d.Source)
	}
}

// drop counts a delivery that is not kept and, once a second, says how many.
func (q *quarantine) drop(ctx context.Context, source string) {
	q.dropped.Add(1)
	last, now := q.told.Load(), q.p.now().Unix()
	if now == last || !q.told.CompareAndSwap(last, now) {
		return
	}
	q.p.log.WarnContext(ctx, "refused deliveries not kept: too many at once",
		slog.Int64("deliveries", q.dropped.Swap(0)), slog.String("last_source", source))
}

func (q *quarantine) run() {
	for d := range q.queue {
		q.write(d)
	}
}

func (q *quarantine) write(d *store.Delivery) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := q.p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := tx.InsertDelivery(ctx, d); err != nil || d.WebhookID == nil {
			return err
		}
		q.written[*d.WebhookID]++
		if q.written[*d.WebhookID]%quarantineTrim != 0 {
			return nil
		}
		_, err := tx.TrimQuarantine(ctx, *d.WebhookID, q.p.cfg.QuarantineRows)
		return err
	})
	if err != nil {
		q.p.log.ErrorContext(ctx, "refused delivery not kept", slog.Any("error", err))
	}
}
