package pipeline_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
)

// ill is what a vendor does instead of answering about a job as it should.
type ill struct {
	name string
	// say answers the nth request about the job, from 1; answer is the right one.
	say func(w http.ResponseWriter, req *http.Request, n int64, answer []byte)
	// strikes is how many requests it is over after; zero: it lasts.
	strikes int64
	// failed is with what code each of the two URLs fails; none: both are stored.
	failed string
	// calls bounds the requests about the job; zero: two dozen.
	calls int64
}

// plainly answers with a body of JSON.
func plainly(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body)
}

// instead says something else altogether.
func instead(status int, body string) func(http.ResponseWriter, *http.Request, int64, []byte) {
	return func(w http.ResponseWriter, _ *http.Request, _ int64, _ []byte) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// changed says the right thing, changed.
func changed(change func(req *http.Request, n int64, body map[string]any)) func(http.ResponseWriter, *http.Request, int64, []byte) {
	return func(w http.ResponseWriter, req *http.Request, n int64, answer []byte) {
		body := map[string]any{}
		dec := json.NewDecoder(bytes.NewReader(answer))
		dec.UseNumber()
		if err := dec.Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		change(req, n, body)
		out, err := json.Marshal(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		plainly(w, out)
	}
}

// members says the right thing with members of the job or of its rows replaced.
func members(job, row map[string]any) func(http.ResponseWriter, *http.Request, int64, []byte) {
	return changed(func(_ *http.Request, _ int64, body map[string]any) {
		maps.Copy(body, job)
		for _, each := range rowsOf(body) {
			maps.Copy(each, row)
		}
	})
}

func rowsOf(body map[string]any) []map[string]any {
	list, _ := body["results"].([]any)
	var out []map[string]any
	for _, each := range list {
		if row, ok := each.(map[string]any); ok {
			out = append(out, row)
		}
	}
	return out
}

// replaced says the right thing with a text of it replaced by another.
func replaced(from, to string) func(http.ResponseWriter, *http.Request, int64, []byte) {
	return func(w http.ResponseWriter, _ *http.Request, _ int64, answer []byte) {
		plainly(w, bytes.Replace(answer, []byte(from), []byte(to), 1))
	}
}

func nested(depth int) string {
	return strings.Repeat(`{"a":[`, depth/2) + strings.Repeat(`]}`, depth/2)
}

// endless writes until the client hangs up.
func endless(w http.ResponseWriter, start, more string) {
	w.Header().Set("Content-Type", "application/json")
	_, err := w.Write([]byte(start))
	for chunk := []byte(strings.Repeat(more, 1000)); err == nil; {
		_, err = w.Write(chunk)
	}
}

// ills are all of them. elsewhere is an address that nobody may follow.
func ills(elsewhere string) []ill {
	const huge = json.Number("1e400")
	var first any // A page of results; the vendor answers about a job one request at a time.
	failing := map[string]any{"status": "failed", "data": nil, "error_code": "B\x00AD\u2028" + strings.Repeat("x", 1<<12), "error_message": "\x00" + strings.Repeat("y", 1<<20)}
	return []ill{
		{name: "a redirect to a private host", strikes: 2, say: func(w http.ResponseWriter, req *http.Request, _ int64, _ []byte) {
			http.Redirect(w, req, elsewhere, http.StatusTemporaryRedirect)
		}},
		{name: "nothing", strikes: 2, say: instead(http.StatusOK, "")},
		{name: "no content", strikes: 2, say: func(w http.ResponseWriter, _ *http.Request, _ int64, _ []byte) { w.WriteHeader(http.StatusNoContent) }},
		{name: "null", strikes: 2, say: instead(http.StatusOK, "null")},
		{name: "a page", strikes: 2, say: instead(http.StatusOK, "<html>all is well</html>")},
		{name: "half of it", strikes: 2, say: func(w http.ResponseWriter, _ *http.Request, _ int64, answer []byte) {
			plainly(w, answer[:len(answer)/2])
		}},
		{name: "another job", strikes: 2, say: members(map[string]any{"job_id": "00000000-0000-4000-8000-000000000000"}, nil)},
		{name: "depth", strikes: 2, say: instead(http.StatusOK, strings.Repeat("[", 1<<20))},
		{name: "depth in a member", strikes: 2, say: replaced(`"status"`, `"x":`+nested(100_000)+`,"status"`)},
		{name: "results that are no list", strikes: 2, say: members(map[string]any{"results": map[string]any{"0": "x"}}, nil)},
		{name: "rows of every type", strikes: 1, say: members(map[string]any{"results": []any{nil, 1, "x", true, []any{}, map[string]any{}}}, nil)},
		{name: "content of the wrong type", strikes: 1, say: members(nil, map[string]any{"data": "text", "metadata": []any{1}})},
		{name: "content that is a number", strikes: 1, say: members(nil, map[string]any{"data": map[string]any{"markdown": 7, "html": []any{}}})},
		{name: "a state of a megabyte", strikes: 2, say: members(map[string]any{"status": strings.Repeat("\x00wait", 200_000)}, nil)},
		{name: "a body without end", say: func(w http.ResponseWriter, _ *http.Request, _ int64, answer []byte) {
			endless(w, string(answer[:len(answer)-1]), " ")
		}, failed: "TOO_LARGE"},
		{name: "an error without end", strikes: 2, say: func(w http.ResponseWriter, _ *http.Request, _ int64, _ []byte) {
			w.WriteHeader(http.StatusBadGateway)
			endless(w, "", "sorry ")
		}},

		{name: "times before time", say: members(map[string]any{"created_at": "0001-01-01T00:00:00Z", "completed_at": "0000-01-01T00:00:00+14:00"}, nil)},
		{name: "times after time", say: members(map[string]any{"created_at": "9999-12-31T23:59:59-14:00", "completed_at": "9999-12-31T23:59:59.999999999-12:00"}, nil)},
		{name: "counts beyond counting", say: members(map[string]any{
			"total_urls": huge, "completed_urls": json.Number("99999999999999999999"), "failed_urls": json.Number("9223372036854775807"), "pending_urls": json.Number("9223372036854775807"),
			"token_summary": map[string]any{"tokens_charged_total": json.Number("9223372036854775807")},
		}, map[string]any{"metadata": map[string]any{
			"http_status": json.Number("9223372036854775807"), "duration_ms": json.Number("9223372036854775807"),
			"retry_count": json.Number("9223372036854775807"), "tokens_charged": json.Number("9223372036854775807"), "x": huge,
		}})},
		{name: "counts below zero", say: members(map[string]any{
			"total_urls": -1, "completed_urls": -2, "cancelled_urls": json.Number("-9223372036854775808"),
		}, map[string]any{"metadata": map[string]any{"http_status": -1, "duration_ms": -5, "retry_count": -9, "tokens_charged": -7}})},
		{name: "metadata without bottom", say: replaced(`"metadata":{`, `"metadata":{"x":`+nested(8000)+`,`)},
		{name: "NUL in names and values", say: members(nil, map[string]any{"metadata": map[string]any{"\x00": "\x00", "title": "a\x00b", "url": "\x00"}})},
		{name: "members twice", say: replaced(`"status"`, `"status":"queued","status":7,"STATUS":null,"status"`)},
		{name: "broken UTF-8", say: replaced(`"metadata":{`, "\"metadata\":{\"x\xff\":\"\xc3\x28\xed\xa0\x80\",")},
		{name: "reasons of a megabyte", say: members(nil, failing), failed: "*"},
		{name: "URLs set aside in every form", say: members(map[string]any{"invalid_urls": []any{nil, 7, "\x00", map[string]any{"url": "\x00"}, []any{}}}, nil)},
		{name: "a page over and over", say: changed(func(_ *http.Request, _ int64, body map[string]any) {
			body["total_urls"] = 1_000_000_000
			if len(rowsOf(body)) > 0 {
				first = body["results"]
			}
			body["results"] = first
		})},
		{name: "a count that grows", say: changed(func(_ *http.Request, n int64, body map[string]any) { body["total_urls"] = n * 1000 })},
		{name: "other rows for ever", say: changed(func(_ *http.Request, n int64, body map[string]any) {
			body["total_urls"] = 1_000_000_000
			list, _ := body["results"].([]any)
			for i := range 50 {
				list = append(list, map[string]any{"input_index": n*50 + int64(i), "url": fmt.Sprintf("https://other.test/%d-%d", n, i), "status": "completed", "data": map[string]any{"markdown": "# other"}})
			}
			body["results"] = list
		})},
		{name: "content for another URL", say: changed(func(_ *http.Request, _ int64, body map[string]any) {
			for i, row := range rowsOf(body) {
				row["input_index"] = []any{-1, json.Number("9223372036854775807"), json.Number("1e30"), "0"}[i%4]
			}
		}), failed: "MISNUMBERED"},
	}
}
