package pipeline

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"time"

	"rollcall/internal/export"
	"rollcall/store"
)

// ExportRequest is what somebody wants as a file.
type ExportRequest struct {
	Filter  store.ItemFilter
	Choices export.Choices
	// Picked says the filter for a reader, Words the same by name and value, for
	// the manifest.
	Picked string
	Words  map[string]string
	// Token is the form's own: the same request with it is the first. Empty is none.
	Token string
	// Expected is about how many rows it will have; nil: not counted.
	Expected *int64
}

// How long a direct export may be silent before it counts as broken off, and how
// often it tells how far it is.
const (
	exportDead = 30 * time.Second
	exportBeat = 5 * time.Second
)

// newExport is the row of a request.
func newExport(ctx context.Context, st *store.Store, req ExportRequest, now time.Time) (*store.Export, error) {
	filter, err := json.Marshal(keptFilter{Filter: keptItems(req.Filter), Words: req.Words})
	if err != nil {
		return nil, fmt.Errorf("keep the filter: %w", err)
	}
	choices, err := json.Marshal(req.Choices)
	if err != nil {
		return nil, fmt.Errorf("keep the choices: %w", err)
	}
	who := store.ActorOf(ctx)
	e := &store.Export{
		MadeBy: store.CleanText(who.Name), CreatedAt: now, State: store.ExportWaiting, BeatAt: &now, ExpiresAt: now, Expected: req.Expected,
		Picked: store.CleanText(clip(req.Picked, 500)), Filter: filter, Choices: choices,
	}
	if who.UserID > 0 {
		e.OwnerID = &who.UserID
	}
	e.SubmitToken = formToken(req.Token, e.OwnerID, string(filter), string(choices))
	e.Name = "items-" + now.UTC().Format("20060102-150405")
	if req.Filter.Batch > 0 {
		batch, err := st.Batch(ctx, req.Filter.Batch)
		if err != nil {
			return nil, err
		}
		e.Columns = batch.Columns
		e.Name = "batch-" + strconv.FormatInt(batch.ID, 10) + now.UTC().Format("-20060102-150405")
	}
	e.Name += "." + string(req.Choices.Format)
	return e, nil
}

// keptFilter is a filter as its row keeps it.
type keptFilter struct {
	Filter keptItems         `json:"filter"`
	Words  map[string]string `json:"words"`
}

// keptItems is store.ItemFilter under names that stay.
type keptItems struct {
	Batch      int64                 `json:"batch,omitempty"`
	State      store.ItemState       `json:"state,omitempty"`
	Net        store.Net             `json:"net,omitempty"`
	HTTPStatus int                   `json:"http_status,omitempty"`
	HTTPClass  int                   `json:"http_class,omitempty"`
	Code       string                `json:"code,omitempty"`
	Host       string                `json:"host,omitempty"`
	URLPart    string                `json:"url,omitempty"`
	MinBytes   int64                 `json:"min_bytes,omitempty"`
	MaxBytes   int64                 `json:"max_bytes,omitempty"`
	MinMS      int64                 `json:"min_ms,omitempty"`
	MaxMS      int64                 `json:"max_ms,omitempty"`
	From       time.Time             `json:"from,omitzero"`
	Until      time.Time             `json:"until,omitzero"`
	Mark       string                `json:"mark,omitempty"`
	Standing   store.FailureStanding `json:"standing,omitempty"`
}

// fileOf begins the file of an export.
func fileOf(e *store.Export, w io.Writer) (*export.File, store.ItemFilter, error) {
	var kept keptFilter
	var choices export.Choices
	if err := errors.Join(json.Unmarshal(e.Filter, &kept), json.Unmarshal(e.Choices, &choices)); err != nil {
		return nil, store.ItemFilter{}, fmt.Errorf("read what was asked for: %w", err)
	}
	file, err := export.New(w, export.Options{
		Choices: choices, Columns: e.Columns, Filter: kept.Words, MadeAt: e.CreatedAt, MadeBy: e.MadeBy,
	})
	return file, store.ItemFilter(kept.Filter), err
}

