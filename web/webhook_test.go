package web

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

const deliveryPath = "/webhooks/geonode/abcdefghijklmnop"

// dial opens a plain connection to the server: what a client library would
// never send can be sent through it.
func (b *bench) dial(t *testing.T) (net.Conn, *bufio.Reader) {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(b.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

// raw sends bytes and reads one answer.
func (b *bench) raw(t *testing.T, request string) answer {
	t.Helper()
	conn, reader := b.dial(t)
	// The server may answer, and close, before it has taken everything.
	_, _ = io.WriteString(conn, request)
	return answerOf(t, reader)
}

// answer is one answer on a plain connection.
type answer struct {
	status int
	header http.Header
	closes bool
	body   string
}

func answerOf(t *testing.T, reader *bufio.Reader) answer {
	t.Helper()
	resp, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{status: resp.StatusCode, header: resp.Header, closes: resp.Close, body: string(body)}
}

func head(method string, headers ...string) string {
	return method + " " + deliveryPath + " HTTP/1.1\r\nHost: desk\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n"
}

func chunk(data string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(data), data) }

// webhookCases are requests with the status each is answered with, where
// MaxBody is 64 KiB.
func webhookCases() map[string]webhookCase {
	const kind = "Content-Type: application/json"
	big := strings.Repeat("x", 65<<10)
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	fmt.Fprint(w, `{"job_id":"1"}`)
	w.Close()
	return map[string]webhookCase{
		"JSON":                        {head("POST", kind, "Content-Length: 2") + "{}", 200},
		"JSON with charset, odd case": {head("POST", "content-type: Application/JSON; Charset=UTF-8", "Content-Length: 2") + "{}", 200},
		"chunked":                     {head("POST", kind, "Transfer-Encoding: chunked") + chunk(`{"a":`) + chunk(`1}`) + "0\r\n\r\n", 200},
		"identity":                    {head("POST", kind, "Content-Encoding: identity", "Content-Length: 2") + "{}", 200},
		"at the limit":                {head("POST", kind, fmt.Sprintf("Content-Length: %d", 64<<10)) + big[:64<<10], 200},
		"empty":                       {head("POST", kind, "Content-Length: 0"), 200},
		"no length at all":            {head("POST", kind, "Connection: close"), 200},
		"GET":                         {head("GET"), 405},
		"PUT":                         {head("PUT", kind, "Content-Length: 2") + "{}", 405},
		"OPTIONS":                     {head("OPTIONS"), 405},
		"unknown method":              {head("BREW"), 405},
		"announced too large":         {head("POST", kind, "Content-Length: 65537"), 413},
		"announced absurdly large":    {head("POST", kind, "Content-Length: 9223372036854775807"), 413},
		"chunked too large":           {head("POST", kind, "Transfer-Encoding: chunked") + chunk(big) + "0\r\n\r\n", 413},
		"form":                        {head("POST", "Content-Type: application/x-www-form-urlencoded", "Content-Length: 3") + "a=1", 415},
		"no type":                     {head("POST", "Content-Length: 2") + "{}", 415},
		"two types":                   {head("POST", kind, "Content-Type: text/plain", "Content-Length: 2") + "{}", 415},
		"broken type":                 {head("POST", "Content-Type: application/json; charset", "Content-Length: 2") + "{}", 415},
		"another charset":             {head("POST", "Content-Type: application/json; charset=utf-16", "Content-Length: 2") + "{}", 415},
		"gzip":                        {head("POST", kind, "Content-Encoding: gzip", fmt.Sprintf("Content-Length: %d", zipped.Len())) + zipped.String(), 415},
		"deflate, then identity":      {head("POST", kind, "Content-Encoding: identity", "Content-Encoding: deflate", "Content-Length: 2") + "{}", 415},
		"broken chunk":                {head("POST", kind, "Transfer-Encoding: chunked") + "zz\r\n", 400},
	}
}

type webhookCase struct {
	request string
	want    int
}

func TestWebhookAnswers(t *testing.T) {
	t.Parallel()
	b := setupWith(t, Config{MaxBody: 64 << 10})
	for name, tc := range webhookCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := b.raw(t, tc.request)
			if got.status != tc.want {
				t.Fatalf("got %d %s, want %d", got.status, got.body, tc.want)
			}
			if !strings.HasPrefix(got.header.Get("Content-Type"), "application/json") {
				t.Errorf("Content-Type: got %q, want JSON", got.header.Get("Content-Type"))
			}
			if tc.want == 405 && got.header.Get("Allow") != "POST" {
				t.Errorf("Allow: got %q, want POST", got.header.Get("Allow"))
			}
			if got.header.Get("Set-Cookie") != "" {
				t.Error("a cookie was set")
			}
		})
	}
}

