package web

import (
	"bytes"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"rollcall/store"
)

func TestExpiredSessionKeepsTheBatch(t *testing.T) {
	t.Parallel()
	b := setupWith(t, Config{SessionIdle: time.Hour})
	b.addUser(t, "alice", store.RoleAnalyst)
	v := b.visit(t)
	v.post("/sign-in", signInForm("alice", password))
	fields := map[string][]string{
		csrfField: {v.token()}, "name": {"kept"}, "urls": {"https://a.example/1\r\n"}, "format": {"html"}, "headers": {"A: \"b\""},
	}
	b.clock.advance(2 * time.Hour)
	got := v.upload("/batches", fields, []byte("https://a.example/2"))
	if got.status != http.StatusUnauthorized || got.doc.Find("form[action='/sign-in']").Length() != 1 {
		t.Fatalf("got %d, want 401 with the sign-in form", got.status)
	}
	form := signInForm("alice", password)
	got.doc.Find("form input[type=hidden]").Each(func(_ int, s *goquery.Selection) {
		form.Add(s.AttrOr("name", ""), s.AttrOr("value", ""))
	})
	wrong := url.Values{}
	maps.Copy(wrong, form)
	wrong.Set("password", "wrong password")
	if got := v.post("/sign-in", wrong); got.status != http.StatusUnauthorized || got.doc.Find("input[name=batch_urls]").Length() != 1 {
		t.Errorf("wrong password: got %d, want the batch still there", got.status)
	}
	again := v.post("/sign-in", form)
	if again.status != http.StatusOK || again.text("textarea[name=urls]") != "https://a.example/1 https://a.example/2" {
		t.Fatalf("after sign-in: got %d, URLs %q", again.status, again.text("textarea[name=urls]"))
	}
	if again.doc.Find("input[name=name]").AttrOr("value", "") != "kept" || again.text("textarea[name=headers]") != `A: "b"` {
		t.Error("the form forgot a field")
	}
	if len(b.pipeline.submitted) != 0 {
		t.Error("the batch was submitted without being asked for")
	}
}

func TestTooLargeToCarry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.addUser(t, "alice", store.RoleAnalyst)
	v := b.visit(t)
	for _, size := range []int{carriedText + 1, 2 * carriedText} {
		got := v.upload("/batches", nil, bytes.Repeat([]byte("x"), size))
		if got.status != http.StatusUnauthorized || !strings.Contains(got.text("main"), "too large") {
			t.Errorf("%d bytes: got %d %q, want 401 saying so", size, got.status, got.text("main"))
		}
	}
}