func exportChange(what string, e *store.Export) store.Change {
	return store.Change{
		What: what, Kind: "export", ID: strconv.FormatInt(e.ID, 10),
		After: map[string]any{"picked": e.Picked, "choices": e.Choices, "filter": e.Filter},
	}
}

// insertExport writes the row of a request, which keeps the batches that it is
// of from being pruned until it is over. It returns *InvalidSubmission when the
// batch that it is of has begun to go; a file of all batches leaves such out.
func insertExport(ctx context.Context, tx store.Tx, e *store.Export, batch int64, what string) error {
	hold := tx.HoldBatches
	if batch > 0 {
		hold = func(ctx context.Context) error { return holdWhole(ctx, tx, batch, "batch") }
	}
	if err := hold(ctx); err != nil {
		return err
	}
	if err := tx.InsertExport(ctx, e); err != nil {
		return err
	}
	return tx.Audit(ctx, e.CreatedAt, exportChange(what, e))
}

// Export has a file made in the background. A form that is sent twice gets the
// file of then. What can't be is *InvalidSubmission.
func (p *Pipeline) Export(ctx context.Context, req ExportRequest) (*store.Export, error) {
	now := p.now()
	e, err := newExport(ctx, p.store, req, now)
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	e.Held, e.ExpiresAt = true, now.Add(p.cfg.KeepExports)
	err = p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := insertExport(ctx, tx, e, req.Filter.Batch, "export.make"); err != nil {
			return err
		}
		return p.queue.export(ctx, tx, e.ID)
	})
	if errors.Is(err, store.ErrTaken) && e.SubmitToken != nil {
		return p.store.ExportOfToken(ctx, *e.SubmitToken)
	}
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	p.log.InfoContext(ctx, "export asked for", slog.Int64("export_id", e.ID), slog.String("format", string(req.Choices.Format)))
	return e, nil
}

// CancelExport ends an export that isn't over; its writer stops at its next
// piece. It reports false when it is over.
func (p *Pipeline) CancelExport(ctx context.Context, id int64) (bool, error) {
	return p.moveExport(ctx, "export.cancel", id, func(ctx context.Context, tx store.Tx, now time.Time) (bool, error) {
		return tx.CancelExport(ctx, id, now)
	})
}

// DeleteExport takes a file away. It reports false when it isn't there.
func (p *Pipeline) DeleteExport(ctx context.Context, id int64) (bool, error) {
	return p.moveExport(ctx, "export.delete", id, func(ctx context.Context, tx store.Tx, _ time.Time) (bool, error) {
		return tx.ExpireExport(ctx, id)
	})
}

// moveExport moves an export, and has what is left of it removed.
func (p *Pipeline) moveExport(ctx context.Context, what string, id int64, move func(context.Context, store.Tx, time.Time) (bool, error)) (bool, error) {
	now, moved := p.now(), false
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		was, err := tx.Export(ctx, id)
		if err != nil {
			return err
		}
		if moved, err = move(ctx, tx, now); err != nil || !moved {
			return err
		}
		err = tx.Audit(ctx, now, store.Change{
			What: what, Kind: "export", ID: strconv.FormatInt(id, 10), Before: map[string]any{"state": was.State, "name": was.Name, "rows": was.Rows},
		})
		if err != nil {
			return err
		}
		return p.queue.clearExports(ctx, tx)
	})
	if err != nil {
		return false, fmt.Errorf("%s %d: %w", what, id, err)
	}
	return moved, nil
}

// DirectExport is a file on its way straight to whoever asked.
type DirectExport struct {
	Row *store.Export

	store  *store.Store
	now    func() time.Time
	every  time.Duration // Between two beats.
	beaten time.Time
}

