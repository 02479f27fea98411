package web

import (
	"context"
	"slices"
	"time"

	"rollcall/store"
	"rollcall/views"
)

// What a hop may take before its page says that it takes too long. A test is
// followed for so long at most; its page shows later what came of it. How the
// vendor spaces its retries is written nowhere, so its delivery is waited for
// ten times as long as it should take.
const (
	acceptLate = 30 * time.Second
	endLate    = 3 * time.Minute
	arriveLate = 30 * time.Second // After the job's end is known here.
	retryFor   = 5 * time.Minute  // After the job's end is known here.
	settleLate = 30 * time.Second // After the delivery.
	followFor  = 15 * time.Minute
)

// The states of a hop, as the page knows them.
const (
	hopDone    = "done"
	hopWaiting = "waiting"
	hopLate    = "late"
	hopFailed  = "failed"
	hopAhead   = "ahead"
	hopNone    = "none" // It isn't part of this job's way.
)

// trail is what is known of a job that was submitted to try a webhook.
type trail struct {
	hook    *store.Webhook
	job     *store.TestJob
	came    []store.TestDelivery // For the job, oldest first.
	refused []store.TestDelivery // By the webhook, since the submission, newest first.
	now     time.Time
	address string
}

// hops are the steps in their order.
func (t *trail) hops(ctx context.Context) []views.Hop {
	return []views.Hop{t.submitted(ctx), t.accepted(ctx), t.received(ctx), t.verified(ctx), t.stored(ctx), t.settled(ctx)}
}

// ended reports that nothing more is to be expected.
func (t *trail) ended(ctx context.Context) bool {
	if t.now.Sub(t.job.CreatedAt) > followFor {
		return true
	}
	if t.mayStillCome() {
		return false
	}
	for _, hop := range t.hops(ctx) {
		switch hop.State {
		case hopWaiting, hopLate:
			return false
		}
	}
	return true
}

// mayStillCome reports that a delivery that can be verified is waited for,
// though the job has ended without: the first attempt may have been refused or
// lost, and the vendor tries again.
func (t *trail) mayStillCome() bool {
	if t.job.EndedAt == nil || t.noEvent() || t.job.AcceptedAt == nil {
		return false
	}
	if d, ok := t.first(); ok && verifiedHere(d) {
		return false
	}
	return t.now.Sub(*t.job.EndedAt) <= retryFor && t.now.Sub(t.job.CreatedAt) <= followFor
}

func verifiedHere(d store.TestDelivery) bool {
	return d.Verdict == store.VerdictAccepted || d.Verdict == store.VerdictDuplicate
}

func (t *trail) submitted(ctx context.Context) views.Hop {
	hop := views.Hop{Title: "Submitted", State: hopDone, At: t.job.CreatedAt, Path: "/batches/" + idText(t.job.BatchID)}
	if t.job.JobID > 0 {
		hop.Detail, hop.Path = views.Textf(ctx, "as job %s", idText(t.job.JobID)), "/jobs/"+idText(t.job.JobID)
	}
	return hop
}

func (t *trail) accepted(ctx context.Context) views.Hop {
	hop := views.Hop{Title: "Accepted by the vendor", State: hopWaiting}
	switch {
	case t.job.AcceptedAt != nil:
		hop.State, hop.At, hop.Detail = hopDone, *t.job.AcceptedAt, views.Textf(ctx, "the vendor calls it %s", t.job.VendorJobID)
	case t.job.ItemState == store.ItemFailed || t.job.ItemState == store.ItemCancelled:
		hop.State, hop.Detail = hopFailed, t.whyFailed()
		hop.Reasons = []string{"The vendor refused the job: what it said stands above.", "Somebody cancelled it."}
	case t.now.Sub(t.job.CreatedAt) > acceptLate:
		hop.State = hopLate
		hop.Reasons = []string{
			"Dispatch is paused, as the vendor refuses the key or the balance is used up: the overview says so.",
			"The vendor asks to slow down, or can't be reached.",
			"No process runs the workers: ROLLCALL_ROLE is web everywhere.",
		}
	}
	return hop
}

