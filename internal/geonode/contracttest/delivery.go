package contracttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"testing"
)

// envelopes are the schemas of the three events.
var envelopes = map[string]string{
	"extract_completed": "ExtractCompletedEnvelope",
	"batch_completed":   "BatchCompletedEnvelope",
	"crawl_completed":   "CrawlCompletedEnvelope",
}

// ValidateDelivery checks a webhook delivery's headers and body and reports a breach
// as an error of the test. A request marked with DeliberateHeader is exempt and counted.
func ValidateDelivery(tb testing.TB, header http.Header, body []byte) {
	tb.Helper()
	counts.checked.Add(1)
	if header.Get(DeliberateHeader) != "" {
		counts.deliberate.Add(1)
		return
	}
	if err := CheckDelivery(header, body); err != nil {
		tb.Errorf("contract breach (delivery): %v", err)
	}
}

// CheckDelivery is ValidateDelivery without a test, for use on any goroutine.
func CheckDelivery(header http.Header, body []byte) error {
	var errs []error
	for _, name := range []string{"X-Webhook-Signature", "X-Webhook-Delivery-Id", "X-Webhook-Event", "User-Agent"} {
		if header.Get(name) == "" {
			errs = append(errs, fmt.Errorf("no %s header", name))
		}
	}
	if media, _, err := mime.ParseMediaType(header.Get("Content-Type")); err != nil || media != "application/json" {
		errs = append(errs, fmt.Errorf("content type %q is not JSON", header.Get("Content-Type")))
	}
	return errors.Join(append(errs, checkEnvelope(header.Get("X-Webhook-Event"), body))...)
}

// checkEnvelope checks the body against the schema of its own event, which must be
// the header's.
func checkEnvelope(event string, body []byte) error {
	var named struct {
		Event string `json:"event"`
	}
	if err := json.Unmarshal(body, &named); err != nil {
		return fmt.Errorf("envelope: %w", err)
	}
	if named.Event != event {
		return fmt.Errorf("the header says %q, the body %q", event, named.Event)
	}
	schema, ok := envelopes[event]
	if !ok {
		return fmt.Errorf("the contract has no event %q", event)
	}
	return ValidateBody(schema, body)
}
