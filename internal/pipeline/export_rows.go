package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"rollcall/internal/export"
	"rollcall/store"
)

// Bounds of what the writing of a file reads at a time.
const (
	// exportKeys is how many items are looked up, without their contents.
	exportKeys = 500
	// exportGroup is how many bytes of content are read together.
	exportGroup = 2 << 20
	// exportWhole is the largest content that is read at once, exportPiece how
	// much of a larger one.
	exportWhole = 1 << 20
	exportPiece = 1 << 20
)

// ErrReplaced reports a result that was replaced while it was being read.
var ErrReplaced = errors.New("a result was replaced while it was written")

// ExportWalk writes items that fit a filter into a file, and holds no more of
// them than a few megabytes at any moment.
type ExportWalk struct {
	Store  *store.Store
	Filter store.ItemFilter
	File   *export.File
	// Parts are the contents that go in.
	Parts store.ExportParts
	// Turn is called now and then between two rows; its error ends the walk.
	Turn func(ctx context.Context) error
}

// exportParts are the contents that a choice puts in.
func exportParts(c export.Choices) store.ExportParts {
	zip := c.Format == export.ZIP // Which has pages as files, and nothing else of them.
	return store.ExportParts{Markdown: c.Markdown, HTML: c.HTML, Links: c.Links && !zip, Metadata: c.Metadata && !zip}
}

// Run writes all rows. It doesn't end the file.
func (w *ExportWalk) Run(ctx context.Context) error {
	var at store.ExportKey
	for {
		reach, more, err := w.Store.ExportReach(ctx, w.Filter, at)
		if err != nil {
			return fmt.Errorf("look for items: %w", err)
		}
		if err := w.stretch(ctx, at, reach); err != nil || !more {
			return err
		}
		if err := w.Turn(ctx); err != nil { // Also where nothing fits.
			return err
		}
		at = reach
	}
}

// stretch writes the rows behind one key, up to the other.
func (w *ExportWalk) stretch(ctx context.Context, at, reach store.ExportKey) error {
	for {
		items, err := w.Store.ExportItems(ctx, w.Filter, w.Parts, at, reach, exportKeys)
		if err != nil {
			return fmt.Errorf("list items: %w", err)
		}
		for rest := items; len(rest) > 0; {
			n := groupOf(rest)
			if err := w.group(ctx, rest[:n]); err != nil {
				return err
			}
			if err := w.Turn(ctx); err != nil {
				return err
			}
			rest = rest[n:]
		}
		if len(items) < exportKeys {
			return nil
		}
		at = items[len(items)-1].ExportKey
	}
}

// groupOf is how many of the items, at least one, are read together.
func groupOf(items []store.ExportItem) int {
	var bytes int64
	for i := range items {
		if bytes += min(items[i].Bytes, exportWhole); bytes > exportGroup && i > 0 {
			return i
		}
	}
	return len(items)
}

// group writes a few items in their order. One that was deleted since is left
// out.
func (w *ExportWalk) group(ctx context.Context, items []store.ExportItem) error {
	ids := make([]int64, len(items))
	for i := range items {
		ids[i] = items[i].ID
	}
	rows, err := w.Store.ExportRows(ctx, ids, w.Parts, exportWhole)
	if err != nil {
		return fmt.Errorf("read items: %w", err)
	}
	place := make(map[int64]*store.ExportRow, len(rows))
	for i := range rows {
		place[rows[i].ID] = &rows[i]
	}
	for _, id := range ids {
		if row := place[id]; row != nil {
			if err := w.File.Write(w.row(ctx, row)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *ExportWalk) row(ctx context.Context, r *store.ExportRow) *export.Row {
	out := &export.Row{
		ItemID: r.ID, BatchID: r.BatchID, Batch: r.BatchName, Position: r.Position, Line: r.Line, URL: r.URL, Original: orNoText(r.Original), Host: r.Host, State: string(r.State),
		Net: string(r.Result.Net), ErrorCode: r.ErrorCode, ErrorMessage: r.ErrorMessage, SubmittedAt: r.CreatedAt, EndedAt: orNoTime(r.EndedAt),
		StoredAt: r.Result.StoredAt, Stored: r.Stored, HTTPStatus: r.Result.HTTPStatus, Title: r.Result.Title, Version: r.Result.Version, Mark: r.Mark,
		Bytes: max(r.MarkdownSize, 0) + max(r.HTMLSize, 0), MarkdownSHA: r.Result.MarkdownSHA256, HTMLSHA: r.Result.HTMLSHA256,
		Tokens: r.Result.Charged, DurationMS: r.Result.DurationMS, ExtraNames: r.Columns, ExtraValues: r.Extra,
	}
	for _, part := range []struct {
		to   *export.Part
		in   bool
		name store.Part
		got  []byte
		size int64
	}{
		{&out.Markdown, w.Parts.Markdown, store.PartMarkdown, r.Result.Markdown, r.MarkdownSize},
		{&out.HTML, w.Parts.HTML, store.PartHTML, r.Result.HTML, r.HTMLSize},
		{&out.Links, w.Parts.Links, store.PartLinks, r.Result.Links, r.LinksSize},
		{&out.Metadata, w.Parts.Metadata, store.PartMetadata, r.Result.Metadata, r.MetadataSize},
	} {
		if !part.in || part.size < 0 {
			continue
		}
		*part.to = export.Part{Size: part.size, Bytes: part.got}
		if part.got == nil {
			part.to.Copy = w.pieces(ctx, r, part.name, part.size)
		}
	}
	return out
}

// pieces reads a large content piece by piece as it is written.
func (w *ExportWalk) pieces(ctx context.Context, r *store.ExportRow, part store.Part, size int64) func(io.Writer) error {
	return func(to io.Writer) error {
		for from := int64(0); from < size; from += exportPiece {
			piece, err := w.Store.ReadPart(ctx, r.ID, r.Result.Version, part, from, exportPiece)
			if errors.Is(err, store.ErrNotFound) {
				return fmt.Errorf("item %d: %w", r.ID, ErrReplaced)
			}
			if err != nil {
				return err
			}
			if _, err := to.Write(piece); err != nil {
				return err
			}
		}
		return nil
	}
}

func orNoText(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func orNoTime(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
