package web

import (
	"context"
	"encoding/json"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// Export writes the row of an export that nobody makes.
func (f *fakePipeline) Export(ctx context.Context, req pipeline.ExportRequest) (*store.Export, error) {
	choices, err := json.Marshal(req.Choices)
	if err != nil {
		return nil, err
	}
	now, who := time.Now(), store.ActorOf(ctx)
	e := &store.Export{
		MadeBy: who.Name, OwnerID: &who.UserID, CreatedAt: now, BeatAt: &now, ExpiresAt: now.Add(time.Hour), State: store.ExportWaiting, Held: true,
		Name: "batch." + string(req.Choices.Format), Picked: req.Picked, Filter: json.RawMessage("{}"), Choices: choices, SubmitToken: &req.Token,
	}
	if was, err := f.rows.ExportOfToken(ctx, req.Token); err == nil {
		return was, nil
	}
	return e, f.rows.InsertExport(ctx, e)
}

// CancelExport ends the row.
func (f *fakePipeline) CancelExport(ctx context.Context, id int64) (bool, error) {
	return f.rows.CancelExport(ctx, id, time.Now())
}

// DeleteExport takes the file away.
func (f *fakePipeline) DeleteExport(ctx context.Context, id int64) (bool, error) {
	return f.rows.ExpireExport(ctx, id)
}

// CompareBatches compares at once.
func (f *fakePipeline) CompareBatches(ctx context.Context, a, b int64) error {
	return f.rows.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		id, err := tx.AskComparison(ctx, a, b, time.Now())
		if err != nil {
			return err
		}
		c, err := tx.BatchComparison(ctx, id)
		if err != nil {
			return err
		}
		_, err = tx.CompareBatches(ctx, c, time.Now())
		return err
	})
}
