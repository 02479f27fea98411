package pipeline_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"rollcall/internal/pipeline"
)

// TestReconcileRunThatDied: a run that goes on is left alone for as long as it
// takes; once its process is gone, which takes its connections along, another
// is asked for.
func TestReconcileRunThatDied(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true})
	read, free := make(chan struct{}, 100), make(chan struct{})
	release := sync.OnceFunc(func() { close(free) })
	t.Cleanup(release)
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if strings.HasSuffix(req.URL.Path, "/jobs") {
			read <- struct{}{}
			<-free
		}
		next.ServeHTTP(w, req)
	})
	if err := r.pipe.ReconcileNow(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, "the run", read)
	r.exec(`UPDATE river_job SET attempted_at = attempted_at - interval '1 minute' WHERE kind = 'reconcile'`)
	if err := r.pipe.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := r.number("SELECT count(*) FROM river_job WHERE kind = 'reconcile'"); n != 1 {
		t.Errorf("while it runs: %d tasks, want the one", n)
	}
	r.exec(`SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND classid = 29298
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
	eventually(t, "the dead run's task to end", func() bool {
		if err := r.pipe.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		return r.number("SELECT count(*) FROM river_job WHERE kind = 'reconcile' AND state = 'discarded'") == 1
	})
	await(t, "the run of the new task", read)
	release()
	eventually(t, "the new run to end", func() bool {
		return r.number("SELECT count(*) FROM river_job WHERE kind = 'reconcile' AND state = 'completed' AND args->>'trigger' = 'person'") == 1
	})
}

// TestReconcileTimerOutlivesItsLeader: each process that leads the queue in
// turn runs at the same times.
func TestReconcileTimerOutlivesItsLeader(t *testing.T) {
	t.Parallel()
	schedule := pipeline.EveryFull(10 * time.Minute)
	due := time.Date(2026, 11, 29, 12, 10, 0, 0, time.UTC)
	for _, began := range []time.Duration{10 * time.Minute, 9 * time.Minute, time.Second} {
		if got := schedule.Next(due.Add(-began)); !got.Equal(due) {
			t.Errorf("a leader that began %s before: next run %s, want %s", began, got, due)
		}
	}
}
