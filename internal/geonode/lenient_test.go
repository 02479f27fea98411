package geonode_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rollcall/internal/geonode"
)

// readBatch has the client read a body as the state of a batch.
func readBatch(t *testing.T, body string) (*geonode.BatchJob, error) {
	t.Helper()
	v := newVendor(t, says(200, body))
	return v.client(t).GetBatch(broken(t, "an answer to be read leniently"), batchID, geonode.Page{})
}

func mustBatch(t *testing.T, members string) *geonode.BatchJob {
	t.Helper()
	job, err := readBatch(t, `{"job_id":"`+batchID+`","status":"completed",`+members+`}`)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func TestCountersAreLenient(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]geonode.Count{
		`3`: geonode.KnownCount(3), `0`: geonode.KnownCount(0), `"3"`: geonode.KnownCount(3), `3.0`: geonode.KnownCount(3),
		`3e2`: geonode.KnownCount(300), `null`: {}, `"x"`: {}, `-1`: {}, `2.5`: {}, `true`: {}, `[]`: {}, `{}`: {}, `""`: {},
		`9223372036854775807`: geonode.KnownCount(1<<63 - 1), `99999999999999999999`: {}, `1e400`: {},
	} {
		t.Run(sent, func(t *testing.T) {
			t.Parallel()
			job := mustBatch(t, `"total_urls":`+sent+`,"completed_urls":1`)
			if job.Total != want || job.Completed != geonode.KnownCount(1) {
				t.Errorf("got %v and %v, want %v and 1", job.Total, job.Completed, want)
			}
		})
	}
}

func TestMissingCountersAreUnknown(t *testing.T) {
	t.Parallel()
	job := mustBatch(t, `"new_member":{"deep":[1,2]}`)
	if job.Total.Known || job.Total.Or(7) != 7 || job.Total.String() != "-" || job.InvalidURLs.Count.Known || len(job.Results) != 0 {
		t.Errorf("got %+v", job)
	}
}

