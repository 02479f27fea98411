package storetest_test

import (
	"net/url"
	"strings"
	"testing"

	"rollcall/migrations"
	"rollcall/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestEachTestHasADatabaseOfItsOwn, migrated, and it goes with the test.
func TestEachTestHasADatabaseOfItsOwn(t *testing.T) { //nolint:tparallel // As said at its subtest.
	t.Parallel()
	var name string
	t.Run("inner", func(t *testing.T) {
		dsn := storetest.DSN(t)
		if err := migrations.Check(t.Context(), dsn); err != nil {
			t.Error(err)
		}
		mine, other := storetest.Open(t, dsn), storetest.New(t)
		if _, err := mine.SQL().ExecContext(t.Context(), `INSERT INTO settings (key, value, updated_at) VALUES ('a', 'b', now())`); err != nil {
			t.Fatal(err)
		}
		if got, err := storetest.Open(t, dsn).Setting(t.Context(), "a"); err != nil || got != "b" {
			t.Errorf("a second process sees %q, %v, want b", got, err)
		}
		if got, err := other.Setting(t.Context(), "a"); err != nil || got != "" {
			t.Errorf("another test sees %q, %v, want nothing", got, err)
		}
		if err := mine.SQL().QueryRowContext(t.Context(), "SELECT current_database()").Scan(&name); err != nil || !strings.HasPrefix(name, "rollcall_test_") {
			t.Errorf("got %q, %v", name, err)
		}
	})
	var left int
	if err := storetest.New(t).SQL().QueryRowContext(t.Context(), "SELECT count(*) FROM pg_database WHERE datname = $1", name).Scan(&left); err != nil || left != 0 {
		t.Errorf("the database %q is still there: %d, %v", name, left, err)
	}
}

// TestEmptyDatabaseIsEmpty: no table, and an address that parses.
func TestEmptyDatabaseIsEmpty(t *testing.T) {
	t.Parallel()
	dsn := storetest.EmptyDSN(t)
	if _, err := url.Parse(dsn); err != nil {
		t.Error(err)
	}
	var tables int
	if err := storetest.Open(t, dsn).SQL().QueryRowContext(t.Context(), "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace").Scan(&tables); err != nil || tables != 0 {
		t.Errorf("got %d tables, %v, want none", tables, err)
	}
}
