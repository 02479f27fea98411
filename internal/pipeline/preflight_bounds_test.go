package pipeline_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// TestPreflightKeepsNoMoreThanItRead: of short lines under wide headers nothing
// is made that the file doesn't hold, by the preflight, its batch, or the batch
// that runs it again; and what a full file holds is bounded.
func TestPreflightKeepsNoMoreThanItRead(t *testing.T) {
	t.Parallel()
	f := newPreflights(t, setup{stopped: true, noWebhooks: true})
	text := "url" + strings.Repeat(",c", 199) + "\nhttps://a.test/1\nhttps://a.test/2,x\nhttps://a.test/3,,y,,,\nhttps://a.test/3,z,,\nhttps://a.test/4" +
		strings.Repeat(",", 199) + "\n"
	id := f.make(pipeline.PreflightInput{Files: []pipeline.File{pipeline.FileOf("a.csv", []byte(text))}})
	done, err := f.pipe.SubmitPreflight(t.Context(), id, f.alice, 1)
	if err != nil {
		t.Fatal(err)
	}
	again, err := f.pipe.Rerun(t.Context(), pipeline.Again{BatchID: done.BatchID})
	if err != nil {
		t.Fatal(err)
	}
	for _, kept := range []struct {
		table, of string
		id, cells int64
	}{
		{"preflight_lines", "preflight_id", id, 4},
		{"items", "batch_id", done.BatchID, 3},
		{"rejected_lines", "batch_id", done.BatchID, 1},
		{"items", "batch_id", again.BatchID, 3},
	} {
		if n := f.number(`SELECT coalesce(sum(cardinality(extra)), 0) FROM `+kept.table+` WHERE `+kept.of+` = $1`, kept.id); n != kept.cells {
			t.Errorf("%s of %d keep %d cells, not %d", kept.table, kept.id, n, kept.cells)
		}
	}
	if err := pipeline.KeepCells(t.Context(), pipeline.MaxKeptCells-2, "", "b", ""); err != nil {
		t.Errorf("the last cells: %v", err)
	}
	if err := pipeline.KeepCells(t.Context(), pipeline.MaxKeptCells-2, "", "", "c"); err == nil || !strings.Contains(err.Error(), "over 4 million cells") {
		t.Errorf("a cell too many: got %v", err)
	}
}

// TestPreflightIsSubmittedWholeOrNotAtAll, whatever has begun to remove it, and
// whatever clock is asked.
func TestPreflightIsSubmittedWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	f := newPreflights(t, setup{stopped: true, noWebhooks: true})
	var text strings.Builder
	for i := range 5001 {
		fmt.Fprintf(&text, "https://a.test/%d\n", i)
	}
	swept := f.make(pipeline.PreflightInput{Submission: pipeline.Submission{Text: text.String()}})
	short := f.make(pipeline.PreflightInput{Submission: pipeline.Submission{Text: "https://a.test/1\nhttps://a.test/2\nnonsense://x"}})
	// A process whose clock is ahead takes one step.
	if _, err := f.store.SweepPreflight(t.Context(), f.now.Add(pipeline.PreflightKept)); err != nil {
		t.Fatal(err)
	}
	if n := f.number(`SELECT count(*) FROM preflight_lines WHERE preflight_id = $1`, swept); n != 1 {
		t.Fatalf("%d lines are left, not one", n)
	}
	_, err := f.pipe.SubmitPreflight(t.Context(), swept, f.alice, 1)
	err2 := f.pipe.Reread(t.Context(), swept, f.alice, pipeline.Choices{}, 0)
	if !errors.Is(err, store.ErrNotFound) || !errors.Is(err2, store.ErrNotFound) {
		t.Errorf("half of it: got %v, %v", err, err2)
	}
	for _, verdict := range []string{"accepted", "invalid"} {
		f.exec(`DELETE FROM preflight_lines WHERE number = (SELECT min(number) FROM preflight_lines WHERE preflight_id = $1 AND verdict = $2)`, short, verdict)
		if _, err := f.pipe.SubmitPreflight(t.Context(), short, f.alice, 1); !errors.Is(err, pipeline.ErrReadAgain) {
			t.Errorf("a line is missing: got %v", err)
		}
	}
	if n := f.number(`SELECT count(*) FROM batches`); n != 0 {
		t.Errorf("%d batches were made of parts", n)
	}
}

