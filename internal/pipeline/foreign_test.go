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
