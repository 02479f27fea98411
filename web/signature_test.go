package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// typedSecret must not be anywhere after it was used.
const typedSecret = "whsec_never-to-be-seen-again-4711"

// liveHook inserts a webhook.
func (b *bench) liveHook(t *testing.T, event string) int64 {
	t.Helper()
	return b.id(t, `INSERT INTO webhooks (endpoint, event_type, url, state, created_at, state_at)
		VALUES ($1, $2, 'https://desk.example/webhooks/geonode/x', 'live', now(), now()) RETURNING id`, "endpoint-"+newToken(), event)
}

// TestCheckASignature: what was captured shows its form, and one click sets it;
// the secret is used and gone.
func TestCheckASignature(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAdmin)
	b.liveHook(t, "extract_completed")
	crawl := b.liveHook(t, "crawl_completed")
	const body = "\r\n{\"a\":\r\n \"<b>\"}\r\n"
	form := url.Values{"headers": {"POST /x HTTP/1.1\r\nX-Webhook-Signature: good"}, "body": {body}, "secret": {typedSecret}}
	got := v.submit("/webhooks/check", form)
	if got.status != http.StatusOK || !strings.Contains(got.text("[data-testid=result]"), "The signature matches It is hex of the body, keyed with the whole secret, no prefix. The body that was signed: as it was pasted.") {
		t.Fatalf("got %d %q", got.status, got.text("main"))
	}
	if sent := b.pipeline.checked[0]; sent.Secret != typedSecret || sent.Body != body || sent.Header.Get("X-Webhook-Signature") != "good" {
		t.Errorf("handed on: %+v", sent)
	}
	// A parser drops one newline at the beginning of a textarea.
	if kept := got.doc.Find("textarea[name=body]").Text(); kept != strings.ReplaceAll(body, "\r\n", "\n") {
		t.Errorf("the body came back as %q", kept)
	}
	if kept := got.doc.Find("textarea[name=headers]").Text(); !strings.Contains(kept, "X-Webhook-Signature: good") {
		t.Errorf("the headers came back as %q", kept)
	}
	if chosen, _ := got.doc.Find("#webhook option[selected]").Attr("value"); chosen != idText(crawl) {
		t.Errorf("the webhook %q is chosen, want the one of the event", chosen)
	}
	found, _ := got.doc.Find("form[action='/webhooks/check/form'] input[name=form]").Attr("value")
	set := v.submit("/webhooks/check/form", url.Values{"form": {found}, "webhook": {idText(crawl)}})
	if set.status != http.StatusSeeOther || set.header.Get("Location") != fmt.Sprintf("/webhooks/%d", crawl) {
		t.Errorf("got %d to %s", set.status, set.header.Get("Location"))
	}
	if asked := b.pipeline.all(); len(asked) != 1 || asked[0] != fmt.Sprintf("form %d body whole none hex", crawl) {
		t.Errorf("asked %q", asked)
	}
	form.Set("headers", "X-Webhook-Signature: bad")
	if again := v.submit("/webhooks/check", form); again.text("[data-testid=result]") != "Nothing matches Nothing matches: <b>." || again.doc.Find("#webhook").Length() != 0 {
		t.Errorf("got %q", again.text("main"))
	}
	b.pipeline.fixed = "body whole none base64"
	form.Set("headers", "X-Webhook-Signature: good")
	if other := v.submit("/webhooks/check", form); !strings.Contains(other.text("[data-testid=result]"), "The settings ROLLCALL_SIGNATURE_* fix another form") ||
		other.doc.Find("#webhook").Length() != 0 {
		t.Errorf("with a form fixed by the settings: got %q", other.text("main"))
	}
	for what, text := range map[string]string{"the page": got.body, "the log": b.log.String()} {
		if strings.Contains(text, typedSecret) {
			t.Errorf("the secret is in %s", what)
		}
	}
}

