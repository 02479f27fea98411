package pipeline_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"rollcall/internal/sandbox"
)

// try is a sync call that a life asked for.
type try struct {
	batch int64
	step  int // When it was asked for.
}

// said is what the vendor answered to one sync call. Status 0 is a connection
// that broke.
type said struct {
	status int
	code   string
}

// account reports an answer that is about the account, which shuts the gate.
func (s said) account() bool {
	return s.status == http.StatusTooManyRequests || s.status == http.StatusPaymentRequired
}

// lost reports an answer that leaves open whether the page was fetched.
func (s said) lost() bool { return s.status == 0 || s.status == http.StatusGatewayTimeout }

// overheard is an answer as it goes out.
type overheard struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (o *overheard) WriteHeader(status int) {
	o.status = status
	o.ResponseWriter.WriteHeader(status)
}

func (o *overheard) Write(text []byte) (int, error) {
	o.body.Write(text)
	return o.ResponseWriter.Write(text)
}

func (o *overheard) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// overhear passes a submit on and, if it is a sync call, keeps what was said to
// it. One that the vendor breaks off ends in a panic of the handler.
func (w *world) overhear(rw http.ResponseWriter, req *http.Request, next http.Handler) {
	var asked struct {
		URL  string `json:"url"`
		Mode string `json:"processing_mode"`
	}
	if err := json.Unmarshal([]byte(peek(req)), &asked); err != nil || asked.Mode != "sync" {
		next.ServeHTTP(rw, req)
		return
	}
	answer, whole := &overheard{ResponseWriter: rw}, false
	defer func() {
		var s said
		if whole {
			s = said{answer.status, codeIn(answer.body.Bytes())}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.said[asked.URL] = append(w.said[asked.URL], s)
	}()
	next.ServeHTTP(answer, req)
	whole = true
}

// codeIn is the code in an error answer of either form; empty when it is none.
func codeIn(body []byte) string {
	var e struct {
		Code  string `json:"code"`
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return ""
	}
	return e.Code + e.Error.Code
}

// tried holds a sync call against the vendor's books and what it answered: the
// page was asked for once at most, what came of it is stored or failed in the
// vendor's words, and a failure of ours has its reason in what went wrong.
func (l *life) tried(made []*sandbox.Outcome, url string, t try) []string {
	o := l.r.told(t.batch)[0]
	l.mu.Lock()
	answers := slices.Clone(l.said[url])
	l.mu.Unlock()
	why := ""
	switch {
	case len(made) > 1:
		why = "it was to be asked for once"
	case o.state == "stored":
		if len(made) == 0 || made[0].Status != "completed" || !sameSum(made[0].MarkdownSHA256, o.markdown) {
			why = "the vendor has another page, or none"
		}
	case o.state != "failed":
		why = "it has not ended"
	default:
		why = l.unfounded(o.code, made, answers, t)
	}
	if why == "" {
		return nil
	}
	return []string{fmt.Sprintf("%s is %s %s here: %s; made %+v, said %+v", url, o.state, o.code, why, made, answers)}
}

// unfounded says why a sync call had no reason to fail with the code; empty
// when it had.
func (l *life) unfounded(code string, made []*sandbox.Outcome, answers []said, t try) string {
	var last said
	if len(answers) > 0 {
		last = answers[len(answers)-1]
	}
	crashed := slices.ContainsFunc(l.steps[t.step:], func(s string) bool { return s == "crash" })
	switch code {
	case "SYNC_LOST":
		if !crashed && (len(answers) == 0 || !last.lost()) {
			return "no answer was lost"
		}
	case "NOT_SENT":
		if len(made) > 0 || slices.ContainsFunc(answers, func(s said) bool { return !s.account() }) {
			return "it was sent"
		}
		if !l.refusing() {
			return "the gate was never shut"
		}
	default:
		if last.status < 400 || last.code != code {
			return "the vendor did not say so"
		}
	}
	return ""
}

// refusing reports whether anything was injected so far that shuts the gate.
func (l *life) refusing() bool {
	for _, fault := range []string{sandbox.FaultRateLimitBare, sandbox.FaultBalanceOut} {
		if slices.ContainsFunc(l.steps, func(s string) bool { return strings.Contains(s, fault+"=") }) {
			return true
		}
	}
	return false
}
