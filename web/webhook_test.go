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
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

// raw sends bytes and reads one answer.
func (b *bench) raw(t *testing.T, request string) (*http.Response, string) {
	t.Helper()
	conn, reader := b.dial(t)
	// The server may answer, and close, before it has taken everything.
	_, _ = io.WriteString(conn, request)
	return answerOf(t, reader)
}

func answerOf(t *testing.T, reader *bufio.Reader) (*http.Response, string) {
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
	return resp, string(body)
}

func head(method string, headers ...string) string {
	return method + " " + deliveryPath + " HTTP/1.1\r\nHost: desk\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n"
}

func chunk(data string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(data), data) }

func TestWebhookAnswers(t *testing.T) {
	t.Parallel()
	b := setupWith(t, Config{MaxBody: 64 << 10})
	const kind = "Content-Type: application/json"
	big := strings.Repeat("x", 65<<10)
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	fmt.Fprint(w, `{"job_id":"1"}`)
	w.Close()
	for name, tc := range map[string]struct {
		request string
		want    int
	}{
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
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, body := b.raw(t, tc.request)
			if resp.StatusCode != tc.want {
				t.Fatalf("got %d %s, want %d", resp.StatusCode, body, tc.want)
			}
			if !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
				t.Errorf("Content-Type: got %q, want JSON", resp.Header.Get("Content-Type"))
			}
			if tc.want == 405 && resp.Header.Get("Allow") != "POST" {
				t.Errorf("Allow: got %q, want POST", resp.Header.Get("Allow"))
			}
			if resp.Header.Get("Set-Cookie") != "" {
				t.Error("a cookie was set")
			}
		})
	}
}

func TestWebhookHandsOverRawBytes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := "{\"a\": \"\xff\x00\",\r\n \"b\":1 }"
	resp, _ := b.raw(t, head("POST", "Content-Type: application/json", "X-Signature: s1", fmt.Sprintf("Content-Length: %d", len(body)))+body)
	if resp.StatusCode != 200 || len(b.pipeline.received) != 1 {
		t.Fatalf("got %d and %d deliveries", resp.StatusCode, len(b.pipeline.received))
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
		resp, body := b.raw(t, head("POST", "Content-Type: application/json", "Content-Length: 2")+"{}")
		if resp.StatusCode != status || !strings.Contains(body, "as told") {
			t.Errorf("got %d %s, want %d", resp.StatusCode, body, status)
		}
		if got := resp.Header.Get("Retry-After") != ""; got != (status == 503) {
			t.Errorf("%d: Retry-After %q", status, resp.Header.Get("Retry-After"))
		}
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
		if resp, body := answerOf(t, reader); resp.StatusCode != want {
			t.Fatalf("got %d %s, want %d", resp.StatusCode, body, want)
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
		resp, body := answerOf(t, reader)
		if resp.StatusCode != 413 {
			t.Fatalf("got %d %s, want 413", resp.StatusCode, body)
		}
		// Either the connection is closed, or the next delivery is read whole.
		if again, err := http.ReadResponse(reader, nil); err == nil {
			if again.StatusCode != 200 {
				t.Errorf("next on the connection: got %d, want 200", again.StatusCode)
			}
			again.Body.Close()
		} else if !resp.Close {
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
	if resp, body := answerOf(t, reader); resp.StatusCode != 400 || len(b.pipeline.received) != 0 {
		t.Errorf("got %d %s and %d deliveries, want 400 and none", resp.StatusCode, body, len(b.pipeline.received))
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
	if !held.take(maxBodiesInFlight - 1) {
		t.Fatal("the budget wasn't free")
	}
	request := head("POST", "Content-Type: application/json", "Content-Length: 2") + "{}"
	resp, body := b.raw(t, request)
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("budget used up: got %d %s, want 503 with Retry-After", resp.StatusCode, body)
	}
	held.release()
	if resp, _ := b.raw(t, request); resp.StatusCode != 200 {
		t.Errorf("budget free again: got %d, want 200", resp.StatusCode)
	}
	if b.server.flights.free != maxBodiesInFlight {
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
