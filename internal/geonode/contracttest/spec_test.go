package contracttest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"rollcall/internal/geonode/contracttest"
)

func TestExamplesValidate(t *testing.T) {
	t.Parallel()
	examples, err := contracttest.Examples()
	if err != nil {
		t.Fatal(err)
	}
	if len(examples) < 40 {
		t.Fatalf("got %d examples, want all", len(examples))
	}
	for name, schema := range examples {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := mustExample(t, name)
			if schema == "" {
				var headers map[string]string
				if err := json.Unmarshal(body, &headers); err != nil {
					t.Fatal(err)
				}
				return
			}
			if err := contracttest.ValidateBody(schema, body); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestValidateBodyCatches proves that each feature of OpenAPI 3.1 that the contract
// uses is in force: a validator that skips one would pass everything.
func TestValidateBodyCatches(t *testing.T) {
	t.Parallel()
	const id = `"job_id":"1f6d2a90-7c54-4e1b-a3d8-90b7c5e2f611"`
	for name, tc := range map[string]struct{ schema, body string }{
		"MissingRequired":  {"BatchJob", `{"status":"queued"}`},
		"WrongType":        {"BatchJob", `{` + id + `,"status":"queued","total_urls":"3"}`},
		"Enum":             {"BatchJob", `{` + id + `,"status":"done"}`},
		"FormatUUID":       {"BatchJob", `{"job_id":"x","status":"queued"}`},
		"FormatDateTime":   {"BatchJob", `{` + id + `,"status":"queued","created_at":"yesterday"}`},
		"FormatURI":        {"ExtractRequest", `{"url":"no scheme"}`},
		"TypeArray":        {"ExtractJob", `{"job_id":"a","status":"queued","completed_at":5}`},
		"NullWhereNotNull": {"ExtractJob", `{"job_id":"a","status":"queued","created_at":null}`},
		"AnyOfNull":        {"ExtractJob", `{"job_id":"a","status":"queued","data":{"markdown":5}}`},
		"Const":            {"CrawlCompletedEnvelope", `{"event":"batch_completed","webhook_id":"1f6d2a90-7c54-4e1b-a3d8-90b7c5e2f611","delivery_id":"a","timestamp":"2026-09-14T08:01:20Z","data":{}}`},
		"AllOf":            {"WebhookWithSecret", string(mustExample(t, "webhook_get.json"))},
		"MinItems":         {"BatchRequest", `{"urls":[]}`},
		"Maximum":          {"CrawlRequest", `{"url":"https://a.example/","depth":11}`},
		"MapOfStrings":     {"ExtractRequest", `{"url":"https://a.example/","headers":{"A":1}}`},
		"ItemInside":       {"BatchJob", `{` + id + `,"status":"queued","results":[{"status":"completed"}]}`},
		"NotJSON":          {"ApiError", `<html>`},
		"NoSuchSchema":     {"Nothing", `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := contracttest.ValidateBody(tc.schema, []byte(tc.body)); err == nil {
				t.Errorf("%s passes %s", tc.body, tc.schema)
			}
		})
	}
}

func TestCheckDelivery(t *testing.T) {
	t.Parallel()
	body := mustExample(t, "delivery_batch_completed.full.body.json")
	good := func() http.Header {
		var fields map[string]string
		if err := json.Unmarshal(mustExample(t, "delivery_batch_completed.headers.json"), &fields); err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		for name, value := range fields {
			h.Set(name, value)
		}
		return h
	}
	for name, tc := range map[string]struct {
		edit func(http.Header)
		body []byte
		want string
	}{
		"OK":            {func(http.Header) {}, body, ""},
		"NoSignature":   {func(h http.Header) { h.Del("X-Webhook-Signature") }, body, "X-Webhook-Signature"},
		"NotJSON":       {func(h http.Header) { h.Set("Content-Type", "text/plain") }, body, "content type"},
		"OtherEvent":    {func(h http.Header) { h.Set("X-Webhook-Event", "crawl_completed") }, body, "the body"},
		"UnknownEvent":  {func(h http.Header) { h.Set("X-Webhook-Event", "x") }, []byte(`{"event":"x"}`), "no event"},
		"EnvelopeShort": {func(http.Header) {}, []byte(`{"event":"batch_completed"}`), "missing"},
		"BodyNotJSON":   {func(http.Header) {}, []byte(`nope`), "envelope"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := good()
			tc.edit(h)
			err := contracttest.CheckDelivery(h, tc.body)
			if (err == nil) != (tc.want == "") || (err != nil && !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestValidateDeliveryHonorsTheMark(t *testing.T) {
	t.Parallel()
	s := newSpy(t)
	h := http.Header{}
	contracttest.ValidateDelivery(s, h, []byte(`{}`))
	if got := len(s.got()); got != 1 {
		t.Errorf("got %d breaches, want 1", got)
	}
	h.Set(contracttest.DeliberateHeader, "a broken delivery")
	before := contracttest.Marked()
	contracttest.ValidateDelivery(s, h, []byte(`{}`))
	if got := len(s.got()); got != 1 {
		t.Errorf("got %d breaches, want 1 still", got)
	}
	if contracttest.Marked() <= before {
		t.Error("the mark was not counted")
	}
}
