package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"rollcall/store"
)

// Bounds of a run. There is one in diagnoseGap at most, over all replicas.
const (
	diagnoseRows    = 50   // Deliveries that a run looks at,
	diagnoseWaiting = 250  // and those that later runs will; the rest is let go.
	diagnoseListed  = 5000 // More than may be quarantined by default of two webhooks.
	diagnoseTime    = 4 * time.Second
)

// diagnoseArgs asks that refused deliveries be looked at for the reason.
// Running twice is harmless: the second finds the reason written down.
type diagnoseArgs struct{}

// Kind implements river.JobArgs.
func (diagnoseArgs) Kind() string { return "diagnose" }

type diagnoseWorker struct {
	river.WorkerDefaults[diagnoseArgs]
	p *Pipeline
}

// Work implements river.Worker.
func (w *diagnoseWorker) Work(ctx context.Context, _ *river.Job[diagnoseArgs]) error {
	if err := w.p.diagnoseRefused(ctx); err != nil {
		return fmt.Errorf("diagnose refused deliveries: %w", err)
	}
	return nil
}

// diagnose asks for a run, unless there was one a moment ago: that is what
// bounds the work of a minute.
func (q *queue) diagnose(ctx context.Context, gap time.Duration) error {
	_, err := q.client.Insert(ctx, diagnoseArgs{}, &river.InsertOpts{
		Queue: queueMaintenance, MaxAttempts: 1,
		UniqueOpts: river.UniqueOpts{ByPeriod: gap, ByState: append(unended(), rivertype.JobStateCompleted)},
	})
	return err
}

// sweepUndiagnosed has refused deliveries looked at. It is asked again for as
// long as there are any.
func (p *Pipeline) sweepUndiagnosed(ctx context.Context) error {
	waiting, err := p.store.AnyUndiagnosed(ctx)
	if err != nil || !waiting {
		return err
	}
	return p.queue.diagnose(ctx, max(time.Second, 20*p.cfg.PollTick))
}

// diagnoseRefused looks at the newest of each webhook and source first, and
// lets those go that a flood leaves no time for.
func (p *Pipeline) diagnoseRefused(ctx context.Context) error {
	list, err := p.store.Undiagnosed(ctx, diagnoseListed)
	if err != nil {
		return err
	}
	list = inTurns(list)
	end := p.now().Add(diagnoseTime)
	for i := range list[:min(len(list), diagnoseRows)] {
		if ctx.Err() != nil || p.now().After(end) {
			break
		}
		if _, err := p.diagnoseOne(ctx, list[i].ID); err != nil {
			return err
		}
	}
	if len(list) <= diagnoseRows+diagnoseWaiting {
		return nil
	}
	skipped := make([]int64, 0, len(list))
	for _, each := range list[diagnoseRows+diagnoseWaiting:] {
		skipped = append(skipped, each.ID)
	}
	n, err := p.store.Diagnose(ctx, skipped, notLookedAt().String(), p.now())
	p.log.WarnContext(ctx, "refused deliveries not looked at: too many at once", slog.Int64("deliveries", n))
	return err
}

// inTurns puts the newest of each webhook and source first, then the second of
// each, and so on: a flood from one doesn't keep another's waiting.
func inTurns(list []store.Undiagnosed) []store.Undiagnosed {
	type sender struct {
		webhook int64
		source  string
	}
	slices.SortFunc(list, func(a, b store.Undiagnosed) int { return cmp.Compare(b.ID, a.ID) })
	seen := map[sender]int{}
	turn := make(map[int64]int, len(list))
	for _, each := range list {
		s := sender{each.WebhookID, sourceOf(each.Source)}
		turn[each.ID] = seen[s]
		seen[s]++
	}
	slices.SortStableFunc(list, func(a, b store.Undiagnosed) int { return cmp.Compare(turn[a.ID], turn[b.ID]) })
	return list
}

// diagnoseOne looks at a refused delivery and writes the reason down.
func (p *Pipeline) diagnoseOne(ctx context.Context, id int64) (Diagnosis, error) {
	d, err := p.store.WholeDelivery(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return Diagnosis{}, nil // Pushed out of the quarantine meanwhile.
	}
	if err != nil {
		return Diagnosis{}, err
	}
	found, err := p.reasonOf(ctx, d)
	if err != nil {
		return Diagnosis{}, fmt.Errorf("delivery %d: %w", id, err)
	}
	_, err = p.store.Diagnose(ctx, []int64{id}, found.String(), p.now())
	return found, err
}

// Unread is why a delivery was refused before its body was read; false for any
// other. Nothing of a body is kept of it, so no later look can take it up.
func Unread(d *store.Delivery) (Diagnosis, bool) {
	if d.Verdict != store.VerdictRefused || d.BodySize > 0 || d.Status == http.StatusUnauthorized || d.Status == http.StatusServiceUnavailable {
		return Diagnosis{}, false
	}
	return diagnosed(DiagnosedUnread, "Refused before its signature was looked at: %s.", d.Reason), true
}

// reasonOf is why a delivery was refused.
func (p *Pipeline) reasonOf(ctx context.Context, d *store.Delivery) (Diagnosis, error) {
	if unread, ok := Unread(d); ok {
		return unread, nil
	}
	if d.SecretVersion != nil && d.Verdict == store.VerdictRefused {
		return diagnosed(DiagnosedTooOld, "Version %d of the secret made the signature, but %s.", *d.SecretVersion, d.Reason), nil
	}
	if why := notWhole(d); why != "" {
		return diagnosed(DiagnosedNotKept, "%s", why), nil
	}
	w, err := p.webhookOf(ctx, d)
	if err != nil {
		return Diagnosis{}, err
	}
	if w == nil {
		return diagnosed(DiagnosedNoSecret, "It came to no webhook of ours, so there is no secret to check it with."), nil
	}
	s, err := p.suspectOf(ctx, d, w)
	if err != nil {
		return Diagnosis{}, err
	}
	found := s.diagnose()
	if found.Code == DiagnosedNothing && d.SecretLost {
		found.Text = "It came while the vendor signed with a secret whose answer was lost, and that nobody ever saw: nothing can verify it. Its job is settled all the same."
	}
	return found, nil
}

// webhookOf is the webhook that a delivery came to; nil when there is none.
func (p *Pipeline) webhookOf(ctx context.Context, d *store.Delivery) (*store.Webhook, error) {
	if d.WebhookID == nil {
		return nil, nil
	}
	w, err := p.store.Webhook(ctx, *d.WebhookID)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return w, err
}

// notWhole says what is missing of a delivery that a signature would need; ""
// when all is there.
func notWhole(d *store.Delivery) string {
	var headers map[string][]string
	switch {
	case d.BodySize > int64(len(d.Body)):
		return fmt.Sprintf("Of the body %d of %d bytes are kept, so that no signature can be checked any more.", len(d.Body), d.BodySize)
	case json.Unmarshal(d.Headers, &headers) != nil || len(headers) == 0:
		return "The headers are not kept any more, and the signature with them."
	case headers["_"] != nil:
		return "The headers were too large to keep, and the signature was in them."
	}
	return ""
}
