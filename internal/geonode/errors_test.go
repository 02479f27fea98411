package geonode_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rollcall/internal/geonode"
)

func wantError(t *testing.T, err error) *geonode.Error {
	t.Helper()
	e, ok := errors.AsType[*geonode.Error](err)
	if !ok {
		t.Fatalf("got %v, want a *geonode.Error", err)
	}
	return e
}

// verdict is what the pipeline asks of an error.
type verdict struct {
	Retryable bool
	PlanLimit bool
	Certain   bool
	Shape     geonode.Shape
	Code      string
}

func verdictOf(e *geonode.Error) verdict {
	return verdict{e.Retryable(), e.PlanLimit(), e.Certainty() == geonode.CertainlyNotAccepted, e.Shape, e.Code}
}

const (
	standardTrue  = `{"code":"C","message":"m","correlation_id":null,"retryable":true}`
	standardFalse = `{"code":"C","message":"m","retryable":false}`
	standardBare  = `{"code":"C","message":"m"}`
	tooManyURLs   = `{"detail":[{"loc":["body","urls"],"msg":"List should have at most 1000 items","type":"too_long"}]}`
	html          = `<html><body>Bad gateway</body></html>`
)

// TestErrors holds every status and shape of contract.md, section 4, against what the
// pipeline decides by.
func TestErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status int
		body   string
		is     error
		want   verdict
	}{
		"400":                   {400, standardFalse, nil, verdict{Certain: true, Shape: geonode.ShapeStandard, Code: "C"}},
		"401":                   {401, standardFalse, geonode.ErrUnauthorized, verdict{Certain: true, Shape: geonode.ShapeStandard, Code: "C"}},
		"401Empty":              {401, "", geonode.ErrUnauthorized, verdict{Certain: true}},
		"402":                   {402, standardBare, geonode.ErrBalance, verdict{Certain: true, Shape: geonode.ShapeStandard, Code: "C"}},
		"404":                   {404, "error_standard_404.json", geonode.ErrNotFound, verdict{Certain: true, Shape: geonode.ShapeStandard, Code: "EXAMPLE_NOT_FOUND"}},
		"404Empty":              {404, "", geonode.ErrNotFound, verdict{Certain: true}},
		"404HTML":               {404, html, geonode.ErrNotFound, verdict{Certain: true}},
		"408":                   {408, "", nil, verdict{Certain: true}},
		"409Empty":              {409, "", geonode.ErrConflict, verdict{Certain: true}},
		"413":                   {413, html, nil, verdict{Certain: true, PlanLimit: true}},
		"422PlanLimit":          {422, "error_plan_limit_422.json", nil, verdict{Certain: true, PlanLimit: true, Shape: geonode.ShapeStandard, Code: "VALIDATION_ERROR"}},
		"422Detail":             {422, "error_validation_422.json", nil, verdict{Certain: true, Shape: geonode.ShapeDetail}},
		"422TooManyURLs":        {422, tooManyURLs, nil, verdict{Certain: true, PlanLimit: true, Shape: geonode.ShapeDetail}},
		"422TooLongElsewhere":   {422, strings.Replace(tooManyURLs, `"urls"`, `"urls",3`, 1), nil, verdict{Certain: true, Shape: geonode.ShapeDetail}},
		"422Extraction":         {422, `{"code":"X","message":"m","retryable":true,"details":{"a":"b"}}`, nil, verdict{Retryable: true, Certain: true, Shape: geonode.ShapeExtraction, Code: "X"}},
		"422Empty":              {422, "", nil, verdict{Certain: true}},
		"429":                   {429, "error_throttled_429.json", geonode.ErrThrottled, verdict{Retryable: true, Certain: true, Shape: geonode.ShapeStandard, Code: "RATE_LIMITED"}},
		"429SaysNo":             {429, standardFalse, geonode.ErrThrottled, verdict{Certain: true, Shape: geonode.ShapeStandard, Code: "C"}},
		"429HTML":               {429, html, geonode.ErrThrottled, verdict{Retryable: true, Certain: true}},
		"500Empty":              {500, "", nil, verdict{}},
		"500StandardTrue":       {500, standardTrue, nil, verdict{Retryable: true, Certain: true, Shape: geonode.ShapeStandard, Code: "C"}},
		"500StandardFalse":      {500, standardFalse, nil, verdict{Certain: true, Shape: geonode.ShapeStandard, Code: "C"}},
		"500StandardBare":       {500, standardBare, nil, verdict{Shape: geonode.ShapeStandard, Code: "C"}},
		"500RetryableNoBoolean": {500, `{"code":"C","message":"m","retryable":"true"}`, nil, verdict{Shape: geonode.ShapeStandard, Code: "C"}},
		"500ExtractionShape":    {500, `{"code":"C","message":"m","retryable":true,"details":{}}`, nil, verdict{Retryable: true, Shape: geonode.ShapeExtraction, Code: "C"}},
		"502":                   {502, html, nil, verdict{Retryable: true}},
		"503":                   {503, "", nil, verdict{Retryable: true, Certain: true}},
		"504":                   {504, "", nil, verdict{Retryable: true}},
		"504Standard":           {504, standardFalse, nil, verdict{Certain: true, Shape: geonode.ShapeStandard, Code: "C"}},
		"300":                   {300, "", nil, verdict{}},
		"307":                   {307, standardFalse, nil, verdict{}},
		"2xxNotJSON":            {202, html, geonode.ErrMalformed, verdict{}},
		"2xxNoID":               {202, `{"status":"queued"}`, geonode.ErrMalformed, verdict{}},
		"2xxIDNotText":          {202, `{"job_id":7,"status":"queued"}`, geonode.ErrMalformed, verdict{}},
		"2xxEmpty":              {202, "", geonode.ErrMalformed, verdict{}},
		"2xxArray":              {202, `[]`, geonode.ErrMalformed, verdict{}},
		"2xxCutOff":             {202, `{"job_id":"a`, geonode.ErrMalformed, verdict{}},
		"204":                   {204, "", geonode.ErrMalformed, verdict{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := tc.body
			if strings.HasSuffix(body, ".json") {
				body = example(t, body)
			}
			v := newVendor(t, says(tc.status, body))
			_, err := v.client(t).SubmitBatch(broken(t, "error answers of every kind"), geonode.BatchRequest{URLs: []string{"https://a.example/"}})
			e := wantError(t, err)
			if d := cmp.Diff(verdictOf(e), tc.want); d != "" {
				t.Errorf("%v: %s", e, d)
			}
			checkSentinel(t, err, tc.is)
			if e.Op != "submit batch" || e.Status != tc.status || e.Timeout() {
				t.Errorf("got op %q, status %d, timeout %t", e.Op, e.Status, e.Timeout())
			}
		})
	}
}

