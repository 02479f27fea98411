package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"rollcall/internal/sandbox"
	"rollcall/store"
)

const (
	verifyTimeout = 5 * time.Minute
	// problemsShown bounds what is printed of a list of problems.
	problemsShown = 20
)

// verify holds the batches against their own rows and, URL by URL, against the vendor's books. It returns a line for each
// thing that is wrong.
func (d *demo) verify(ctx context.Context, ids []int64, sum *store.Batch, books sandbox.Books) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), verifyTimeout)
	defer cancel()
	problems := summarize(sum, books, 0).balance()
	var answers []answer
	for _, id := range ids {
		differences, _, err := d.store.RecountBatches(ctx, id-1, 1)
		if err != nil {
			return nil, fmt.Errorf("recount batch %d: %w", id, err)
		}
		for _, r := range differences {
			problems = append(problems, fmt.Sprintf("batch %d counts %s %d, its rows say %d", r.BatchID, r.Column, r.Counter, r.Rows))
		}
		some, err := readAnswers(ctx, d.store.SQL(), id)
		if err != nil {
			return nil, err
		}
		answers = append(answers, some...)
	}
	if int64(len(answers)) != sum.Accepted {
		problems = append(problems, fmt.Sprintf("%d URLs were accepted, %d are there", sum.Accepted, len(answers)))
	}
	truth := newTruth(books)
	for _, answer := range answers {
		if problem := truth.judge(answer); problem != "" {
			problems = append(problems, answer.url+": "+problem)
		}
	}
	problems = append(problems, lostPages(books, answers)...)
	unknown, err := unknownJobs(ctx, d.store, books, answers)
	for _, job := range unknown {
		problems = append(problems, "vendor job "+job.ID+" was made and is not known here: its URLs were submitted twice")
	}
	return problems, err
}

// lostPages are pages that a crawl of ours brought and nobody here has.
func lostPages(books sandbox.Books, answers []answer) []string {
	have := map[string]map[string]bool{}
	for _, a := range answers {
		for _, job := range a.jobs {
			if have[job] == nil {
				have[job] = map[string]bool{}
			}
			have[job][a.url] = true
		}
	}
	var problems []string
	for i := range books.Jobs {
		job := &books.Jobs[i]
		if job.Kind != string(store.KindCrawl) || have[job.ID] == nil {
			continue
		}
		for o := range job.Outcomes {
			if got := &job.Outcomes[o]; got.Status == "completed" && !have[job.ID][got.URL] {
				problems = append(problems, got.URL+": crawl "+job.ID+" brought it, and it is not here")
			}
		}
	}
	return problems
}

// unknownJobs are jobs that the vendor made of the batch's URLs and Rollcall knows nothing of: what they carry was
// submitted, and may have been charged, a second time. Sync calls have no job here. What never ended, or was
// forgotten, was not charged, and shows nothing by which a lost call could know it.
func unknownJobs(ctx context.Context, st *store.Store, books sandbox.Books, answers []answer) ([]*sandbox.JobRecord, error) {
	ours := map[string]bool{}
	for _, a := range answers {
		ours[a.url] = true
	}
	var unknown []*sandbox.JobRecord
	for jobs := range slices.Chunk(books.Jobs, 1000) {
		ids := make([]string, len(jobs))
		for i := range jobs {
			ids[i] = jobs[i].ID
		}
		known, err := st.KnownVendorIDs(ctx, ids)
		if err != nil {
			return nil, fmt.Errorf("look for the vendor's jobs: %w", err)
		}
		for i, id := range ids {
			counts := jobs[i].Kind != string(store.KindSync) && hasEnded(jobs[i].Status)
			if _, ok := known[id]; !ok && counts && slices.ContainsFunc(jobs[i].Submitted, func(url string) bool { return ours[url] }) {
				unknown = append(unknown, &jobs[i])
			}
		}
	}
	return unknown, nil
}

// answer is what Rollcall says of one URL.
type answer struct {
	url, state, code   string
	markdown, htmlText string   // SHA-256 of what is stored, hexadecimal; "" for nothing.
	jobs               []string // The vendor's ids of the jobs that carried it, oldest first.
}

