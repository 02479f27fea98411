package web

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
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
	if n := b.id(t, `SELECT count(*) FROM preflights WHERE name = 'one' AND id = 1 OR name = 'small' AND id = 2`); n != 2 {
		t.Errorf("%d of two lists are named after their file", n)
	}
	if free := b.server.uploads.budget.free; free != maxUploads {
		t.Errorf("free after all: got %d, want %d", free, maxUploads)
	}
}

// TestSlowUploadsHoldNothing: as many slow uploads as are read at once, half of which came, neither take a place from
// others nor keep a transaction open, and what is given up leaves nothing.
func TestSlowUploadsHoldNothing(t *testing.T) {
	t.Parallel()
	b := setupIdle(t)
	v := b.as(t, store.RoleAnalyst)
	ended := make(chan error, 2)
	var slow []*io.PipeWriter
	for range 2 {
		body, in := io.Pipe()
		form := multipart.NewWriter(in)
		r := v.request(http.MethodPost, "/preflights", body)
		r.Header.Set("Content-Type", form.FormDataContentType())
		go func() {
			answer, err := v.client.Do(r)
			if err == nil {
				err = answer.Body.Close()
			}
			ended <- err
		}()
		part, err := form.CreateFormFile("file", "slow.txt")
		if err != nil {
			t.Fatal(err)
		}
		line := []byte("https://a.test/1\n")
		if _, err := part.Write(bytes.Repeat(line, (12<<20)/len(line))); err != nil { // More than lies on the way: the server reads it.
			t.Fatal(err)
		}
		slow = append(slow, in)
	}
	for _, path := range []string{"/preflights/1", "/preflights/2"} {
		v.wantAt(v.submit("/preflights", url.Values{"format": {"html"}, "urls": {"https://a.test/1\nnonsense"}}), path)
	}
	if n := b.id(t, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'`); n != 0 {
		t.Errorf("%d transactions are open while uploads come", n)
	}
	for _, in := range slow {
		_ = in.CloseWithError(io.ErrUnexpectedEOF) // As a client that goes away.
	}
	for range slow {
		if err := <-ended; err == nil {
			t.Error("an upload that was given up was answered as a whole one")
		}
	}
	if n := b.id(t, `SELECT count(*) FROM preflights`); n != 2 {
		t.Errorf("%d preflights are kept, want those of the two whole uploads", n)
	}
}
