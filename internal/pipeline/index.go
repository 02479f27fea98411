package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"rollcall/store"
)

const (
	// indexBytes is how much of a result is made findable.
	indexBytes = 256 << 10
	// indexGroup is how many results one transaction reads.
	indexGroup = 40
	// indexTime bounds one run; while there is more, the sweep asks for another.
	indexTime = 10 * time.Second
	// indexRest is how long a run rests between two groups while live work waits.
	indexRest = 200 * time.Millisecond
)

// indexArgs asks that the words of results be read into the search. Running
// twice is harmless: a row that asks for it is locked by the run that takes it,
// and words are written by what they belong to.
type indexArgs struct{}

// Kind implements river.JobArgs.
func (indexArgs) Kind() string { return "index" }

type indexWorker struct {
	river.WorkerDefaults[indexArgs]
	p *Pipeline
}

// Timeout implements river.Worker.
func (w *indexWorker) Timeout(*river.Job[indexArgs]) time.Duration { return indexTime + taskTimeout }

// Work implements river.Worker. What a run leaves, or a process that dies in
// it, stays on the list: the sweep asks again.
func (w *indexWorker) Work(ctx context.Context, _ *river.Job[indexArgs]) error {
	over := time.NewTimer(indexTime)
	defer over.Stop()
	for {
		more, err := w.p.Index(ctx)
		if err != nil || !more {
			return err
		}
		select {
		case <-over.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		default:
		}
		if err := w.p.rest(ctx); err != nil {
			return err
		}
	}
}

// rest lets live work go first: settling stores what nobody can read before.
func (p *Pipeline) rest(ctx context.Context) error {
	waiting, err := p.queue.liveWaiting(ctx)
	if err != nil || !waiting {
		return err
	}
	pause := time.NewTimer(indexRest)
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-pause.C:
		return nil
	}
}

// Index reads the words of one group of results into the search, and marks
// those that look empty or blocked: what was stored or replaced first and, when
// there is no more of it, results from before there was search, and those whose
// words were read before it was noted which stand beside each other. It reports
// whether there may be more.
func (p *Pipeline) Index(ctx context.Context) (bool, error) {
	for _, step := range []func(context.Context, int64) (bool, error){p.indexNew, p.indexOld, p.indexNear} {
		if more, err := step(ctx, indexGroup); more || err != nil {
			return more, err
		}
	}
	return false, nil
}

// indexNew reads the results that are on the list. A group that fails as one is
// read one by one, so that one result never keeps the others out.
func (p *Pipeline) indexNew(ctx context.Context, limit int64) (bool, error) {
	more := false
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		taken, err := tx.TakeUnread(ctx, limit, indexBytes)
		if err != nil || taken.None() {
			return err
		}
		more = true
		if err := tx.PutWords(ctx, readWords(taken.Rows, indexBytes)); err != nil {
			return err
		}
		return tx.DropUnread(ctx, taken)
	})
	switch {
	case err == nil || !unsearchable(err):
		return more, ofIndex(err)
	case limit > 1:
		return true, p.eachAlone(limit, func() (bool, error) { return p.indexNew(ctx, 1) })
	}
	return true, ofIndex(p.giveUpWords(ctx))
}

// eachAlone does a step for each result of a group.
func (p *Pipeline) eachAlone(limit int64, step func() (bool, error)) error {
	for range limit {
		if more, err := step(); err != nil || !more {
			return err
		}
	}
	return nil
}

// giveUpWords takes the first result off the list with less and less of its
// text, at last with none: it is then findable by nothing, and says so.
func (p *Pipeline) giveUpWords(ctx context.Context) error {
	for _, bytes := range []int{indexBytes / 4, indexBytes / 16, 0} {
		err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
			taken, err := tx.TakeUnread(ctx, 1, indexBytes)
			if err != nil || taken.None() {
				return err
			}
			words := readWords(taken.Rows, bytes)
			if bytes == 0 {
				p.noteUnsearchable(ctx, words)
			}
			if err := tx.PutWords(ctx, words); err != nil {
				return err
			}
			return tx.DropUnread(ctx, taken)
		})
		if err == nil || !unsearchable(err) {
			return err
		}
	}
	return nil
}

