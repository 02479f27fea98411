package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// downloadExport is GET /exports/{id}/download: the whole file, or the range
// that was asked for, from whichever process.
func (s *Server) downloadExport(c echo.Context) error {
	e, err := s.ownExport(c)
	if err != nil {
		return err
	}
	if e.State != store.ExportDone || e.Direct || e.Spent(s.now()) {
		return &problem{
			status: http.StatusGone, title: "There is no file",
			text: "It isn't made yet, it has expired, or it was deleted. Ask for the export again from its batch.",
		}
	}
	r := c.Request()
	if r.Method == http.MethodGet {
		if err := s.auditTaken(c, e); err != nil {
			return fmt.Errorf("download export %d: %w", e.ID, err)
		}
	}
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, formatOfFile(e).MediaType())
	header.Set(echo.HeaderContentDisposition, `attachment; filename="`+e.Name+`"`)
	header.Set("Etag", fmt.Sprintf(`"%x"`, e.SHA256))
	header.Set("Link", "<"+exportPath(e.ID)+`/manifest.json>; rel="describedby"`)
	file := &chunkReader{ctx: r.Context(), store: s.store, export: e, patient: func() error {
		err := http.NewResponseController(c.Response()).SetWriteDeadline(s.now().Add(slowExport))
		if errors.Is(err, http.ErrNotSupported) {
			return nil
		}
		return err
	}}
	// A piece that can't be read leaves the answer shorter than its header says,
	// and the connection is closed: the reader notices.
	http.ServeContent(c.Response(), r, "", orZero(e.EndedAt), file)
	return nil
}

// auditTaken writes down who takes a file, before the first byte goes out. Whoever
// goes on with a file that they began to take doesn't take it once more.
func (s *Server) auditTaken(c echo.Context, e *store.Export) error {
	ctx := c.Request().Context()
	if goesOn(c.Request().Header.Get("Range")) {
		took, err := s.store.TookExport(ctx, e.ID, personOf(c).ID)
		if err != nil || took {
			return err
		}
	}
	return s.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := tx.CountDownload(ctx, e.ID); err != nil {
			return err
		}
		return tx.Audit(ctx, s.now(), store.Change{
			What: "export.download", Kind: "export", ID: idText(e.ID), After: map[string]any{"name": e.Name, "rows": e.Rows},
		})
	})
}

// goesOn reports a request for a piece of a file that isn't its beginning.
func goesOn(piece string) bool {
	from, is := strings.CutPrefix(strings.ReplaceAll(piece, " ", ""), "bytes=")
	return is && !strings.HasPrefix(from, "0-")
}

func formatOfFile(e *store.Export) pipeline.ExportFormat {
	for _, f := range pipeline.ExportFormats() {
		if len(e.Name) > len(f) && e.Name[len(e.Name)-len(f):] == string(f) {
			return f
		}
	}
	return ""
}

// chunkReader reads a file from its pieces, one at a time.
type chunkReader struct {
	ctx     context.Context //nolint:containedctx // Of the one request that reads.
	store   *store.Store
	export  *store.Export
	patient func() error // Gives the reader more time.
	at      int64
	n       int
	body    []byte
}

// Read implements io.Reader.
func (r *chunkReader) Read(p []byte) (int, error) {
	if r.at >= r.export.Bytes {
		return 0, io.EOF
	}
	n := int(r.at / pipeline.ExportChunk)
	if r.body == nil || n != r.n {
		if err := r.patient(); err != nil {
			return 0, err
		}
		body, err := r.store.Chunk(r.ctx, r.export.ID, n)
		if err != nil {
			return 0, err
		}
		r.n, r.body = n, body
	}
	within := int(r.at % pipeline.ExportChunk)
	if within >= len(r.body) {
		return 0, io.ErrUnexpectedEOF
	}
	took := copy(p, r.body[within:])
	r.at += int64(took)
	return took, nil
}

// Seek implements io.Seeker.
func (r *chunkReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.at
	case io.SeekEnd:
		offset += r.export.Bytes
	}
	if offset < 0 {
		return 0, errors.New("before the beginning of the file")
	}
	r.at = offset
	return offset, nil
}
