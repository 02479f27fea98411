package geonode_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/geonode"
)

var oneURL = geonode.BatchRequest{URLs: []string{"https://a.example/"}}

func TestRedirectIsRefused(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "/v1/extract/"+extractID, status)
			})
			_, err := v.client(t).SubmitBatch(broken(t, "a redirect"), oneURL)
			e := wantError(t, err)
			if e.Status != status || e.Certainty() != geonode.Unknown || e.Retryable() {
				t.Errorf("got %v, %s", e, e.Certainty())
			}
			v.one(t) // A second call would be the redirect followed.
		})
	}
}

func TestAnswerOverTheBound(t *testing.T) {
	t.Parallel()
	big := `{"job_id":"` + batchID + `","status":"queued","x":"` + strings.Repeat("x", 2000) + `"}`
	zipped := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, big)
		_ = z.Close()
	}
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		limit  int64
		want   error
	}{
		"Under":     {says(http.StatusAccepted, big), int64(len(big)), nil},
		"Over":      {says(http.StatusAccepted, big), int64(len(big)) - 1, geonode.ErrTooLarge},
		"GzipUnder": {zipped, int64(len(big)), nil},
		"GzipOver":  {zipped, 1000, geonode.ErrTooLarge}, // The compressed answer is far smaller.
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVendor(t, tc.answer)
			c := v.client(t, func(cfg *geonode.Config) { cfg.MaxResponse = tc.limit })
			_, err := c.SubmitBatch(broken(t, "a 200 for a submit, and a member of ours"), oneURL)
			if !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if err != nil && (geonode.CertaintyOf(err) != geonode.Unknown || wantError(t, err).Retryable()) {
				t.Errorf("got %s, retryable", geonode.CertaintyOf(err))
			}
		})
	}
}

func TestErrorBodyIsBounded(t *testing.T) {
	t.Parallel()
	v := newVendor(t, says(http.StatusBadGateway, strings.Repeat("é", 1<<20)))
	_, err := v.client(t).GetExtract(broken(t, "a huge error page"), extractID)
	e := wantError(t, err)
	if len(e.Body) > 3<<10 || e.Status != http.StatusBadGateway || len(e.Error()) > 1000 {
		t.Errorf("got %d bytes, status %d, text of %d", len(e.Body), e.Status, len(e.Error()))
	}
}

// short sets every timeout to the least in which a slow machine still gets the request out.
func short(cfg *geonode.Config) {
	d := time.Second
	cfg.Timeouts = geonode.Timeouts{Submit: d, Status: d, List: d, Sync: d}
}

func TestSlowAnswersTimeOut(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(http.ResponseWriter){
		"NoHeader": func(http.ResponseWriter) {},
		"SlowBody": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, `{"job_id":`)
			_ = http.NewResponseController(w).Flush()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
				begin(w)
				<-r.Context().Done() // The client hangs up when its time is over.
			})
			c := v.client(t, short)
			_, err := c.SubmitBatch(broken(t, "an answer that never ends"), oneURL)
			e := wantError(t, err)
			if !errors.Is(err, context.DeadlineExceeded) || !e.Timeout() || e.Certainty() != geonode.Unknown || !e.Retryable() {
				t.Errorf("got %v: timeout %t, %s, retryable %t", err, e.Timeout(), e.Certainty(), e.Retryable())
			}
		})
	}
}

