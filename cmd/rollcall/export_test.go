package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"rollcall/internal/export"
	"rollcall/store"
	"rollcall/store/storetest"
)

// TestExportCommand writes a batch in every format; what goes wrong exits with 1 and leaves what was there.
func TestExportCommand(t *testing.T) {
	t.Parallel()
	dsn, dir := storetest.DSN(t), t.TempDir()
	s := storetest.Open(t, dsn)
	batch := seedExport(t, s)
	call := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		env := func(name string) (string, bool) {
			value, ok := map[string]string{"DATABASE_URL": dsn, "ROLLCALL_DATA_DIR": dir, "ROLLCALL_LOG_LEVEL": "error"}[name]
			return value, ok
		}
		code := run(t.Context(), append([]string{"export", "--batch", batch}, args...), strings.NewReader(""), &out, &errs, env)
		return code, out.String(), errs.String()
	}
	for _, format := range export.Formats() {
		path := filepath.Join(dir, "items."+string(format))
		code, out, errs := call("--format", string(format), "-o", path, "--json", "--state", "stored")
		var m export.Manifest
		file, err := os.ReadFile(path)
		if code != 0 || err != nil || json.Unmarshal([]byte(out), &m) != nil {
			t.Fatalf("%s: got %d, %v, %s%s", format, code, err, out, errs)
		}
		sum := sha256.Sum256(file)
		if m.Rows != 2 || !m.Complete || m.SHA256 != hex.EncodeToString(sum[:]) || m.Bytes != int64(len(file)) || m.Filter["state"] != "stored" {
			t.Errorf("%s: got %+v", format, m)
		}
	}
	path := filepath.Join(dir, "kept.csv")
	if err := os.WriteFile(path, []byte("was here"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"-o", path, "--format", "xls"},
		{"-o", path, "--state", "lost"},
		{"-o", path, "--batch", "999"},
		{"-o", filepath.Join(dir, "none", "x.csv")},
		{"-o", "-", "--json"},
		{"-o", path, "--since", "whenever"},
	} {
		if code, out, errs := call(args...); code != 1 || errs == "" {
			t.Errorf("%q: got %d, %q, %q", args, code, out, errs)
		}
	}
	// The database breaks off in the middle of the walk.
	if _, err := s.SQL().ExecContext(t.Context(), `ALTER TABLE batches RENAME COLUMN columns TO gone`); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := call("-o", path); code != 1 || errs == "" {
		t.Errorf("broken off: got %d, %q", code, errs)
	}
	if kept, err := os.ReadFile(path); err != nil || string(kept) != "was here" {
		t.Errorf("what was there is %q, %v", kept, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*part*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func seedExport(t *testing.T, s *store.Store) string {
	t.Helper()
	var batch int64
	err := s.SQL().QueryRowContext(t.Context(), `INSERT INTO batches (name, kind, options, created_at, submitted, accepted, stored_poll)
		VALUES ('b', 'batch', '{}', now(), 3, 3, 2) RETURNING id`).Scan(&batch)
	if err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{
		`INSERT INTO items (batch_id, position, url, url_hash, state, net, created_at, ended_at)
			SELECT ` + strconv.FormatInt(batch, 10) + `, g, 'https://a.example/' || g, '\x00', CASE WHEN g < 3 THEN 'stored' ELSE 'outstanding' END,
				CASE WHEN g < 3 THEN 'poll' END, now(), CASE WHEN g < 3 THEN now() END FROM generate_series(1, 3) g`,
		`INSERT INTO results (item_id, net, stored_at, markdown) SELECT id, 'poll', now(), '# Page' FROM items WHERE state = 'stored'`,
	} {
		if _, err := s.SQL().ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	return strconv.FormatInt(batch, 10)
}