// TestPageInsteadOfJSON: an operator who reads the log learns what came.
func TestPageInsteadOfJSON(t *testing.T) {
	t.Parallel()
	v := newVendor(t, says(200, "<html>A proxy's page</html>"))
	_, err := v.client(t).SubmitBatch(broken(t, "a page of HTML"), geonode.BatchRequest{URLs: []string{"https://a.example/"}})
	if err == nil || !strings.Contains(err.Error(), "the body is no JSON") {
		t.Errorf("got %v, want it to say that the body is no JSON", err)
	}
}

// checkSentinel wants err to be want and no other sentinel.
func checkSentinel(t *testing.T, err, want error) {
	t.Helper()
	for _, sentinel := range []error{
		geonode.ErrUnauthorized, geonode.ErrBalance, geonode.ErrNotFound, geonode.ErrConflict,
		geonode.ErrThrottled, geonode.ErrTooLarge, geonode.ErrMalformed,
	} {
		if got := errors.Is(err, sentinel); got != errors.Is(want, sentinel) {
			t.Errorf("%v is %v: %t", err, sentinel, got)
		}
	}
}

func TestErrorFields(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body string
		want geonode.Error
	}{
		"Standard": {
			`{"code":"C","message":"m","correlation_id":"id-1","retryable":true}`,
			geonode.Error{Code: "C", Message: "m", CorrelationID: "id-1", RetryableSent: new(true)},
		},
		"Detail": {
			`{"detail":[{"loc":["body","urls",3],"msg":"bad","type":"value_error"},7,{"loc":"x","msg":"n"}]}`,
			geonode.Error{Fields: []geonode.FieldError{{Loc: []string{"body", "urls", "3"}, Msg: "bad", Type: "value_error"}, {Msg: "n"}}},
		},
		"DetailText":   {`{"detail":"Not Found"}`, geonode.Error{Message: "Not Found"}},
		"CodeIsNumber": {`{"code":17,"message":"m"}`, geonode.Error{Code: "17", Message: "m"}},
		"Odd":          {`{"code":[],"message":{},"retryable":1}`, geonode.Error{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVendor(t, says(http.StatusBadRequest, tc.body))
			_, err := v.client(t).GetExtract(broken(t, "error bodies of every form"), extractID)
			e := wantError(t, err)
			got := geonode.Error{Code: e.Code, Message: e.Message, CorrelationID: e.CorrelationID, RetryableSent: e.RetryableSent, Fields: e.Fields}
			if d := cmp.Diff(got, tc.want, cmp.Comparer(sameError)); d != "" {
				t.Error(d)
			}
			if e.Body != tc.body {
				t.Errorf("got body %q", e.Body)
			}
		})
	}
}