// BeginExport writes down who takes what, before the first byte goes out. What
// can't be is *InvalidSubmission.
func BeginExport(ctx context.Context, st *store.Store, now func() time.Time, req ExportRequest) (*DirectExport, error) {
	e, err := newExport(ctx, st, req, now())
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	e.Direct, e.State, e.StartedAt = true, store.ExportRunning, &e.CreatedAt
	err = st.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		return insertExport(ctx, tx, e, req.Filter.Batch, "export.items")
	})
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	return &DirectExport{Row: e, store: st, now: now, every: exportBeat, beaten: e.CreatedAt}, nil
}

// Send writes the whole file; turn is called now and then between two rows. A
// file that can't be ended says so itself, as far as its format can, and whoever
// serves it must break the connection off. The manifest is kept either way.
func (d *DirectExport) Send(ctx context.Context, w io.Writer, turn func() error) (export.Manifest, error) {
	file, filter, err := fileOf(d.Row, w)
	if err == nil {
		walk := &ExportWalk{Store: d.store, Filter: filter, File: file, Parts: exportParts(file.Manifest().Choices), Turn: func(ctx context.Context) error {
			if err := errors.Join(file.Flush(), turn()); err != nil {
				return err
			}
			return d.beat(ctx, file)
		}}
		tick := time.NewTicker(d.every)
		err = beating(ctx, tick.C, d.touch, walk.Run)
		tick.Stop()
		if err == nil {
			err = file.Close()
		}
	}
	if file == nil {
		return export.Manifest{}, errors.Join(err, d.end(ctx, export.Manifest{Reason: cutReason(err)}))
	}
	if err != nil {
		err = errors.Join(err, file.Cut(cutReason(err)))
	}
	m := file.Manifest()
	return m, errors.Join(err, d.end(ctx, m))
}

// touch tells that it goes on, also while the reader takes nothing. Whoever
// thought that it had broken off doesn't end it: only the sender knows.
func (d *DirectExport) touch(ctx context.Context) (bool, error) {
	_, err := d.store.TouchExport(ctx, d.Row.ID, d.Row.Claim, d.now())
	return true, err
}

func (d *DirectExport) beat(ctx context.Context, file *export.File) error {
	now := d.now()
	if now.Sub(d.beaten) < exportBeat {
		return nil
	}
	d.beaten = now
	_, err := d.store.BeatExport(ctx, d.Row.ID, d.Row.Claim, store.ExportProgress{Rows: file.Rows(), Bytes: file.Bytes()}, now)
	return err
}

// end keeps what became of it, also when the reader has gone.
func (d *DirectExport) end(ctx context.Context, m export.Manifest) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	return endExport(ctx, d.store, d.Row, m, d.now(), d.now(), true)
}

// endExport keeps how a file ended; late as in EndExport.
func endExport(ctx context.Context, st *store.Store, e *store.Export, m export.Manifest, now, expires time.Time, late bool) error {
	manifest, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("keep the manifest: %w", err)
	}
	e.State, e.Reason, e.ExpiresAt, e.Manifest = store.ExportDone, m.Reason, expires, manifest
	if !m.Complete {
		e.State = store.ExportFailed
	}
	if e.SHA256, err = hex.DecodeString(m.SHA256); err != nil {
		return fmt.Errorf("keep the sum: %w", err)
	}
	_, err = st.EndExport(ctx, e, store.ExportProgress{Rows: m.Rows, Pages: m.Files, Bytes: m.Bytes}, late, now)
	return err
}

// cutReason says to readers why a file ends early; details are for the log.
func cutReason(err error) string {
	switch {
	case errors.Is(err, ErrReplaced):
		return "a result was replaced while it was written; ask for the file again"
	case errors.Is(err, errNoSpace):
		return "the space for exports is used up; delete some, or narrow the filter"
	case errors.Is(err, errTooOften):
		return "it was begun several times and each time broke off; narrow the filter, or choose fewer contents"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "it was broken off"
	case store.IsAway(err):
		return "the database could not be reached"
	}
	return "it could not be written to its end"
}
