package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rollcall/store"
)

// elsewhere registers a webhook at the vendor behind Rollcall's back, and returns its id and secret.
func (d *desk) elsewhere(t *testing.T, event string) (string, string) {
	t.Helper()
	body := fmt.Sprintf(`{"url": "https://elsewhere.example/hook", "event_type": %q, "description": "not ours"}`, event)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.vars["SCRAPER_API_BASE_URL"]+"/v1/webhooks", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", d.vars["GEONODE_SCRAPER_API_KEY"])
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var made struct {
		ID     string `json:"id"`
		Secret string `json:"secret"`
	}
	if err := json.Unmarshal(answer, &made); err != nil || made.Secret == "" {
		t.Fatalf("%d %s: %v", resp.StatusCode, answer, err)
	}
	return made.ID, made.Secret
}

// TestWebhookCommands changes webhooks as an admin without a browser would.
func TestWebhookCommands(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	run := start(t, d.vars, "serve")
	run.address()
	mustRun(t, d.vars, "webhook", "register")
	for _, step := range []struct{ verb, want string }{
		{"pause", " paused "}, {"pause", " paused "}, {"resume", " live "}, {"repair", " live "}, {"remove", " removed "},
	} {
		if got := mustRun(t, d.vars, "webhook", step.verb, "1"); !strings.Contains(got, step.want) {
			t.Errorf("webhook %s: got %s, want%sin it", step.verb, got, step.want)
		}
	}
	mustRun(t, d.vars, "webhook", "describe", "2", "the second one")
	if got := rollcall(t, envOf(d.vars), "webhook", "pause", "1"); got.code != 1 || !strings.Contains(got.errOut, "there is no webhook 1") {
		t.Errorf("a removed one: got %d %s", got.code, got.errOut)
	}
	id, secret := d.elsewhere(t, "extract_completed")
	if got := mustRun(t, d.vars, "webhook", "list", "--vendor"); !strings.Contains(got, id) || !strings.Contains(got, "3 of the account's 10") {
		t.Errorf("list --vendor: got %s", got)
	}
	if got := withInput(t, d.vars, "short\n", "webhook", "adopt", id); got.code != 1 || !strings.Contains(got.errOut, "too short") {
		t.Errorf("adopt with no secret: got %d %s", got.code, got.errOut)
	}
	if got := withInput(t, d.vars, "\n", "webhook", "adopt", id); got.code != 1 || !strings.Contains(got.errOut, "--secret-file") || strings.Contains(got.errOut, "Paste") {
		t.Errorf("adopt with nothing given: got %d %s", got.code, got.errOut)
	}
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := mustRun(t, d.vars, "webhook", "adopt", id, "--secret-file", file); !strings.Contains(got, " live ") || strings.Contains(got, secret) {
		t.Errorf("adopt: got %s, want it live, and no secret", got)
	}
	var list struct {
		Ours []listedWebhook `json:"ours"`
		Used int             `json:"used"`
	}
	if err := json.Unmarshal([]byte(mustRun(t, d.vars, "webhook", "list", "--vendor", "--json")), &list); err != nil || len(list.Ours) != 3 || list.Used != 3 {
		t.Errorf("got %+v, %v, want three of ours", list, err)
	}
	for _, w := range list.Ours {
		if w.ID == 2 && w.Description != "the second one" || w.VendorID == id && !w.Adopted {
			t.Errorf("got %+v", w)
		}
	}
	if b := d.home(d.submit(store.KindExtract, 3), patience); b.StoredWebhook == 0 {
		t.Errorf("got %+v, want some by the adopted webhook", b)
	}
}
