package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/riverqueue/river"

	"rollcall/store"
)

// TakenUp is what became of refused deliveries that were verified again.
type TakenUp struct {
	Recovered int // Verified now, and taken up like any other.
	Refused   int // Still signed by no secret that is good today.
	Already   int // Taken up before, or never refused.
	Cut       int // Not whole here, so that nothing can verify them.
}

func (t *TakenUp) add(o TakenUp) {
	t.Recovered += o.Recovered
	t.Refused += o.Refused
	t.Already += o.Already
	t.Cut += o.Cut
}

// Bounds of verifying again.
const (
	mostTakenUp = 1000             // Deliveries of one press.
	takeUpGroup = 50               // Deliveries of one transaction.
	takeUpTime  = 10 * time.Second // One stretch of a quarantine: a task's time must hold it.
)

// TakeUpAgain verifies refused deliveries again with the secrets that are good
// today, and takes up those that match like any other: event, wake and task in
// one transaction, committed before it returns. The answer that the vendor got
// then stays on record. Doing it twice is harmless. At most 1000 ids.
func (p *Pipeline) TakeUpAgain(ctx context.Context, deliveryIDs []int64) (TakenUp, error) {
	var out TakenUp
	if len(deliveryIDs) > mostTakenUp {
		return out, fmt.Errorf("%d deliveries are more than the %d that one press may be about", len(deliveryIDs), mostTakenUp)
	}
	known := map[int64]*endpoint{}
	for ids := range slices.Chunk(deliveryIDs, takeUpGroup) {
		rows, err := p.store.RefusedByID(ctx, ids)
		if err != nil {
			return out, fmt.Errorf("read refused deliveries: %w", err)
		}
		var asked []int64
		if store.ActorOf(ctx).Source != "" { // Else a rotation or a registration asked, which have their own line.
			asked = ids
		}
		got, err := p.takeUp(ctx, rows, known, asked)
		out.add(got)
		out.Already += len(ids) - len(rows)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// idsText is a few ids to be read by people.
func idsText(ids []int64) string {
	const shown = 10
	var out strings.Builder
	for i, id := range ids[:min(len(ids), shown)] {
		if i > 0 {
			out.WriteString(", ")
		}
		fmt.Fprint(&out, id)
	}
	if len(ids) > shown {
		fmt.Fprintf(&out, " and %d more", len(ids)-shown)
	}
	return out.String()
}

// lookedAt is what a stretch of a quarantine brought.
type lookedAt struct {
	TakenUp
	// next is the delivery after which there is more than one stretch takes;
	// zero at the end.
	next int64
}

// still is how many were looked at and stay refused.
func (l lookedAt) still() int { return l.Refused + l.Cut }

// takeUpQuarantine is TakeUpAgain for what is quarantined of a webhook, by id
// after the one given, for as long as one stretch may take.
func (p *Pipeline) takeUpQuarantine(ctx context.Context, webhookID, after int64) (lookedAt, error) {
	var out lookedAt
	end, known := p.now().Add(takeUpTime), map[int64]*endpoint{}
	for {
		rows, err := p.store.Refused(ctx, webhookID, after, takeUpGroup)
		if err != nil || len(rows) == 0 {
			return out, err
		}
		got, err := p.takeUp(ctx, rows, known, nil)
		out.add(got)
		if err != nil {
			return out, err
		}
		after = rows[len(rows)-1].ID
		if len(rows) == takeUpGroup && p.now().After(end) {
			out.next = after
			return out, nil
		}
	}
}

// takeUp verifies refused deliveries and takes up those that match, in one
// transaction.
func (p *Pipeline) takeUp(ctx context.Context, rows []store.Delivery, known map[int64]*endpoint, asked []int64) (TakenUp, error) {
	var out TakenUp
	var group []*store.Arrival
	var unreadable []*store.Delivery
	for i := range rows {
		d := &rows[i]
		e, err := p.endpointOf(ctx, d, known)
		if err != nil {
			return out, err
		}
		switch p.again(e, d) {
		case againCut:
			out.Cut++
		case againRefused:
			out.Refused++
		case againUnreadable:
			out.Refused++
			unreadable = append(unreadable, d)
		case againGood:
			group = append(group, &store.Arrival{Delivery: *d})
		}
	}
	recovered, err := p.recoverAll(ctx, group, unreadable, asked)
	out.Recovered += recovered
	out.Already += len(group) - recovered
	return out, err
}

// endpointOf is the delivery's webhook with its secrets, read once; nil when
// it came to none, or to one that is gone.
func (p *Pipeline) endpointOf(ctx context.Context, d *store.Delivery, known map[int64]*endpoint) (*endpoint, error) {
	if d.WebhookID == nil {
		return nil, nil
	}
	if e, ok := known[*d.WebhookID]; ok {
		return e, nil
	}
	w, err := p.store.Webhook(ctx, *d.WebhookID)
	if errors.Is(err, store.ErrNotFound) {
		known[*d.WebhookID] = nil
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read webhook %d: %w", *d.WebhookID, err)
	}
	e, err := p.secrets.open(ctx, w)
	if err != nil {
		return nil, err
	}
	known[*d.WebhookID] = e
	return e, nil
}

// The ends of looking at a refused delivery again.
type againEnd int

const (
	againRefused againEnd = iota
	againCut
	againUnreadable
	againGood
)

// again looks at a refused delivery as if it came now, and fills in what it
// finds.
func (p *Pipeline) again(e *endpoint, d *store.Delivery) againEnd {
	if e == nil {
		return againRefused
	}
	if d.BodySize > int64(len(d.Body)) {
		return againCut
	}
	in := Incoming{Header: keptHeader(d.Headers), Body: d.Body, Source: d.Source, ReceivedAt: d.ReceivedAt}
	version, f, ok := e.verify(p.signed(in), p.cfg.Signature, p.now())
	if !ok || p.stale(in) {
		return againRefused
	}
	d.SecretVersion, d.SignatureForm = &version, f.String()
	env, err := p.envelopeOf(in)
	d.EventType, d.VendorDeliveryID = clip(env.event, keptText), clip(env.deliveryID, keptText)
	if err != nil {
		d.Reason = err.Error()
		return againUnreadable
	}
	d.VendorJobID = env.jobID
	d.Body = d.Body[:min(len(d.Body), keptBody)] // Good: no more of it is kept than of any other.
	return againGood
}

// keptHeader reads headers as keepHeaders keeps them.
func keptHeader(kept []byte) http.Header {
	h := http.Header{}
	if json.Unmarshal(kept, &h) != nil {
		return http.Header{} // Removed with the body after the time they are kept for.
	}
	return h
}

// recoverAll commits deliveries that are good after all, with the wakes they
// cause, and what is signed but can't be read.
func (p *Pipeline) recoverAll(ctx context.Context, group []*store.Arrival, unreadable []*store.Delivery, asked []int64) (int, error) {
	if len(group)+len(unreadable)+len(asked) == 0 {
		return 0, nil
	}
	slices.SortStableFunc(group, func(a, b *store.Arrival) int { return strings.Compare(a.VendorJobID, b.VendorJobID) })
	recovered, now := 0, p.now()
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		for _, d := range unreadable {
			if _, err := tx.NoteUnreadable(ctx, d); err != nil {
				return err
			}
		}
		jobs, n, err := tx.Recover(ctx, group, now)
		if err != nil {
			return err
		}
		recovered = n
		woken, err := tx.WakeByWebhook(ctx, jobs, now)
		if err != nil {
			return err
		}
		if err := p.woken(ctx, tx, woken, store.NetWebhook, "a delivery from quarantine was verified"); err != nil {
			return err
		}
		if err := tx.CountRecovered(ctx, group); err != nil || len(asked) == 0 {
			return err
		}
		return tx.Audit(ctx, now, store.Change{
			What: "delivery.verify", Kind: "delivery", ID: idsText(asked), After: map[string]int{"looked_at": len(asked), "taken_up": n},
		})
	})
	if err != nil {
		return 0, fmt.Errorf("take up %d refused deliveries: %w", len(group), err)
	}
	p.claimArrived(ctx, group)
	return recovered, nil
}

