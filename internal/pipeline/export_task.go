package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"rollcall/internal/export"
	"rollcall/store"
)

const (
	// queueExport has one worker a process: an export is behind live work.
	queueExport = "export"
	// exportTime bounds the making of one file.
	exportTime = 6 * time.Hour
	// exportWait is how soon an export looks again whether it may begin; the
	// longer it waits, the less often, down to exportPatience.
	exportWait     = time.Second
	exportPatience = 15 * time.Second
	// exportClaims is how often a file is begun before it counts as one that can't
	// be made: it would keep others from their turn for ever.
	exportClaims = 8
	// exportsAtOnce is how many files all processes together make at a time.
	exportsAtOnce = 2
	// exportChunk is the size of the pieces that a file is kept in.
	exportChunk = 1 << 20
	// exportDrop is how many pieces one statement deletes.
	exportDrop = 16
	// keepExportRows is how long it is known that there was an export.
	keepExportRows = 90 * 24 * time.Hour
	// clearTime bounds one run of the task that removes what has expired.
	clearTime = 5 * time.Minute
	// clearEvery is how often it runs.
	clearEvery = 5 * time.Minute
)

// ExportChunk is the size of the pieces that a file is kept in, except for the
// last.
const ExportChunk = exportChunk

var (
	errNoSpace = errors.New("the space for exports is used up")
	// errNotMine reports that somebody else writes the file by now, or that it
	// was cancelled.
	errNotMine = errors.New("the file is not this task's any more")
	// errTooOften reports a file whose writers all died.
	errTooOften = errors.New("the file was begun too often")
)

// exportArgs asks that a file be made. Running twice is harmless: each run has
// a claim of its own and begins anew, and only the last claim may write.
type exportArgs struct {
	ExportID int64 `json:"export_id" river:"unique"`
}

// Kind implements river.JobArgs.
func (exportArgs) Kind() string { return "export" }

type exportWorker struct {
	river.WorkerDefaults[exportArgs]
	p *Pipeline
}

// Timeout implements river.Worker.
func (w *exportWorker) Timeout(*river.Job[exportArgs]) time.Duration { return exportTime }

// Work implements river.Worker.
func (w *exportWorker) Work(ctx context.Context, task *river.Job[exportArgs]) error {
	return ofTask(w.p.makeExport(ctx, task.Args.ExportID, exportBeat), "export", task.Args.ExportID)
}

// export adds the task that makes a file.
func (q *queue) export(ctx context.Context, tx store.Tx, id int64) error {
	return q.insert(ctx, tx, forEach([]int64{id}, queueExport, unended(), func(id int64) river.JobArgs { return exportArgs{ExportID: id} }))
}

// exportAnew gives an export a task again whose own died with its process.
func (q *queue) exportAnew(ctx context.Context, tx store.Tx, id int64, before, now time.Time) error {
	_, err := tx.SQL().ExecContext(ctx, `UPDATE river_job SET state = $4, finalized_at = $3
		WHERE kind = 'export' AND state = 'running' AND attempted_at <= $2 AND args @> jsonb_build_object('export_id', $1::bigint)`,
		id, before, now, string(rivertype.JobStateDiscarded))
	if err != nil {
		return fmt.Errorf("end the dead task of export %d: %w", id, err)
	}
	return q.export(ctx, tx, id)
}

// makeExport writes the file of an export from its beginning.
func (p *Pipeline) makeExport(ctx context.Context, id int64, every time.Duration) error {
	claim, free := 0, false
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		var err error
		claim, free, err = tx.ClaimExport(ctx, id, exportsAtOnce, p.now())
		return err
	})
	if err != nil || free && claim == 0 {
		return err // Without one it is over.
	}
	e, err := p.store.Export(ctx, id)
	if err != nil {
		return err
	}
	if !free {
		return river.JobSnooze(min(max(exportWait, p.now().Sub(e.CreatedAt)/8), exportPatience))
	}
	e.Claim = claim
	w := &chunkWriter{p: p, ctx: ctx, export: e, body: make([]byte, 0, exportChunk)}
	if claim > exportClaims {
		return w.ended(ctx, errTooOften)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	return w.ended(ctx, beating(ctx, tick.C, func(ctx context.Context) (bool, error) {
		return p.store.TouchExport(ctx, id, claim, p.now())
	}, w.fill))
}