// TestCheckSaysWhatIsWrong with what was typed, and keeps it but for the
// secret.
func TestCheckSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAdmin)
	const good = "X-Webhook-Signature: good"
	for _, c := range []struct{ name, headers, body, secret, field, want string }{
		{"bad line", good + "\r\nnonsense", "{}", typedSecret, "headers", `Line 2 has no colon: a header is written "Name: value".`},
		{"no headers", "\r\n", "{}", typedSecret, "headers", "Enter the headers that came with the delivery."},
		{"long body", good, strings.Repeat("x", 1<<20+1), typedSecret, "body", "The body is over 1,048,576 bytes."},
		{"no secret", good, "{}", "", "secret", "Enter the secret."},
		{"short secret", good, "{}", "whsec_1", "secret", "A secret has at least 16 characters."},
		{"long secret", good, "{}", strings.Repeat("s", 501), "secret", "The secret is over 500 characters."},
	} {
		got := v.submit("/webhooks/check", url.Values{"headers": {c.headers}, "body": {c.body}, "secret": {c.secret}})
		if got.status != http.StatusUnprocessableEntity || got.text("#"+c.field+"-error") != c.want || !strings.Contains(got.text("#error-summary"), c.want) {
			t.Errorf("%s: got %d %q", c.name, got.status, got.text("#"+c.field+"-error"))
		}
		if c.field != "headers" && !strings.Contains(got.doc.Find("textarea[name=headers]").Text(), "good") {
			t.Errorf("%s: the headers are gone", c.name)
		}
		if value, has := got.doc.Find("#secret").Attr("value"); has || c.secret != "" && strings.Contains(got.body, c.secret) {
			t.Errorf("%s: the secret came back: %q", c.name, value)
		}
	}
	if len(b.pipeline.checked) != 0 {
		t.Error("something was checked all the same")
	}
	if got := v.submit("/webhooks/check/form", url.Values{"form": {"x"}, "webhook": {"none"}}); got.status != http.StatusNotFound {
		t.Errorf("a webhook that is none: got %d", got.status)
	}
	b.pipeline.refuse = &pipeline.WebhookError{Field: "form", Text: "The settings fix another form."}
	if got := v.submit("/webhooks/check/form", url.Values{"form": {"x"}, "webhook": {"1"}}); got.header.Get("Location") != "/webhooks/check" {
		t.Errorf("got %d to %q", got.status, got.header.Get("Location"))
	}
	if got := v.get("/webhooks/check"); !strings.Contains(got.text("main"), "The settings fix another form.") {
		t.Errorf("got %q", got.text("main"))
	}
}

// TestTheSecretDoesNotOutliveASession: a form that comes too late is not
// carried through the sign-in.
func TestTheSecretDoesNotOutliveASession(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.addUser(t, "ada", store.RoleAdmin)
	got := b.visit(t).post("/webhooks/check", url.Values{"headers": {"A: b"}, "body": {"{}"}, "secret": {typedSecret}})
	if got.status != http.StatusUnauthorized || strings.Contains(got.body, typedSecret) || strings.Contains(b.log.String(), typedSecret) {
		t.Errorf("got %d: %s", got.status, got.body)
	}
}

// TestVerifyADeliveryAgain: operators have the button, and are told what came
// of it.
func TestVerifyADeliveryAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	operator, analyst := b.as(t, store.RoleOperator), b.as(t, store.RoleAnalyst)
	refused := b.deliver(t, "", "refused", []byte("{}"))
	b.exec(t, `UPDATE deliveries SET diagnosis = $1, diagnosed_at = now(), reason = 'signature does not match' WHERE id = $2`,
		"retired_secret: Signed with version 2 of the secret.", refused)
	fresh, good := b.deliver(t, "", "refused", []byte("{}")), b.deliver(t, "", "accepted", []byte("{}"))
	page := func(id int64) string { return fmt.Sprintf("/deliveries/%d", id) }
	if got := analyst.get(page(refused)); got.text("[data-testid=diagnosis]") != "Signed with a retired secret Signed with version 2 of the secret." {
		t.Errorf("an analyst sees %q", got.text("[data-testid=diagnosis]"))
	}
	if got := operator.get(page(fresh)); !strings.HasPrefix(got.text("[data-testid=diagnosis]"), "Why it was refused isn't known yet") ||
		got.doc.Find(fmt.Sprintf("form[action='%s/verify']", page(fresh))).Length() != 1 {
		t.Errorf("an operator sees %q", got.text("[data-testid=diagnosis]"))
	}
	unread := b.deliver(t, "", "unreadable", []byte("{}"))
	if got := operator.get(page(unread)); !strings.Contains(got.text("[data-testid=diagnosis]"), "ROLLCALL_FIELD_") ||
		got.doc.Find(fmt.Sprintf("form[action='%s/verify']", page(unread))).Length() != 1 {
		t.Errorf("one that can't be read: an operator sees %q", got.text("[data-testid=diagnosis]"))
	}
	unseen := b.deliver(t, "", "refused", []byte{})
	b.exec(t, `UPDATE deliveries SET status = 415, reason = 'the Content-Type must be application/json' WHERE id = $1`, unseen)
	got := operator.get(page(unseen))
	if !strings.HasPrefix(got.text("[data-testid=diagnosis]"), "Refused unread") || !strings.Contains(got.text("main"), "before its body was read") || strings.Contains(got.text("main"), "no body") ||
		got.doc.Find(fmt.Sprintf("form[action='%s/verify'], a[href^='/replays/new']", page(unseen))).Length() != 0 {
		t.Errorf("one that was refused unread: an operator sees %q", got.text("main"))
	}
	if got := operator.get(page(good)); got.doc.Find("[data-testid=diagnosis]").Length() != 0 {
		t.Error("an accepted delivery has a reason for a refusal")
	}
	matches := pipeline.Diagnosis{Code: pipeline.DiagnosedMatches, Text: "Version 3 verifies it."}
	b.pipeline.stored = map[int64]pipeline.Verification{
		refused: {Verdict: store.VerdictRefused, Matches: true, Diagnosis: matches},
		fresh:   {Verdict: store.VerdictRefused, Diagnosis: pipeline.Diagnosis{Text: "Nothing matches."}},
		good:    {Verdict: store.VerdictAccepted, Matches: true, Diagnosis: matches},
		unread:  {Verdict: store.VerdictUnreadable, Matches: true, Diagnosis: matches},
	}
	for id, want := range map[int64]string{
		refused: "Verified, and taken up like any other delivery. Version 3 verifies it.",
		fresh:   "Still refused: Nothing matches.", unread: "Verified, and taken up like any other delivery. Version 3 verifies it.", good: "It is not refused any more. Version 3 verifies it.",
	} {
		got := operator.submit(page(id)+"/verify", nil)
		if got.status != http.StatusSeeOther || got.header.Get("Location") != page(id) {
			t.Errorf("%d: got %d to %q", id, got.status, got.header.Get("Location"))
		}
		if text := operator.get(page(id)).text("[role=status]"); text != want {
			t.Errorf("%d: told %q, want %q", id, text, want)
		}
	}
	if len(b.pipeline.taken) != 3 {
		t.Errorf("taken up: %v, want all but the accepted one", b.pipeline.taken)
	}
	if got := operator.submit("/deliveries/999/verify", nil); got.status != http.StatusNotFound {
		t.Errorf("one that is none: got %d", got.status)
	}
	if got := analyst.submit(page(refused)+"/verify", nil); got.status != http.StatusForbidden {
		t.Errorf("an analyst: got %d, want 403", got.status)
	}
}

