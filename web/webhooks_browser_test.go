package web

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"rollcall/internal/sandbox"
	"rollcall/store"
)

// atVendor makes a call as somebody else with the account's key would.
func atVendor(t *testing.T, box *sandbox.Sandbox, method, path, body string) map[string]any {
	t.Helper()
	req := httptest.NewRequestWithContext(context.Background(), method, path, strings.NewReader(body))
	req.Header.Set("X-Api-Key", sandbox.DefaultAPIKey)
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	box.Handler().ServeHTTP(rec, req)
	out := map[string]any{}
	if rec.Code >= 300 || json.Unmarshal(rec.Body.Bytes(), &out) != nil {
		t.Fatalf("%s %s: %d %s", method, path, rec.Code, rec.Body)
	}
	return out
}

// press clicks what changes something, and waits until the next page says so.
func (o *tab) press(t *testing.T, button, said string) {
	t.Helper()
	o.run(t, `document.querySelector("`+button+`").click()`)
	o.until(t, `document.querySelector("main .note")?.textContent.includes("`+said+`")`)
}

// TestWebhooksInABrowser is the way of an admin: register, pause, resume,
// repair from the alarm on the overview, adopt, and send one.
func TestWebhooksInABrowser(t *testing.T) {
	t.Parallel()
	o := openTab(t)
	b, pipe, box := setupActual(t)
	b.addUser(t, "carol", store.RoleAdmin)
	o.open(t, b.url+"/webhooks")
	o.signIn(t, "carol")
	o.until(t, `document.querySelector("[data-testid=register]") !== null`)
	o.press(t, "[data-testid=register]", "three events are registered")
	o.until(t, `document.querySelectorAll("[data-testid=webhooks] tbody .word-ok").length === 3 && document.querySelector("[data-testid=used]").textContent.includes("3 are used")`)

	o.run(t, `document.querySelector("[data-testid=webhooks] tbody th a").click()`)
	o.until(t, `document.querySelector("h1")?.textContent.trim() === "extract_completed"`)
	o.press(t, "[data-testid=pause]", "Paused.")
	o.until(t, `document.querySelector(".facts")?.textContent.includes("Paused")`)
	o.press(t, "[data-testid=resume]", "Resumed.")

	hooks, err := b.store.Webhooks(t.Context())
	if err != nil || len(hooks) != 3 {
		t.Fatalf("got %d webhooks, %v, want 3", len(hooks), err)
	}
	atVendor(t, box, http.MethodPatch, "/v1/webhooks/"+*hooks[1].VendorWebhookID, `{"is_active": false}`)
	if err := pipe.CheckWebhooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.open(t, b.url+"/")
	o.until(t, `document.querySelector("main .note-danger")?.textContent.includes("The webhook for `+hooks[1].EventType+` brings nothing home")`)
	o.press(t, "main .note-danger button", "Repaired.")
	o.until(t, `document.querySelector(".facts")?.textContent.includes("Active")`)

	theirs := atVendor(t, box, http.MethodPost, "/v1/webhooks", `{"url": "https://elsewhere.example/hook", "event_type": "crawl_completed"}`)
	o.open(t, b.url+"/webhooks")
	o.until(t, `document.querySelectorAll("[data-testid=foreign] tbody tr").length === 1`)
	o.run(t, `document.querySelector("[data-testid=foreign] a.btn").click()`)
	o.until(t, `document.querySelector("[data-testid=adopt-change]")?.textContent.includes("will be changed from https://elsewhere.example/hook")`)
	secret, ok := theirs["secret"].(string)
	if !ok {
		t.Fatalf("got %v, want a secret", theirs)
	}
	o.run(t, `document.querySelector("#secret").value = "`+secret+`"`)
	o.press(t, "[data-testid=adopt]", "Adopted.")
	o.until(t, `document.querySelector(".facts")?.textContent.includes("Adopted") && !document.body.textContent.includes("`+secret+`")`)

	o.run(t, `document.querySelector("[data-testid=send]").click()`)
	o.until(t, `document.querySelectorAll("[data-testid=hops] li[data-state=done]").length === 6 && document.querySelector("[data-testid=verdict]").textContent.includes("all the way")`)
	for _, line := range o.hear() {
		if !strings.Contains(line, "net::ERR_") {
			t.Errorf("console: %s", line)
		}
	}
}
