package pipeline_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// TestEveryChangeIsAudited: what a person changes is in the log under their
// name, once, and what changed nothing is not.
func TestEveryChangeIsAudited(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: func(c *pipeline.Config) { c.OnlySubmit = true }})
	u := &store.User{Name: "otto", Role: store.RoleOperator, PasswordHash: "x", CreatedAt: time.Now(), PasswordChangedAt: time.Now()}
	if err := r.store.AddUser(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	ctx := store.WithActor(t.Context(), store.Actor{UserID: u.ID, Name: u.Name, Source: "192.0.2.7"})
	id := func(n int64) string { return strconv.FormatInt(n, 10) }
	var want []string
	did := func(what, kind, on string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		want = append(want, what+" "+kind+" "+on)
	}
	urls := sandbox.MadeURLs(3, 1)
	submission := pipeline.Submission{
		Name: "november", Text: urls[0] + "\n" + urls[1], Kind: store.KindExtract, Token: "form-1",
		Headers: map[string]string{"Cookie": "secret-cookie"},
	}
	made, err := r.pipe.Submit(ctx, submission)
	did("batch.submit", "batch", id(made.BatchID), err)
	if again, err := r.pipe.Submit(ctx, submission); err != nil || again.BatchID != made.BatchID {
		t.Fatalf("the same form again: got %+v, %v", again, err)
	}
	if _, err := r.pipe.Submit(ctx, pipeline.Submission{Text: "nonsense"}); err == nil {
		t.Fatal("a bad submission passed")
	}
	crawl, err := r.pipe.Submit(ctx, pipeline.Submission{Text: urls[2], Kind: store.KindCrawl})
	did("batch.submit", "batch", id(crawl.BatchID), err)
	tried, err := r.pipe.TryNow(ctx, pipeline.Submission{Text: urls[2]})
	did("batch.try", "batch", id(tried.BatchID), err)

	job := r.number(`SELECT min(id) FROM jobs WHERE batch_id = $1`, made.BatchID)
	did("job.settle", "job", id(job), r.pipe.SettleNow(ctx, job))
	_, err = r.pipe.CancelJobs(ctx, []int64{job})
	did("job.cancel", "job", id(job), err)
	_, err = r.pipe.CancelJobs(ctx, []int64{job, job + 1})
	did("job.cancel", "job", "", err)
	_, err = r.pipe.CancelBatch(ctx, crawl.BatchID)
	did("batch.cancel", "batch", id(crawl.BatchID), err)
	if b, err := r.store.Batch(ctx, crawl.BatchID); err != nil || b.CancelRequestedAt == nil {
		t.Fatalf("the cancelled batch: got %+v, %v", b, err)
	} else if by, err := r.store.CancelledBy(ctx, b.ID, *b.CancelRequestedAt); by != "otto" || err != nil {
		t.Errorf("cancelled by: got %q, %v, want otto", by, err)
	}
	items := r.itemIDs(made.BatchID)
	_, err = r.pipe.Resubmit(ctx, items, store.AsPlanned{})
	did("item.resubmit", "item", "", err)
	if got, err := r.pipe.Resubmit(ctx, items, store.AsPlanned{}); err != nil || got.Items != 0 {
		t.Fatalf("resubmitted again: got %+v, %v", got, err)
	}
	did("reconcile.run", "reconcile", "", r.pipe.ReconcileNow(ctx))
	if _, err := r.store.PauseGate(ctx, store.GateSubmit, http.StatusUnauthorized, "the key", time.Now(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	did("dispatch.resume", "gate", store.GateSubmit, r.pipe.ResumeDispatch(ctx))
	if err := r.pipe.ResumeDispatch(ctx); err != nil {
		t.Fatal(err)
	}
	checkAudit(t, r, u, want)
}

func checkAudit(t *testing.T, r *rig, u *store.User, want []string) {
	t.Helper()
	rows, _, err := r.store.PageAudit(t.Context(), store.AuditFilter{}, store.Key{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range rows {
		row := &rows[len(rows)-1-i]
		got = append(got, row.What+" "+row.Kind+" "+row.OnID)
		if row.Who != u.Name || row.UserID == nil || *row.UserID != u.ID || row.Source != "192.0.2.7" {
			t.Errorf("%s: got by %q (%v) from %q", row.What, row.Who, row.UserID, row.Source)
		}
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("audit log (-got +want):\n%s", diff)
	}
	var first struct {
		Name     string `json:"name"`
		Kind     string `json:"kind"`
		Accepted int    `json:"accepted"`
	}
	if err := json.Unmarshal(rows[len(rows)-1].After, &first); err != nil || first.Name != "november" || first.Kind != "extract" || first.Accepted != 2 {
		t.Errorf("after the submission: got %s, %v", rows[len(rows)-1].After, err)
	}
	if n := r.number(`SELECT count(*) FROM audit_log WHERE concat(before, after) LIKE '%secret-cookie%'`); n != 0 {
		t.Error("a header is in the audit log")
	}
}
