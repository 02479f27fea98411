package pipeline_test

import (
	"fmt"
	"net/http"
	"testing"

	"rollcall/store"
)

// TestRotationBringsAKnownSecret: the vendor answers with a secret that the webhook had before. It is what the vendor
// signs with, so it is taken, but an admin who rotated since it leaked is told that it is no new one.
func TestRotationBringsAKnownSecret(t *testing.T) {
	t.Parallel()
	r := newTurning(t, setup{})
	told := func() string {
		return r.text(`SELECT coalesce(string_agg(on_id || ' ' || after::text, ';' ORDER BY id), '') FROM audit_log WHERE what = 'webhook.secret_repeated'`)
	}
	r.turnedTo(r.rotate(true).ID, store.RotationDone)
	if got := told(); got != "" {
		t.Errorf("a new secret: the audit log tells %q", got)
	}
	r.wantSame(0)
	r.answer(func(_ int64, w http.ResponseWriter) {
		answerJSON(w, http.StatusOK, map[string]any{"secret": testSecret}, "")
	})
	r.turnedTo(r.rotate(true).ID, store.RotationDone)
	if got, want := told(), fmt.Sprintf(`%d {"same_as": 1, "version": 3}`, r.hook.ID); got != want {
		t.Errorf("the first secret again, which had ended: the audit log tells %q, want %q", got, want)
	}
	r.wantSame(1)
	r.wantAnswer(testSecret, "signed-with-it", http.StatusOK)
	r.exec(`UPDATE webhook_secrets SET sealed = 'spoiled' WHERE webhook_id = $1 AND version < 3`, r.hook.ID)
	r.turnedTo(r.rotate(false).ID, store.RotationDone)
	if got := r.number(`SELECT count(*) FROM audit_log WHERE what = 'webhook.secret_repeated'`); got != 2 {
		t.Errorf("the same once more, beside versions that can't be opened: told %d times, want 2", got)
	}
}

// wantSame wants the last rotation to say whose secret it brought again; 0 for a new one.
func (r *turning) wantSame(version int64) {
	r.t.Helper()
	if got := r.number(`SELECT coalesce(same_as, 0) FROM rotations ORDER BY id DESC LIMIT 1`); got != version {
		r.t.Errorf("the rotation is of the same secret as version %d, want %d", got, version)
	}
}
