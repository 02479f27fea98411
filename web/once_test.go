package web

import (
	"net/url"
	"slices"
	"testing"

	"rollcall/store"
)

// TestFormsCarryATokenOfTheirOwn: each form that costs something has one, keeps
// it when it comes back with mistakes, and hands it on.
func TestFormsCarryATokenOfTheirOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	once := func(p page) string {
		t.Helper()
		token, ok := p.doc.Find("input[name=once]").Attr("value")
		if !ok || len(token) < 20 {
			t.Fatalf("the form's token is %q", token)
		}
		return token
	}
	for path, to := range map[string]string{"/batches/new": "/batches", "/crawls/new": "/crawls", "/try": "/try"} {
		first := once(v.get(path))
		if first == once(v.get(path)) {
			t.Errorf("%s: two forms have one token", path)
		}
		form := url.Values{"once": {first}, "urls": {"https://a.test/"}, "wait_timeout": {"soon"}, "format": {"markdown"}, "depth": {"2"}, "limit": {"5"}}
		if again := once(v.submit(to, form)); again != first {
			t.Errorf("%s: the form came back with the token %s, sent was %s", path, again, first)
		}
		form.Del("wait_timeout")
		if got := v.submit(to, form); got.status != 303 {
			t.Fatalf("%s: got %d", path, got.status)
		}
		all := slices.Concat(b.pipeline.submitted, b.pipeline.tried)
		sent := all[len(all)-1]
		b.pipeline.submitted, b.pipeline.tried = nil, nil
		if sent.Token != first {
			t.Errorf("%s: handed on with the token %q, want %q", path, sent.Token, first)
		}
	}
}
