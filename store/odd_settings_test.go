package store_test

import (
	"testing"
	"time"

	"rollcall/migrations"
	"rollcall/store/storetest"
)

// TestTextOnAnOddlySetDatabase: a backslash is a backslash, and no quote gets out of its text, also where the database is
// set to read backslashes as escapes.
func TestTextOnAnOddlySetDatabase(t *testing.T) {
	t.Parallel()
	dsn := storetest.DSN(t)
	_, err := storetest.Open(t, dsn).SQL().ExecContext(t.Context(),
		`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET standard_conforming_strings = off', current_database()); END $$`)
	if err != nil {
		t.Fatal(err)
	}
	if newer, err := migrations.Newer(t.Context(), dsn); err != nil || len(newer) > 0 {
		t.Errorf("the schema is newer by %q, %v", newer, err)
	}
	s := storetest.Open(t, dsn)
	for _, text := range []string{`C:\new`, `\`, `\'`, `\', now()) --`} {
		if err := s.SetSetting(t.Context(), "odd", text, time.Now()); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		got, err := s.Setting(t.Context(), "odd")
		if err != nil || got != text {
			t.Errorf("%s: got %q, %v", text, got, err)
		}
	}
}
