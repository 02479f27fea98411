package static_test

import (
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"rollcall/static"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(static.Handler())
	t.Cleanup(server.Close)
	t.Cleanup(server.Client().CloseIdleConnections)
	return server
}

// An answer is what came back, read to its end.
type answer struct {
	status int
	header http.Header
	body   string
}

// ask sends a request with the given headers, in pairs.
func ask(t *testing.T, server *httptest.Server, method, path string, headers ...string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", "identity")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(body)}
}

func TestURLCarriesAHash(t *testing.T) {
	t.Parallel()
	if got := static.URL("app.css"); !regexp.MustCompile(`^/static/app\.[0-9a-f]{12}\.css$`).MatchString(got) {
		t.Errorf("URL(app.css): got %q", got)
	}
}

func TestFilesAreServedForEver(t *testing.T) {
	t.Parallel()
	server := serve(t)
	for name, contentType := range map[string]string{
		"app.css": "text/css; charset=utf-8", "app.js": "text/javascript; charset=utf-8", "theme.js": "text/javascript; charset=utf-8",
		"tabler.min.css": "text/css; charset=utf-8", "htmx.min.js": "text/javascript; charset=utf-8", "hx-sse.min.js": "text/javascript; charset=utf-8",
		"icons.svg": "image/svg+xml", "favicon.svg": "image/svg+xml", "LICENSES.md": "text/plain; charset=utf-8",
	} {
		got := ask(t, server, http.MethodGet, static.URL(name))
		if got.status != http.StatusOK || got.body == "" {
			t.Errorf("%s: got %d with %d bytes", name, got.status, len(got.body))
		}
		header := got.header
		if got := header.Get("Content-Type"); got != contentType {
			t.Errorf("%s: Content-Type: got %q, want %q", name, got, contentType)
		}
		if got := header.Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
			t.Errorf("%s: Cache-Control: got %q", name, got)
		}
	}
}

func TestGzipOnlyForThoseWhoAskForIt(t *testing.T) {
	t.Parallel()
	server := serve(t)
	path := static.URL("tabler.min.css")
	plain := ask(t, server, http.MethodGet, path).body
	packed := ask(t, server, http.MethodGet, path, "Accept-Encoding", "br, gzip;q=0.8")
	if got := packed.header.Get("Content-Encoding"); got != "gzip" {
		t.Fatalf("Content-Encoding: got %q, want gzip", got)
	}
	reader, err := gzip.NewReader(strings.NewReader(packed.body))
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := io.ReadAll(reader)
	if err != nil || string(unpacked) != plain {
		t.Errorf("unpacked %d bytes (%v), want the %d plain ones", len(unpacked), err, len(plain))
	}
	if got := ask(t, server, http.MethodGet, path, "Accept-Encoding", "gzip;q=0"); got.header.Get("Content-Encoding") != "" {
		t.Error("gzip was refused by weight zero, but sent")
	}
}

func TestKnownETagIsNotSentAgain(t *testing.T) {
	t.Parallel()
	server := serve(t)
	first := ask(t, server, http.MethodGet, static.URL("app.js"))
	got := ask(t, server, http.MethodGet, static.URL("app.js"), "If-None-Match", first.header.Get("ETag"))
	if got.status != http.StatusNotModified || got.body != "" {
		t.Errorf("got %d with %d bytes, want 304 with none", got.status, len(got.body))
	}
}

func TestOtherPathsAndMethodsAreRefused(t *testing.T) {
	t.Parallel()
	server := serve(t)
	tests := []struct {
		method, path string
		want         int
	}{
		{http.MethodGet, "/static/app.css", http.StatusNotFound},
		{http.MethodGet, "/static/app.000000000000.css", http.StatusNotFound},
		{http.MethodGet, "/static/", http.StatusNotFound},
		{http.MethodGet, "/static/axe.min.js", http.StatusNotFound},
		{http.MethodPost, static.URL("app.css"), http.StatusMethodNotAllowed},
		{http.MethodHead, static.URL("app.css"), http.StatusOK},
	}
	for _, test := range tests {
		if got := ask(t, server, test.method, test.path).status; got != test.want {
			t.Errorf("%s %s: got %d, want %d", test.method, test.path, got, test.want)
		}
	}
}

// The files that vendor.sh brought are the ones whose sums it recorded.
func TestVendoredFilesMatchTheirSums(t *testing.T) {
	t.Parallel()
	sums, err := os.ReadFile("vendor.sha256")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(sums)) {
		want, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		body, err := os.ReadFile(name)
		if err != nil {
			t.Errorf("recorded, but missing: %v", err)
			continue
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(body)); got != want {
			t.Errorf("%s: got %s, want %s: run static/vendor.sh update", name, got, want)
		}
	}
}