func TestWebhookHandsOverRawBytes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := "{\"a\": \"\xff\x00\",\r\n \"b\":1 }"
	got := b.raw(t, head("POST", "Content-Type: application/json", "X-Signature: s1", fmt.Sprintf("Content-Length: %d", len(body)))+body)
	if got.status != http.StatusOK || len(b.pipeline.received) != 1 {
		t.Fatalf("got %d and %d deliveries", got.status, len(b.pipeline.received))
	}
	in := b.pipeline.received[0]
	if string(in.Body) != body || in.Endpoint != "abcdefghijklmnop" || in.Header.Get("X-Signature") != "s1" || in.Source != "127.0.0.1" {
		t.Errorf("got %+v", in)
	}
}

func TestWebhookAnswersAsThePipelineSays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, status := range []int{200, 202, 400, 401, 404, 503} {
		b.pipeline.answer = func(pipeline.Incoming) pipeline.Answer {
			return pipeline.Answer{Status: status, Verdict: store.VerdictRefused, Message: "as told"}
		}
		got := b.raw(t, head("POST", "Content-Type: application/json", "Content-Length: 2")+"{}")
		if got.status != status || !strings.Contains(got.body, "as told") {
			t.Errorf("got %d %s, want %d", got.status, got.body, status)
		}
		if retry := got.header.Get("Retry-After"); (retry != "") != (status == http.StatusServiceUnavailable) {
			t.Errorf("%d: Retry-After %q", status, retry)
		}
	}
}

func TestWebhookUnknownEndpoint(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.pipeline.unknown = "abcdefghijklmnop"
	for _, request := range []string{
		head("POST", "Content-Type: application/json", "Content-Length: 2") + "{}", head("GET"),
		head("POST", "Content-Type: text/plain", "Content-Length: 2") + "{}",
		// Nobody waits for a body that nobody wants.
		head("POST", "Content-Type: application/json", "Content-Length: 1000000"),
	} {
		if got := b.raw(t, request); got.status != http.StatusNotFound {
			t.Errorf("got %d %s, want 404", got.status, got.body)
		}
	}
	b.pipeline.mu.Lock()
	b.pipeline.lookUp = errSick
	b.pipeline.mu.Unlock()
	if got := b.raw(t, head("POST", "Content-Type: application/json", "Content-Length: 2")+"{}"); got.status != http.StatusServiceUnavailable {
		t.Errorf("while nobody can tell: got %d, want 503", got.status)
	}
	if len(b.pipeline.received) != 0 {
		t.Error("a delivery for nobody was taken up")
	}
}

func TestWebhookConnectionGoesOnAfterRefusals(t *testing.T) {
	t.Parallel()
	b := setupWith(t, Config{MaxBody: 1 << 10})
	conn, reader := b.dial(t)
	big := strings.Repeat("x", 2<<10)
	// Two refused and one good delivery are on their way before the first
	// answer; a bad one must never be read as the beginning of the next.
	if _, err := io.WriteString(conn, head("POST", "Content-Type: text/plain", "Content-Length: 2")+"{}"+
		head("POST", "Content-Type: application/json", "Content-Length: 2")+"{}"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{415, 200} {
		if got := answerOf(t, reader); got.status != want {
			t.Fatalf("got %d %s, want %d", got.status, got.body, want)
		}
	}
	for _, request := range []string{
		head("POST", "Content-Type: application/json", "Content-Length: 2048") + big,
		head("POST", "Content-Type: application/json", "Transfer-Encoding: chunked") + chunk(big) + "0\r\n\r\n",
	} {
		conn, reader := b.dial(t)
		next := head("POST", "Content-Type: application/json", "Content-Length: 2") + "{}"
		if _, err := io.WriteString(conn, request+next); err != nil {
			t.Fatal(err)
		}
		got := answerOf(t, reader)
		if got.status != http.StatusRequestEntityTooLarge {
			t.Fatalf("got %d %s, want 413", got.status, got.body)
		}
		// Either the connection is closed, or the next delivery is read whole.
		if again, err := http.ReadResponse(reader, nil); err == nil {
			if again.StatusCode != http.StatusOK {
				t.Errorf("next on the connection: got %d, want 200", again.StatusCode)
			}
			again.Body.Close()
		} else if !got.closes {
			t.Errorf("connection ended without saying so: %v", err)
		}
	}
}

func TestWebhookShorterThanAnnounced(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn, reader := b.dial(t)
	if _, err := io.WriteString(conn, head("POST", "Content-Type: application/json", "Content-Length: 100")+"{}"); err != nil {
		t.Fatal(err)
	}
	if half, ok := conn.(*net.TCPConn); ok {
		if err := half.CloseWrite(); err != nil {
			t.Fatal(err)
		}
	}
	if got := answerOf(t, reader); got.status != http.StatusBadRequest || len(b.pipeline.received) != 0 {
		t.Errorf("got %d %s and %d deliveries, want 400 and none", got.status, got.body, len(b.pipeline.received))
	}
}

// TestWebhookSilentDatabase: who waits is told to try again, however long the
// database is silent.
func TestWebhookSilentDatabase(t *testing.T) {
	t.Parallel()
	b := setupWith(t, Config{lookUpTime: 50 * time.Millisecond})
	b.pipeline.silent = true
	request := head("POST", "Content-Type: application/json", "Content-Length: 2") + "{}"
	if got := b.raw(t, request); got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
		t.Errorf("got %d %s, want 503 with Retry-After", got.status, got.body)
	}
	if got := b.raw(t, head("GET")); got.status != http.StatusMethodNotAllowed {
		t.Errorf("another method: got %d, want 405", got.status)
	}
}