// TestPreflightsAreReadAFewAtOnce: whoever comes when two are being read waits,
// is told in the end, and has kept nothing; the database answers meanwhile.
func TestPreflightsAreReadAFewAtOnce(t *testing.T) {
	t.Parallel()
	f := newPreflights(t, setup{stopped: true, noWebhooks: true})
	f.pipe.SeatWait(time.Nanosecond)
	kept := f.make(pipeline.PreflightInput{Submission: pipeline.Submission{Text: "https://a.test/1"}})
	before := f.number(`SELECT count(*) FROM preflights`)
	reading, goOn := make(chan struct{}), make(chan struct{})
	slow := pipeline.PreflightInput{
		Files: []pipeline.File{pipeline.FileOf("a.xml", []byte("<sitemapindex><sitemap><loc>https://a.test/s.xml</loc></sitemap></sitemapindex>"))},
		Open: func(string) (io.ReadCloser, error) {
			reading <- struct{}{}
			<-goOn
			return io.NopCloser(strings.NewReader("<urlset><url><loc>https://a.test/1</loc></url></urlset>")), nil
		},
	}
	var two sync.WaitGroup
	for range 2 {
		two.Go(func() {
			if _, err := f.pipe.Preflight(t.Context(), slow); err != nil {
				t.Error(err)
			}
		})
	}
	for range 2 {
		<-reading
	}
	_, err := f.pipe.Preflight(t.Context(), slow)
	err2 := f.pipe.Reread(t.Context(), kept, f.alice, pipeline.Choices{}, 0)
	_, err3 := f.pipe.SubmitPreflight(t.Context(), kept, f.alice, 1)
	for _, err := range []error{err, err2, err3} {
		if !errors.Is(err, pipeline.ErrBusy) {
			t.Errorf("a third: got %v", err)
		}
	}
	if n := f.number(`SELECT count(*) FROM preflights`); n != before+2 {
		t.Errorf("%d preflights, not the %d that are read", n-before, 2)
	}
	close(goOn)
	two.Wait()
	if _, err := f.pipe.SubmitPreflight(t.Context(), kept, f.alice, 1); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestLongestNames: whatever is named after a page, a batch or a schedule fits
// where it is kept.
func TestLongestNames(t *testing.T) {
	t.Parallel()
	f := newPreflights(t, setup{stopped: true, noWebhooks: true})
	label := strings.Repeat("a", 60)
	host := "https://" + strings.Repeat(label+".", 4) + "test/"
	f.make(pipeline.PreflightInput{Files: []pipeline.File{pipeline.FileOf(strings.Repeat("é", 300)+".txt", []byte(host))}})
	for _, text := range []string{host, host + "\n" + host + "2"} {
		d, err := f.pipe.Submit(t.Context(), pipeline.Submission{Text: text})
		if err != nil {
			t.Fatal(err)
		}
		// As the release before could name it.
		f.exec(`UPDATE batches SET name = name || '…' WHERE id = $1 AND char_length(name) = 200`, d.BatchID)
		if _, err := f.pipe.AddSchedule(t.Context(), pipeline.ScheduleForm{BatchID: d.BatchID, Cron: "0 * * * *", Zone: "UTC"}); err != nil {
			t.Error(err)
		}
		if _, err := f.pipe.Rerun(t.Context(), pipeline.Again{BatchID: d.BatchID}); err != nil {
			t.Error(err)
		}
	}
	for _, table := range []string{"batches", "schedules"} {
		if got := f.text(`SELECT max(char_length(name))::text FROM ` + table + ` WHERE name NOT LIKE '%……'`); got != "200" {
			t.Errorf("the longest name in %s has %s characters", table, got)
		}
	}
}
