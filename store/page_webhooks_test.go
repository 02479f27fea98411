package store_test

import (
	"strings"
	"testing"
	"time"

	"rollcall/store"
	"rollcall/store/storetest"
)

// hooksWithSecrets makes two webhooks. The first has three versions: the first
// verified more than is counted, the second five deliveries, the third none.
func hooksWithSecrets(t *testing.T, s *store.Store) {
	t.Helper()
	exec(t, s, `INSERT INTO webhooks (endpoint, event_type, url, state, created_at, state_at)
		SELECT 'endpointendpoint' || n, 'batch_completed', 'https://desk.example/' || n, 'live', now(), now() FROM generate_series(1, 2) n`)
	exec(t, s, `INSERT INTO webhook_secrets (webhook_id, version, sealed, valid_from, valid_until)
		SELECT w, v, '\x00', timestamptz '2026-11-01' + v * interval '1 d', CASE WHEN v < 3 THEN timestamptz '2026-11-03' + v * interval '1 d' END
		FROM generate_series(1, 2) w, generate_series(1, 3) v`)
	exec(t, s, `INSERT INTO deliveries (webhook_id, received_at, verdict, status, secret_version, headers, body, body_size)
		SELECT 1, timestamptz '2026-11-02' + n * interval '1 s', 'accepted', 200, CASE WHEN n <= 5 THEN 2 ELSE 1 END, '', '', 0 FROM generate_series(1, 10010) n`)
	exec(t, s, `INSERT INTO deliveries (webhook_id, received_at, verdict, status, secret_version, headers, body, body_size)
		SELECT 2, now(), 'accepted', 200, 3, '', '', 0 FROM generate_series(1, 7)`)
	exec(t, s, `INSERT INTO deliveries (webhook_id, received_at, verdict, status, headers, body, body_size)
		SELECT 1, now(), 'refused', 401, '', '', 0 FROM generate_series(1, 9)`)
	exec(t, s, `ANALYZE deliveries`)
}

// TestSecretsAndWhatTheyVerified, counted up to a limit.
func TestSecretsAndWhatTheyVerified(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	hooksWithSecrets(t, s)
	uses, err := s.PageSecrets(t.Context(), []int64{1, 2}, 20)
	if err != nil || len(uses) != 6 {
		t.Fatalf("got %d, %v, want six versions", len(uses), err)
	}
	for i, want := range []struct {
		version  int
		verified int64
		seen     bool
	}{{3, 0, false}, {2, 5, true}, {1, store.CountLimit + 1, true}, {3, 7, true}, {2, 0, false}, {1, 0, false}} {
		if got := uses[i]; got.Version != want.version || got.Verified != want.verified || (got.LastSeen != nil) != want.seen {
			t.Errorf("%d: got %+v, want %+v", i, got, want)
		}
	}
	if seen := uses[1].LastSeen; !seen.Equal(time.Date(2026, 11, 2, 0, 0, 5, 0, time.UTC)) {
		t.Errorf("last seen: got %s, want the fifth", seen)
	}
	for _, list := range []func() ([]store.SecretUse, error){
		func() ([]store.SecretUse, error) { return s.PageSecrets(t.Context(), []int64{1}, 2) },
		func() ([]store.SecretUse, error) { return s.PageVersions(t.Context(), []int64{1}, 2) },
	} {
		if got, err := list(); err != nil || len(got) != 2 || got[0].Version != 3 || got[0].ValidUntil != nil || got[1].ValidUntil == nil {
			t.Errorf("the newest two: got %+v, %v", got, err)
		}
	}
	if got, err := s.PageSecrets(t.Context(), nil, 2); err != nil || len(got) != 0 {
		t.Errorf("of none: got %+v, %v", got, err)
	}
}

// TestSecretsAreCountedAlongTheirIndex, and along no other: a version that
// verified nothing yet must not be looked for among all deliveries.
func TestSecretsAreCountedAlongTheirIndex(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	hooksWithSecrets(t, s)
	var statements []string
	watched := *s
	store.Watch(&watched, func(query string) { statements = append(statements, query) })
	if _, err := watched.PageSecrets(t.Context(), []int64{1, 2}, 20); err != nil {
		t.Fatal(err)
	}
	tx, err := s.SQL().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	plan := ""
	for _, statement := range statements {
		switch {
		case strings.HasPrefix(statement, "SELECT set_config"):
			if _, err := tx.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		case strings.HasPrefix(statement, "SELECT s.webhook_id"):
			row := tx.QueryRowContext(t.Context(), "EXPLAIN (FORMAT JSON) "+statement)
			if err := row.Scan(&plan); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := strings.Count(plan, `"Relation Name": "deliveries"`); n != 2 || strings.Count(plan, `"deliveries_secret_idx"`) != 2 {
		t.Errorf("got %d scans of deliveries, want two, by deliveries_secret_idx:\n%s", n, plan)
	}
}