func TestTimestamps(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		`"2026-09-14T08:00:00Z"`:            "2026-09-14T08:00:00Z",
		`"2026-09-14T08:00:00.120Z"`:        "2026-09-14T08:00:00.12Z",
		`"2026-09-14T08:00:00.004518Z"`:     "2026-09-14T08:00:00.004518Z",
		`"2026-09-14T10:00:00+02:00"`:       "2026-09-14T08:00:00Z",
		`"2026-09-14T08:00:00.25"`:          "2026-09-14T08:00:00.25Z",
		`"2026-09-14 08:00:00.25"`:          "2026-09-14T08:00:00.25Z",
		`"2026-09-14 08:00:00.250+00:00"`:   "2026-09-14T08:00:00.25Z",
		`"9999-12-31T23:59:59Z"`:            "9999-12-31T23:59:59Z",
		`"9999-12-31T23:59:59-01:00"`:       "0001-01-01T00:00:00Z",
		`"0001-01-01T00:00:00+01:00"`:       "0001-01-01T00:00:00Z",
		`"0000-02-30T00:00:00Z"`:            "0001-01-01T00:00:00Z",
		`"0000-01-01T00:00:00Z"`:            "0001-01-01T00:00:00Z",
		`"yesterday"`:                       "0001-01-01T00:00:00Z",
		`null`:                              "0001-01-01T00:00:00Z",
		`""`:                                "0001-01-01T00:00:00Z",
		`1757836800`:                        "0001-01-01T00:00:00Z",
		`{"at":"2026-09-14T08:00:00.120Z"}`: "0001-01-01T00:00:00Z",
	} {
		t.Run(sent, func(t *testing.T) {
			t.Parallel()
			if got := mustBatch(t, `"created_at":`+sent).CreatedAt.Format(time.RFC3339Nano); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestInvalidURLs(t *testing.T) {
	t.Parallel()
	job := mustBatch(t, `"invalid_urls":["a b",{"url":"c","reason":"r"},{"why":1},7,null]`)
	var urls, raws []string
	for _, u := range job.InvalidURLs.List {
		urls, raws = append(urls, u.URL), append(raws, string(u.Raw))
	}
	if d := cmp.Diff(urls, []string{"a b", "c", "", "", ""}); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(raws, []string{`"a b"`, `{"url":"c","reason":"r"}`, `{"why":1}`, `7`, `null`}); d != "" {
		t.Error(d)
	}
	if got := job.InvalidURLs.Count; got != geonode.KnownCount(5) {
		t.Errorf("got %s", got)
	}
	for sent, want := range map[string]geonode.Count{`null`: {}, `4`: geonode.KnownCount(4), `{}`: {}} {
		if got := mustBatch(t, `"invalid_urls":`+sent).InvalidURLs.Count; got != want {
			t.Errorf("%s: got %s, want %s", sent, got, want)
		}
	}
}

// TestContentIsFaithful covers the bytes that JSON can carry and databases stumble on.
func TestContentIsFaithful(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]geonode.Text{
		`"a\u0000b"`:             geonode.Text("a\x00b"),
		`"\ud83d\ude00 אב <&>"`:  geonode.Text("😀 אב <&>"),
		`"\ud83d alone"`:         geonode.Text("\uFFFD alone"),
		"\"bad \xff utf-8\"":     geonode.Text("bad \uFFFD utf-8"),
		`""`:                     {},
		`null`:                   nil,
		`"\u2028\u2029\ufeff\r"`: geonode.Text("\u2028\u2029\uFEFF\r"),
	} {
		t.Run(sent, func(t *testing.T) {
			t.Parallel()
			job := mustBatch(t, `"results":[{"url":"u","status":"completed","data":{"markdown":`+sent+`}},{"url":"v","status":"completed","data":{"html":"next"}}]`)
			if len(job.Results) != 2 || string(job.Results[1].Data.HTML) != "next" {
				t.Fatalf("got %+v", job.Results)
			}
			item := job.Results[0]
			if got := item.Data.Markdown; string(got) != string(want) || (got == nil) != (want == nil) || item.Problem != "" {
				t.Errorf("got %q, want %q, problem %q", got, want, item.Problem)
			}
		})
	}
}

// TestOneBadItemLosesNoOther has a neighbor that must survive each of the bad items.
func TestOneBadItemLosesNoOther(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		item    string
		problem string
	}{
		"Null":         {`null`, "not an object"},
		"Number":       {`7`, "not an object"},
		"URLIsNumber":  {`{"url":5,"status":"completed"}`, "url"},
		"ContentArray": {`{"url":"u","status":"completed","data":{"markdown":["x"]}}`, "markdown"},
		"DataString":   {`{"url":"u","status":"completed","data":"x"}`, "data"},
		"NoIndex":      {`{"url":"u","status":"completed"}`, ""},
		"MetadataOdd":  {`{"url":"u","status":"completed","metadata":[1]}`, ""},
		"LinksOdd":     {`{"url":"u","status":"completed","data":{"links":{"a":1}}}`, ""},
		"CodeIsNumber": {`{"url":"u","status":"failed","error_code":404}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := mustBatch(t, `"results":[`+tc.item+`,{"input_index":"1","url":"v","status":"failed","error_code":"X"}]`)
			if len(job.Results) != 2 {
				t.Fatalf("got %d items", len(job.Results))
			}
			got, next := job.Results[0], job.Results[1]
			if (got.Problem == "") != (tc.problem == "") || !strings.Contains(got.Problem, tc.problem) {
				t.Errorf("got problem %q, want %q", got.Problem, tc.problem)
			}
			if next.URL != "v" || next.InputIndex != geonode.KnownCount(1) || next.Err.Code != "X" || next.Err.RetryableSent != nil {
				t.Errorf("got neighbor %+v", next)
			}
		})
	}
}

func TestMetadataKeepsNoHeaders(t *testing.T) {
	t.Parallel()
	body := `{"job_id":"a","status":"completed","metadata":{"url":"u","http_status":"200","headers":{"Cookie":"hidden"},"Headers":{"B":"hidden"},"new":[1]}}`
	job, err := geonode.DecodeExtractJob([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, job.Metadata.Raw, `{"url":"u","http_status":"200","new":[1]}`)
	if got := job.Metadata.HTTPStatus; got != geonode.KnownCount(200) {
		t.Errorf("got %s", got)
	}
	if text := fmt.Sprintf("%v %+v %#v", job.Metadata, job.Metadata, job.Metadata.Config.Headers); strings.Contains(text, "hidden") {
		t.Errorf("got %s", text)
	}
}

func TestLinksAreLenient(t *testing.T) {
	t.Parallel()
	job := mustBatch(t, `"results":[{"url":"u","status":"completed","data":{"links":["a",{"url":"b"},{"href":"c"},null,7,{}]}}]`)
	if d := cmp.Diff(job.Results[0].Data.Links, geonode.Links{"a", "b", "c"}); d != "" {
		t.Error(d)
	}
}

func TestExtractErrorForms(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]*geonode.ItemError{
		`null`:   nil,
		`"text"`: {Message: "text"},
		`{"code":"C","message":"m","retryable":false,"details":{"h":"x"}}`: {Code: "C", Message: "m", RetryableSent: new(false), Details: json.RawMessage(`{"h":"x"}`)},
		`{"code":7,"retryable":"yes","details":null}`:                      {Code: "7"},
		`[]`: {},
	} {
		job, err := geonode.DecodeExtractJob([]byte(`{"job_id":"a","status":"failed","error":` + sent + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(job.Err, want); d != "" {
			t.Errorf("%s: %s", sent, d)
		}
	}
}

// TestMalformed covers the answers that must not pass for a state or an empty list.
func TestMalformed(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"NoID":           `{"status":"queued"}`,
		"EmptyID":        `{"job_id":"","status":"queued"}`,
		"OtherJob":       `{"job_id":"` + crawlID + `","status":"completed"}`,
		"NoStatus":       `{"job_id":"` + batchID + `"}`,
		"StatusNumber":   `{"job_id":"` + batchID + `","status":3}`,
		"ResultsObject":  `{"job_id":"` + batchID + `","status":"completed","results":{}}`,
		"ResultsString":  `{"job_id":"` + batchID + `","status":"completed","results":"none"}`,
		"TrailingText":   `{"job_id":"` + batchID + `","status":"completed"} x`,
		"Null":           `null`,
		"HTML":           `<html>`,
		"EmptyBody":      ``,
		"ControlInTheID": `{"job_id":"a\u0007","status":"queued"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if job, err := readBatch(t, body); !errors.Is(err, geonode.ErrMalformed) {
				t.Errorf("got %+v, %v, want ErrMalformed", job, err)
			}
		})
	}
}

func TestIDMayComeBackInTheOtherCase(t *testing.T) {
	t.Parallel()
	if _, err := readBatch(t, `{"job_id":"`+strings.ToUpper(batchID)+`","status":"queued","results":null}`); err != nil {
		t.Error(err)
	}
}

// TestLists: a list without its rows must not look empty, for emptiness is what lets a
// submit be repeated.
func TestLists(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body       string
		jobs       int
		unreadable int
		bad        bool
	}{
		"Empty":       {body: `{"jobs":[]}`},
		"Null":        {body: `{"jobs":null,"page":"1"}`},
		"Missing":     {body: `{"page":1}`, bad: true},
		"OtherName":   {body: `{"items":[]}`, bad: true},
		"Object":      {body: `{"jobs":{}}`, bad: true},
		"Array":       {body: `[]`, bad: true},
		"Rows":        {body: `{"jobs":[{"job_id":"a"},{"job_id":7},null,5,{"job_id":"b","status":"new word","accepted_urls":null}]}`, jobs: 2, unreadable: 3},
		"MoreMembers": {body: `{"jobs":[{"job_id":"a","config":"odd","x":1}],"total":5}`, jobs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVendor(t, says(200, tc.body))
			list, err := v.client(t).ListBatches(broken(t, "a list to be read leniently"), geonode.ListParams{})
			if tc.bad {
				if !errors.Is(err, geonode.ErrMalformed) {
					t.Errorf("got %+v, %v, want ErrMalformed", list, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(list.Jobs) != tc.jobs || list.Unreadable != tc.unreadable {
				t.Errorf("got %d jobs and %d unreadable, want %d and %d", len(list.Jobs), list.Unreadable, tc.jobs, tc.unreadable)
			}
		})
	}
}

func TestSyncWithoutData(t *testing.T) {
	t.Parallel()
	v := newVendor(t, says(202, example(t, "extract_response_accepted.json")))
	_, err := v.client(t).ExtractSync(t.Context(), geonode.ExtractRequest{URL: "https://a.example/"})
	if !errors.Is(err, geonode.ErrMalformed) || geonode.CertaintyOf(err) != geonode.Unknown {
		t.Errorf("got %v, %s", err, geonode.CertaintyOf(err))
	}
}

// TestMarshal: what was read can be written again, unknown as null.
func TestMarshal(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(map[string]any{
		"a": geonode.KnownCount(3), "b": geonode.Count{}, "c": geonode.Text("x\x00"), "d": geonode.Text(nil),
		"e": geonode.Timestamp{}, "f": geonode.Timestamp{Time: noon}, "g": geonode.Secret("s"), "h": geonode.Measure{}, "i": geonode.Measure{V: 0.5, Known: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, got, `{"a":3,"b":null,"c":"x\u0000","d":null,"e":null,"f":"2026-11-29T12:00:00Z","g":"[secret]","h":null,"i":0.5}`)
}
