package pipeline

import (
	"context"
	"fmt"
	"strings"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// TestName is what the batches of SendOne are called, and known by.
func TestName(event string) string { return "Test of the webhook for " + event }

// SendOne submits the smallest job that the vendor tells a webhook of when it
// has ended: one extract job, a batch of one URL, or a crawl of one page. It
// costs one request. The batch it makes is one like any other, for its page to
// follow. What is wrong is a *WebhookError, or *InvalidSubmission for the URL.
func (p *Pipeline) SendOne(ctx context.Context, webhookID int64, url string, by *int64) (Submitted, error) {
	w, err := p.webhook(ctx, webhookID)
	if err != nil {
		return Submitted{}, err
	}
	kind, ok := kindOfEvent(w.EventType)
	if !ok {
		return Submitted{}, &WebhookError{Text: "No kind of job is known that makes the vendor send " + w.EventType + ", so none can be sent on purpose."}
	}
	switch w.State {
	case store.WebhookLive, store.WebhookRotating, store.WebhookSecretUnknown:
	case store.WebhookRegistering, store.WebhookPaused, store.WebhookInactive, store.WebhookMoved, store.WebhookGone, store.WebhookRemoved:
		return Submitted{}, notNow(w)
	}
	s := Submission{
		Name: TestName(w.EventType), Kind: kind, Text: strings.TrimSpace(url), CreatedBy: by,
		Options: Options{Formats: []string{"markdown"}},
	}
	if kind == store.KindCrawl {
		s.Options.Crawl = &CrawlOptions{Depth: 1, Limit: 1, SameDomainOnly: true}
	}
	if s.Text == "" {
		return Submitted{}, &WebhookError{Field: "url", Text: "Enter the URL."}
	}
	if strings.ContainsAny(s.Text, "\r\n") {
		return Submitted{}, &WebhookError{Field: "url", Text: "Enter one URL."}
	}
	done, err := p.Submit(ctx, s)
	if err != nil {
		return Submitted{}, fmt.Errorf("send one to webhook %d: %w", webhookID, err)
	}
	return done, nil
}

// kindOfEvent is the kind of job whose end an event tells of.
func kindOfEvent(event string) (store.Kind, bool) {
	switch geonode.EventType(event) {
	case geonode.EventExtractCompleted:
		return store.KindExtract, true
	case geonode.EventBatchCompleted:
		return store.KindBatch, true
	case geonode.EventCrawlCompleted:
		return store.KindCrawl, true
	}
	return "", false
}
