package web

import (
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/crypto/argon2"
	"golang.org/x/net/html"

	"rollcall/store"
	"rollcall/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// patience is how long a test waits for what must happen.
const patience = 3 * time.Minute

// password is everybody's.
const password = "correct horse battery"

// hashed is the test password in a form that is quick to check: what a hash costs stands in it, and HashPassword, whose
// hashes are slow on purpose, has tests of its own.
var hashed = sync.OnceValue(func() string {
	const memory, passes = 64, 1
	salt := []byte("a salt of tests.")
	key := argon2.IDKey([]byte(password), salt, passes, memory, argonThreads, argonKey)
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, memory, passes, argonThreads,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(key))
})

// clock runs with real time, and can be moved ahead, or stopped.
type clock struct{ ahead, stopped atomic.Int64 }

func (c *clock) now() time.Time {
	if at := c.stopped.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Now().Add(time.Duration(c.ahead.Load()))
}

func (c *clock) stop() { c.stopped.Store(time.Now().UnixNano()) }

func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// bench is a web server on a database of its own.
type bench struct {
	store    *store.Store
	server   *Server
	pipeline *fakePipeline
	clock    *clock
	url      string
	log      *lockedBuffer
}

type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func setup(t *testing.T) *bench { t.Helper(); return setupWith(t, Config{Sandbox: true}) }

func setupWith(t *testing.T, cfg Config) *bench {
	t.Helper()
	b := &bench{store: storetest.New(t), pipeline: newFakePipeline(), clock: &clock{}, log: &lockedBuffer{}}
	b.pipeline.rows, b.pipeline.desk = b.store, b.store
	logger := slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	b.server, err = New(cfg, b.store, b.pipeline, logger, b.clock.now)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(b.server.Handler())
	b.url = front.URL
	t.Cleanup(func() {
		b.server.Close()
		front.Close()
		for line := range strings.Lines(b.log.String()) {
			if t.Failed() && !strings.Contains(line, "level=INFO") && !strings.Contains(line, "level=DEBUG") {
				t.Log(line)
			}
		}
	})
	return b
}

// addUser makes an account.
func (b *bench) addUser(t *testing.T, name string, role store.Role) *store.User {
	t.Helper()
	now := b.clock.now()
	u := &store.User{Name: name, Role: role, PasswordHash: hashed(), CreatedAt: now, PasswordChangedAt: now}
	if err := b.store.AddUser(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	return u
}

// visitor is a browser.
type visitor struct {
	t      *testing.T
	bench  *bench
	client *http.Client
}

// visit opens a browser in which nobody is signed in.
func (b *bench) visit(t *testing.T) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &visitor{t: t, bench: b, client: &http.Client{
		Jar: jar, Transport: transport, Timeout: time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// as opens a browser in which a new person of that role is signed in.
func (b *bench) as(t *testing.T, role store.Role) *visitor {
	t.Helper()
	name := string(role) + "-" + newToken()[:6]
	b.addUser(t, name, role)
	v := b.visit(t)
	got := v.post("/sign-in", url.Values{"name": {name}, "password": {password}})
	if got.status != http.StatusSeeOther {
		t.Fatalf("sign-in: got %d, want 303: %s", got.status, got.doc.Find("main").Text())
	}
	return v
}

// page is an answer.
type page struct {
	status int
	header http.Header
	body   string
	doc    *goquery.Document
}

// text is what a reader sees of the elements, a blank between any two pieces.
func (p page) text(selector string) string {
	var words []string
	for _, node := range p.doc.Find(selector).Nodes {
		for each := range node.Descendants() {
			if each.Type == html.TextNode {
				words = append(words, strings.Fields(each.Data)...)
			}
		}
	}
	return strings.Join(words, " ")
}

func (v *visitor) do(r *http.Request) page {
	v.t.Helper()
	resp, err := v.client.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	doc, err := goquery.NewDocumentFromReader(strings.NewReader(string(body)))
	if err != nil {
		v.t.Fatal(err)
	}
	return page{status: resp.StatusCode, header: resp.Header, body: string(body), doc: doc}
}

func (v *visitor) request(method, path string, body io.Reader) *http.Request {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, v.bench.url+path, body)
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html,application/xhtml+xml")
	return r
}

func (v *visitor) get(path string) page {
	v.t.Helper()
	return v.do(v.request(http.MethodGet, path, nil))
}

// post sends a form as it is.
func (v *visitor) post(path string, form url.Values) page {
	v.t.Helper()
	r := v.request(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return v.do(r)
}

// token is the session's token, as its pages have it.
func (v *visitor) token() string {
	v.t.Helper()
	token, ok := v.get("/account").doc.Find("input[name=csrf_token]").Attr("value")
	if !ok || token == "" {
		v.t.Fatal("no csrf_token on the page")
	}
	return token
}

// submit sends a form with the session's token.
func (v *visitor) submit(path string, form url.Values) page {
	v.t.Helper()
	if form == nil {
		form = url.Values{}
	}
	form.Set(csrfField, v.token())
	return v.post(path, form)
}