// sameError compares the exported members that a body fills.
func sameError(a, b geonode.Error) bool {
	return a.Code == b.Code && a.Message == b.Message && a.CorrelationID == b.CorrelationID &&
		cmp.Equal(a.RetryableSent, b.RetryableSent) && cmp.Equal(a.Fields, b.Fields)
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	v := newVendor(t, says(http.StatusNotFound, example(t, "error_standard_404.json")))
	_, err := v.client(t).GetExtract(t.Context(), extractID)
	want := "get extract: status 404 EXAMPLE_NOT_FOUND: There is no such job. (correlation 0d5e7a31-84f2-4c69-b0a7-1e93c6f5d820)"
	if got := err.Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		header string
		want   time.Duration
		has    bool
	}{
		"None":       {"", 0, false},
		"Seconds":    {"7", 7 * time.Second, true},
		"Zero":       {"0", 0, true},
		"Negative":   {"-5", 0, true},
		"Spaces":     {" 7 ", 7 * time.Second, true},
		"Huge":       {"99999999999999999999999", 9223372036 * time.Second, true},
		"Fraction":   {"1.5", 0, false},
		"Garbage":    {"soon", 0, false},
		"Date":       {noon.Add(90 * time.Second).Format(http.TimeFormat), 90 * time.Second, true},
		"DateRFC850": {noon.Add(time.Minute).Format("Monday, 02-Jan-06 15:04:05 GMT"), time.Minute, true},
		"DateANSI":   {noon.Add(time.Minute).Format(time.ANSIC), time.Minute, true},
		"PastDate":   {noon.Add(-time.Hour).Format(http.TimeFormat), 0, true},
		"FarDate":    {"Fri, 31 Dec 9999 23:59:59 GMT", 1<<63 - 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Retry-After", tc.header)
				w.Header().Set("Date", noon.Format(http.TimeFormat))
				says(http.StatusTooManyRequests, example(t, "error_throttled_429.json"))(w, r)
			})
			_, err := v.client(t).GetExtract(t.Context(), extractID)
			got, has := wantError(t, err).RetryAfter()
			if got != tc.want || has != tc.has {
				t.Errorf("got %s %t, want %s %t", got, has, tc.want, tc.has)
			}
		})
	}
}

// TestRetryAfterIsByTheVendorsClock: a date says how long to wait only beside the time of who wrote it.
func TestRetryAfterIsByTheVendorsClock(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		date string
		want time.Duration
	}{
		"Ahead":   {noon.Add(10 * time.Minute).Format(http.TimeFormat), 2 * time.Second},
		"Missing": {"", 10*time.Minute + 2*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header()["Date"] = nil
				if tc.date != "" {
					w.Header().Set("Date", tc.date)
				}
				w.Header().Set("Retry-After", noon.Add(10*time.Minute+2*time.Second).Format(http.TimeFormat))
				says(http.StatusTooManyRequests, example(t, "error_throttled_429.json"))(w, r)
			})
			_, err := v.client(t).GetExtract(t.Context(), extractID)
			if got, has := wantError(t, err).RetryAfter(); got != tc.want || !has {
				t.Errorf("got %s, %t, want %s", got, has, tc.want)
			}
		})
	}
}

func TestCertaintyOfOtherErrors(t *testing.T) {
	t.Parallel()
	if got := geonode.CertaintyOf(errors.New("x")); got != geonode.Unknown {
		t.Errorf("got %s", got)
	}
	if got := geonode.CertaintyOf(errors.Join(errors.New("x"), &geonode.Error{Status: 402})); got != geonode.CertainlyNotAccepted {
		t.Errorf("got %s", got)
	}
}
