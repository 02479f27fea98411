package main

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/store/embedded"
	"rollcall/store/storetest"
)

// TestBackupAndRestore takes a private Postgres into new folders: with the key everything goes on as before; without it
// the server says what is missing, and after one command only what the key alone knew is gone.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("/tmp", "rollcall-backup-test-") //nolint:usetesting // t.TempDir may be too long for the path of a socket.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })  // What is left of it is a folder of /tmp.
	if err := os.Chmod(dir, 0o711); err != nil { // Root runs Postgres as another user, who must pass.
		t.Fatal(err)
	}
	first, file := filepath.Join(dir, "first"), filepath.Join(dir, "rollcall.backup")
	// A server sends before it listens, and one that has lost its secrets refuses: the vendor must deliver again and again.
	patient := slices.Repeat([]time.Duration{300 * time.Millisecond}, 300)
	d := newDeskWith(t, nil, patient, map[string]string{"DATABASE_URL": "", "ROLLCALL_DATA_DIR": first, "ROLLCALL_SECRET_KEY": ""})
	if _, err := d.pipeline.RegisterWebhooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	plain := d.submit(store.KindBatch, 3)
	sealed, err := d.pipeline.Submit(t.Context(), pipeline.Submission{
		Name: "with headers", Kind: store.KindBatch, Text: "https://shop.sandbox.test/item/77", Options: pipeline.Options{Formats: []string{"markdown"}},
		Headers: map[string]string{"X-Token": "known to the key alone"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.store.SQL().ExecContext(t.Context(), `INSERT INTO bun_migrations (name, group_id) VALUES ('20991231000001', 99)`); err != nil {
		t.Fatal(err)
	}
	if got := mustRun(t, d.vars, "backup", file); !strings.Contains(got, "secret.key") {
		t.Errorf("the backup doesn't speak of the key: %s", got)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup: %v, %v, want it closed to others", info, err)
	}
	if err := d.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := rollcall(t, envOf(d.vars), "restore", file); got.code != 1 || !strings.Contains(got.errOut, "not empty") {
		t.Errorf("into a database in use: got %+v", got)
	}
	key, err := os.ReadFile(filepath.Join(first, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	d.restoredWithKey(t, filepath.Join(dir, "with"), file, key, map[int64]int{plain: 3, sealed.BatchID: 1})
	d.restoredWithout(t, filepath.Join(dir, "without"), file, plain, sealed.BatchID)
}

func (d *desk) into(t *testing.T, folder, file string) map[string]string {
	t.Helper()
	vars := maps.Clone(d.vars)
	// Nothing but deliveries can bring anything home.
	maps.Copy(vars, map[string]string{"ROLLCALL_DATA_DIR": folder, "ROLLCALL_MODE": "webhook", "ROLLCALL_WEBHOOK_FALLBACK": "10m", "ROLLCALL_RECONCILE_EVERY": "1h"})
	got := rollcall(t, envOf(vars), "restore", file)
	if got.code != 0 || !strings.Contains(got.out, "begin-anew") || !strings.Contains(got.errOut, "a newer release of Rollcall has migrated") {
		t.Errorf("the restore doesn't speak of the key, or of what a newer release added: %+v", got)
	}
	return vars
}

// restoredWithKey: signed deliveries are accepted, and headers are sent.
func (d *desk) restoredWithKey(t *testing.T, folder, file string, key []byte, want map[int64]int) {
	t.Helper()
	vars := d.into(t, folder, file)
	if err := os.WriteFile(filepath.Join(folder, "secret.key"), key, 0o600); err != nil {
		t.Fatal(err)
	}
	run := start(t, vars, "serve")
	run.address()
	for id, n := range want {
		waitFor(t, folder, `SELECT stored_webhook >= $2 FROM batches WHERE id = $1`, id, n)
	}
	run.signal(terminated)
	if code := run.exit(patience); code != 0 {
		t.Errorf("exit %d, want 0", code)
	}
}

// restoredWithout: it is said what is lost and what to do; then the rest goes on.
func (d *desk) restoredWithout(t *testing.T, folder, file string, plain, sealed int64) {
	t.Helper()
	vars := d.into(t, folder, file)
	if got := rollcall(t, envOf(vars), "serve"); got.code != 1 || !strings.Contains(got.errOut, "secrets begin-anew") {
		t.Fatalf("without the key: got %+v", got)
	}
	said := mustRun(t, vars, "secrets", "begin-anew")
	if !strings.Contains(said, "given up: 3 webhook secrets, custom headers of 1 ") || strings.Count(said, "webhook rotate") != 3 {
		t.Errorf("got %s", said)
	}
	if got := rollcall(t, envOf(vars), "secrets", "begin-anew"); got.code != 1 || !strings.Contains(got.errOut, "nothing was changed") {
		t.Errorf("a second time: got %+v", got)
	}
	run := start(t, vars, "serve")
	run.address()
	waitFor(t, folder, `SELECT outstanding = 0 AND cancelled = 1 FROM batches WHERE id = $1`, sealed)
	waitFor(t, folder, `SELECT count(*) > 0 FROM job_events JOIN jobs ON jobs.id = job_id WHERE batch_id = $1 AND detail LIKE '%a key that is lost%'`, sealed)
	for _, id := range regexp.MustCompile(`webhook rotate (\d+)`).FindAllStringSubmatch(said, -1) {
		mustRun(t, vars, "webhook", "rotate", id[1])
	}
	waitFor(t, folder, `SELECT outstanding + failed + cancelled = 0 FROM batches WHERE id = $1`, plain)
	waitFor(t, folder, `SELECT count(*) = 3 FROM webhooks WHERE state = 'live'`)
	run.signal(terminated)
	if code := run.exit(patience); code != 0 {
		t.Errorf("exit %d, want 0", code)
	}
}

// waitFor waits until a query on the folder's database says so.
func waitFor(t *testing.T, folder, query string, args ...any) {
	t.Helper()
	dsn, ok := embedded.Find(filepath.Join(folder, "postgres"))
	if !ok {
		t.Fatal("no database runs")
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }() // It was only read.
	eventually(t, query, patience, func() bool {
		var done bool
		if err := conn.QueryRow(t.Context(), query, args...).Scan(&done); err != nil {
			t.Fatal(err)
		}
		return done
	})
}

// TestLibpqEnv: what pg_dump is told of an address holds neither password nor what only our driver knows.
func TestLibpqEnv(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"postgres://ada:s3cret@db.example:6543/roll?sslmode=disable&statement_timeout=30000&default_query_exec_mode=exec": "PGHOST=db.example PGPASSWORD=s3cret PGPORT=6543 PGSSLMODE=disable PGUSER=ada",
		"postgres://ada@db.example/roll?password=s3cret&sslmode=disable":                                                  "PGHOST=db.example PGPASSWORD=s3cret PGPORT=5432 PGSSLMODE=disable PGUSER=ada",
		"host=/run/pg user=ada password=s3cret dbname=roll sslmode=disable":                                               "PGHOST=/run/pg PGPASSWORD=s3cret PGPORT=5432 PGSSLMODE=disable PGUSER=ada",
	} {
		env, database, err := libpqEnv(dsn)
		slices.Sort(env)
		if got := strings.Join(env, " "); err != nil || got != want || database != "dbname='roll'" {
			t.Errorf("%s: got %s, %s, %v", dsn, got, database, err)
		}
	}
	if _, database, err := libpqEnv(`postgres:///it's%20%3D?host=/run/pg&user=ada`); err != nil || database != `dbname='it\'s ='` {
		t.Errorf("got %s, %v", database, err)
	}
}

// TestBackupTarget: a link stays a link, and nothing but a plain file is ever replaced.
func TestBackupTarget(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.WriteFile(at("old"), []byte("an older backup"), 0o600), os.Symlink("old", at("link")), os.Symlink(at("nowhere"), at("dangling")),
		os.Symlink("/dev/null", at("device")), syscall.Mkfifo(at("pipe"), 0o600), os.Mkdir(at("folder"), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{at("new"): at("new"), at("old"): at("old"), at("link"): at("old")} {
		if got, err := backupTarget(given); got != want || err != nil {
			t.Errorf("%s: got %s, %v", given, got, err)
		}
	}
	for _, name := range []string{"dangling", "device", "pipe", "folder"} {
		// There is no such database: it is refused before anything is dumped.
		got := rollcall(t, envOf(map[string]string{"DATABASE_URL": "postgres://127.0.0.1:1/none"}), "backup", at(name))
		if got.code != 1 || !strings.Contains(got.errOut, at(name)+" is ") {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 6 {
		t.Errorf("got %v, %v", left, err)
	}
}

// TestRestoredWhereNobodyLooks: what lies in a schema that the database's search_path leaves out is told of.
func TestRestoredWhereNobodyLooks(t *testing.T) {
	t.Parallel()
	dsn := storetest.EmptyDSN(t)
	db := storetest.Open(t, dsn).SQL()
	for _, do := range []string{
		"CREATE SCHEMA elsewhere CREATE TABLE bun_migrations (id int)",
		"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = elsewhere', current_database()); END $$",
	} {
		if err := foundAgain(t.Context(), dsn); err == nil || !strings.Contains(err.Error(), `search_path "$user", public`) {
			t.Errorf("before %s: got %v", do, err)
		}
		if _, err := db.ExecContext(t.Context(), do); err != nil {
			t.Fatal(err)
		}
	}
	if err := foundAgain(t.Context(), dsn); err != nil {
		t.Error(err)
	}
}

// TestEmptyDatabase: one that was emptied by dropping its schema can be restored into, one that holds something can't.
func TestEmptyDatabase(t *testing.T) {
	t.Parallel()
	dsn := storetest.EmptyDSN(t)
	db := storetest.Open(t, dsn).SQL()
	for _, step := range []struct {
		do      string
		refused bool
	}{
		{"DROP SCHEMA public CASCADE", false},
		{"CREATE TABLE kept (id int)", true}, // In the schema that was made again.
		{"DROP TABLE kept", false},
		{"CREATE SCHEMA other CREATE VIEW kept AS SELECT 1", true},
	} {
		if _, err := db.ExecContext(t.Context(), step.do); err != nil {
			t.Fatal(err)
		}
		if err := emptyDatabase(t.Context(), dsn); (err != nil) != step.refused {
			t.Errorf("%s: got %v", step.do, err)
		}
	}
}