// fill writes the whole file.
func (w *chunkWriter) fill(ctx context.Context) error {
	w.ctx = ctx
	if err := w.clear(); err != nil {
		return err
	}
	file, filter, err := fileOf(w.export, w)
	if err != nil {
		return err
	}
	w.file = file
	parts := exportParts(file.Manifest().Choices)
	if err := w.p.countExport(ctx, w.export, filter, parts); err != nil {
		return err
	}
	if err := (&ExportWalk{Store: w.p.store, Filter: filter, File: file, Parts: parts, Turn: w.turn}).Run(ctx); err != nil {
		return err
	}
	return errors.Join(file.Close(), w.flush())
}

// countExport works out how many rows a file will have, for its progress, where
// that takes no long look.
func (p *Pipeline) countExport(ctx context.Context, e *store.Export, f store.ItemFilter, parts store.ExportParts) error {
	weight, err := p.store.ExportSize(ctx, f, parts)
	if err != nil || !weight.Known {
		return err
	}
	return p.store.ExpectExport(ctx, e.ID, e.Claim, weight.Rows)
}

// chunkWriter keeps a file in pieces as it is written.
type chunkWriter struct {
	p      *Pipeline
	ctx    context.Context //nolint:containedctx // Of the task, whose only writer this is.
	export *store.Export
	file   *export.File
	body   []byte
	n      int
	beaten time.Time
}

// Write implements io.Writer.
func (w *chunkWriter) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		took := min(len(b), exportChunk-len(w.body))
		w.body = append(w.body, b[:took]...)
		b = b[took:]
		if len(w.body) == exportChunk {
			if err := w.flush(); err != nil {
				return n - len(b), err
			}
		}
	}
	return n, nil
}

func (w *chunkWriter) progress() store.ExportProgress {
	if w.file == nil {
		return store.ExportProgress{}
	}
	return store.ExportProgress{Rows: w.file.Rows(), Bytes: int64(w.n)*exportChunk + int64(len(w.body))}
}

// flush keeps the piece that is begun, if there is one and space for it.
func (w *chunkWriter) flush() error {
	if len(w.body) == 0 {
		return nil
	}
	space, err := w.p.store.ExportSpace(w.ctx)
	if err != nil {
		return err
	}
	if space+int64(len(w.body)) > w.p.cfg.ExportSpace {
		return errNoSpace
	}
	w.beaten = w.p.now()
	mine, err := w.p.store.PutChunk(w.ctx, w.export.ID, w.export.Claim, w.n, w.body, w.progress(), w.beaten)
	if err == nil && !mine {
		err = errNotMine
	}
	if err != nil {
		return err
	}
	w.n, w.body = w.n+1, w.body[:0]
	return nil
}

// turn tells how far the file is, and learns that it is cancelled, also when
// pieces are slow to fill.
func (w *chunkWriter) turn(ctx context.Context) error {
	now := w.p.now()
	if now.Sub(w.beaten) < exportBeat/5 {
		return nil
	}
	w.beaten = now
	mine, err := w.p.store.BeatExport(ctx, w.export.ID, w.export.Claim, w.progress(), now)
	if err == nil && !mine {
		err = errNotMine
	}
	return err
}

// clear removes what an earlier claim left.
func (w *chunkWriter) clear() error {
	for {
		n, err := w.p.store.DropChunks(w.ctx, w.export.ID, exportDrop)
		if err != nil || n == 0 {
			return err
		}
		if err := w.turn(w.ctx); err != nil {
			return err
		}
	}
}

// ended keeps how it ended. What another claim may do better is left to the queue,
// but not for ever.
func (w *chunkWriter) ended(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	w.ctx = ctx // The task's may be what ended it.
	lasting := errors.Is(err, errNoSpace) || errors.Is(err, errTooOften) || w.export.Claim >= exportClaims
	switch {
	case errors.Is(err, errNotMine):
		return nil
	case err != nil && !lasting:
		return w.release(err)
	}
	var m export.Manifest
	if w.file != nil {
		m = w.file.Manifest()
	}
	if err != nil {
		m.Complete, m.Reason, m.SHA256 = false, cutReason(err), ""
		w.p.log.WarnContext(ctx, "export failed", slog.Int64("export_id", w.export.ID), slog.Int("claim", w.export.Claim), slog.Any("error", err))
	}
	return w.end(ctx, m)
}