// noteUnsearchable marks results that no words can be made of.
func (p *Pipeline) noteUnsearchable(ctx context.Context, words []store.Words) {
	for i := range words {
		words[i].Trouble = "its text could not be taken apart into words"
		p.log.WarnContext(ctx, "result can't be searched", slog.Int64("item_id", words[i].ItemID))
	}
}

// indexOld goes one group further through older results and keys their pages. What fails as a group
// goes onto the list of new ones, which reads it alone.
func (p *Pipeline) indexOld(ctx context.Context, limit int64) (bool, error) {
	more, read := false, true
	step := func(ctx context.Context, tx store.Tx) error {
		older, done, err := tx.TakeOlder(ctx, limit, indexBytes, p.now())
		if err != nil || done {
			return err
		}
		more = true
		if err := keyOlder(ctx, tx, older.Keyless); err != nil {
			return err
		}
		if !read {
			return tx.AskWords(ctx, older.Rows)
		}
		return tx.PutWords(ctx, readWords(older.Rows, indexBytes))
	}
	err := p.store.InTx(ctx, step)
	if unsearchable(err) {
		read = false
		err = p.store.InTx(ctx, step)
	}
	return more, ofIndex(err)
}

// indexNear goes one group further through results of which it isn't noted yet
// which words stand beside each other.
func (p *Pipeline) indexNear(ctx context.Context, limit int64) (bool, error) {
	more := false
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		var err error
		more, err = tx.PutNear(ctx, limit)
		return err
	})
	return more, ofIndex(err)
}

// keyOlder gives results the keys by which pages are told that were stored
// already, and the other results of a page found.
func keyOlder(ctx context.Context, tx store.Tx, keyless []store.Keyless) error {
	ids, keys := make([]int64, len(keyless)), make([][]byte, len(keyless))
	for i, each := range keyless {
		ids[i], keys[i] = each.ItemID, pageKey(each.URL)
	}
	return tx.PutPageKeys(ctx, ids, keys)
}

// readWords takes the beginning of each result's text, at most that many bytes.
func readWords(rows []store.Unread, most int) []store.Words {
	out := make([]store.Words, len(rows))
	for i := range rows {
		u := &rows[i]
		text := searchable(PlainText(u.Markdown, u.HTML))
		text = string(store.WholeText([]byte(text[:min(len(text), most)])))
		out[i] = store.Words{Unread: *u, Text: text}
		out[i].Mark, out[i].MarkReason = markOf(u.HTTPStatus, u.Title, u.Markdown, u.HTML)
	}
	return out
}

// unsearchable reports what is the fault of the content and not of the moment.
func unsearchable(err error) bool {
	return errors.Is(err, store.ErrUnsearchable) || errors.Is(err, store.ErrTooSlow)
}

func ofIndex(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("read words into the search: %w", err)
}

// sweepUnread asks for a run while there is something to read.
func (p *Pipeline) sweepUnread(ctx context.Context) error {
	if p.cfg.NoIndex {
		return nil
	}
	waiting, err := p.store.AnyUnread(ctx)
	if err != nil || !waiting {
		return err
	}
	return p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		return p.queue.insert(ctx, tx, []river.InsertManyParams{{Args: indexArgs{}, InsertOpts: &river.InsertOpts{
			Queue: queueIndex, UniqueOpts: river.UniqueOpts{ByState: unended()},
		}}})
	})
}

// liveWaiting reports dispatch or settle tasks that could run now.
func (q *queue) liveWaiting(ctx context.Context) (bool, error) {
	var waiting bool
	err := q.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM river_job WHERE state = 'available' AND queue IN ($1, $2))`,
		queueDispatch, queueSettle).Scan(&waiting)
	if err != nil {
		return false, fmt.Errorf("look for live work: %w", err)
	}
	return waiting, nil
}
