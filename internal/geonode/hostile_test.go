package geonode_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/geonode"
)

// rawVendor answers each request with what speak writes to the connection, and
// hangs up when that returns.
func rawVendor(t *testing.T, speak func(net.Conn)) (string, *atomic.Int64) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked, done := new(atomic.Int64), make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if req, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = io.Copy(io.Discard, req.Body)
				asked.Add(1)
				speak(conn)
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return listener.Addr().String(), asked
}

// forEver writes until the other side hangs up, resting between two writes.
func forEver(conn net.Conn, begin, more string, rest time.Duration) {
	_, err := io.WriteString(conn, begin)
	for err == nil {
		_, err = io.WriteString(conn, more)
		<-time.After(rest)
	}
}

// bomb is a gzip stream that says far more than it is long, without end.
func bomb(conn net.Conn) {
	if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n\r\n"); err != nil {
		return
	}
	z, err := gzip.NewWriterLevel(conn, gzip.BestSpeed)
	blank := []byte(strings.Repeat(" ", 1<<20))
	for err == nil {
		_, err = z.Write(blank)
	}
}

// TestHostileTransport: a vendor that misuses HTTP keeps no call longer than its
// time, takes no more memory than an answer may, and never gets a second
// request for one call. What it did with a submit stays unknown.
func TestHostileTransport(t *testing.T) {
	t.Parallel()
	const head = "HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\n"
	for name, speak := range map[string]func(net.Conn){
		"HeadersWithoutEnd": func(c net.Conn) { forEver(c, head, "X-More: "+strings.Repeat("x", 1000)+"\r\n", 0) },
		"AHeaderWithoutEnd": func(c net.Conn) { forEver(c, head+"X-Long: ", strings.Repeat("x", 1000), 0) },
		"AStatusWithoutEnd": func(c net.Conn) { forEver(c, "HTTP/1.1 200 ", strings.Repeat("O", 1000), 0) },
		"HeadersDripping":   func(c net.Conn) { forEver(c, head, "X-A: b\r\n", 20*time.Millisecond) },
		"InformationsOnly":  func(c net.Conn) { forEver(c, "", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 0) },
		"ContinueOnly":      func(c net.Conn) { forEver(c, "", "HTTP/1.1 100 Continue\r\n\r\n", 0) },
		"BodyDripping":      func(c net.Conn) { forEver(c, head+"Content-Length: 100000\r\n\r\n", " ", 20*time.Millisecond) },
		"BodyWithoutEnd":    func(c net.Conn) { forEver(c, head+"\r\n", strings.Repeat(" ", 10_000), 0) },
		"ChunksWithoutEnd": func(c net.Conn) {
			forEver(c, head+"Transfer-Encoding: chunked\r\n\r\n", "1;"+strings.Repeat("x", 1000)+"\r\n \r\n", 0)
		},
		"AChunkBeyondCounting": func(c net.Conn) { forEver(c, head+"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", " ", 0) },
		"TrailersWithoutEnd": func(c net.Conn) {
			forEver(c, head+"Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2\r\n{}\r\n0\r\n", "X: y\r\n", 0)
		},
		"LengthBeyondCounting": func(c net.Conn) {
			forEver(c, head+"Content-Length: 9223372036854775807\r\n\r\n", strings.Repeat(" ", 10_000), 0)
		},
		"LengthBelowZero": func(c net.Conn) { forEver(c, head+"Content-Length: -1\r\n\r\n", " ", 0) },
		"TwoLengths":      func(c net.Conn) { forEver(c, head+"Content-Length: 2\r\nContent-Length: 3\r\n\r\n", " ", 0) },
		"GzipBomb":        bomb,
		"NoGzip":          func(c net.Conn) { forEver(c, head+"Content-Encoding: gzip\r\n\r\n", "{}", 0) },
		"SwitchedProtocols": func(c net.Conn) {
			forEver(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", "x", 0)
		},
		"NoHTTP":         func(c net.Conn) { forEver(c, "\x16\x03\x01\x00", "\x00", 0) },
		"AnOlderHTTP":    func(c net.Conn) { forEver(c, "HTTP/0.9 200 OK\r\n\r\n", " ", 0) },
		"AStrangeStatus": func(c net.Conn) { forEver(c, "HTTP/1.1 999 Beyond\r\n\r\n", " ", 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, asked := rawVendor(t, speak)
			c := own(t, "http://"+address, short, func(cfg *geonode.Config) { cfg.MaxResponse = 1 << 20 })
			_, err := c.SubmitBatch(t.Context(), oneURL)
			e := wantError(t, err)
			if e.Certainty() != geonode.Unknown || len(e.Error()) > 2000 {
				t.Errorf("got %s, %.2000q", e.Certainty(), e.Error())
			}
			if n := asked.Load(); n != 1 {
				t.Errorf("%d requests for one call", n)
			}
		})
	}
}

// TestPlainAndTLS: a vendor that speaks HTTP where TLS is asked for, or the other
// way round, gets nothing that is secret.
func TestPlainAndTLS(t *testing.T) {
	t.Parallel()
	var heard atomic.Pointer[string]
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			first := make([]byte, 4096)
			n, _ := conn.Read(first)
			text := string(first[:n])
			heard.Store(&text)
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	c := own(t, "https://"+listener.Addr().String(), short)
	_, err = c.SubmitBatch(t.Context(), oneURL)
	e := wantError(t, err)
	if e.Certainty() != geonode.CertainlyNotAccepted {
		t.Errorf("got %v, %s: want that nothing was sent", err, e.Certainty())
	}
	if text := heard.Load(); text == nil || strings.Contains(*text, testKey) || strings.Contains(*text, "a.example") {
		t.Errorf("the other side heard %q", *text)
	}
}

// TestManyAnswersWithoutEnd: what is read of many at once is bounded.
func TestManyAnswersWithoutEnd(t *testing.T) {
	t.Parallel()
	v := newVendor(t, func(w http.ResponseWriter, _ *http.Request) {
		chunk := []byte(strings.Repeat(" ", 64<<10))
		for {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	c := own(t, v.URL, func(cfg *geonode.Config) { cfg.MaxResponse = 1 << 20 })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const calls = 20
	for range calls {
		_, err := c.ListBatches(t.Context(), geonode.ListParams{})
		if !errors.Is(err, geonode.ErrTooLarge) || errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want an answer that is too large", err)
		}
	}
	runtime.ReadMemStats(&after)
	// The buffer grows by a quarter at a time: about five times its end in all.
	if took := (after.TotalAlloc - before.TotalAlloc) / calls; took > 16<<20 {
		t.Errorf("%d bytes were allocated for an answer of at most %d", took, 1<<20)
	}
}
