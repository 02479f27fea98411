package web

import (
	"context"
	"strings"

	"rollcall/store"
	"rollcall/views"
)

// netWord is a net as a sentence has it: a job was settled by webhook.
func netWord(ctx context.Context, net store.Net) string {
	switch net {
	case store.NetWebhook:
		return views.Textf(ctx, "webhook")
	case store.NetPoll:
		return views.Textf(ctx, "poll")
	case store.NetReconcile:
		return views.Textf(ctx, "reconcile")
	case store.NetReplay:
		return views.Textf(ctx, "replay")
	case store.NetSync:
		return views.Textf(ctx, "sync")
	}
	return string(net)
}

// verdictTitle says what a delivery was found to be.
func verdictTitle(ctx context.Context, verdict store.Verdict) string {
	switch verdict {
	case store.VerdictAccepted:
		return views.Textf(ctx, "Delivery accepted")
	case store.VerdictDuplicate:
		return views.Textf(ctx, "Delivery duplicate")
	case store.VerdictRefused:
		return views.Textf(ctx, "Delivery refused")
	case store.VerdictUnreadable:
		return views.Textf(ctx, "Delivery unreadable")
	}
	return views.Textf(ctx, "Delivery %s", string(verdict))
}

// replayWord is the state of a replay as a sentence has it: replay 3 is done.
func replayWord(ctx context.Context, state store.ReplayState) string {
	switch state {
	case store.ReplayPlanned:
		return views.Textf(ctx, "planned")
	case store.ReplayRunning:
		return views.Textf(ctx, "running")
	case store.ReplayPaused:
		return views.Textf(ctx, "paused")
	case store.ReplayDone:
		return views.Textf(ctx, "done")
	case store.ReplayCancelled:
		return views.Textf(ctx, "cancelled")
	}
	return string(state)
}

// hookWord is the state of a webhook as a sentence has it: the webhook is
// paused by now.
func hookWord(ctx context.Context, state store.WebhookState) string {
	switch state {
	case store.WebhookRegistering:
		return views.Textf(ctx, "registering")
	case store.WebhookLive:
		return views.Textf(ctx, "active")
	case store.WebhookRotating:
		return views.Textf(ctx, "rotating")
	case store.WebhookSecretUnknown:
		return views.Textf(ctx, "without a secret that is known")
	case store.WebhookPaused:
		return views.Textf(ctx, "paused")
	case store.WebhookInactive:
		return views.Textf(ctx, "inactive")
	case store.WebhookMoved:
		return views.Textf(ctx, "moved")
	case store.WebhookGone:
		return views.Textf(ctx, "gone")
	case store.WebhookRemoved:
		return views.Textf(ctx, "removed")
	}
	return strings.ReplaceAll(string(state), "_", " ")
}