func TestWebhookSlowBody(t *testing.T) {
	t.Parallel()
	b := setupWith(t, Config{bodyTime: 50 * time.Millisecond})
	for _, beginning := range []string{
		head("POST", "Content-Type: application/json", "Content-Length: 100") + "{",
		head("POST", "Content-Type: application/json", "Transfer-Encoding: chunked") + chunk("{"),
	} {
		if got := b.raw(t, beginning); got.status != http.StatusBadRequest || !got.closes {
			t.Errorf("got %d, closes %v, want 400 and the connection closed", got.status, got.closes)
		}
	}
	if len(b.pipeline.received) != 0 || b.server.flights.free != defaultMaxInFlight {
		t.Errorf("got %d deliveries, %d bytes free", len(b.pipeline.received), b.server.flights.free)
	}
}

func TestWebhookGoesOnWhenTheClientLeaves(t *testing.T) {
	t.Parallel()
	b := setup(t)
	inside, left, state := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	b.pipeline.receiveCtx = func(ctx context.Context) {
		close(inside)
		<-left
		state <- ctx.Err()
	}
	conn, _ := b.dial(t)
	if _, err := io.WriteString(conn, head("POST", "Content-Type: application/json", "Content-Length: 2")+"{}"); err != nil {
		t.Fatal(err)
	}
	<-inside
	conn.Close()
	close(left)
	if err := <-state; err != nil {
		t.Errorf("the delivery's context ended with its client: %v", err)
	}
}

func TestWebhookBudget(t *testing.T) {
	t.Parallel()
	b := setup(t)
	held := b.server.flights.hold()
	if !held.take(defaultMaxInFlight - 1) {
		t.Fatal("the budget wasn't free")
	}
	request := head("POST", "Content-Type: application/json", "Content-Length: 2") + "{}"
	got := b.raw(t, request)
	if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
		t.Errorf("budget used up: got %d %s, want 503 with Retry-After", got.status, got.body)
	}
	held.release()
	if got := b.raw(t, request); got.status != http.StatusOK {
		t.Errorf("budget free again: got %d, want 200", got.status)
	}
	if b.server.flights.free != defaultMaxInFlight {
		t.Errorf("budget: got %d free, want all", b.server.flights.free)
	}
}

func TestReadBodyOfAnyLength(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 2, reserveStep - 1, reserveStep, reserveStep + 1, 1 << 20} {
		want := strings.Repeat("x", size)
		for _, length := range []int64{int64(size), -1} {
			budget := newByteBudget(4 << 20)
			hold := budget.hold()
			got, err := readBody(strings.NewReader(want), length, hold)
			if err != nil || string(got) != want {
				t.Errorf("%d bytes announced as %d: got %d, %v", size, length, len(got), err)
			}
			if int64(cap(got)) > max(hold.taken, 2*reserveStep)*2 {
				t.Errorf("%d bytes: holds %d with %d reserved", size, cap(got), hold.taken)
			}
			hold.release()
			if budget.free != 4<<20 {
				t.Errorf("%d bytes: budget not given back", size)
			}
		}
	}
}
