package pipeline_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"

	"rollcall/internal/sandbox"
)

// truth is what the vendor's books say of each URL, whichever job it was in.
type truth struct {
	outcomes map[string][]*sandbox.Outcome
	jobs     map[string][]string // The vendor's jobs that a URL was submitted in.
	invalid  map[string]bool
}

func (r *rig) truth() truth {
	t := truth{map[string][]*sandbox.Outcome{}, map[string][]string{}, map[string]bool{}}
	books := r.sandbox.Books()
	for i := range books.Jobs {
		j := &books.Jobs[i]
		for _, u := range j.Submitted {
			t.jobs[fromAside(u)] = append(t.jobs[fromAside(u)], j.ID)
		}
		for _, u := range j.Invalid {
			t.invalid[fromAside(u)] = true
		}
		for k := range j.Outcomes {
			o := &j.Outcomes[k]
			t.outcomes[o.URL] = append(t.outcomes[o.URL], o)
		}
	}
	return t
}

// told is one item as Rollcall tells of it.
type told struct {
	url, state, code string
	markdown, html   []byte
	content          bool // Whether there is a result.
}

func (r *rig) told(batch int64) []told {
	r.t.Helper()
	rows, err := r.store.SQL().QueryContext(r.t.Context(), `SELECT i.url, i.state, i.error_code, r.markdown, r.html, r.item_id IS NOT NULL
		FROM items i LEFT JOIN results r ON r.item_id = i.id WHERE i.batch_id = $1 ORDER BY i.position`, batch)
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	var out []told
	for rows.Next() {
		var o told
		if err := rows.Scan(&o.url, &o.state, &o.code, &o.markdown, &o.html, &o.content); err != nil {
			r.t.Fatal(err)
		}
		out = append(out, o)
	}
	if err := rows.Err(); err != nil {
		r.t.Fatal(err)
	}
	return out
}

// differs says how an item differs from what the vendor made of its URL; empty
// when it does not. What the vendor completed must be stored, to the byte; what
// failed has the vendor's code; what was cancelled never ran to its end.
func (t truth) differs(o told) string {
	if (o.state == "stored") != o.content {
		return "state and result do not go together"
	}
	var seen []string
	for _, v := range t.outcomes[o.url] {
		switch {
		case v.Status == "completed" && o.state != "stored":
			return "the vendor completed it"
		case v.Status == "completed" && sameSum(v.MarkdownSHA256, o.markdown) && sameSum(v.HTMLSHA256, o.html):
			return ""
		case v.Status == "failed" && o.state == "failed" && v.Code == o.code, v.Status == "cancelled" && o.state == "cancelled":
			return ""
		}
		seen = append(seen, v.Status+" "+v.Code)
	}
	switch {
	case o.state == "failed" && o.code == "INVALID_URL" && t.invalid[o.url]:
		return ""
	case o.state == "cancelled" && len(t.jobs[o.url]) == 0:
		return "" // Withdrawn before any call.
	}
	return fmt.Sprintf("the vendor says %q", strings.Join(seen, ", "))
}

func sameSum(sum string, content []byte) bool {
	got := sha256.Sum256(content)
	return sum == "" && content == nil || sum == hex.EncodeToString(got[:])
}

// untrue lists every way in which the roll call of the batches differs from
// the rows or from the vendor's books.
func (r *rig) untrue(batches ...int64) []string {
	r.t.Helper()
	var out []string
	diff, _, err := r.store.RecountBatches(r.t.Context(), 0, 1000)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, d := range diff {
		out = append(out, fmt.Sprintf("counters differ from rows: %+v", d))
	}
	t := r.truth()
	for _, id := range batches {
		for _, o := range r.told(id) {
			if why := t.differs(o); why != "" {
				out = append(out, fmt.Sprintf("%s is %s %s here: %s", o.url, o.state, o.code, why))
			}
			for _, vendor := range t.jobs[o.url] {
				if r.number(`SELECT count(*) FROM jobs WHERE vendor_job_id = $1`, vendor) != 1 {
					out = append(out, fmt.Sprintf("the vendor's job %s for %s is not known here", vendor, o.url))
				}
			}
		}
	}
	return out
}

// wantTrue wants the roll call to be the vendor's truth.
func (r *rig) wantTrue(batches ...int64) {
	r.t.Helper()
	for _, why := range r.untrue(batches...) {
		r.t.Error(why)
	}
}

// Hosts of the same URL here and at the vendor, where it is none.
const asideHere, asideThere = "https://aside.test", "ftp:://aside.test"

func fromAside(url string) string { return strings.Replace(url, asideThere, asideHere, 1) }

// aside makes the vendor set the URLs of aside.test aside, which pass for good
// ones here.
func aside(w http.ResponseWriter, req *http.Request, next http.Handler) {
	req.Body = io.NopCloser(strings.NewReader(strings.ReplaceAll(peek(req), asideHere, asideThere)))
	req.ContentLength = -1
	next.ServeHTTP(backFromAside{w}, req)
}

// backFromAside gives the URLs in an answer back what they were.
type backFromAside struct{ http.ResponseWriter }

func (b backFromAside) WriteHeader(status int) {
	b.Header().Del("Content-Length")
	b.ResponseWriter.WriteHeader(status)
}

func (b backFromAside) Write(text []byte) (int, error) {
	if _, err := b.ResponseWriter.Write(bytes.ReplaceAll(text, []byte(asideThere), []byte(asideHere))); err != nil {
		return 0, err
	}
	return len(text), nil
}

func (b backFromAside) Unwrap() http.ResponseWriter { return b.ResponseWriter }
