package pipeline_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// rekey seals the rig's database anew, as the command does.
func (r *rig) rekey(from, to byte) (pipeline.Rekeyed, error) {
	r.t.Helper()
	alone, err := store.Open(r.t.Context(), store.Config{DSN: r.dsn, MaxConns: 1})
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() {
		if err := alone.Close(); err != nil {
			r.t.Error(err)
		}
	}()
	return pipeline.Rekey(context.Background(), alone, bytes.Repeat([]byte{from}, 32), bytes.Repeat([]byte{to}, 32), time.Now())
}

// TestRekey: everything that was sealed opens with the new key and no more
// with the old one; with a wrong old key nothing changes.
func TestRekey(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true})
	if err := r.pipe.CheckKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	hook := r.newWebhook("extract_completed")
	r.addSecret(1, 2, testSecret+"-new")
	if _, err := r.pipe.Submit(t.Context(), pipeline.Submission{
		Name: "with headers", Kind: store.KindExtract, Text: "https://shop.sandbox.test/item/1",
		Options: pipeline.Options{Formats: []string{"markdown"}}, Headers: map[string]string{"X-Token": "kept from everybody"},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.rekey(7, 8); !errors.Is(err, pipeline.ErrServing) {
		t.Fatalf("got %v while another process is connected, want %v", err, pipeline.ErrServing)
	}
	r.disconnect()
	sealed := r.sealedNow()
	r.disconnect()
	if _, err := r.rekey(9, 8); !errors.Is(err, pipeline.ErrSealed) {
		t.Fatalf("got %v with a wrong key, want %v", err, pipeline.ErrSealed)
	}
	if got := r.sealedNow(); got != sealed {
		t.Error("a refused change of key changed something")
	}
	r.disconnect()
	done, err := r.rekey(7, 8)
	if err != nil || done != (pipeline.Rekeyed{Secrets: 2, Headers: 1}) {
		t.Fatalf("got %+v, %v, want two secrets and one batch's headers", done, err)
	}
	if err := r.pipe.CheckKey(t.Context()); !errors.Is(err, pipeline.ErrSealed) {
		t.Errorf("the old key: got %v, want %v", err, pipeline.ErrSealed)
	}
	after := r.newPipeline(setup{pipeline: func(c *pipeline.Config) { c.Key = bytes.Repeat([]byte{8}, 32) }})
	if err := errors.Join(after.CheckKey(t.Context()), after.CheckSecrets(t.Context())); err != nil {
		t.Errorf("the new key: %v", err)
	}
	if err := after.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := after.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for _, secret := range []string{testSecret, testSecret + "-new"} {
		got := after.Receive(t.Context(), signedDelivery(hook, "extract_completed", secret, envelopeFor("extract_completed", "job-of-"+secret)))
		if got.Status != http.StatusOK {
			t.Errorf("signed with %s: got %+v, want it taken up", secret, got)
		}
	}
	if b := r.ended(1); b.Stored() != 1 {
		t.Errorf("got %+v, want the batch with headers stored", b)
	}
}

// disconnect closes the rig's own connections and waits until the server has
// let go of them, which it does in its own time.
func (r *rig) disconnect() {
	r.t.Helper()
	r.store.Pool().Reset()
	eventually(r.t, "the connections to close", func() bool {
		return r.number(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'rollcall'`) == 0
	})
}

// sealedNow is everything that is sealed, as one text.
func (r *rig) sealedNow() string {
	return r.text(`SELECT (SELECT string_agg(encode(sealed, 'hex'), ' ' ORDER BY webhook_id, version) FROM webhook_secrets)
		|| (SELECT string_agg(encode(headers_sealed, 'hex'), ' ') FROM batches) || (SELECT value FROM settings WHERE key = 'secret_key_check')`)
}
