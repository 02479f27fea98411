package pipeline

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rollcall/store"
)

// Bounds of the writer.
const (
	quarantineQueue = 4096     // Refused deliveries that wait to be kept,
	quarantineBytes = 64 << 20 // and their size in memory.
	quarantineGroup = 64       // Refused deliveries of one transaction,
	quarantineWrite = 4 << 20  // and the bytes of their bodies, about.
	quarantineTime  = 10 * time.Second
	// countFor is how long what was counted of a webhook's quarantine may let
	// deliveries go: others write there as well.
	countFor = time.Second
	// refusalExtra is what a refused delivery takes up beside body and headers.
	refusalExtra = 1 << 10
)

// refusal is a refused delivery on its way into the quarantine.
type refusal struct {
	d *store.Delivery
	// checked is the newest secret that it was refused with, or notSigned when
	// no secret can change the verdict.
	checked int
}

// notSigned marks a refusal that has nothing to do with secrets.
const notSigned = -1

// size is what the refusal takes up in memory.
func (r refusal) size() int64 { return int64(cap(r.d.Body)+len(r.d.Headers)) + refusalExtra }

// newest is the newest secret that deliveries are checked with; zero without
// one.
func (e *endpoint) newest() int {
	if len(e.versions) == 0 {
		return 0
	}
	return e.versions[0].version
}

// quarantine keeps refused deliveries with a writer of its own, so that a
// flood of them can't slow the good ones. What does not fit is counted.
type quarantine struct {
	p      *Pipeline
	queue  chan refusal
	mu     sync.RWMutex
	ended  bool
	bytes  atomic.Int64       // Of what waits.
	held   map[int64]*holding // By webhook; the writer's own.
	counts refusedCounts
	told   atomic.Int64 // Unix seconds of the last line in the log.
}

func newQuarantine(p *Pipeline) *quarantine {
	return &quarantine{
		p: p, queue: make(chan refusal, quarantineQueue), held: map[int64]*holding{},
		counts: refusedCounts{by: map[countKey]store.RefusedCount{}},
	}
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

// add hands a refused delivery to the writer; when more wait than may, the
// delivery is counted instead of kept.
func (q *quarantine) add(ctx context.Context, d *store.Delivery, checked int) {
	d.Micros = q.p.now().Sub(d.ReceivedAt).Microseconds()
	r := refusal{d: d, checked: checked}
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.ended {
		return
	}
	// One that is larger than all that may wait does so alone.
	if wait := q.bytes.Add(r.size()); wait > quarantineBytes && wait > r.size() {
		q.bytes.Add(-r.size())
		q.drop(ctx, d, store.CauseBusy)
		return
	}
	select {
	case q.queue <- r:
	default:
		q.bytes.Add(-r.size())
		q.drop(ctx, d, store.CauseBusy)
	}
}

// drop counts a delivery that is not kept and, once a second, says so.
func (q *quarantine) drop(ctx context.Context, d *store.Delivery, cause store.RefusedCause) {
	n := int64(1)
	if d.WebhookID != nil {
		n = q.counts.add(*d.WebhookID, d.ReceivedAt, d.Source, cause)
	}
	last, now := q.told.Load(), q.p.now().Unix()
	if now == last || !q.told.CompareAndSwap(last, now) {
		return
	}
	q.p.log.WarnContext(ctx, "refused deliveries counted instead of kept",
		slog.Int64("deliveries", n), slog.String("cause", string(cause)), slog.String("last_source", d.Source))
}

// run writes what comes until the queue is closed, and the counts once a
// second.
func (q *quarantine) run() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case first, ok := <-q.queue:
			if !ok {
				q.flush()
				return
			}
			q.write(q.gather(first))
		case <-tick.C:
			q.flush()
		}
	}
}

// gather takes what has queued, up to the bounds, without waiting for more.
func (q *quarantine) gather(first refusal) []refusal {
	group, size := []refusal{first}, first.size()
	for len(group) < quarantineGroup && size < quarantineWrite {
		select {
		case next, ok := <-q.queue:
			if !ok {
				return group
			}
			group = append(group, next)
			size += next.size()
		default:
			return group
		}
	}
	return group
}

// write keeps a group, each webhook's in a transaction of its own.
func (q *quarantine) write(group []refusal) {
	ctx, cancel := context.WithTimeout(context.Background(), quarantineTime)
	defer cancel()
	by := map[int64][]refusal{}
	size := int64(0)
	for _, r := range group {
		size += r.size()
		if r.d.WebhookID != nil {
			by[*r.d.WebhookID] = append(by[*r.d.WebhookID], r)
		}
	}
	for id, list := range by {
		if err := q.keep(ctx, id, list); err != nil {
			q.p.log.ErrorContext(ctx, "refused deliveries not kept",
				slog.Int64("webhook_id", id), slog.Int("deliveries", len(list)), slog.Any("error", err))
		}
	}
	q.bytes.Add(-size)
}

// keep writes those of a webhook's refused deliveries that there is room for.
func (q *quarantine) keep(ctx context.Context, webhookID int64, list []refusal) error {
	h, err := q.holding(ctx, webhookID, list)
	if err != nil {
		return err
	}
	kept := make([]*store.Delivery, 0, len(list))
	checked := notSigned
	for _, r := range list {
		if !h.admits(r.d) {
			q.drop(ctx, r.d, causeOf(r.d.Unsigned))
			continue
		}
		kept = append(kept, r.d)
		if r.checked != notSigned && (checked == notSigned || r.checked < checked) {
			checked = r.checked
		}
	}
	if len(kept) == 0 {
		return nil
	}
	ids, stale, err := q.insert(ctx, webhookID, kept, checked, h)
	if err != nil {
		delete(q.held, webhookID) // It counts what was not written.
		return err
	}
	if !stale {
		return nil
	}
	// A secret was stored between the refusal and the row: it may verify it.
	_, err = q.p.TakeUpAgain(ctx, ids)
	return err
}

