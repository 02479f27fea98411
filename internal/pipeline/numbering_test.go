package pipeline_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// results changes the list of results of a batch's answers.
func results(why string, change func(list []any) []any) intercept {
	return func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if !isJob(req) {
			next.ServeHTTP(w, req)
			return
		}
		rewrite(w, req, next, why, func(_ int, body map[string]any) {
			if list, ok := body["results"].([]any); ok && body["status"] == "completed" {
				body["results"] = change(list)
			}
		})
	}
}

// TestBothNumberingsAreUnderstood: the vendor sets a URL aside and numbers the
// others with or without it.
func TestBothNumberingsAreUnderstood(t *testing.T) {
	t.Parallel()
	for _, accepted := range []bool{false, true} {
		t.Run(fmt.Sprintf("accepted only %v", accepted), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{sandbox: func(c *sandbox.Config) { c.Switches.IndexAccepted = accepted }})
			r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				req.Body = io.NopCloser(strings.NewReader(strings.ReplaceAll(peek(req), "https://aside.test", "ftp:://aside.test")))
				req.ContentLength = -1
				rec := httptest.NewRecorder()
				next.ServeHTTP(rec, req)
				text := strings.ReplaceAll(rec.Body.String(), "ftp:://aside.test", "https://aside.test")
				rec.Body = bytes.NewBufferString(text)
				rec.Header().Del("Content-Length")
				copyAnswer(w, rec)
			})
			urls := sandbox.MadeURLs(6, 15)
			// Equal but for the spelling, so that only the exact one is meant.
			urls = append([]string{"https://aside.test/one"}, append(urls, "https://a.sandbox.test", "https://a.sandbox.test/")...)
			got, err := r.pipe.Submit(t.Context(), pipeline.Submission{
				Kind: store.KindBatch, Text: strings.Join(urls, "\n"), KeepDuplicates: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			id := got.BatchID
			r.wantBatch(r.ended(id), 8, 1, 0)
			if got := r.code(id, urls[0]); got != "INVALID_URL" {
				t.Errorf("got %q, want INVALID_URL", got)
			}
		})
	}
}

// TestRowReportedTwiceIsStoredOnce: pages of a list may shift and show a row
// again.
func TestRowReportedTwiceIsStoredOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	r.front.set(results("", func(list []any) []any { return append(list, list[0]) }))
	id := r.submit(store.KindBatch, sandbox.MadeURLs(4, 16)...)
	b := r.ended(id)
	r.wantBatch(b, 4, 0, 0)
	if b.Charged != 4 || b.ChargedTwice != 0 {
		t.Errorf("got %d charged, %d twice, want 4, 0", b.Charged, b.ChargedTwice)
	}
	r.balanced(id)
}

// TestNotReportedNeedsTwoWholeReads: an item that the ended job does not show
// is looked for once more before it fails; one that shows up late is stored.
func TestNotReportedNeedsTwoWholeReads(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	urls := sandbox.MadeURLs(5, 17)
	var reads atomic.Int64
	r.front.set(results("", func(list []any) []any {
		first := reads.Add(1) == 1
		var out []any
		for _, one := range list {
			url := one.(map[string]any)["url"]
			if url == urls[1] || first && url == urls[3] {
				continue
			}
			out = append(out, one)
		}
		return out
	}))
	id := r.submit(store.KindBatch, urls...)
	r.wantBatch(r.ended(id), 4, 1, 0)
	if got := r.code(id, urls[1]); got != "NOT_REPORTED" {
		t.Errorf("got %q, want NOT_REPORTED", got)
	}
	if got := reads.Load(); got < 2 {
		t.Errorf("got %d reads, want two whole ones", got)
	}
}

// TestContentIsStoredWithoutLoss: NUL, other alphabets, scripts, whatever the
// page holds.
func TestContentIsStoredWithoutLoss(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	id := r.submit(store.KindMixed, "https://shop.sandbox.test/nul", "https://news.sandbox.test/nul", "https://shop.sandbox.test/latin1",
		"https://shop.sandbox.test/script", "https://forum.sandbox.test/latin1", "https://forum.sandbox.test/huge/300kb")
	r.wantBatch(r.ended(id), 6, 0, 0)
	r.balanced(id)
	if got := r.number(`SELECT count(*) FROM results WHERE position('\x00'::bytea IN markdown) > 0 OR position('\x00'::bytea IN html) > 0`); got != 2 {
		t.Errorf("got %d results with a NUL, want 2", got)
	}
}

// TestUnpairedSurrogateIsStored: JSON can carry what UTF-8 can't; the page is
// kept all the same.
func TestUnpairedSurrogateIsStored(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, req)
		var body map[string]any
		if isJob(req) && json.Unmarshal(rec.Body.Bytes(), &body) == nil && body["status"] == "completed" {
			body["data"].(map[string]any)["markdown"] = "REPLACED"
			encoded, _ := json.Marshal(body)
			encoded = bytes.ReplaceAll(encoded, []byte("REPLACED"), []byte(`a\ud800b\u0000c`+"\xff"))
			breach(w, "a string that is not UTF-8")
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(encoded)
			return
		}
		copyAnswer(w, rec)
	})
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
	r.wantBatch(r.ended(id), 1, 0, 0)
	if got := r.text(`SELECT encode(markdown, 'hex') FROM results`); !strings.HasPrefix(got, "61") || !strings.Contains(got, "620063") {
		t.Errorf("got %s, want the text with its NUL", got)
	}
}
