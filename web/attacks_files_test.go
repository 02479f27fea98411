package web

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"rollcall/store"
)

// TestFileNamesCarryNothing: what a page's address, a batch or a file is called can't end a header, name a folder, or be
// taken for another type.
func TestFileNamesCarryNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAdmin)
	const evil = "https://a.example/../../etc/passwd%0d%0aSet-Cookie: a=b\"; filename=x.exe/\r\nX-Evil: 1"
	s := b.seed(t, "b\"\r\nX-Evil: 1\r\n\r\n<script>../../x", 4)
	b.exec(t, `UPDATE items SET url = $1 || id`, evil)
	b.exec(t, `UPDATE rejected_lines SET text = $1, reason = $1`, evil)
	delivery := b.deliver(t, s.vendorID, "refused", []byte("<script>"))
	plain := regexp.MustCompile(`^attachment; filename="[A-Za-z0-9._-]+"$`)
	for _, path := range []string{
		fmt.Sprintf("/results/%d/download?format=markdown", s.items[0]), fmt.Sprintf("/results/%d/download?format=html", s.items[0]),
		fmt.Sprintf("/results/%d/download?format=json", s.items[0]), fmt.Sprintf("/batches/%d/export?format=csv", s.batch),
		fmt.Sprintf("/batches/%d/export?format=jsonl", s.batch), fmt.Sprintf("/batches/%d/export?format=zip", s.batch),
		fmt.Sprintf("/deliveries/%d/body", delivery), "/exports/1/manifest.json", "/audit.csv", "/audit.jsonl",
	} {
		got := v.get(path)
		if name := got.header.Get("Content-Disposition"); got.status != http.StatusOK || !plain.MatchString(name) {
			t.Errorf("%s: got %d as %q", path, got.status, name)
		}
		if got.header.Get("X-Evil") != "" || got.header.Get("X-Content-Type-Options") != "nosniff" || strings.HasPrefix(got.header.Get("Content-Type"), "text/html") {
			t.Errorf("%s: got %v", path, got.header)
		}
	}
	archive := v.get(fmt.Sprintf("/batches/%d/export?format=zip", s.batch)).body
	files, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files.File {
		if !regexp.MustCompile(`^([a-z0-9-]+/)?[a-z0-9-]+\.[a-z]+$`).MatchString(f.Name) {
			t.Errorf("a file of the archive is called %q", f.Name)
		}
	}
}

// TestNoPathLeadsToAFile: what isn't in the program can't be fetched through any address that hands out files.
func TestNoPathLeadsToAFile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAdmin)
	s := b.seed(t, "november", 2)
	cookie := v.client.Jar.Cookies(v.request(http.MethodGet, "/", nil).URL)[0]
	var places []string
	for _, up := range []string{"../", "..%2f", "%2e%2e/", "%2e%2e%2f", "..%5c", "..\\", "%252e%252e%252f", "..;/", ".%00./", "%c0%ae%c0%ae/"} {
		way := strings.Repeat(up, 6) + "etc/passwd"
		places = append(places, "/static/"+way, "/static/x/"+way, fmt.Sprintf("/results/%d/download?format=%s", s.items[0], way),
			fmt.Sprintf("/results/%d/%s", s.items[0], way), "/exports/"+way, fmt.Sprintf("/batches/%d/export?format=csv&name=%s", s.batch, way), "/"+way)
	}
	for _, path := range places {
		conn, reader := b.dial(t)
		if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: desk\r\nAccept: text/html\r\nCookie: "+cookie.String()+"\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		got := answerOf(t, reader)
		if strings.Contains(got.body, "root:") || got.status >= http.StatusInternalServerError || got.status == http.StatusOK && !strings.Contains(path, "?") {
			t.Errorf("%s: got %d, %.100q", path, got.status, got.body)
		}
		conn.Close()
	}
}

// bomb is a gzipped file that unpacks to a gigabyte of text, and takes no work to make.
func bomb(t *testing.T, text string) []byte {
	t.Helper()
	var part bytes.Buffer
	z := gzip.NewWriter(&part)
	if _, err := io.WriteString(z, strings.Repeat(text, (1<<20)/len(text))); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return bytes.Repeat(part.Bytes(), 1<<10)
}

// TestBombsInUploads: what is small and unpacks to much, or to no end, is refused in words, as soon as it is over a bound,
// and by people who aren't signed in it isn't unpacked at all.
func TestBombsInUploads(t *testing.T) {
	t.Parallel()
	b := setupIdle(t)
	v, out := b.as(t, store.RoleAnalyst), b.visit(t)
	token := v.token()
	var laughs strings.Builder
	laughs.WriteString(`<!DOCTYPE urlset [<!ENTITY a "aaaaaaaaaa">`)
	for i := range 12 {
		fmt.Fprintf(&laughs, `<!ENTITY %c "%s">`, 'b'+i, strings.Repeat(fmt.Sprintf("&%c;", 'a'+i), 10))
	}
	laughs.WriteString("]><urlset><url><loc>https://a.test/&m;</loc></url></urlset>")
	outside := `<!DOCTYPE urlset [<!ENTITY x SYSTEM "file:///etc/passwd">]><urlset><url><loc>https://a.test/&x;</loc></url></urlset>`
	lines := bomb(t, "\n")
	for name, tt := range map[string]struct {
		file []byte
		want string
	}{
		"lines.txt.gz": {lines, "over 200000 lines"}, "blank.xml.gz": {bomb(t, " "), "over 1048576 bytes"}, "deep.xml": {bomb(t, "<a>"), "no sitemap"},
		"laughs.xml": {[]byte(laughs.String()), "document type"}, "outside.xml": {[]byte(outside), "document type"},
		"files.zip": {[]byte("PK\x03\x04\x14\x00\x00\x00\x08\x00" + strings.Repeat("\x00", 100)), ""},
	} {
		got := v.uploadFile("/preflights", name, tt.file, token, map[string][]string{"format": {"markdown"}})
		text := got.text("#file-error")
		if to := got.header.Get("Location"); got.status == http.StatusSeeOther {
			text = v.get(to).text("main")
		}
		if got.status >= http.StatusInternalServerError || !strings.Contains(text, tt.want) || strings.Contains(text, "root:") {
			t.Errorf("%s: got %d, %.300q, want %q", name, got.status, text, tt.want)
		}
	}
	if got := out.uploadFile("/preflights", "lines.txt.gz", lines, token, nil); got.status != http.StatusUnauthorized {
		t.Errorf("not signed in: got %d, want 401", got.status)
	}
	b.manyFields(t, v, token)
	if free := b.server.uploads.budget.free; free != maxUploads {
		t.Errorf("free after all: got %d, want %d", free, maxUploads)
	}
}

// manyFields sends forms that are all names: each kind is refused, and none is a fault.
func (b *bench) manyFields(t *testing.T, v *visitor, token string) {
	t.Helper()
	var parts strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&parts, "--x\r\nContent-Disposition: form-data; name=\"f%d\"\r\n\r\n\r\n", i)
	}
	fields := url.Values{csrfField: {token}}.Encode() + strings.Repeat("&a=", 100_000)
	for kind, body := range map[string]string{"multipart/form-data; boundary=x": parts.String() + "--x--\r\n", "application/x-www-form-urlencoded": fields} {
		r := v.request(http.MethodPost, "/reconcile", strings.NewReader(body))
		r.Header.Set("Content-Type", kind)
		if got := v.do(r); got.status < 400 || got.status >= 500 {
			t.Errorf("%d bytes of %s: got %d", len(body), kind, got.status)
		}
	}
}