// TestRefusedCountsAreSummedUp over a week, by webhook.
func TestRefusedCountsAreSummedUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.liveHook(t, "crawl_completed")
	for days, cause := range map[int]store.RefusedCause{0: store.CauseUnsigned, 1: store.CauseFull, 2: store.CauseBusy, 20: store.CauseUnsigned} {
		at := time.Now().Add(-time.Duration(days) * 24 * time.Hour)
		err := b.store.AddRefusedCount(t.Context(), store.RefusedCount{WebhookID: id, Day: at, Cause: cause, Deliveries: int64(100 + days), LastAt: at, LastSource: fmt.Sprint("192.0.2.", days)})
		if err != nil {
			t.Fatal(err)
		}
	}
	other := b.liveHook(t, "batch_completed")
	v := b.as(t, store.RoleAdmin)
	const want = "Of the last seven days' refused deliveries to crawl_completed some were only counted: 100 without a signature, 203 beyond what is kept. Last "
	for path, times := range map[string]int{"/deliveries": 1, fmt.Sprintf("/webhooks/%d", id): 1, fmt.Sprintf("/webhooks/%d", other): 0} {
		got := v.get(path)
		if n := got.doc.Find("[data-testid=refused-count]").Length(); n != times || times > 0 && !strings.HasPrefix(got.text("[data-testid=refused-count]"), want) {
			t.Errorf("%s: got %d times %q", path, n, got.text("[data-testid=refused-count]"))
		}
	}
}

// TestCheckInABrowser: lines go through a textarea, the result is told, the
// secret's field is empty afterwards, and one click sets the form.
func TestCheckInABrowser(t *testing.T) {
	t.Parallel()
	o := openTab(t)
	b := setup(t)
	b.addUser(t, "ada", store.RoleAdmin)
	id := b.liveHook(t, "crawl_completed")
	o.open(t, b.url+"/webhooks/check")
	o.until(t, `document.querySelector("#name") !== null`)
	o.signIn(t, "ada")
	o.until(t, `document.querySelector("#secret") !== null`)
	o.run(t, `document.querySelector("#headers").value = "X-Webhook-Signature: good\nX-A: b"; document.querySelector("#body").value = "{\n}\n";
		document.querySelector("#secret").value = "`+typedSecret+`"; document.querySelector("form[action='/webhooks/check']").requestSubmit()`)
	o.until(t, `document.querySelector("[data-testid=result]")?.innerText.includes("The signature matches") && document.activeElement.id === "result"`)
	o.until(t, `document.querySelector("#secret").value === "" && document.querySelector("#body").value === "{\n}\n" && !document.documentElement.outerHTML.includes("never-to-be-seen")`)
	o.run(t, `document.querySelector("form[action='/webhooks/check/form']").requestSubmit()`)
	o.until(t, fmt.Sprintf(`location.pathname === "/webhooks/%d" && document.body.innerText.includes("Only this form of signature")`, id))
	if sent := b.pipeline.checked[0].Body; sent != "{\r\n}\r\n" {
		t.Errorf("the browser sent %q: the readings of a body are wrong", sent)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.console) > 0 {
		t.Errorf("the console says %q", o.console)
	}
}
