package contracttest_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"rollcall/internal/geonode/contracttest"
)

// request is one call of a test.
type request struct {
	method, path, body string
	noKey              bool
	ctx                context.Context
}

// answer is what the fake server says.
type answer struct {
	status      int
	contentType string
	body        string
	mark        string
}

const jobPath = "/v1/batch/1f6d2a90-7c54-4e1b-a3d8-90b7c5e2f611"

var (
	getBatch = request{method: "GET", path: jobPath + "?page=1&page_size=50"}
	okBatch  = answer{status: 200, body: `{"job_id":"1f6d2a90-7c54-4e1b-a3d8-90b7c5e2f611","status":"queued"}`}
)

// exchanges are calls with what the kit must say of them: empty for nothing.
var exchanges = map[string]struct {
	request request
	answer  answer
	want    string
}{
	"OK":                   {getBatch, okBatch, ""},
	"OKList":               {request{method: "GET", path: "/v1/batch/jobs?page=1"}, answer{status: 200, body: `{"jobs":[],"page":1,"page_size":10,"page_count":0}`}, ""},
	"OKPost":               {request{method: "POST", path: "/v1/batch", body: `{"urls":["https://a.example/"]}`}, answer{status: 202, body: okBatch.body}, ""},
	"OKNoContent":          {request{method: "DELETE", path: strings.Replace(jobPath, "batch", "webhooks", 1)}, answer{status: 204}, ""},
	"OKHealthWithoutKey":   {request{method: "GET", path: "/health", noKey: true}, answer{status: 200, body: `{}`}, ""},
	"OKEmpty404":           {getBatch, answer{status: 404, contentType: "text/plain"}, ""},
	"OKUnlisted500":        {getBatch, answer{status: 500, body: `{"code":"X","message":"m"}`}, ""},
	"OKThreeShapesOf422":   {getBatch, answer{status: 422, body: `{"detail":[{"loc":["body",0],"msg":"m","type":"t"}]}`}, ""},
	"UnknownPath":          {request{method: "GET", path: "/v1/nothing"}, answer{status: 200, body: `{}`}, "the contract has no GET /v1/nothing"},
	"UnknownMethod":        {request{method: "PUT", path: jobPath}, answer{status: 200, body: `{}`}, "the contract has no PUT"},
	"UnknownQuery":         {request{method: "GET", path: jobPath + "?pagesize=3"}, okBatch, "pagesize"},
	"PageSizeTooBig":       {request{method: "GET", path: jobPath + "?page_size=51"}, okBatch, "page_size"},
	"IDNotUUID":            {request{method: "GET", path: "/v1/batch/seven"}, okBatch, "job_id"},
	"NoKey":                {request{method: "GET", path: jobPath, noKey: true}, okBatch, "X-Api-Key"},
	"RequestWrongType":     {request{method: "POST", path: "/v1/batch", body: `{"urls":"https://a.example/"}`}, answer{status: 202, body: okBatch.body}, "urls"},
	"RequestMissingMember": {request{method: "POST", path: "/v1/batch", body: `{}`}, answer{status: 202, body: okBatch.body}, "urls"},
	"RequestBodyUnwanted":  {request{method: "GET", path: jobPath, body: `{}`}, okBatch, "body not allowed"},
	"AnswerWrongType":      {getBatch, answer{status: 200, body: strings.Replace(okBatch.body, `"queued"`, `5`, 1)}, "status"},
	"AnswerMissingMember":  {getBatch, answer{status: 200, body: `{"status":"queued"}`}, "job_id"},
	"AnswerNotJSON":        {getBatch, answer{status: 200, contentType: "text/html", body: `<html>`}, "Content-Type"},
	"AnswerOtherSuccess":   {getBatch, answer{status: 201, body: okBatch.body}, "answer 201"},
	"AnswerEmpty500":       {getBatch, answer{status: 500}, "answer 500"},
	"AnswerRedirect":       {getBatch, answer{status: 307}, "redirect"},
}

// send makes a call and returns the header and body the client saw.
func send(t *testing.T, rt http.RoundTripper, url string, in request) (http.Header, string) {
	t.Helper()
	ctx := in.ctx
	if ctx == nil {
		ctx = t.Context()
	}
	req, err := http.NewRequestWithContext(ctx, in.method, url+in.path, strings.NewReader(in.body))
	if err != nil {
		t.Fatal(err)
	}
	if in.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if !in.noKey {
		req.Header.Set("X-Api-Key", "k")
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Header, string(body)
}

func (a answer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	if a.contentType != "" {
		w.Header().Set("Content-Type", a.contentType)
	}
	if a.mark != "" {
		w.Header().Set(contracttest.DeliberateHeader, a.mark)
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
}

func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func wantBreach(t *testing.T, got []string, want string) {
	t.Helper()
	switch {
	case want == "" && len(got) > 0:
		t.Errorf("got %q, want no breach", got)
	case want != "" && (len(got) == 0 || !strings.Contains(strings.Join(got, "\n"), want)):
		t.Errorf("got %q, want one that names %q", got, want)
	}
}

func TestTransport(t *testing.T) {
	t.Parallel()
	for name, tc := range exchanges {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSpy(t)
			srv := serve(t, tc.answer)
			_, body := send(t, contracttest.Transport(s, srv.Client().Transport), srv.URL, tc.request)
			if body != tc.answer.body {
				t.Errorf("the answer was changed: %q, want %q", body, tc.answer.body)
			}
			wantBreach(t, s.got(), tc.want)
		})
	}
}

