package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"rollcall/store"
)

// SubmitPreflight submits what a reading of a preflight accepts, and keeps what
// it does not with the batch. A second call makes nothing and is answered with
// the first's batch. ErrReadAgain says that another reading has come since, or
// that its lines are not all there; ErrBusy is as of Preflight.
func (p *Pipeline) SubmitPreflight(ctx context.Context, id int64, owner *int64, reading int) (Submitted, error) {
	leave, err := p.seats.take(ctx)
	if err != nil {
		return Submitted{}, err
	}
	defer leave()
	var done Submitted
	err = p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		// Whoever comes second waits here, and then sees what the first made.
		f, err := tx.LockPreflight(ctx, id, owner, p.now())
		if err != nil {
			return err
		}
		if f.BatchID != nil {
			done, err = preflightBatch(ctx, tx, *f.BatchID)
			return err
		}
		if f.Reading != reading || reading == 0 {
			return ErrReadAgain
		}
		done, err = p.submitReading(ctx, tx, f)
		return err
	})
	if err != nil {
		return Submitted{}, fmt.Errorf("submit preflight %d: %w", id, err)
	}
	p.log.InfoContext(ctx, "preflight submitted", slog.Int64("preflight_id", id), slog.Int64("batch_id", done.BatchID))
	return done, nil
}

// ErrReadAgain reports that a preflight was read in another way than the one
// that was looked at.
var ErrReadAgain = errors.New("the preflight was read again meanwhile")

func preflightBatch(ctx context.Context, tx store.Tx, id int64) (Submitted, error) {
	b, err := tx.Batch(ctx, id)
	if err != nil {
		return Submitted{}, err
	}
	return submitted(b, &read{}), nil
}

// submitReading makes the batch.
func (p *Pipeline) submitReading(ctx context.Context, tx store.Tx, f *store.Preflight) (Submitted, error) {
	if f.Problem != "" {
		return Submitted{}, invalidField(cmp.Or(f.ProblemField, "format"), f.Problem)
	}
	lines, found, err := p.readingLines(ctx, tx, f)
	if err != nil {
		return Submitted{}, err
	}
	options, headers, err := p.readOptions(&store.Batch{ID: f.ID, Options: f.Options, HeadersSealed: f.HeadersSealed})
	if err != nil {
		return Submitted{}, err
	}
	s := Submission{Name: f.Name, Kind: f.Kind, Options: options, Headers: headers, CreatedBy: f.CreatedBy}
	b, err := p.newBatch(s, lines)
	if err != nil {
		return Submitted{}, err
	}
	b.Columns, b.URLColumn = found.Columns, found.URLColumn
	if err := p.writeBatch(ctx, tx, b, lines, p.planJobs(s, lines.urls)); err != nil {
		return Submitted{}, err
	}
	if err := tx.SubmittedPreflight(ctx, f.ID, b.ID); err != nil {
		return Submitted{}, err
	}
	return submitted(b, lines), p.auditSubmit(ctx, tx, "batch.submit", b)
}
