package pipeline_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestRotationReadsTheWholeLog also when another reading, that ended where
// nothing was new, has begun since the secret was stored.
func TestRotationReadsTheWholeLog(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, stopped: true})
	log := newLog(700, newestFirst)
	w := r.hooked("whole")
	r.front.set(func(out http.ResponseWriter, req *http.Request, next http.Handler) {
		if strings.HasSuffix(req.URL.Path, "/rotate-secret") {
			answerJSON(out, http.StatusOK, map[string]any{"secret": "whsec_of-a-webhook-that-no-sandbox-knows"}, "a webhook of this test's own")
			return
		}
		log.serve(out, req, next)
	})
	r.mirror(w, true)
	log.pages()
	r.exec(`UPDATE delivery_log_reads SET started_at = now() + interval '1 minute'`)
	begun, err := r.pipe.Rotate(t.Context(), w.ID, false)
	if err != nil {
		t.Fatal(err)
	}
	if ended, err := r.pipe.FollowRotation(t.Context(), begun.ID); err != nil || ended.LogReadAt == nil {
		t.Fatalf("got %+v, %v", ended, err)
	}
	wantPages(t, log, 1, 7)
}
