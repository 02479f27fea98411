package pipeline_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"rollcall/internal/export"
	"rollcall/internal/pipeline"
	"rollcall/store"
)

// stored makes a batch of n stored items whose Markdown has about so many bytes.
func (r *rig) stored(n, size int) int64 {
	r.t.Helper()
	batch := r.number(`INSERT INTO batches (name, kind, options, created_at, submitted, accepted, stored_poll, columns)
		VALUES ('files', 'batch', '{}', now(), $1, $1, $1, '{sku,=price}') RETURNING id`, n)
	r.exec(`INSERT INTO items (batch_id, position, url, url_hash, state, net, created_at, ended_at, extra, line, original)
		SELECT $1, g, 'https://a.example/' || g, '\x00', 'stored', 'poll', now(), now(), ARRAY['sku-' || g, '-1'], g + 1,
			CASE WHEN g % 2 = 0 THEN 'a.example/' || g END FROM generate_series(1, $2::int) g`, batch, n)
	r.exec(`INSERT INTO results (item_id, net, stored_at, title, markdown, http_status, version)
		SELECT id, 'poll', now(), 'Page ' || position, convert_to('# Page ' || position || E'\n' || repeat(md5(position::text), $2::int / 32), 'UTF8'), 200, 1
		FROM items WHERE batch_id = $1`, batch, size)
	return batch
}

func (r *rig) exportOf(batch int64, format export.Format) *store.Export {
	r.t.Helper()
	e, err := r.pipe.Export(r.t.Context(), pipeline.ExportRequest{
		Filter: store.ItemFilter{Batch: batch}, Choices: export.Default(format), Picked: "all", Token: fmt.Sprint("form-", batch, format),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return e
}

// exported waits until an export is over.
func (r *rig) exported(id int64) *store.Export {
	r.t.Helper()
	var e *store.Export
	eventually(r.t, "the export to be over", func() bool {
		var err error
		if e, err = r.store.Export(r.t.Context(), id); err != nil {
			r.t.Fatal(err)
		}
		return e.Over()
	})
	return e
}

// file is what the pieces of an export are together.
func (r *rig) file(e *store.Export) []byte {
	r.t.Helper()
	var whole []byte
	for n := 0; int64(len(whole)) < e.Bytes; n++ {
		piece, err := r.store.Chunk(r.t.Context(), e.ID, n)
		if err != nil {
			r.t.Fatalf("piece %d: %v", n, err)
		}
		whole = append(whole, piece...)
	}
	return whole
}

// TestExportSurvivesKill kills the process with -9 while it writes a file:
// another begins it anew, and what comes out is what is sent directly, to the
// byte.
func TestExportSurvivesKill(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, stopped: true, pipeline: asleep})
	batch := r.stored(90, 40_000)
	e := r.exportOf(batch, export.JSONL)
	if again := r.exportOf(batch, export.JSONL); again.ID != e.ID {
		t.Errorf("the same form made export %d beside %d", again.ID, e.ID)
	}
	b := r.newBarrier(map[string]string{"piece": `BEFORE INSERT ON export_chunks FOR EACH ROW WHEN (NEW.n = 2)`})
	w := r.startWorker()
	eventually(t, "the file to be written in the middle", func() bool { return b.waiting() >= 1 })
	r.takeOver(w, b)
	r.exec(`UPDATE exports SET beat_at = beat_at - interval '1 hour'`)
	got := r.exported(e.ID)
	if got.State != store.ExportDone || got.Rows != 90 || got.Claim < 2 || got.Expected == nil || *got.Expected != 90 {
		t.Fatalf("got %+v, want it done by a second claim", got)
	}
	whole := r.file(got)
	if sum := sha256.Sum256(whole); !bytes.Equal(sum[:], got.SHA256) || int64(len(whole)) != got.Bytes {
		t.Errorf("got %d bytes with sum %x, want %d with %x", len(whole), sum, got.Bytes, got.SHA256)
	}
	lines := bytes.Split(bytes.TrimSpace(whole), []byte("\n"))
	for i, line := range lines {
		var row struct {
			Position int               `json:"position"`
			Line     int               `json:"line"`
			URL      string            `json:"url"`
			Original *string           `json:"original"`
			Extra    map[string]string `json:"extra"`
		}
		if err := json.Unmarshal(line, &row); err != nil || row.Position != i+1 || row.Line != i+2 || (row.Original != nil) != (i%2 == 1) ||
			row.Original != nil && row.URL != "https://"+*row.Original || row.Extra["sku"] != fmt.Sprint("sku-", i+1) {
			t.Fatalf("line %d: got %+v, %v", i+1, row, err)
		}
	}
	var sent bytes.Buffer
	m := r.direct(&sent, batch, export.JSONL)
	if !bytes.Equal(sent.Bytes(), whole) || !m.Complete || m.Rows != 90 || m.SHA256 != hex.EncodeToString(got.SHA256) {
		t.Errorf("sent directly: got %d bytes and %+v, want the same file", sent.Len(), m)
	}
	r.cancelledAndExpired(got, batch)
}

