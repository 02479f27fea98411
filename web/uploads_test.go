package web

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"rollcall/store"
)

// TestUploadsAreBounded: an index comes with its sitemaps; a large upload is
// refused in words while others take up the place there is, and a place is given
// back however the upload ended.
func TestUploadsAreBounded(t *testing.T) {
	t.Parallel()
	b := setupIdle(t)
	v := b.as(t, store.RoleAnalyst)
	entry := "<urlset><url><loc>https://a.test/1</loc></url></urlset>"
	send := func(files ...string) page {
		t.Helper()
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		for i := 0; i < len(files); i += 2 {
			part, err := form.CreateFormFile("file", files[i])
			if err == nil {
				_, err = part.Write([]byte(files[i+1]))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for name, value := range map[string]string{csrfField: v.token(), "format": "html"} {
			if err := form.WriteField(name, value); err != nil {
				t.Fatal(err)
			}
		}
		if err := form.Close(); err != nil {
			t.Fatal(err)
		}
		r := v.request(http.MethodPost, "/batches", &body)
		r.Header.Set("Content-Type", form.FormDataContentType())
		return v.do(r)
	}
	v.wantAt(send("one.xml", entry, "index.xml", "<sitemapindex><sitemap><loc>https://a.test/one.xml</loc></sitemap></sitemapindex>"), "/preflights/1")
	if got := v.get("/preflights/1").text("[data-testid=sum]"); !strings.HasPrefix(got, "1 Lines = 1 To submit") {
		t.Errorf("an index with its sitemap: got %q", got)
	}
	got := send("one.xml", entry, "two.xml", entry)
	if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.text("#file-error"), "one is an index") || got.doc.Find("input[name=kept]").Length() != 0 {
		t.Errorf("two sitemaps of no index: got %d, %q", got.status, got.text("#file-error"))
	}

	large := strings.Repeat("x", smallForm)
	others := b.server.uploads.budget.hold()
	if !others.take(maxUploads - smallForm) {
		t.Fatal("the place is not free")
	}
	got = send("large.csv", large)
	if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || !strings.Contains(got.text("main"), "Others are uploading") {
		t.Errorf("one upload too many: got %d, %q", got.status, got.text("main"))
	}
	v.wantAt(send("small.csv", "https://a.test/2"), "/preflights/2")
	others.release()
	v.wantAt(send("large.csv", large), "/preflights/3")
	if free := b.server.uploads.budget.free; free != maxUploads {
		t.Errorf("free after all: got %d, want %d", free, maxUploads)
	}
}
