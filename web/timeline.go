package web

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"rollcall/store"
	"rollcall/views"
)

// timeline merges what was written down of a job with its call, what was
// delivered, and what it stored; oldest first.
func timeline(ctx context.Context, story *store.JobStory) []views.TimelineEvent {
	events := make([]views.TimelineEvent, 0, len(story.Events)+len(story.Deliveries)+4)
	for i := range story.Events {
		e := &story.Events[i]
		kind, title := eventWords(e.Kind)
		events = append(events, views.TimelineEvent{At: e.At, Kind: kind, Net: string(e.Net), Title: title, Detail: separated(e.Detail)})
	}
	if called := story.CalledAt; called != nil {
		events = append(events, views.TimelineEvent{
			At: *called, Kind: "called", Title: "Vendor called", Detail: views.Textf(ctx, "call %d", story.CallNo),
		})
	}
	for i := range story.Deliveries {
		d := &story.Deliveries[i]
		events = append(events, views.TimelineEvent{
			At: d.ReceivedAt, Kind: "delivery", Net: string(store.NetWebhook), Title: verdictTitle(ctx, d.Verdict),
			Detail: views.Textf(ctx, "%s, answered %d", d.EventType, d.Status), Path: "/deliveries/" + idText(d.ID),
		})
	}
	for _, share := range story.Stored {
		events = append(events, views.TimelineEvent{
			At: share.At, Kind: "stored", Net: string(share.Net), Title: "Stored",
			Detail: views.Counted(ctx, views.Known(share.Items), "%s result", "%s results"),
		})
	}
	slices.SortStableFunc(events, byTime)
	return events
}

// longCounts are the counts of a detail that pages write with separators.
var longCounts = regexp.MustCompile(`\b\d{4,18} (URLs|pages|jobs|stored|failed|cancelled|to retry|superseded)\b`) //nolint:gochecknoglobals // A constant.

// separated is a detail with its counts as all others on the pages are.
func separated(detail string) string {
	return longCounts.ReplaceAllStringFunc(detail, func(found string) string {
		digits, what, _ := strings.Cut(found, " ")
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return found
		}
		return number(n) + " " + what
	})
}

// number is a count with separators of thousands.
func number(n int64) string { return views.Known(n).String() }

// byTime orders what happened at one moment by the way a job goes: all that one
// transaction writes has one time.
func byTime(a, b views.TimelineEvent) int {
	if c := a.At.Compare(b.At); c != 0 {
		return c
	}
	way := []string{"intended", "called", "uncertain", "accepted", "delivery", "wake", "asked", "stored"}
	place := func(kind string) int {
		if i := slices.Index(way, kind); i >= 0 {
			return i
		}
		return len(way)
	}
	return place(a.Kind) - place(b.Kind)
}

// Titles of events that are of a whole job.
const (
	settledTitle = "Settled"
	retriedTitle = "Failures tried again"
	againTitle   = "Submitted again by a person"
)

// eventWords is a kind of event as the pages know it, and in a few words.
func eventWords(kind string) (string, string) {
	switch kind {
	case "intended":
		return "intended", "Written down"
	case "accepted":
		return "accepted", "Accepted by the vendor"
	case "adopted":
		return "accepted", "Found at the vendor after its answer was lost"
	case "uncertain":
		return "uncertain", "The vendor's answer was lost"
	case "not_found_at_vendor":
		return "asked", "Not found at the vendor"
	case "declined":
		return "uncertain", "Declined for now"
	case "refused":
		return "refused", "Refused by the vendor"
	case "split":
		return "resubmitted", "Split into smaller jobs"
	case "retry":
		return "resubmitted", retriedTitle
	case "resubmit":
		return "resubmitted", againTitle
	case "cancel_asked":
		return "cancel", "Cancel asked for"
	case "cancel_called":
		return "cancel", "The vendor was asked to cancel"
	case "cancel_declined":
		return "cancel", "The vendor could not cancel"
	case "page_too_large":
		return "asked", "A page of results was too large"
	case "pages_lacking":
		return "uncertain", "Fewer pages than the vendor counts"
	case "withdrawn":
		return "refused", "Withdrawn before a call"
	case "woken":
		return "wake", "Woken"
	case "settled":
		return "settled", settledTitle
	case "given_up":
		return "given_up", "Given up"
	}
	return kind, kind
}