// cancelledAndExpired goes through the other ends of an export.
func (r *rig) cancelledAndExpired(done *store.Export, batch int64) {
	r.t.Helper()
	t, ctx := r.t, r.t.Context()
	if moved, err := r.pipe.DeleteExport(ctx, done.ID); err != nil || !moved {
		t.Fatalf("delete: got %v, %v", moved, err)
	}
	eventually(t, "its pieces to go", func() bool { return r.number(`SELECT count(*) FROM export_chunks`) == 0 })
	if moved, err := r.pipe.DeleteExport(ctx, done.ID); err != nil || moved {
		t.Errorf("deleted again: got %v, %v", moved, err)
	}
	r.exec(`DROP FUNCTION held_back CASCADE`)
	b := r.newBarrier(map[string]string{"piece": `BEFORE INSERT ON export_chunks FOR EACH ROW WHEN (NEW.n = 0)`})
	e := r.exportOf(batch, export.CSV)
	eventually(t, "the next file to be written", func() bool { return b.waiting() >= 1 })
	cancelled := make(chan error, 1)
	go func() { _, err := r.pipe.CancelExport(ctx, e.ID); cancelled <- err }()
	eventually(t, "the cancel to wait for the piece", func() bool {
		return r.number(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
			AND wait_event <> 'advisory'`) == 1
	})
	b.lift()
	if err := <-cancelled; err != nil {
		t.Fatal(err)
	}
	if got := r.exported(e.ID); got.State != store.ExportCancelled {
		t.Errorf("got %s, want it cancelled", got.State)
	}
	zip := r.exported(r.exportOf(batch, export.ZIP).ID)
	if zip.State != store.ExportDone || zip.Pages != 90 {
		t.Fatalf("got %+v, want 90 pages", zip)
	}
	r.exec(`UPDATE exports SET expires_at = now() - interval '1 s' WHERE id = $1`, zip.ID)
	if err := r.pipe.ClearExports(ctx); err != nil {
		t.Fatal(err)
	}
	if got := r.text(`SELECT string_agg(DISTINCT state || ' ' || held, ', ') FROM exports WHERE NOT direct`); got != "cancelled false, expired false" {
		t.Errorf("got %s, want nothing held", got)
	}
}

func (r *rig) direct(w io.Writer, batch int64, format export.Format) export.Manifest {
	r.t.Helper()
	d, err := pipeline.BeginExport(r.t.Context(), r.store, time.Now, pipeline.ExportRequest{
		Filter: store.ItemFilter{Batch: batch}, Choices: export.Default(format),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	m, err := d.Send(r.t.Context(), w, func() error { return nil })
	if err != nil {
		r.t.Error(err)
	}
	return m
}

// TestExportKeepsLittleInMemory writes files of which each is far larger than
// what may be held, one page of 24 MB among them.
//
//nolint:paralleltest // It measures the heap of the process.
func TestExportKeepsLittleInMemory(t *testing.T) {
	r := newRig(t, setup{noWebhooks: true, stopped: true, pipeline: asleep})
	r.exec(`ALTER TABLE results ALTER COLUMN markdown SET STORAGE EXTERNAL`) // Unpacking takes long, and is Postgres's.
	batch := r.stored(3000, 8000)
	r.exec(`UPDATE results SET markdown = convert_to(repeat(md5('a') || md5('b'), 24 * 1024 * 16), 'UTF8')
		WHERE item_id = (SELECT id FROM items WHERE batch_id = $1 AND position = 1500)`, batch)
	for _, format := range export.Formats() {
		base, most := heap(), uint64(0)
		d, err := pipeline.BeginExport(t.Context(), r.store, time.Now, pipeline.ExportRequest{Filter: store.ItemFilter{Batch: batch}, Choices: export.Default(format)})
		if err != nil {
			t.Fatal(err)
		}
		turns := 0
		m, err := d.Send(t.Context(), io.Discard, func() error {
			if turns++; turns%3 == 0 {
				most = max(most, heap())
			}
			return nil
		})
		if err != nil || m.Rows != 3000 || turns < 10 {
			t.Fatalf("%s: got %+v in %d turns, %v", format, m, turns, err)
		}
		bound := uint64(20 << 20)
		if format == export.Parquet {
			bound = 44 << 20 // The library holds several copies of a large cell.
		}
		if most > base+bound {
			t.Errorf("%s: %d MiB more are held", format, (most-base)>>20)
		}
	}
}

// heap is what is in use, once what isn't is gone.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

var errGone = errors.New("the reader is gone")

// goneAfter is a reader who goes away.
type goneAfter struct{ left int }

func (g *goneAfter) Write(p []byte) (int, error) {
	if g.left -= len(p); g.left < 0 {
		return 0, errGone
	}
	return len(p), nil
}

// TestExportCutShort: who can't be given all is told so, and the list tells it
// to others.
func TestExportCutShort(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, stopped: true, pipeline: asleep})
	batch := r.stored(90, 40_000)
	ask := func(f export.Format) *pipeline.DirectExport {
		d, err := pipeline.BeginExport(t.Context(), r.store, time.Now, pipeline.ExportRequest{Filter: store.ItemFilter{Batch: batch}, Choices: export.Default(f)})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for f, want := range map[export.Format]string{export.CSV: "\r\n\"CUT SHORT: ", export.JSONL: "\n{\"cut_short\":true,"} {
		var out bytes.Buffer
		d, turns := ask(f), 0
		_, err := d.Send(t.Context(), &out, func() error {
			if turns++; turns > 1 {
				return errors.New("something went wrong")
			}
			return nil
		})
		text := out.String()
		at := strings.LastIndex(text, want)
		if err == nil || at < 0 || strings.Count(text[at+2:], "\n") != 1 {
			t.Errorf("%s: got %v, and an end that does not say so: %q", f, err, text[max(0, len(text)-200):])
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	d := ask(export.Parquet)
	if _, err := d.Send(ctx, &goneAfter{left: 100_000}, func() error { return nil }); !errors.Is(err, errGone) {
		t.Errorf("a reader who goes: got %v", err)
	}
	cancel()
	if got := r.text(`SELECT string_agg(state || ' ' || (reason <> '') || ' ' || (manifest->>'complete'), ', ') FROM exports`); got != "failed true false, failed true false, failed true false" {
		t.Errorf("got %s", got)
	}
	if n := r.number(`SELECT count(*) FROM audit_log WHERE what = 'export.items'`); n != 3 {
		t.Errorf("%d lines of the audit log, want 3", n)
	}
	// A process that dies while it sends ends nothing; the sweep does.
	ask(export.CSV)
	r.exec(`UPDATE exports SET beat_at = beat_at - interval '1 hour' WHERE state = 'running'`)
	if err := r.pipe.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := r.number(`SELECT count(*) FROM exports WHERE state = 'running'`); n != 0 {
		t.Error("an export runs whose process died")
	}
}

// TestExportHasNoSpace: what would take more than there is fails, and takes none.
func TestExportHasNoSpace(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: func(c *pipeline.Config) { asleep(c); c.ExportSpace = 2 << 20 }})
	got := r.exported(r.exportOf(r.stored(90, 40_000), export.CSV).ID)
	if got.State != store.ExportFailed || !strings.Contains(got.Reason, "space") {
		t.Errorf("got %s for %q", got.State, got.Reason)
	}
	eventually(t, "its pieces to go", func() bool { return r.number(`SELECT count(*) FROM export_chunks`) == 0 })
}
