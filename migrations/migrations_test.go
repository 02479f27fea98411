package migrations_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "github.com/jackc/pgx/v5/stdlib"

	"rollcall/migrations"
	"rollcall/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func exec(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// texts reads a list of texts.
func texts(t *testing.T, db *sql.DB, query string) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			t.Fatal(err)
		}
		out = append(out, one)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

const columns = `SELECT table_name || '.' || column_name || ' ' || data_type FROM information_schema.columns
	WHERE table_schema = 'public' ORDER BY table_name, column_name`

// left is everything that a database without Rollcall does not have.
const left = `SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace
	UNION ALL SELECT typname::text FROM pg_type WHERE typnamespace = 'public'::regnamespace
	UNION ALL SELECT proname::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace`

// TestDownToNothingAndUpAgain, twice, for both ours and the queue's tables.
func TestDownToNothingAndUpAgain(t *testing.T) {
	t.Parallel()
	dsn := storetest.EmptyDSN(t)
	db := open(t, dsn)
	if err := migrations.Check(t.Context(), dsn); !errors.Is(err, migrations.ErrNotMigrated) {
		t.Errorf("an empty database: got %v, want %v", err, migrations.ErrNotMigrated)
	}
	var first []string
	for range 2 {
		for range 2 { // Up is harmless to repeat.
			if err := migrations.Up(t.Context(), dsn); err != nil {
				t.Fatal(err)
			}
		}
		if err := migrations.Check(t.Context(), dsn); err != nil {
			t.Error(err)
		}
		got := texts(t, db, columns)
		if first == nil {
			first = got
		}
		if diff := cmp.Diff(first, got); diff != "" || len(got) < 100 {
			t.Errorf("%d columns after going up again: %s", len(got), diff)
		}
		if err := migrations.Down(t.Context(), dsn); err != nil {
			t.Fatal(err)
		}
		if got := texts(t, db, left); len(got) > 0 {
			t.Errorf("left after going down: %v", got)
		}
	}
	if list, err := migrations.List(t.Context(), dsn); err != nil || len(list) == 0 || list[0].Applied {
		t.Errorf("got %v, %v, want none applied", list, err)
	}
}

// TestSixAtOnce start on an empty database, as replicas do.
func TestSixAtOnce(t *testing.T) {
	t.Parallel()
	dsn := storetest.EmptyDSN(t)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if err := migrations.Up(context.Background(), dsn); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := migrations.Check(t.Context(), dsn); err != nil {
		t.Error(err)
	}
	if got := texts(t, open(t, dsn), `SELECT name FROM bun_migrations GROUP BY name HAVING count(*) > 1`); len(got) > 0 {
		t.Errorf("applied twice: %v", got)
	}
}

// TestFailedMigrationLeavesNothing, neither its tables nor its mark, and those
// before it stay.
func TestFailedMigrationLeavesNothing(t *testing.T) {
	t.Parallel()
	dsn := storetest.EmptyDSN(t)
	db := open(t, dsn)
	exec(t, db, `CREATE TABLE reconcile_runs (in_the_way int)`)
	if err := migrations.Up(t.Context(), dsn); err == nil {
		t.Fatal("went up past a table that was in the way")
	}
	wantApplied(t, dsn, 2)
	if got := texts(t, db, `SELECT to_regclass('webhooks')::text WHERE to_regclass('webhooks') IS NOT NULL`); len(got) > 0 {
		t.Errorf("left of the failed migration: %v", got)
	}
	exec(t, db, `DROP TABLE reconcile_runs`)
	if err := migrations.Up(t.Context(), dsn); err != nil {
		t.Error(err)
	}
	if err := migrations.Check(t.Context(), dsn); err != nil {
		t.Error(err)
	}
}

func wantApplied(t *testing.T, dsn string, want int) {
	t.Helper()
	list, err := migrations.List(t.Context(), dsn)
	got := 0
	for _, s := range list {
		if s.Applied {
			got++
		}
	}
	if err != nil || got != want {
		t.Errorf("got %d applied, %v, want %d: %v", got, err, want, list)
	}
}

// TestKilledAtItsMark: the mark of a migration is in its own transaction, so a
// crash there leaves neither, and the next start does it again.
func TestKilledAtItsMark(t *testing.T) {
	t.Parallel()
	dsn := storetest.DSN(t)
	db := open(t, dsn)
	files, err := filepath.Glob("*.tx.down.sql")
	if err != nil {
		t.Fatal(err)
	}
	last := files[len(files)-1]
	down, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, db, string(down))
	exec(t, db, `DELETE FROM bun_migrations WHERE name = '`+last[:strings.IndexByte(last, '_')]+`'`)
	exec(t, db, `CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(3600); RETURN NEW; END $$`)
	exec(t, db, `CREATE TRIGGER hold BEFORE INSERT ON bun_migrations FOR EACH ROW EXECUTE FUNCTION hold()`)
	up := make(chan error, 1)
	go func() { up <- migrations.Up(context.Background(), dsn) }()
	killed := `SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`
	deadline := time.After(30 * time.Second)
	for len(texts(t, db, killed)) == 0 {
		select {
		case <-deadline:
			t.Fatal("the migration did not come to its mark")
		case <-time.After(20 * time.Millisecond):
		}
	}
	if err := <-up; err == nil {
		t.Error("a killed migration reported success")
	}
	exec(t, db, `DROP TRIGGER hold ON bun_migrations`)
	wantApplied(t, dsn, len(files)-1)
	if err := migrations.Up(t.Context(), dsn); err != nil {
		t.Error(err)
	}
	if err := migrations.Check(t.Context(), dsn); err != nil {
		t.Error(err)
	}
}

