package geonode_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rollcall/internal/geonode"
)

func webhookEndpoints() map[string]endpoint {
	active := func(v any) any { return []any{v.(*geonode.Webhook).ID, v.(*geonode.Webhook).Inactive()} }
	return map[string]endpoint{
		"CreateWebhook": ok(func(e *endpoint) {
			e.call = func(ctx context.Context, c *geonode.Client) (any, error) {
				return c.CreateWebhook(ctx, geonode.WebhookCreate{
					URL: "https://hooks.example/geonode/batch", EventType: geonode.EventBatchCompleted, Description: "batch results",
				})
			}
			e.method, e.uri, e.status = http.MethodPost, "/v1/webhooks", http.StatusCreated
			e.request, e.answer = "webhook_create_request.json", "webhook_created.json"
			e.want = []any{hookID, "whsec_example_first", "[secret]"}
			e.check = func(v any) any {
				r := v.(*geonode.Webhook)
				return []any{r.ID, r.Secret.Reveal(), r.Secret.String()}
			}
		}),
		"GetWebhook": ok(func(e *endpoint) {
			e.call = func(ctx context.Context, c *geonode.Client) (any, error) { return c.GetWebhook(ctx, hookID) }
			e.uri, e.answer, e.check, e.want = "/v1/webhooks/"+hookID, "webhook_get.json", active, []any{hookID, false}
		}),
		"UpdateWebhook": ok(func(e *endpoint) {
			e.call = func(ctx context.Context, c *geonode.Client) (any, error) {
				return c.UpdateWebhook(ctx, hookID, geonode.WebhookUpdate{IsActive: new(false)})
			}
			e.method, e.uri, e.request = http.MethodPatch, "/v1/webhooks/"+hookID, "webhook_update_request.json"
			e.answer, e.check, e.want = "webhook_updated.json", active, []any{hookID, true}
		}),
		"DeleteWebhook": ok(func(e *endpoint) {
			e.call = func(ctx context.Context, c *geonode.Client) (any, error) { return c.DeleteWebhook(ctx, hookID) }
			e.method, e.uri, e.status = http.MethodDelete, "/v1/webhooks/"+hookID, http.StatusNoContent
			e.check, e.want = func(v any) any { return v.(geonode.Reply).Status }, http.StatusNoContent
		}),
		"RotateSecret": ok(func(e *endpoint) {
			e.call = func(ctx context.Context, c *geonode.Client) (any, error) {
				secret, _, err := c.RotateSecret(ctx, hookID)
				return secret, err
			}
			e.method, e.uri, e.answer = http.MethodPost, "/v1/webhooks/"+hookID+"/rotate-secret", "webhook_rotate_response.json"
			e.check, e.want = func(v any) any { return v.(geonode.Secret).Reveal() }, "whsec_example_second"
		}),
		"ListWebhooks": ok(func(e *endpoint) {
			e.call = func(ctx context.Context, c *geonode.Client) (any, error) {
				return c.ListWebhooks(ctx, geonode.ListParams{})
			}
			e.uri, e.answer = "/v1/webhooks?page=1&page_size=100", "webhook_list.json"
			e.check, e.want = func(v any) any { return v.(*geonode.WebhookList).Items[0].ID }, hookID
		}),
		"ListDeliveries": ok(func(e *endpoint) {
			e.call = func(ctx context.Context, c *geonode.Client) (any, error) {
				return c.ListDeliveries(ctx, hookID, geonode.DeliveryParams{Status: geonode.DeliveryFailed})
			}
			e.uri, e.answer = "/v1/webhooks/"+hookID+"/deliveries?page=1&page_size=100&status=failed", "webhook_deliveries.json"
			e.want = []any{3, geonode.KnownCount(503), "", true, geonode.KnownCount(2)}
			e.check = func(v any) any {
				rows := v.(*geonode.DeliveryList).Items
				return []any{len(rows), rows[1].HTTPStatus, rows[2].JobID, rows[2].DeliveredAt.IsZero(), rows[0].Attempt}
			}
		}),
	}
}

func reportEndpoints() map[string]endpoint {
	return map[string]endpoint{
		"Usage": ok(func(e *endpoint) {
			e.call = func(ctx context.Context, c *geonode.Client) (any, error) { return c.Usage(ctx) }
			e.uri, e.answer = "/v1/usage", "extract_response_accepted.json" // Any object will do.
			e.check, e.want = func(v any) any { return len(v.(*geonode.Usage).Reply.Raw) > 0 }, true
		}),
		"Statistics": ok(func(e *endpoint) {
			e.call = func(ctx context.Context, c *geonode.Client) (any, error) {
				return c.Statistics(ctx, start, time.Time{})
			}
			e.uri, e.answer = "/v1/statistics?start_date=2026-09-14T07%3A00%3A00.000Z", "statistics_response.json"
			e.want = []any{geonode.KnownCount(310), geonode.Measure{V: 0.94, Known: true}, geonode.KnownCount(9), geonode.KnownCount(150)}
			e.check = func(v any) any {
				r := v.(*geonode.Statistics)
				return []any{r.ExtractionCount, r.SuccessRate, r.Requests[0].Failed, r.DailyTokens[0].Used}
			}
		}),
		"Health": ok(func(e *endpoint) {
			e.call = func(ctx context.Context, c *geonode.Client) (any, error) { return c.Health(ctx) }
			e.uri, e.answer = "/health", "webhook_rotate_response.json" // Any object will do.
			e.check, e.want = func(v any) any { return v.(*geonode.Health).Reply.Status }, http.StatusOK
		}),
	}
}

