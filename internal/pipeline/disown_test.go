package pipeline_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// TestDisownTriesTheKey: on a database that no server ran on, nothing tells at once whether the key is its own, so every
// secret is tried.
func TestDisownTriesTheKey(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true})
	r.newWebhook("extract_completed")
	if n := r.text(`SELECT count(*)::text FROM settings WHERE key = 'secret_key_check'`); n != "0" {
		t.Fatalf("%s texts tell of the key", n)
	}
	sealed := func() string { return r.text(`SELECT encode(sealed, 'hex') FROM webhook_secrets`) }
	before := sealed()
	r.disconnect()
	alone, err := store.Open(t.Context(), store.Config{DSN: r.dsn, MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	disown := func(key byte) (pipeline.Disowned, error) {
		return pipeline.Disown(context.Background(), alone, bytes.Repeat([]byte{key}, 32), time.Now())
	}
	if done, err := disown(7); !errors.Is(err, pipeline.ErrKeyFits) {
		t.Errorf("its own key: got %+v, %v, want %v", done, err, pipeline.ErrKeyFits)
	}
	done, err := disown(9)
	if err != nil || done.Secrets != 1 || len(done.Webhooks) != 1 {
		t.Errorf("another key: got %+v, %v, want its secret given up", done, err)
	}
	if err := alone.Close(); err != nil {
		t.Fatal(err)
	}
	if sealed() == before {
		t.Error("the lost secret is still there")
	}
}
