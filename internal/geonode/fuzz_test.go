package geonode

import (
	"encoding/json"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"rollcall/internal/geonode/contracttest"
)

// seed adds the contract's examples and a few odd bodies.
func seed(f *testing.F) {
	f.Helper()
	examples, err := contracttest.Examples()
	if err != nil {
		f.Fatal(err)
	}
	for name := range examples {
		body, err := contracttest.Example(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	for _, odd := range []string{"", "null", "[]", `{"jobs":[null]}`, `{"job_id":"a","status":"x","results":[{},7,null]}`, `{"detail":[{"loc":[1]}]}`} {
		f.Add([]byte(odd))
	}
}

const fuzzID = "1f6d2a90-7c54-4e1b-a3d8-90b7c5e2f611"

func FuzzDecodeBatch(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		job, err := decodeBatch(b, fuzzID)
		if err != nil {
			return
		}
		checkRead(t, job.JobID, job.Status)
		for i := range job.Results {
			checkContent(t, job.Results[i].Data)
		}
	})
}

func FuzzDecodeCrawl(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		job, err := decodeCrawl(b, "5d90b3e8-2f47-4a6c-b1e0-7a3c9d8f2e05")
		if err != nil {
			return
		}
		checkRead(t, job.JobID, job.Status)
		for i := range job.Results {
			checkContent(t, job.Results[i].Data)
		}
	})
}

func FuzzDecodeExtract(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		job, err := DecodeExtractJob(b)
		if err != nil {
			return
		}
		checkRead(t, job.JobID, job.Status)
		checkContent(t, job.Data)
		if job.Metadata.Raw != nil && !json.Valid(job.Metadata.Raw) {
			t.Errorf("got metadata %q", job.Metadata.Raw)
		}
	})
}

func FuzzDecodeLists(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		var extracts ExtractList
		if decodeExtractList(b, &extracts) == nil {
			for _, job := range extracts.Jobs {
				checkRead(t, job.JobID, "any")
			}
		}
		if _, items, err := decodeItems(b, func(d WebhookDelivery) string { return d.ID }); err == nil {
			for i := range items {
				checkRead(t, items[i].ID, "any")
			}
		}
	})
}

func FuzzDecodeError(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		e := &Error{Op: "fuzz", Status: 500}
		e.readBody(b)
		if !utf8.ValidString(e.Body) || len(e.Body) > 4*maxExcerpt || len(e.Fields) > maxFieldErrors {
			t.Errorf("got %d bytes of body, %d fields", len(e.Body), len(e.Fields))
		}
		_, _, _ = e.Error(), e.PlanLimit(), e.Retryable()
		if e.Certainty() == CertainlyNotAccepted && (e.RetryableSent == nil || e.Shape != ShapeStandard) {
			t.Error("a 500 without the standard body is certain")
		}
	})
}

func FuzzDecodeReports(f *testing.F) {
	seed(f)
	f.Add([]byte(`{"extraction_count":"7","success_rate":1e999,"requests":[{"date":"9999-12-31T23:59:59-14:00"}],"tokens_used":[{"tokens_used":-1}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var stats Statistics
		if _, err := decodeObject(b, &stats); err != nil {
			return
		}
		for _, day := range stats.Requests {
			if y := day.Date.Year(); y < 1 || y > 9999 || day.Success.N < 0 {
				t.Errorf("got %v, %v", day.Date, day.Success)
			}
		}
		if _, err := json.Marshal(stats); err != nil {
			t.Errorf("what was read can't be written: %v", err)
		}
		var hook Webhook
		if _, err := decodeObject(b, &hook); err == nil && checkAccepted(hook.ID) == nil {
			checkRead(t, hook.ID, "any")
		}
	})
}

// FuzzTarget: whatever the vendor calls a job, the next call goes to the vendor, to
// that job and to nothing else.
func FuzzTarget(f *testing.F) {
	for _, id := range []string{fuzzID, "../../x", "..", ".", "jobs", "a/b?c#d%2f", "@evil.test", "//evil.test/", "http://evil.test", "\\\\evil", "%00", " ", "\u202e", "a;b=c"} {
		f.Add(id)
	}
	base, err := parseBase("https://api.example/prefix")
	if err != nil {
		f.Fatal(err)
	}
	c := &Client{base: base}
	f.Fuzz(func(t *testing.T, id string) {
		if pathID(id) != nil {
			return
		}
		u, err := url.Parse(c.target(call{path: []string{"v1", "batch", id}, query: url.Values{"page": {"1"}}}))
		if err != nil {
			t.Fatal(err)
		}
		last, err := url.PathUnescape(strings.TrimPrefix(u.EscapedPath(), "/prefix/v1/batch/"))
		if u.Host != "api.example" || u.Scheme != "https" || u.User != nil || u.RawQuery != "page=1" || u.Fragment != "" || last != id || err != nil {
			t.Errorf("%q led to %s", id, u)
		}
		if clean := path.Clean(u.EscapedPath()); !strings.HasPrefix(clean, "/prefix/v1/batch/") || strings.Count(clean, "/") != 4 {
			t.Errorf("%q led to the route %s", id, clean)
		}
	})
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"", "0", "-1", "120", "99999999999999999999", "1.5", "soon", "Sun, 29 Nov 2026 12:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT"} {
		f.Add(s)
	}
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		if d, ok := parseRetryAfter(s, now); d < 0 || (!ok && d != 0) {
			t.Errorf("%q: got %s %t", s, d, ok)
		}
	})
}

func checkRead(t *testing.T, id string, status Status) {
	t.Helper()
	if err := ValidJobID(id); err != nil || status == "" {
		t.Errorf("got id %q, status %q: %v", id, status, err)
	}
}

func checkContent(t *testing.T, c *Content) {
	t.Helper()
	if c != nil && (!utf8.Valid(c.Markdown) || !utf8.Valid(c.HTML)) {
		t.Error("content is not UTF-8")
	}
}
