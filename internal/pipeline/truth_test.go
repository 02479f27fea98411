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

// truth is what the vendor's books say, by job and URL.
type truth struct {
	outcomes map[string]map[string][]*sandbox.Outcome
	invalid  map[string]map[string]bool
	jobs     map[string][]string // The vendor's jobs that a URL was submitted in.
	stopped  map[string]bool     // Jobs that were cancelled.
	charged  map[string]int64
	tried    map[string][]*sandbox.Outcome // Of sync calls, by URL.
	// hasty is for tests whose clock jumps: nobody may have waited for the pages
	// that ran when their job was cancelled, nor for whether a call was taken.
	hasty bool
}

func (r *rig) truth() truth {
	t := truth{
		outcomes: map[string]map[string][]*sandbox.Outcome{}, invalid: map[string]map[string]bool{},
		jobs: map[string][]string{}, stopped: map[string]bool{}, charged: map[string]int64{}, tried: map[string][]*sandbox.Outcome{},
	}
	books := r.sandbox.Books()
	for i := range books.Jobs {
		j := &books.Jobs[i]
		if j.Kind == "sync" { // No job that could be known.
			t.tried[j.Outcomes[0].URL] = append(t.tried[j.Outcomes[0].URL], &j.Outcomes[0])
			continue
		}
		t.stopped[j.ID], t.charged[j.ID] = j.Status == "cancelled", int64(j.Charged)
		t.outcomes[j.ID], t.invalid[j.ID] = map[string][]*sandbox.Outcome{}, map[string]bool{}
		for _, u := range j.Submitted {
			t.jobs[fromAside(u)] = append(t.jobs[fromAside(u)], j.ID)
		}
		for _, u := range j.Invalid {
			t.invalid[j.ID][fromAside(u)] = true
		}
		for k := range j.Outcomes {
			o := &j.Outcomes[k]
			t.outcomes[j.ID][o.URL] = append(t.outcomes[j.ID][o.URL], o)
		}
	}
	return t
}

// told is one item as Rollcall tells of it.
type told struct {
	url, state, code string
	markdown, html   []byte
	content          bool     // Whether there is a result.
	lineage          []string // The vendor's jobs that carried it.
	refused          bool     // One of its jobs was never taken, as far as is known.
}

func (r *rig) told(batch int64) []*told {
	r.t.Helper()
	rows, err := r.eyes.QueryContext(r.t.Context(), `SELECT i.url, i.state, i.error_code, r.markdown, r.html, r.item_id IS NOT NULL,
			coalesce((SELECT string_agg(j.vendor_job_id, ' ') FROM job_items ji JOIN jobs j ON j.id = ji.job_id WHERE ji.item_id = i.id), ''),
			EXISTS (SELECT FROM job_items ji JOIN jobs j ON j.id = ji.job_id WHERE ji.item_id = i.id AND j.state = 'refused')
		FROM items i LEFT JOIN results r ON r.item_id = i.id WHERE i.batch_id = $1 ORDER BY i.position`, batch)
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	var out []*told
	for rows.Next() {
		o := new(told)
		var lineage string
		if err := rows.Scan(&o.url, &o.state, &o.code, &o.markdown, &o.html, &o.content, &lineage, &o.refused); err != nil {
			r.t.Fatal(err)
		}
		o.lineage = strings.Fields(lineage)
		out = append(out, o)
	}
	if err := rows.Err(); err != nil {
		r.t.Fatal(err)
	}
	return out
}

// differs says how an item differs from what the vendor's jobs in its lineage
// made of its URL; empty when it does not. What one of them completed must be
// stored, to the byte; what failed has the vendor's code; what was cancelled
// never ran to its end.
func (t truth) differs(o *told) string {
	if (o.state == "stored") != o.content {
		return "state and result do not go together"
	}
	why := "no job of the vendor's explains it"
	for _, id := range o.lineage {
		if t.invalid[id][o.url] && o.state == "failed" && o.code == "INVALID_URL" {
			why = ""
		}
		for _, v := range t.outcomes[id][o.url] {
			switch {
			case v.Status == "completed" && o.state == "cancelled" && t.hasty && t.stopped[id]:
				why = ""
			case v.Status == "completed" && o.state != "stored":
				return "the vendor completed it"
			case v.Status == "completed" && sameSum(v.MarkdownSHA256, o.markdown) && sameSum(v.HTMLSHA256, o.html),
				v.Status == "failed" && o.state == "failed" && v.Code == o.code,
				v.Status == "cancelled" && o.state == "cancelled":
				why = ""
			case why != "":
				why = fmt.Sprintf("the vendor says %s %s", v.Status, v.Code)
			}
		}
	}
	switch {
	case o.state == "cancelled" && o.code == "CANCELLED":
		return "" // Withdrawn before any call, or before it was sent again.
	case t.hasty && o.state == "failed" && o.code == "GAVE_UP":
		return "" // What became of it was not known in time, and was no page.
	}
	return why
}

func sameSum(sum string, content []byte) bool {
	got := sha256.Sum256(content)
	return sum == "" && content == nil || sum == hex.EncodeToString(got[:])
}

// untrue lists every way in which the roll call of the batches differs from
// the rows or from the vendor's books.
func (r *rig) untrue(batches ...int64) []string {
	r.t.Helper()
	return r.falseBy(r.truth(), batches...)
}

func (r *rig) falseBy(t truth, batches ...int64) []string {
	r.t.Helper()
	var out []string
	diff, _, err := r.store.RecountBatches(r.t.Context(), 0, 1000)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, d := range diff {
		out = append(out, fmt.Sprintf("counters differ from rows: %+v", d))
	}
	for _, id := range batches {
		for _, o := range r.told(id) {
			if why := t.differs(o); why != "" {
				out = append(out, fmt.Sprintf("%s is %s %s here: %s", o.url, o.state, o.code, why))
			}
			for _, vendor := range t.jobs[o.url] {
				if t.hasty && o.refused {
					continue
				}
				if r.number(`SELECT count(*) FROM jobs WHERE vendor_job_id = $1`, vendor) != 1 {
					out = append(out, fmt.Sprintf("the vendor's job %s for %s is not known here", vendor, o.url))
				}
			}
		}
	}
	return out
}

// mischarged lists the vendor's jobs that cost something else on Rollcall's
// books than on the vendor's.
func (r *rig) mischarged(t truth) []string {
	r.t.Helper()
	var out []string
	for id, want := range t.charged {
		if t.hasty && t.stopped[id] {
			continue
		}
		if got := r.number(`SELECT coalesce(max(charged), $2) FROM jobs WHERE vendor_job_id = $1`, id, want); got != want {
			out = append(out, fmt.Sprintf("job %s cost %d, and %d here", id, want, got))
		}
	}
	return out
}

// wantTrue wants the roll call to be the vendor's truth.
func (r *rig) wantTrue(batches ...int64) {
	r.t.Helper()
	for _, why := range append(r.untrue(batches...), r.mischarged(r.truth())...) {
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
