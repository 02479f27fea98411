package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"rollcall/internal/geonode"
	"rollcall/store"
)

const (
	// wholeEvery is how often a webhook's delivery log is read to its end.
	wholeEvery = 24 * time.Hour
	// quietPages is how many pages in a row without a new or changed row end a
	// reading of a log whose newest rows come first.
	quietPages = 2
	// mirrorTime bounds one reading that somebody asked for.
	mirrorTime = 90 * time.Second
	// timeGrain is how exactly the vendor's times tell which row is newer: some
	// come in whole seconds.
	timeGrain = time.Second
	// lateMatches bounds the attempts that are looked for here once more.
	lateMatches = 2000
)

// Mirrored says what a reading of a webhook's delivery log brought.
type Mirrored struct {
	Pages, Added, Changed int
	// NewestFirst: the rows were seen to come newest first.
	NewestFirst bool
	// Whole: the reading began at the log's beginning and came to its end.
	Whole bool
	// Cut: more is left than one reading takes; the next goes on there.
	Cut bool
}

// MirrorLog copies what is new in the vendor's delivery log of a webhook: page
// by page, until two pages in a row bring nothing, if the newest rows were seen
// to come first, and else to its end. A full reading goes to the end in any
// case and begins anew; one is due once a day besides. A reading that is cut
// short, by its bounds, by an error or by the end of the process, is taken up
// by the next. Two at once read twice and write the same.
func (p *Pipeline) MirrorLog(ctx context.Context, w *store.Webhook, full bool) (Mirrored, error) {
	if w.VendorWebhookID == nil {
		return Mirrored{}, fmt.Errorf("read the delivery log of webhook %d: %w", w.ID, ErrNotRegistered)
	}
	state, err := p.store.LogReadOf(ctx, w.ID)
	if err != nil {
		return Mirrored{}, fmt.Errorf("read the delivery log of webhook %d: %w", w.ID, err)
	}
	m := &mirroring{p: p, w: w, state: state, left: p.cfg.MirrorPages}
	err = m.read(ctx, full)
	if m.got.Pages > 0 && errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		m.got.Cut, err = true, nil // Its time was up, and it came further.
	}
	m.close(ctx, err)
	if err != nil {
		return m.got, fmt.Errorf("read the delivery log of webhook %d: %w", w.ID, err)
	}
	return m.got, nil
}

// ErrNotRegistered reports a webhook that the vendor has no id for.
var ErrNotRegistered = errors.New("this webhook is not registered at the vendor")

// mirroring is one reading.
type mirroring struct {
	p     *Pipeline
	w     *store.Webhook
	state *store.LogRead
	got   Mirrored
	left  int // Pages.
}

// read decides what is to be read. A reading that was cut short goes on where
// it was, after the rows that have come since, and to the end: those have moved
// what it had not read behind pages that bring nothing new.
func (m *mirroring) read(ctx context.Context, full bool) error {
	now := m.p.now()
	due := m.state.WholeAt == nil || now.Sub(*m.state.WholeAt) >= wholeEvery
	if full || m.state.NextPage <= 1 {
		m.state.NextPage, m.state.Whole, m.state.StartedAt = 1, full || due, &now
		m.state.Pages, m.state.Added, m.state.Changed = 0, 0, 0
		return m.stretch(ctx, m.state.Whole)
	}
	next := m.state.NextPage
	goOn, err := m.head(ctx)
	if err != nil || !goOn {
		return err
	}
	m.state.NextPage, m.state.Whole = next, true
	return m.stretch(ctx, true)
}

// stretch reads from the state's next page on, and notes with each page where
// the one after it is.
func (m *mirroring) stretch(ctx context.Context, whole bool) error {
	var order rowOrder
	for quiet := 0; m.left > 0; {
		page := m.state.NextPage
		step, err := m.page(ctx, page, &order, func(s *store.LogRead, _ int) { s.NextPage, s.Whole = page+1, whole })
		if err != nil {
			return err
		}
		m.got.NewestFirst = order.newestFirst()
		if step.last || step.old && order.newestFirst() {
			m.ended(true)
			return nil
		}
		if quiet++; step.news > 0 {
			quiet = 0
		}
		if !whole && quiet >= quietPages && order.newestFirst() {
			m.ended(false)
			return nil
		}
	}
	m.got.Cut = true
	return nil
}

// head reads the rows that came since a reading was cut short, and reports
// whether that one is to go on. A head that is cut short itself leaves a gap:
// the next reading then reads all from there.
func (m *mirroring) head(ctx context.Context) (bool, error) {
	var order rowOrder
	quiet := 0
	for page := 1; m.left > 0; page++ {
		step, err := m.page(ctx, page, &order, func(s *store.LogRead, news int) {
			if news > 0 {
				s.NextPage, s.Whole = page+1, true
			}
		})
		if err != nil {
			return false, err
		}
		if step.last {
			m.got.NewestFirst = order.newestFirst()
			m.ended(true)
			return false, nil
		}
		if quiet++; step.news > 0 {
			quiet = 0
		}
		if quiet >= quietPages || order.rose {
			return true, nil
		}
	}
	m.got.Cut = true
	return false, nil
}

