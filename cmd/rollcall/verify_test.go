package main

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
	"rollcall/store/storetest"
)

// sealed is a webhook's secret as it lies in the database.
func sealed(t *testing.T, key []byte, webhook int64, version int, secret string) []byte {
	t.Helper()
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	nonce := make([]byte, gcm.NonceSize())
	return gcm.Seal(nonce, nonce, []byte(secret), fmt.Appendf(nil, "webhook_secrets/%d/%d", webhook, version))
}

// TestVerify: the stored bytes of a delivery are verified again; what the
// command prints and how it ends say what was found.
func TestVerify(t *testing.T) {
	t.Parallel()
	const secret, body = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX", `{"data":{"job_id":"job-1"}}`
	key := bytes.Repeat([]byte{9}, 32)
	dsn := storetest.DSN(t)
	vars := map[string]string{
		"DATABASE_URL": dsn, "ROLLCALL_DATA_DIR": t.TempDir(), "ROLLCALL_SECRET_KEY": hex.EncodeToString(key),
		"GEONODE_SCRAPER_API_KEY": sandbox.DefaultAPIKey,
	}
	db := storetest.Open(t, dsn)
	w := &store.Webhook{Endpoint: "anendpointofthetest1", EventType: "batch_completed", URL: "https://desk.example/x", State: store.WebhookLive, CreatedAt: time.Now(), StateAt: time.Now()}
	if err := db.InsertWebhook(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	insert := func(signature string) string {
		t.Helper()
		var id int64
		err := db.SQL().QueryRowContext(t.Context(), `INSERT INTO deliveries (webhook_id, received_at, verdict, status, reason, headers, body, body_size)
			VALUES ($1, now(), 'refused', 401, 'signature does not match', $2, $3, $4) RETURNING id`,
			w.ID, fmt.Appendf(nil, `{"X-Webhook-Signature":[%q]}`, signature), []byte(body), len(body)).Scan(&id)
		if err != nil {
			t.Fatal(err)
		}
		return strconv.FormatInt(id, 10)
	}
	if _, err := db.SQL().ExecContext(t.Context(), `INSERT INTO webhook_secrets (webhook_id, version, sealed, valid_from) VALUES ($1, 1, $2, now())`,
		w.ID, sealed(t, key, w.ID, 1, secret)); err != nil {
		t.Fatal(err)
	}
	good, bad := insert(sandbox.Sign(sandbox.SignatureForm{}, secret, "", "", []byte(body))), insert(strings.Repeat("ab", 32))
	for _, c := range []struct {
		id   string
		code int
		want []string
	}{
		{good, 0, []string{"delivery " + good, "refused, answered 401", "Matches today's secret", "(version 1)", "verify it again on its page"}},
		{bad, 1, []string{"Nothing matches", "stored secret (version 1)"}},
		{"999", 1, []string{"there is no delivery 999"}},
	} {
		got := rollcall(t, envOf(vars), "verify", c.id)
		for _, want := range c.want {
			if got.code != c.code || !strings.Contains(got.out+got.errOut, want) {
				t.Errorf("verify %s: got %+v, want %d and %q", c.id, got, c.code, want)
			}
		}
		if strings.Contains(got.out+got.errOut, secret[6:]) {
			t.Errorf("verify %s tells the secret", c.id)
		}
	}
	got := rollcall(t, envOf(vars), "verify", good, "--json")
	var v pipeline.Verification
	if err := json.Unmarshal([]byte(got.out), &v); err != nil || got.code != 0 || !v.Matches || v.Version != 1 || v.Form != "body whole none hex" {
		t.Errorf("got %+v, %v of %+v", v, err, got)
	}
}