// release lets others go first before the next claim.
func (w *chunkWriter) release(err error) error {
	_, failed := w.p.store.ReleaseExport(w.ctx, w.export.ID, w.export.Claim, w.p.now())
	if errors.Is(err, ErrReplaced) && failed == nil {
		return again()
	}
	return errors.Join(err, failed)
}

// end keeps how it ended; what is left of a file that isn't whole goes at once.
func (w *chunkWriter) end(ctx context.Context, m export.Manifest) error {
	p, id, now := w.p, w.export.ID, w.p.now()
	if err := endExport(ctx, p.store, w.export, m, now, now.Add(p.cfg.KeepExports), false); err != nil {
		return err
	}
	if !m.Complete {
		clearing, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearTime)
		defer cancel()
		if err := p.clearExport(clearing, id); err != nil {
			return err
		}
	}
	p.log.InfoContext(ctx, "export ended", slog.Int64("export_id", id), slog.Bool("complete", m.Complete), slog.Int64("rows", m.Rows), slog.Int64("bytes", m.Bytes))
	return nil
}

// clearArgs asks that files whose time is up be removed. Running twice is
// harmless: what is gone is not found again.
type clearArgs struct{}

// Kind implements river.JobArgs.
func (clearArgs) Kind() string { return "clear_exports" }

type clearWorker struct {
	river.WorkerDefaults[clearArgs]
	p *Pipeline
}

// Timeout implements river.Worker.
func (w *clearWorker) Timeout(*river.Job[clearArgs]) time.Duration { return clearTime }

// Work implements river.Worker.
func (w *clearWorker) Work(ctx context.Context, _ *river.Job[clearArgs]) error {
	return w.p.ClearExports(ctx)
}

func clearOpts() *river.InsertOpts {
	return &river.InsertOpts{Queue: queueUpkeep, UniqueOpts: river.UniqueOpts{ByState: []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateScheduled,
	}}}
}

// clearExports asks that what nobody may have any more be removed.
func (q *queue) clearExports(ctx context.Context, tx store.Tx) error {
	return q.insert(ctx, tx, []river.InsertManyParams{{Args: clearArgs{}, InsertOpts: clearOpts()}})
}

// clearOften is the periodic task.
func clearOften() *river.PeriodicJob {
	return river.NewPeriodicJob(everyFull(clearEvery), func() (river.JobArgs, *river.InsertOpts) {
		return clearArgs{}, clearOpts()
	}, &river.PeriodicJobOpts{ID: "clear_exports"})
}

// ClearExports removes files whose time is up, a few pieces at a time, and what
// is known of old ones.
func (p *Pipeline) ClearExports(ctx context.Context) error {
	for {
		spent, err := p.store.SpentExports(ctx, p.now(), 20)
		if err != nil {
			return fmt.Errorf("look for expired exports: %w", err)
		}
		for _, id := range spent {
			if err := p.clearExport(ctx, id); err != nil {
				return fmt.Errorf("remove the file of export %d: %w", id, err)
			}
		}
		if len(spent) < 20 {
			break
		}
	}
	for {
		n, err := p.store.ForgetExports(ctx, p.now().Add(-keepExportRows), retainGroup)
		if err != nil || n < retainGroup {
			return err
		}
	}
}

func (p *Pipeline) clearExport(ctx context.Context, id int64) error {
	for {
		n, err := p.store.DropChunks(ctx, id, exportDrop)
		if err != nil {
			return err
		}
		if n == 0 {
			return p.store.EmptiedExport(ctx, id)
		}
	}
}

// sweepExports gives exports a task again whose writer died with its process,
// and ends those that were being sent by one.
func (p *Pipeline) sweepExports(ctx context.Context, now time.Time) error {
	still, err := p.store.StillExports(ctx, now.Add(-exportDead))
	if err != nil {
		return fmt.Errorf("look for exports that stand still: %w", err)
	}
	for i := range still {
		e := &still[i]
		if e.Direct {
			err = endExport(ctx, p.store, e, export.Manifest{Reason: cutReason(context.Canceled)}, now, now, false)
		} else {
			err = p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
				return p.queue.exportAnew(ctx, tx, e.ID, now.Add(-exportDead), now)
			})
		}
		if err != nil {
			return fmt.Errorf("carry on with export %d: %w", e.ID, err)
		}
	}
	return nil
}
