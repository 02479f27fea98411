package pipeline_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/geonode"
	"rollcall/internal/pipeline"
	"rollcall/store"
)

// listedBefore is a list whose jobs were made so long ago.
func listedBefore(listed any, ago time.Duration) []any {
	rows, _ := listed.([]any)
	for _, row := range rows {
		if row, ok := row.(map[string]any); ok {
			row["created_at"] = time.Now().Add(-ago).UTC().Format(time.RFC3339)
		}
	}
	return rows
}

// TestForeignJobIsCountedAndNeverFetched: another program uses the account. Its
// job is delivered, is in the vendor's lists, and is nobody's here.
func TestForeignJobIsCountedAndNeverFetched(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{pipeline: func(c *pipeline.Config) { c.HeldFor = time.Millisecond }})
	theirs, err := r.client.SubmitExtract(t.Context(), geonode.ExtractRequest{
		URL: "https://news.sandbox.test/another-program", Options: geonode.Options{Formats: []geonode.Format{geonode.FormatMarkdown}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var fetched atomic.Bool
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if strings.HasSuffix(req.URL.Path, "/"+theirs.JobID) {
			fetched.Store(true)
		}
		if req.URL.Path == "/v1/extract/jobs" { // One made just now might be ours.
			rewrite(w, req, next, "", func(_ int, body map[string]any) { body["jobs"] = listedBefore(body["jobs"], time.Hour) })
			return
		}
		next.ServeHTTP(w, req)
	})
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
	r.ended(id)
	eventually(t, "the delivery of their job", func() bool {
		return r.number(`SELECT count(*) FROM processed_events WHERE vendor_job_id = $1`, theirs.JobID) == 1
	})
	eventually(t, "their job to be foreign", func() bool {
		if err := r.pipe.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		return r.number(`SELECT count(*) FROM processed_events WHERE vendor_job_id = $1 AND state = 'foreign'`, theirs.JobID) == 1
	})
	if run := r.reconcile(); run.ForeignJobs != 1 {
		t.Errorf("the run counts %d jobs of others, want one", run.ForeignJobs)
	}
	if err := r.pipe.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if fetched.Load() {
		t.Error("another program's job was fetched")
	}
	r.balanced(id)
}