func causeOf(unsigned bool) store.RefusedCause {
	if unsigned {
		return store.CauseUnsigned
	}
	return store.CauseFull
}

// insert writes deliveries and trims. It reports as well whether a newer secret
// is known than those that the deliveries were checked with. The webhook's row
// is shared last: until then others may note its use.
func (q *quarantine) insert(ctx context.Context, webhookID int64, kept []*store.Delivery, checked int, h *holding) ([]int64, bool, error) {
	var ids []int64
	var gone []store.Quarantined
	stale := false
	err := q.p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		var err error
		if ids, err = tx.InsertDeliveries(ctx, kept); err != nil {
			return err
		}
		if h.over() {
			if gone, err = q.trim(ctx, tx, webhookID); err != nil {
				return err
			}
		}
		newest, err := tx.ShareSecrets(ctx, webhookID, q.p.now())
		stale = checked != notSigned && newest > checked
		return err
	})
	if err != nil {
		return nil, false, err
	}
	q.gone(webhookID, gone)
	return ids, stale, nil
}

// holding is what is quarantined of a webhook, counted a moment ago at most,
// and since its secret began to be changed if that is why some were refused.
func (q *quarantine) holding(ctx context.Context, webhookID int64, list []refusal) (*holding, error) {
	changing := slices.ContainsFunc(list, func(r refusal) bool { return r.d.Status == http.StatusServiceUnavailable })
	h, ok := q.held[webhookID]
	if ok && q.p.now().Sub(h.countedAt) < countFor && (!changing || !h.since.IsZero()) {
		return h, nil
	}
	h, tooMuch, err := q.recount(ctx, q.p.store.Queries, webhookID)
	if err != nil || len(tooMuch) == 0 {
		return h, err
	}
	// Others write there as well, and a change of the secret that is over leaves
	// more than there is room for.
	err = q.p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error { return tx.DropQuarantined(ctx, idsOf(tooMuch)) })
	if err != nil {
		return nil, err
	}
	q.gone(webhookID, tooMuch)
	return h, nil
}

// gone counts rows that were deleted.
func (q *quarantine) gone(webhookID int64, rows []store.Quarantined) {
	for i := range rows {
		q.counts.add(webhookID, rows[i].ReceivedAt, rows[i].Source, causeOf(rows[i].Unsigned))
	}
}

func idsOf(rows []store.Quarantined) []int64 {
	ids := make([]int64, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	return ids
}

// recount counts a webhook's quarantine and returns what is too much of it.
func (q *quarantine) recount(ctx context.Context, db store.Queries, webhookID int64) (*holding, []store.Quarantined, error) {
	since, err := db.SecretChange(ctx, webhookID)
	if err != nil {
		return nil, nil, err
	}
	known, err := db.KnownSources(ctx, webhookID)
	if err != nil {
		return nil, nil, err
	}
	rows, err := db.Quarantine(ctx, webhookID)
	if err != nil {
		return nil, nil, err
	}
	if len(q.held) >= maxEndpoints {
		clear(q.held)
	}
	h := newHolding(int64(q.p.cfg.QuarantineRows), q.p.cfg.QuarantineBytes, since, known, q.p.now())
	tooMuch := h.overflow(rows)
	q.held[webhookID] = h
	return h, tooMuch, nil
}

// trim deletes what is too much, the rows that were just written among it.
func (q *quarantine) trim(ctx context.Context, tx store.Tx, webhookID int64) ([]store.Quarantined, error) {
	_, tooMuch, err := q.recount(ctx, tx.Queries, webhookID)
	if err != nil {
		return nil, err
	}
	return tooMuch, tx.DropQuarantined(ctx, idsOf(tooMuch))
}

// flush writes down what was counted instead of kept. What can't be written
// now is kept for the next time.
func (q *quarantine) flush() {
	ctx, cancel := context.WithTimeout(context.Background(), quarantineTime)
	defer cancel()
	var failed error
	for _, c := range q.counts.take() {
		if err := q.p.store.AddRefusedCount(ctx, c); err != nil {
			q.counts.put(c)
			failed = err
		}
	}
	if failed != nil {
		q.p.log.WarnContext(ctx, "counts of refused deliveries not written", slog.Any("error", failed))
	}
}

// countKey is a row of the counts.
type countKey struct {
	webhook int64
	day     time.Time
	cause   store.RefusedCause
}

// refusedCounts gathers counts until they are written down.
type refusedCounts struct {
	mu sync.Mutex
	by map[countKey]store.RefusedCount
}

// add counts a delivery and returns how many wait to be written down.
func (c *refusedCounts) add(webhookID int64, at time.Time, source string, cause store.RefusedCause) int64 {
	return c.put(store.RefusedCount{
		WebhookID: webhookID, Day: at.UTC().Truncate(24 * time.Hour), Cause: cause, Deliveries: 1, LastAt: at, LastSource: source,
	})
}

func (c *refusedCounts) put(one store.RefusedCount) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := countKey{webhook: one.WebhookID, day: one.Day, cause: one.Cause}
	one.Deliveries += c.by[key].Deliveries
	c.by[key] = one
	return one.Deliveries
}

// take empties the counts.
func (c *refusedCounts) take() []store.RefusedCount {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]store.RefusedCount, 0, len(c.by))
	for _, one := range c.by {
		out = append(out, one)
	}
	clear(c.by)
	return out
}