// reverifyArgs asks that what is quarantined of a webhook be verified again,
// since a secret was stored. Running twice is harmless: a delivery is taken up
// once.
type reverifyArgs struct {
	WebhookID int64 `json:"webhook_id"`
	After     int64 `json:"after,omitempty"` // Where the task before left off.
}

// lookOn has a look through a quarantine gone on with where it was cut short.
func (p *Pipeline) lookOn(ctx context.Context, tx store.Tx, webhookID int64, l lookedAt) error {
	if l.next == 0 {
		return nil
	}
	return p.queue.reverifyAfter(ctx, tx, webhookID, l.next)
}

// Kind implements river.JobArgs.
func (reverifyArgs) Kind() string { return "reverify" }

type reverifyWorker struct {
	river.WorkerDefaults[reverifyArgs]
	p *Pipeline
}

// Work implements river.Worker.
func (w *reverifyWorker) Work(ctx context.Context, task *river.Job[reverifyArgs]) error {
	got, err := w.p.takeUpQuarantine(ctx, task.Args.WebhookID, task.Args.After)
	if got.Recovered > 0 {
		w.p.log.InfoContext(ctx, "deliveries taken up from quarantine",
			slog.Int64("webhook_id", task.Args.WebhookID), slog.Int("deliveries", got.Recovered))
	}
	if err == nil {
		err = w.p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error { return w.p.lookOn(ctx, tx, task.Args.WebhookID, got) })
	}
	return ofTask(err, "verify again what is quarantined of webhook", task.Args.WebhookID)
}