// whyFailed is what is known of a job that came to nothing.
func (t *trail) whyFailed() string {
	if t.job.ItemError != "" {
		return t.job.ItemError
	}
	return t.job.JobError
}

// first is the delivery that the job's end came by: rather one that was
// verified, and rather one to this webhook.
func (t *trail) first() (store.TestDelivery, bool) {
	for _, d := range t.came {
		if d.WebhookID == t.hook.ID && verifiedHere(d) {
			return d, true
		}
	}
	if at := slices.IndexFunc(t.came, verifiedHere); at >= 0 {
		return t.came[at], true
	}
	if len(t.came) > 0 {
		return t.came[0], true
	}
	for _, d := range slices.Backward(t.refused) {
		if d.NamesJob {
			return d, true
		}
	}
	return store.TestDelivery{}, false
}

func (t *trail) received(ctx context.Context) views.Hop {
	hop := views.Hop{Title: "Delivery received", State: hopWaiting}
	if d, ok := t.first(); ok {
		hop.State, hop.At, hop.Path = hopDone, d.ReceivedAt, "/deliveries/"+idText(d.ID)
		hop.Detail = views.Textf(ctx, "answered %d", d.Status)
		if d.WebhookID != t.hook.ID {
			hop.Detail = views.Textf(ctx, "answered %d, by webhook %d, which has the same event", d.Status, d.WebhookID)
		}
		return hop
	}
	switch {
	case t.job.AcceptedAt == nil:
		hop.State = hopAhead
	case t.noEvent():
		hop.State, hop.Detail = hopNone, t.whyNone(ctx)
	case t.job.EndedAt != nil && t.now.Sub(*t.job.EndedAt) > arriveLate:
		hop.State, hop.Detail = hopFailed, views.Textf(ctx, "nothing has come since the job ended, and it is waited for no longer")
		if t.mayStillCome() {
			hop.State, hop.Detail = hopLate, views.Textf(ctx, "nothing has come since the job ended")
		}
		hop.Reasons = t.whyNothingCame(ctx)
	case t.job.EndedAt == nil && t.now.Sub(*t.job.AcceptedAt) > endLate:
		hop.State, hop.Detail = hopLate, views.Textf(ctx, "the vendor has not ended the job, as far as is known here")
		hop.Reasons = t.whyNothingCame(ctx)
	}
	return hop
}

// whyNone says how a job ended of which the vendor tells nobody.
func (t *trail) whyNone(ctx context.Context) string {
	if t.job.VendorStatus == "cancelled" {
		return views.Textf(ctx, "the vendor sends none for a job that was cancelled")
	}
	return views.Textf(ctx, "the vendor sends none for a job that failed")
}

// pageEnd is how the job came to an end of which no webhook tells, or told though
// the page failed, and why; empty otherwise.
func (t *trail) pageEnd() views.SentEnd {
	d, came := t.first()
	switch {
	case came && verifiedHere(d) && t.job.ItemState == store.ItemFailed:
		return views.SentEnd{How: "delivered", Why: t.whyFailed()}
	case came || !t.noEvent():
		return views.SentEnd{}
	}
	return views.SentEnd{How: t.job.VendorStatus, Why: t.whyFailed()}
}

// noEvent reports an end of which the vendor tells nobody.
func (t *trail) noEvent() bool {
	return t.job.EndedAt != nil && (t.job.VendorStatus == "failed" || t.job.VendorStatus == "cancelled")
}

func (t *trail) whyNothingCame(ctx context.Context) []string {
	var reasons []string
	if t.hook.State != store.WebhookLive && t.hook.State != store.WebhookRotating {
		reasons = append(reasons, views.Textf(ctx, "The webhook is %s by now.", hookWord(ctx, t.hook.State)))
	}
	if n := len(t.refused); n > 0 {
		reasons = append(reasons, views.Textf(ctx, "It may be among the requests that this endpoint refused meanwhile: the last was answered %d (%s).",
			t.refused[0].Status, t.refused[0].Reason))
	}
	return append(reasons,
		views.Textf(ctx, "The vendor can't reach %s...: name, firewall, certificate, or a private address.", t.address),
		"A proxy before this server answers by itself, or lets only people who are signed in through.",
		"The vendor is late with its deliveries: its log, under Deliveries, says what it tried and what it was answered.")
}