func TestHandler(t *testing.T) {
	t.Parallel()
	for name, tc := range exchanges {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSpy(t)
			srv := serve(t, contracttest.Handler(s, tc.answer))
			_, body := send(t, srv.Client().Transport, srv.URL, tc.request)
			if body != tc.answer.body {
				t.Errorf("the answer was changed: %q, want %q", body, tc.answer.body)
			}
			srv.Close() // The handler's check ends before the server does.
			wantBreach(t, s.got(), tc.want)
		})
	}
}

func TestDeliberate(t *testing.T) {
	t.Parallel()
	bad := answer{status: 200, body: `{}`}
	marked := bad
	marked.mark = "an answer without its members"
	byContext := getBatch
	byContext.ctx = contracttest.Deliberate(t.Context(), "provokes a bad answer")
	for name, tc := range map[string]struct {
		request request
		answer  answer
	}{"ByContext": {byContext, bad}, "ByAnswer": {getBatch, marked}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, server := newSpy(t), newSpy(t)
			var seen http.Header
			next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				seen = r.Header.Clone()
				tc.answer.ServeHTTP(w, r)
			})
			srv := serve(t, contracttest.Handler(server, next))
			before := contracttest.Marked()
			header, _ := send(t, contracttest.Transport(client, srv.Client().Transport), srv.URL, tc.request)
			srv.Close()
			wantBreach(t, client.got(), "")
			wantBreach(t, server.got(), "")
			if contracttest.Marked() <= before {
				t.Error("the marked call was not counted")
			}
			for _, h := range []http.Header{seen, header} {
				if h.Get(contracttest.DeliberateHeader) != "" {
					t.Error("the mark was not taken off")
				}
			}
		})
	}
}

func TestHandlerTakesMarksOffForOtherClients(t *testing.T) {
	t.Parallel()
	s := newSpy(t)
	srv := serve(t, contracttest.Handler(s, answer{status: 200, body: `{}`, mark: "on purpose"}))
	header, _ := send(t, srv.Client().Transport, srv.URL, getBatch)
	srv.Close()
	wantBreach(t, s.got(), "")
	if header.Get(contracttest.DeliberateHeader) != "" {
		t.Error("the mark reached the client")
	}
}

func TestSkip(t *testing.T) {
	t.Parallel()
	client, server := newSpy(t), newSpy(t)
	srv := serve(t, contracttest.Handler(server, answer{status: 200, body: "x"}, "/_admin/"))
	send(t, contracttest.Transport(client, srv.Client().Transport, "/_admin/"), srv.URL, request{method: "GET", path: "/_admin/books"})
	srv.Close()
	wantBreach(t, client.got(), "")
	wantBreach(t, server.got(), "")
}

func TestBreachAfterTheTestIsNotReportedToIt(t *testing.T) {
	t.Parallel()
	s := newSpy(t)
	srv := serve(t, answer{status: 200, body: `{}`})
	rt := contracttest.Transport(s, srv.Client().Transport)
	s.end()
	send(t, rt, srv.URL, getBatch)
	wantBreach(t, s.got(), "")
}

func TestConcurrentCalls(t *testing.T) { //nolint:tparallel // The group of calls must end before the server does.
	t.Parallel()
	client, server := newSpy(t), newSpy(t)
	srv := serve(t, contracttest.Handler(server, okBatch))
	rt := contracttest.Transport(client, srv.Client().Transport)
	t.Run("calls", func(t *testing.T) {
		for range 20 {
			t.Run("call", func(t *testing.T) {
				t.Parallel()
				send(t, rt, srv.URL, getBatch)
			})
		}
	})
	srv.Close()
	wantBreach(t, client.got(), "")
	wantBreach(t, server.got(), "")
}

func TestBrokenAnswerStaysBroken(t *testing.T) {
	t.Parallel()
	s := newSpy(t)
	srv := serve(t, contracttest.Handler(s, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `{"job_id"`)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})))
	rt := contracttest.Transport(s, srv.Client().Transport)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+getBatch.path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "k")
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("got a whole answer, want the break")
	}
	wantBreach(t, s.got(), "")
}

// TestHijackedAnswersPass lets a simulator break the connection by itself.
func TestHijackedAnswersPass(t *testing.T) {
	t.Parallel()
	s := newSpy(t)
	srv := serve(t, contracttest.Handler(s, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hijacker, ok := w.(http.Hijacker)
		if !ok {
			t.Error("the writer can't be hijacked")
			return
		}
		conn, _, err := hijacker.Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.Close()
	})))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/v1/batch", strings.NewReader(`{"urls":["https://a.example/"]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "k")
	req.Header.Set("Content-Type", "application/json")
	resp, err := contracttest.Transport(s, srv.Client().Transport).RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
		t.Error("got an answer, want a broken connection")
	}
	wantBreach(t, s.got(), "")
}
