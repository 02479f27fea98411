//go:build drill

package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"rollcall/store"
)

// drillFolder is the folder of one process under a drill.
type drillFolder struct {
	t   *testing.T
	dir string
}

func (f drillFolder) write(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
		f.t.Fatal(err)
	}
}

// read is what a file holds, "" when there is none.
func (f drillFolder) read(name string) string {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		f.t.Fatal(err)
	}
	return string(text)
}

// TestKilledAtNamedSteps kills a server at a call, before a commit and after one; each time it is started again, and
// in the end every URL is answered for, none charged twice but the ones whose call was cut.
func TestKilledAtNamedSteps(t *testing.T) {
	t.Parallel()
	d, f := newDesk(t, nil), drillFolder{t, t.TempDir()}
	d.vars["ROLLCALL_DRILL_DIR"] = f.dir
	batch := d.submit(store.KindBatch, 20)
	defer func() { t.Logf("the steps seen:\n%s", f.read("seen")) }()
	for _, step := range []string{
		"call.POST /v1/batch.after", "Pipeline.acceptGroup.commit.after",
	} {
		f.write("arm", step)
		p := start(t, d.vars, "serve")
		if code := p.exit(patience); code != -1 {
			t.Fatalf("exit %d, want a process that was killed at %s", code, step)
		}
		if got := f.read("reached"); got != step {
			t.Errorf("killed at %q, want %q", got, step)
		}
		if got := f.read("arm"); got != "" {
			t.Errorf("%q is still armed", got)
		}
		if seen := strings.Split(f.read("seen"), "\n"); !slices.Contains(seen, step) {
			t.Errorf("%s is not among the steps seen: %q", step, seen)
		}
	}
	start(t, d.vars, "serve")
	d.until(batch, patience, func(b *store.Batch) bool { return b.Outstanding == 0 && b.Stored() == 20 })
}

// TestDials: the clock and the disk are as the drill last set them.
func TestDials(t *testing.T) {
	t.Parallel()
	f := drillFolder{t, t.TempDir()}
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	h, err := drillHooks(func() time.Time { return at }, func(string) (string, bool) { return f.dir, true })
	if err != nil {
		t.Fatal(err)
	}
	if got := h.now(); !got.Equal(at) {
		t.Errorf("got %s of an untouched clock, want %s", got, at)
	}
	if err := h.fail(true); err != nil {
		t.Errorf("got %v of an empty disk", err)
	}
	f.write("clock", "-36h\n")
	f.write("disk", "1")
	eventually(t, "the clock to be turned", patience, func() bool { return h.now().Equal(at.Add(-36 * time.Hour)) })
	eventually(t, "the disk to fill", patience, func() bool { return h.fail(true) != nil })
	if full, ok := errors.AsType[*pgconn.PgError](h.fail(true)); !ok || full.Code != "53100" {
		t.Errorf("got %v, want SQLSTATE 53100", full)
	}
	if err := h.fail(false); err != nil {
		t.Errorf("got %v for what only reads", err)
	}
}

// TestCallNames: calls are named as the contract names them.
func TestCallNames(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"/v1/extract":                        "/v1/extract",
		"/v1/extract/jobs?page=2":            "/v1/extract/jobs",
		"/v1/batch/7f%2F3?page=2":            "/v1/batch/{id}",
		"/v1/webhooks/jobs-1/rotate-secret":  "/v1/webhooks/{id}/rotate-secret",
		"/v1/webhooks/9/deliveries?page=1":   "/v1/webhooks/{id}/deliveries",
		"/v1/usage":                          "/v1/usage",
		"/health":                            "/health",
		"/v1/crawl/00000000-0000-0000-0000/": "/v1/crawl/{id}/",
	} {
		if got := callName(httptest.NewRequest(http.MethodGet, target, http.NoBody)); got != "GET "+want {
			t.Errorf("%s: got %q, want %q", target, got, "GET "+want)
		}
	}
}
