package geonode_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"rollcall/internal/geonode"
	"rollcall/internal/geonode/contracttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(contracttest.Main(m)) }

// testKey is looked for wherever it must not be.
const testKey = "key-that-must-not-leak"

// noon is the clock of the tests.
var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func clock() time.Time { return noon }

// seen is what a server was sent.
type seen struct {
	Method string
	URI    string
	Header http.Header
	Body   []byte
}

// vendor is a server that gives one answer and keeps what it was sent. A test waits
// for the client's answer before it reads calls.
type vendor struct {
	*httptest.Server
	calls chan seen
}

// newVendor starts a server; each call is kept, up to a hundred.
func newVendor(t *testing.T, answer http.HandlerFunc) *vendor {
	t.Helper()
	v := &vendor{calls: make(chan seen, 100)}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read request: %v", err)
		}
		v.calls <- seen{Method: r.Method, URI: r.RequestURI, Header: r.Header.Clone(), Body: body}
		answer(w, r)
	}))
	t.Cleanup(v.Close)
	return v
}

// client makes a client of the server whose calls are held against the contract.
func (v *vendor) client(t *testing.T, edit ...func(*geonode.Config)) *geonode.Client {
	t.Helper()
	cfg := geonode.Config{
		BaseURL: v.URL, APIKey: testKey, Now: clock,
		Transport: contracttest.Transport(t, v.Client().Transport),
	}
	for _, e := range edit {
		e(&cfg)
	}
	c, err := geonode.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// one gives the only call the server had.
func (v *vendor) one(t *testing.T) seen {
	t.Helper()
	if len(v.calls) != 1 {
		t.Fatalf("got %d calls, want 1", len(v.calls))
	}
	return <-v.calls
}

// says answers with a status and JSON.
func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// example reads a file of the contract's examples.
func example(tb testing.TB, name string) string {
	tb.Helper()
	b, err := contracttest.Example(name)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

// broken is a context for calls whose answer breaks the contract on purpose.
func broken(t *testing.T, why string) context.Context {
	t.Helper()
	return contracttest.Deliberate(t.Context(), why)
}

// sameJSON compares two JSON texts by value.
func sameJSON(t *testing.T, got []byte, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatalf("got %q: %v", got, err)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(g, w) {
		t.Errorf("got %s, want %s", got, want)
	}
}