func TestSyncWaitsAsLongAsThePageMayTake(t *testing.T) {
	t.Parallel()
	v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
		select { // Longer than the client's own timeout, shorter than the wait it asked for.
		case <-time.After(1200 * time.Millisecond):
			says(http.StatusOK, example(t, "extract_response_sync.json"))(w, r)
		case <-r.Context().Done():
		}
	})
	_, err := v.client(t, short).ExtractSync(t.Context(), geonode.ExtractRequest{
		URL: "https://a.example/", Options: geonode.Options{Wait: &geonode.WaitConfig{TimeoutMS: 60000}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCallerGivesUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(broken(t, "a call given up"))
	v := newVendor(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	_, err := v.client(t).SubmitBatch(ctx, oneURL)
	e := wantError(t, err)
	if !errors.Is(err, context.Canceled) || e.Retryable() || e.Timeout() || e.Certainty() != geonode.Unknown {
		t.Errorf("got %v, retryable %t, %s", err, e.Retryable(), e.Certainty())
	}
}

// own makes a client with its own transport, as in production.
func own(t *testing.T, base string, edit ...func(*geonode.Config)) *geonode.Client {
	t.Helper()
	cfg := geonode.Config{BaseURL: base, APIKey: testKey, Now: clock, Timeouts: geonode.Timeouts{Submit: 5 * time.Second}}
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

// TestNothingWasSent covers the failures after which a submit is safe to repeat.
func TestNothingWasSent(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(says(http.StatusAccepted, `{}`))
	defer plain.Close()
	tls := httptest.NewUnstartedServer(says(http.StatusAccepted, `{}`))
	tls.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	tls.StartTLS()
	defer tls.Close()
	closed := httptest.NewServer(http.NotFoundHandler())
	refused := closed.URL
	closed.Close()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		ctx  context.Context
		base string
	}{
		"DialRefused":   {t.Context(), refused},
		"UnknownHost":   {t.Context(), "https://no-such-host.invalid"},
		"NotTrusted":    {t.Context(), tls.URL},
		"NotTLS":        {t.Context(), strings.Replace(plain.URL, "http:", "https:", 1)},
		"GivenUpAtOnce": {canceled, plain.URL},
	} {
		_, err := own(t, tc.base).SubmitBatch(tc.ctx, oneURL)
		e := wantError(t, err)
		if e.Certainty() != geonode.CertainlyNotAccepted || e.Status != 0 {
			t.Errorf("%s: got %v: %s", name, err, e.Certainty())
		}
		if e.Retryable() != (name != "GivenUpAtOnce") {
			t.Errorf("%s: got %v: retryable %t", name, err, e.Retryable())
		}
	}
}

// TestSomethingWasSent covers the failures after which the vendor may have a job.
func TestSomethingWasSent(t *testing.T) {
	t.Parallel()
	for name, hang := range map[string]func(net.Conn){
		"Reset":  func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); _ = c.Close() },
		"Closed": func(c net.Conn) { _ = c.Close() },
		"Garbage": func(c net.Conn) {
			_, _ = io.WriteString(c, "nonsense\r\n\r\n")
			_ = c.Close()
		},
		"CutBody": func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 202 Accepted\r\nContent-Length: 100\r\n\r\n{\"job_id\"")
			_ = c.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				_, _ = io.Copy(io.Discard, r.Body)
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				hang(conn)
			}))
			defer srv.Close()
			_, err := own(t, srv.URL).SubmitBatch(t.Context(), oneURL)
			if e := wantError(t, err); e.Certainty() != geonode.Unknown || !e.Retryable() {
				t.Errorf("got %v: %s, retryable %t", err, e.Certainty(), e.Retryable())
			}
			if calls.Load() != 1 {
				t.Errorf("got %d calls, want 1: a submit must not be repeated", calls.Load())
			}
		})
	}
}

// silent is a transport that fails and reports to no trace, so it proves nothing.
type silent struct{ err error }

func (s silent) RoundTrip(*http.Request) (*http.Response, error) { return nil, s.err }

func TestCertaintyNeedsProof(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		want geonode.Certainty
	}{
		"Anything": {errors.New("broken"), geonode.Unknown},
		"Read":     {&net.OpError{Op: "read", Err: errors.New("reset")}, geonode.Unknown},
		"Dial":     {&net.OpError{Op: "dial", Err: errors.New("refused")}, geonode.CertainlyNotAccepted},
		"DNS":      {&net.DNSError{Err: "no such host"}, geonode.CertainlyNotAccepted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := geonode.New(geonode.Config{BaseURL: "https://a.example", APIKey: testKey, Now: clock, Transport: silent{tc.err}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.SubmitBatch(t.Context(), oneURL)
			if got := geonode.CertaintyOf(err); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestHTTP2 repeats over HTTP/2, which the real vendor speaks, what its own transport
// could do differently: tell of connections, lose answers, repeat requests.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	for name, hang := range map[string]http.HandlerFunc{
		"Aborted":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"NoAnswer": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"CutBody": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, `{"job_id"`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if calls.Add(1) == 1 && r.ProtoMajor != 2 {
					t.Errorf("got %s", r.Proto)
				}
				_, _ = io.Copy(io.Discard, r.Body)
				hang(w, r)
			}))
			srv.EnableHTTP2 = true
			srv.StartTLS()
			defer srv.Close()
			cfg := geonode.Config{BaseURL: srv.URL, APIKey: testKey, Now: clock, Transport: srv.Client().Transport}
			short(&cfg)
			c, err := geonode.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.SubmitBatch(t.Context(), oneURL)
			if e := wantError(t, err); e.Certainty() != geonode.Unknown || !e.Retryable() {
				t.Errorf("got %v: %s, retryable %t", err, e.Certainty(), e.Retryable())
			}
			if calls.Load() != 1 {
				t.Errorf("got %d calls, want 1", calls.Load())
			}
		})
	}
}