// TestIndexesAreBuiltAgain from wherever the building was broken off: half built,
// or with the old one gone and the new one not yet in its place.
func TestIndexesAreBuiltAgain(t *testing.T) {
	t.Parallel()
	dsn := storetest.DSN(t)
	db := open(t, dsn)
	all := `SELECT indexrelid::regclass || ' ' || indisvalid || ' ' || pg_get_indexdef(indexrelid) FROM pg_index
		WHERE indrelid IN ('items'::regclass, 'result_versions'::regclass, 'processed_events'::regclass)
		UNION ALL SELECT conname || ' ' || convalidated FROM pg_constraint WHERE conrelid = 'processed_events'::regclass ORDER BY 1`
	want := texts(t, db, all)
	exec(t, db, `DELETE FROM bun_migrations WHERE name IN ('20261129000029', '20261129000031')`)
	exec(t, db, `DROP INDEX items_failed_idx, items_waiting_code_idx`)
	exec(t, db, `CREATE INDEX items_failed_new_idx ON items (ended_at)`)
	exec(t, db, `UPDATE pg_index SET indisvalid = false WHERE indexrelid IN ('items_failed_new_idx'::regclass, 'result_versions_job_idx'::regclass)`)
	exec(t, db, `ALTER TABLE processed_events DROP CONSTRAINT processed_events_state_check,
		ADD CONSTRAINT processed_events_state_check CHECK (state IN ('held', 'claimed', 'foreign', 'pruned')) NOT VALID`)
	if err := migrations.Up(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, texts(t, db, all)); diff != "" {
		t.Error(diff)
	}
}

// TestMigrationKeepsNobodyWaiting: while somebody keeps a table from being
// altered, such as a dump, others still read it, and the migration comes to its
// end after all.
func TestMigrationKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	dsn := storetest.DSN(t)
	db := open(t, dsn)
	exec(t, db, `ALTER TABLE replays DROP COLUMN pruned_jobs`)
	exec(t, db, `ALTER TABLE search_backfill DROP COLUMN near_below`)
	exec(t, db, `DELETE FROM bun_migrations WHERE name = '20261129000030'`)
	dump, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dump.Rollback() }()
	if _, err := dump.ExecContext(t.Context(), `LOCK TABLE replays IN ACCESS SHARE MODE`); err != nil {
		t.Fatal(err)
	}
	up := make(chan error, 1)
	go func() { up <- migrations.Up(context.Background(), dsn) }()
	waits := `SELECT pid::text FROM pg_locks WHERE NOT granted AND relation = 'replays'::regclass`
	for len(texts(t, db, waits)) == 0 {
		select {
		case err := <-up:
			t.Fatalf("it did not wait: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	reading, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := db.ExecContext(reading, `SELECT FROM replays`); err != nil {
		t.Errorf("a reader behind the migration: %v", err)
	}
	if err := dump.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-up; err != nil {
		t.Error(err)
	}
	if err := migrations.Check(t.Context(), dsn); err != nil {
		t.Error(err)
	}
}

// TestNewerSchemaIsRefused: a release that cannot live with the schema says so
// and changes nothing. What a newer one added and this one can live with is
// told.
func TestNewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	dsn := storetest.DSN(t)
	db := open(t, dsn)
	if newer, err := migrations.Newer(t.Context(), dsn); err != nil || len(newer) > 0 {
		t.Errorf("its own schema is newer: %v, %v", newer, err)
	}
	exec(t, db, `INSERT INTO bun_migrations (name, group_id) VALUES ('20991231000002', 99), ('20991231000001', 99)`)
	if newer, err := migrations.Newer(t.Context(), dsn); err != nil || !slices.Equal(newer, []string{"20991231000001", "20991231000002"}) {
		t.Errorf("newer: got %v, %v", newer, err)
	}
	for name, do := range map[string]func(context.Context, string) error{"up": migrations.Up, "check": migrations.Check} {
		if err := do(t.Context(), dsn); err != nil {
			t.Errorf("%s with what a newer release added: %v", name, err)
		}
	}
	exec(t, db, `UPDATE schema_release SET requires = 1000`)
	for name, do := range map[string]func(context.Context, string) error{"up": migrations.Up, "check": migrations.Check} {
		if err := do(t.Context(), dsn); !errors.Is(err, migrations.ErrNewerSchema) {
			t.Errorf("%s: got %v, want %v", name, err, migrations.ErrNewerSchema)
		}
	}
}

// TestUpWaitsForItsTurn and gives up with its caller.
func TestUpWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	dsn := storetest.EmptyDSN(t)
	conn, err := open(t, dsn).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), `SELECT pg_advisory_lock($1::bigint)`, int64(0x726f6c6c63616c6c)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := migrations.Up(ctx, dsn); err == nil {
		t.Error("went up while another held the lock")
	}
}
