package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	answers := map[string]struct {
		handler http.HandlerFunc
		timeout string
		code    int
		want    string
	}{
		"ready": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ready\n") }, "1m", 0, "ready\n"},
		"not ready": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "database down", http.StatusServiceUnavailable)
		}, "1m", 1, "database down"},
		"silent": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "300ms", 1, "deadline exceeded"},
	}
	for name, tt := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mux := http.NewServeMux()
			mux.HandleFunc("GET /readyz", tt.handler)
			server := httptest.NewServer(mux)
			t.Cleanup(server.Close)
			listen := strings.TrimPrefix(server.URL, "http://")
			got := rollcall(t, emptyEnv, "health", "--timeout="+tt.timeout, "--listen", listen)
			if got.code != tt.code || !strings.Contains(got.out+got.errOut, tt.want) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestHealthRefused(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	got := rollcall(t, emptyEnv, "health", "--listen", strings.TrimPrefix(server.URL, "http://"))
	if got.code != 1 || !strings.Contains(got.errOut, "connection refused") {
		t.Errorf("got %+v", got)
	}
}

func TestReachable(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]string{
		":8080":          "127.0.0.1:8080",
		"0.0.0.0:8080":   "127.0.0.1:8080",
		"[::]:8080":      "[::1]:8080",
		"10.1.2.3:80":    "10.1.2.3:80",
		"localhost:8080": "localhost:8080",
	} {
		if got := reachable(listen); got != want {
			t.Errorf("reachable(%q) = %q, want %q", listen, got, want)
		}
	}
}