func (t *trail) verified(ctx context.Context) views.Hop {
	hop := views.Hop{Title: "Verified", State: hopAhead}
	d, ok := t.first()
	if !ok {
		if t.noEvent() {
			hop.State, hop.Detail = hopNone, views.Textf(ctx, "there is nothing to verify")
		}
		return hop
	}
	if verifiedHere(d) {
		hop.State, hop.At, hop.Detail = hopDone, d.ReceivedAt, views.Textf(ctx, "by version %d of the secret", d.SecretVersion)
		if d.RecoveredAt != nil {
			hop.At, hop.Detail = *d.RecoveredAt, views.Textf(ctx, "by version %d of the secret, once it was known", d.SecretVersion)
		}
		return hop
	}
	hop.State, hop.At, hop.Path, hop.Detail = hopFailed, d.ReceivedAt, "/deliveries/"+idText(d.ID), d.Reason
	if d.Diagnosis != "" {
		hop.Detail += ": " + d.Diagnosis
	}
	switch {
	case t.mayStillCome():
		hop.Detail = views.Textf(ctx, "%s; a retry of it may still come", hop.Detail)
	case t.job.EndedAt != nil:
		hop.Detail = views.Textf(ctx, "%s; no good one followed while it was waited for", hop.Detail)
	}
	if d.Verdict == store.VerdictUnreadable {
		hop.Reasons = []string{"The vendor names the job or the event in another field than the settings ROLLCALL_FIELD_* say."}
		return hop
	}
	hop.Reasons = []string{
		"The vendor signs with another secret than the one stored here: rotate it.",
		"The vendor signs in another form than the one set for this webhook: go back to auto, or check a captured request under Check a signature.",
		"Something between the vendor and this server changes the body.",
	}
	return hop
}

func (t *trail) settled(ctx context.Context) views.Hop {
	hop := views.Hop{Title: "Settled", State: hopAhead}
	if t.job.EndedAt != nil {
		hop.At, hop.State = *t.job.EndedAt, hopDone
		hop.Detail = views.Textf(ctx, "by %s", netWord(ctx, t.job.SettleNet))
		switch {
		case t.job.JobState != store.JobSettled:
			hop.State, hop.Detail = hopFailed, t.whyFailed()
		case t.job.SettleNet != store.NetWebhook && !t.noEvent():
			hop.Detail = views.Textf(ctx, "by %s, which was there before the webhook", netWord(ctx, t.job.SettleNet))
		}
		return hop
	}
	d, ok := t.first()
	if !ok || t.job.AcceptedAt == nil {
		return hop
	}
	hop.State = hopWaiting
	if t.now.Sub(d.ReceivedAt) > settleLate {
		hop.State = hopLate
		hop.Reasons = []string{
			"The vendor asks to slow down, so the job's state can't be read yet.",
			"No process runs the workers, or they have much else to settle: the overview shows the queue.",
		}
	}
	return hop
}

func (t *trail) stored(ctx context.Context) views.Hop {
	hop := views.Hop{Title: "Stored", State: hopAhead, Path: "/items/" + idText(t.job.ItemID)}
	switch t.job.ItemState {
	case store.ItemStored:
		hop.State, hop.Detail = hopDone, views.Textf(ctx, "by %s", netWord(ctx, t.job.ItemNet))
	case store.ItemFailed, store.ItemCancelled:
		hop.State, hop.Detail = hopFailed, t.job.ItemError
	case store.ItemOutstanding:
		if t.job.EndedAt != nil {
			hop.State = hopWaiting
		}
		return hop
	}
	hop.At = orZero(t.job.ItemEndedAt)
	return hop
}