// pageStep says what a page was.
type pageStep struct {
	news int
	last bool // There is none after it.
	old  bool // Every row of it is too old to be kept.
}

// page reads one page and writes what it brought in one short transaction,
// with what note makes of the state and of how many rows were news.
func (m *mirroring) page(ctx context.Context, page int, order *rowOrder, note func(*store.LogRead, int)) (pageStep, error) {
	m.left--
	began := m.p.now()
	list, err := m.fetch(ctx, page)
	if err != nil {
		return pageStep{}, fmt.Errorf("page %d: %w", page, err)
	}
	order.see(list.Items)
	rows := m.rows(list.Items, began)
	added, changed, state := 0, 0, *m.state
	err = m.p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		state = *m.state
		var err error
		if added, changed, err = tx.MirrorLog(ctx, rows); err != nil {
			return err
		}
		state.Pages, state.Added, state.Changed = state.Pages+1, state.Added+added, state.Changed+changed
		note(&state, added+changed)
		return tx.SaveLogRead(ctx, &state)
	})
	if err != nil {
		return pageStep{}, fmt.Errorf("page %d: %w", page, err)
	}
	*m.state = state
	m.got.Pages, m.got.Added, m.got.Changed = m.got.Pages+1, m.got.Added+added, m.got.Changed+changed
	return pageStep{
		news: added + changed, last: lastPage(list.ListPage, page, len(list.Items)), old: len(list.Items) > 0 && len(rows) == 0,
	}, nil
}

func (m *mirroring) fetch(ctx context.Context, page int) (*geonode.DeliveryList, error) {
	var got *geonode.DeliveryList
	err := m.p.persist(ctx, func(ctx context.Context) (geonode.Reply, error) {
		var err error
		if got, err = m.p.vendor.ListDeliveries(ctx, *m.w.VendorWebhookID, geonode.DeliveryParams{Page: page}); err != nil {
			return geonode.Reply{}, err
		}
		return got.Reply, nil
	})
	return got, err
}

// rows are those of a page that are to be kept, each attempt once: a page may
// show one twice. Older ones than the log is kept for would come and go.
func (m *mirroring) rows(items []geonode.WebhookDelivery, began time.Time) []store.LogRow {
	oldest := time.Time{}
	if keep := m.p.cfg.KeepLog; keep > 0 {
		oldest = m.p.clock.vendorTime(began.Add(-keep))
	}
	rows := make([]store.LogRow, 0, len(items))
	seen := make(map[attemptKey]bool, len(items))
	for i := range items {
		row := logRow(&items[i], m.w.ID, began)
		if key := (attemptKey{row.VendorID, row.Attempt}); !seen[key] && !row.CreatedAt.Before(oldest) {
			seen[key] = true
			rows = append(rows, row)
		}
	}
	return rows
}

// attemptKey is one attempt of a webhook's log.
type attemptKey struct {
	id      string
	attempt int
}

// logRow is a row as it is kept. What the vendor leaves out or writes in a form
// of its own is no reason to leave the row out.
func logRow(d *geonode.WebhookDelivery, webhook int64, seen time.Time) store.LogRow {
	row := store.LogRow{
		WebhookID: webhook, VendorID: d.ID, EventType: clip(string(d.EventType), keptText), VendorJobID: clip(d.JobID, keptText),
		Status: clip(string(d.Status), keptText), CreatedAt: seen, SeenAt: seen,
	}
	if d.Attempt.Known && d.Attempt.N <= math.MaxInt32 {
		row.Attempt = int(d.Attempt.N)
	}
	if d.HTTPStatus.Known && d.HTTPStatus.N > 0 && d.HTTPStatus.N <= 999 {
		row.HTTPStatus = new(int(d.HTTPStatus.N))
	}
	if usable(d.CreatedAt.Time) {
		row.CreatedAt = d.CreatedAt.Time
	}
	if usable(d.DeliveredAt.Time) {
		row.DeliveredAt = &d.DeliveredAt.Time
	}
	return row
}

// usable reports a time that the database and the pages can hold.
func usable(t time.Time) bool { return !t.IsZero() && t.Year() >= 1 && t.Year() <= 9999 }

// ended notes that a reading came to its end.
func (m *mirroring) ended(whole bool) {
	now := m.p.now()
	m.got.Whole = whole
	m.state.NextPage, m.state.Whole, m.state.ReadAt = 0, false, &now
	if whole {
		m.state.WholeAt = &now
	}
}

// close writes down how the reading went, even when its time is up, and looks
// once more for what was refused here.
func (m *mirroring) close(ctx context.Context, err error) {
	m.state.NewestFirst, m.state.Note = m.got.NewestFirst, ""
	if err != nil {
		m.state.Note = clip(store.CleanText(err.Error()), 500)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	since := m.p.clock.vendorTime(m.p.now().Add(-m.p.cfg.ReconcileWindow))
	for _, failed := range []error{m.p.store.SaveLogRead(ctx, m.state), m.p.store.MatchLog(ctx, m.w.ID, since, lateMatches)} {
		if failed != nil {
			m.p.log.WarnContext(ctx, "reading of the delivery log not written down", slog.Int64("webhook_id", m.w.ID), slog.Any("error", failed))
		}
	}
}