// readAnswers reads the items of a batch with the sums of their content, which Postgres makes from the stored bytes.
func readAnswers(ctx context.Context, db *sql.DB, batchID int64) ([]answer, error) {
	rows, err := db.QueryContext(ctx, `SELECT i.url, i.state, i.error_code,
			coalesce(encode(sha256(r.markdown), 'hex'), ''), coalesce(encode(sha256(r.html), 'hex'), ''),
			coalesce((SELECT string_agg(j.vendor_job_id, chr(10) ORDER BY j.id) FROM job_items ji JOIN jobs j ON j.id = ji.job_id
				WHERE ji.item_id = i.id AND j.vendor_job_id IS NOT NULL), '')
		FROM items i LEFT JOIN results r ON r.item_id = i.id WHERE i.batch_id = $1 ORDER BY i.position`, batchID)
	if err != nil {
		return nil, fmt.Errorf("read the items of batch %d: %w", batchID, err)
	}
	defer func() { _ = rows.Close() }() // Err tells what went wrong.
	var answers []answer
	for rows.Next() {
		var one answer
		var jobs string
		if err := rows.Scan(&one.url, &one.state, &one.code, &one.markdown, &one.htmlText, &jobs); err != nil {
			return nil, fmt.Errorf("read the items of batch %d: %w", batchID, err)
		}
		one.jobs = slices.DeleteFunc(strings.Split(jobs, "\n"), func(id string) bool { return id == "" })
		answers = append(answers, one)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the items of batch %d: %w", batchID, err)
	}
	return answers, nil
}

// truth is the vendor's books by job and URL.
type truth map[string]map[string]sandbox.Outcome

func newTruth(books sandbox.Books) truth {
	t := truth{}
	for i := range books.Jobs {
		job := &books.Jobs[i]
		byURL := map[string]sandbox.Outcome{}
		for o := range job.Outcomes {
			outcome := job.Outcomes[o]
			if !hasEnded(job.Status) {
				// A job that never ends brings nothing, and tells no charge, whatever its pages are.
				outcome.Status, outcome.Charged = job.Status, 0
			}
			byURL[outcome.URL] = outcome
		}
		for _, url := range job.Invalid {
			byURL[url] = sandbox.Outcome{URL: url, Status: "invalid"}
		}
		t[job.ID] = byURL
	}
	return t
}

// hasEnded reports a vendor's job that shows results, or that there are none.
func hasEnded(status string) bool {
	return slices.Contains([]string{"completed", "failed", "cancelled"}, status)
}

// judge says how an answer differs from the books, or "". What is stored must be, byte for byte, what one of the jobs
// of its lineage brought. What failed must have failed so in its last job, and no job of its lineage may have brought
// a result; a URL that no job was accepted for is unknown to the vendor and must have failed.
func (t truth) judge(a answer) string {
	var outcomes []sandbox.Outcome
	for _, job := range a.jobs {
		if outcome, ok := t[job][a.url]; ok {
			outcomes = append(outcomes, outcome)
		}
	}
	switch a.state {
	case string(store.ItemStored):
		if !slices.ContainsFunc(outcomes, a.same) {
			return fmt.Sprintf("is stored with other content than the vendor's books have: %+v", outcomes)
		}
	case string(store.ItemFailed):
		return a.judgeFailure(outcomes)
	case string(store.ItemCancelled):
		if len(outcomes) > 0 && outcomes[len(outcomes)-1].Status != "cancelled" {
			return fmt.Sprintf("is cancelled, the vendor's books have %+v", outcomes)
		}
	default:
		return fmt.Sprintf("is %s, the vendor's books have %+v", a.state, outcomes)
	}
	return ""
}

func (a answer) same(o sandbox.Outcome) bool {
	return o.Status == "completed" && o.MarkdownSHA256 == a.markdown && o.HTMLSHA256 == a.htmlText
}

func (a answer) judgeFailure(outcomes []sandbox.Outcome) string {
	if len(outcomes) == 0 {
		return ""
	}
	last := outcomes[len(outcomes)-1]
	brought := slices.ContainsFunc(outcomes, func(o sandbox.Outcome) bool { return o.Status == "completed" })
	// A job that never ends, or that the vendor lost, is given up.
	givenUp := slices.Contains([]string{"GAVE_UP", "VENDOR_FORGOT"}, a.code)
	known := slices.Contains([]string{"failed", "invalid"}, last.Status) || givenUp && slices.Contains([]string{"queued", "processing", "forgotten"}, last.Status)
	if brought || (last.Status == "failed" && last.Code != a.code) || !known {
		return fmt.Sprintf("failed with %s, the vendor's books have %+v", a.code, outcomes)
	}
	return ""
}

// printProblems prints the first of them.
func printProblems(out io.Writer, problems []string) error {
	if len(problems) == 0 {
		_, err := fmt.Fprintln(out, "Every URL is answered for, and the stored results are those of the vendor's books.")
		return err
	}
	shown := problems[:min(len(problems), problemsShown)]
	text := strings.Join(shown, "\n  ")
	if rest := len(problems) - len(shown); rest > 0 {
		text += fmt.Sprintf("\n  and %d more", rest)
	}
	_, err := fmt.Fprintf(out, "It does not balance:\n  %s\n", text)
	return err
}