func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	var turn atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch turn.Add(1) % 3 {
		case 0:
			says(http.StatusNotFound, example(t, "error_standard_404.json"))(w, r)
		case 1:
			says(http.StatusBadGateway, strings.Repeat("x", 200<<10))(w, r)
		default:
			says(http.StatusOK, example(t, "extract_job_completed.json"))(w, r)
		}
	}))
	defer srv.Close()
	c := own(t, srv.URL)
	var reused int
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if i.Reused {
			reused++
		}
	}})
	const calls = 9
	for range calls {
		_, _ = c.GetExtract(ctx, extractID) // Errors too must leave the connection usable.
	}
	if reused != calls-1 {
		t.Errorf("got %d reused, want %d", reused, calls-1)
	}
}

// TestNoSecretLeaks looks for the key and for a query in everything that can be printed.
func TestNoSecretLeaks(t *testing.T) {
	t.Parallel()
	echo := fmt.Sprintf(`{"code":"%[1]s","message":"no %[1]s","correlation_id":"%[1]s","detail":[{"loc":["%[1]s"],"msg":"\u006b%[2]s","type":"t"}]}`, testKey, testKey[1:])
	closed := httptest.NewServer(http.NotFoundHandler())
	refused := closed.URL
	closed.Close()
	v := newVendor(t, says(http.StatusUnauthorized, echo))
	malformed := newVendor(t, says(http.StatusOK, `{"echo":"`+testKey+`"}`))
	params := geonode.ExtractListParams{URL: "https://a.example/?token=query-secret"}
	for name, c := range map[string]*geonode.Client{"Echo": v.client(t), "Refused": own(t, refused), "Malformed": malformed.client(t)} {
		_, err := c.ListExtracts(broken(t, "answers that repeat the key"), params)
		e := wantError(t, err)
		cfg := geonode.Config{BaseURL: "https://u:" + testKey + "@a.example/?query-secret", APIKey: testKey}
		var all bytes.Buffer
		_, _ = fmt.Fprintf(&all, "%v %+v %#v %v %+v %#v %s %v %v", err, *e, *e, c, c, c, e.Body, e.Fields, cfg.LogValue())
		_, _ = fmt.Fprintf(&all, "%v %+v %#v", cfg, cfg, cfg)
		if strings.Contains(all.String(), testKey) || strings.Contains(all.String(), "query-secret") {
			t.Errorf("%s leaks: %s", name, all.String())
		}
	}
}

// TestKeyAcrossTheExcerptsEnd puts the key where the excerpt is cut.
func TestKeyAcrossTheExcerptsEnd(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("x", 2<<10-5) + testKey + "y"
	for _, status := range []int{http.StatusOK, http.StatusBadGateway} {
		v := newVendor(t, says(status, body))
		_, err := v.client(t).GetExtract(broken(t, "an answer that repeats the key"), extractID)
		if got := wantError(t, err).Body; strings.Contains(got, testKey[:5]) || len(got) < 2000 {
			t.Errorf("%d: got %q", status, got[max(0, len(got)-30):])
		}
	}
}

// TestWebhookSecretStaysOutOfErrors covers answers that hold a secret where it isn't read.
func TestWebhookSecretStaysOutOfErrors(t *testing.T) {
	t.Parallel()
	v := newVendor(t, says(http.StatusOK, `{"signing":"whsec_hidden","secret":5}`))
	c := v.client(t)
	ctx := broken(t, "an answer without its secret")
	_, created := c.CreateWebhook(ctx, geonode.WebhookCreate{URL: "https://a.example/", EventType: geonode.EventBatchCompleted})
	_, _, rotated := c.RotateSecret(ctx, hookID)
	for _, err := range []error{created, rotated} {
		if !errors.Is(err, geonode.ErrMalformed) || strings.Contains(fmt.Sprintf("%+v", *wantError(t, err)), "whsec") {
			t.Errorf("got %+v", err)
		}
	}
}