func TestReply(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 9, 14, 8, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		date string
		want time.Time
	}{"Dated": {at.Format(http.TimeFormat), at}, "NoDate": {"", time.Time{}}, "BadDate": {"soon", time.Time{}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := example(t, "batch_accepted.json")
			v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header()["Date"] = nil
				if tc.date != "" {
					w.Header().Set("Date", tc.date)
				}
				says(http.StatusAccepted, body)(w, r)
			})
			ticks := noon
			c := v.client(t, func(cfg *geonode.Config) {
				cfg.Now = func() time.Time { ticks = ticks.Add(time.Second); return ticks }
			})
			got, err := c.SubmitBatch(t.Context(), geonode.BatchRequest{URLs: []string{"https://a.example/"}})
			if err != nil {
				t.Fatal(err)
			}
			want := geonode.Reply{Status: http.StatusAccepted, Date: tc.want, Elapsed: time.Second, Raw: []byte(body)}
			if d := cmp.Diff(got.Reply, want); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestParametersAreCheckedHere covers calls that must not leave the machine.
func TestParametersAreCheckedHere(t *testing.T) {
	t.Parallel()
	v := newVendor(t, says(http.StatusOK, `{}`))
	c := v.client(t)
	ctx := t.Context()
	long := make([]byte, geonode.MaxJobID+1)
	for i := range long {
		long[i] = 'x'
	}
	for name, call := range map[string]func() error{
		"JobsIsARoute":   func() error { _, err := c.GetExtract(ctx, "jobs"); return err },
		"JobsBatch":      func() error { _, err := c.GetBatch(ctx, "jobs", geonode.Page{}); return err },
		"JobsCrawl":      func() error { _, err := c.GetCrawl(ctx, "jobs", geonode.Page{}); return err },
		"JobsCancel":     func() error { _, err := c.CancelBatch(ctx, "jobs"); return err },
		"Dots":           func() error { _, err := c.CancelCrawl(ctx, ".."); return err },
		"EmptyID":        func() error { _, err := c.GetExtract(ctx, ""); return err },
		"LongID":         func() error { _, err := c.GetExtract(ctx, string(long)); return err },
		"ControlInID":    func() error { _, err := c.GetExtract(ctx, "a\nb"); return err },
		"NotUTF8":        func() error { _, err := c.GetExtract(ctx, "a\xff"); return err },
		"EmptyWebhookID": func() error { _, err := c.DeleteWebhook(ctx, ""); return err },
		"PageSizeTooBig": func() error { _, err := c.GetBatch(ctx, "a", geonode.Page{Size: 51}); return err },
		"NegativePage":   func() error { _, err := c.ListCrawls(ctx, geonode.ListParams{Page: -1}); return err },
		"ListTooBig":     func() error { _, err := c.ListBatches(ctx, geonode.ListParams{PageSize: 101}); return err },
		"NoURLs":         func() error { _, err := c.SubmitBatch(ctx, geonode.BatchRequest{}); return err },
		"NoURL":          func() error { _, err := c.SubmitExtract(ctx, geonode.ExtractRequest{}); return err },
		"CrawlTooDeep": func() error {
			_, err := c.SubmitCrawl(ctx, geonode.CrawlRequest{URL: "u", Depth: 11, Limit: 1})
			return err
		},
		"CrawlNoLimit": func() error { _, err := c.SubmitCrawl(ctx, geonode.CrawlRequest{URL: "u", Depth: 1}); return err },
		"CrawlHeaders": func() error {
			_, err := c.SubmitCrawl(ctx, geonode.CrawlRequest{URL: "u", Depth: 1, Limit: 1, Options: geonode.Options{Headers: geonode.Headers{"A": "b"}}})
			return err
		},
		"WebhookNoEvent":  func() error { _, err := c.CreateWebhook(ctx, geonode.WebhookCreate{URL: "u"}); return err },
		"DeliveriesBadID": func() error { _, err := c.ListDeliveries(ctx, ".", geonode.DeliveryParams{}); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := call()
			e := wantError(t, err)
			if e.Retryable() || e.Certainty() != geonode.CertainlyNotAccepted || e.Status != 0 {
				t.Errorf("got %v, retryable %t, %s", e, e.Retryable(), e.Certainty())
			}
		})
	}
	t.Cleanup(func() {
		if len(v.calls) != 0 {
			t.Errorf("got %d calls, want none", len(v.calls))
		}
	})
}

// TestIDsAreEscaped sends an id that isn't a UUID, whole, as one path segment.
func TestIDsAreEscaped(t *testing.T) {
	t.Parallel()
	const id = `a/b?c#d%20 é`
	v := newVendor(t, says(http.StatusOK, `{"job_id":"a/b?c#d%20 é","status":"weird"}`))
	got, err := v.client(t).GetExtract(broken(t, "a status word outside the enumeration"), id)
	if err != nil {
		t.Fatal(err)
	}
	if got.JobID != id || got.Status.Terminal() || got.Status.Known() {
		t.Errorf("got %q %q", got.JobID, got.Status)
	}
	if uri := v.one(t).URI; uri != "/v1/extract/a%2Fb%3Fc%23d%2520%20%C3%A9" {
		t.Errorf("got %s", uri)
	}
}
