package store_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"rollcall/store"
	"rollcall/store/storetest"
)

// by is a context in which the person asks.
func by(t *testing.T, u *store.User) context.Context {
	t.Helper()
	return store.WithActor(t.Context(), store.Actor{UserID: u.ID, Name: u.Name, Source: "192.0.2.1"})
}

// session opens one for the person and returns its hash.
func session(t *testing.T, s *store.Store, u *store.User, hash string) []byte {
	t.Helper()
	row := &store.Session{
		TokenHash: []byte(hash), UserID: &u.ID, Data: []byte("{}"), CreatedAt: moment, LastSeenAt: moment, ExpiresAt: moment.Add(time.Hour),
	}
	if err := s.BeginSession(t.Context(), row, u.PasswordHash, nil); err != nil {
		t.Fatal(err)
	}
	return row.TokenHash
}

func lives(t *testing.T, s *store.Store, hash []byte) bool {
	t.Helper()
	_, err := s.LiveSession(t.Context(), hash, moment, moment.Add(-time.Minute))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

// did lists what the audit log says was done, oldest first.
func did(t *testing.T, s *store.Store) []string {
	t.Helper()
	rows, _, err := s.PageAudit(t.Context(), store.AuditFilter{}, store.Key{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	var whats []string
	for i := range rows {
		whats = append(whats, rows[len(rows)-1-i].What)
	}
	return whats
}

func activeAdmins(t *testing.T, s *store.Store) int {
	t.Helper()
	users, err := s.Users(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := range users {
		if users[i].Role == store.RoleAdmin && users[i].DisabledAt == nil {
			n++
		}
	}
	return n
}

func TestTheLastActiveAdminStays(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	ada, eve := addUser(t, s, "ada", store.RoleAdmin), addUser(t, s, "eve", store.RoleAdmin)
	addUser(t, s, "bob", store.RoleAnalyst)
	if err := s.DisableUser(t.Context(), eve.ID, moment); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func() error{
		"demoted":  func() error { return s.SetRole(t.Context(), ada.ID, store.RoleOperator, moment) },
		"disabled": func() error { return s.DisableUser(t.Context(), ada.ID, moment) },
	} {
		if err := change(); !errors.Is(err, store.ErrLastAdmin) {
			t.Errorf("%s: got %v, want ErrLastAdmin", name, err)
		}
	}
	if err := s.EnableUser(t.Context(), eve.ID, moment); err != nil {
		t.Fatal(err)
	}
	if err := s.SetRole(t.Context(), ada.ID, store.RoleOperator, moment); err != nil {
		t.Errorf("with another admin: got %v", err)
	}
	// Who is no admin any more changes nobody.
	if err := s.SetRole(by(t, ada), ada.ID, store.RoleAdmin, moment); !errors.Is(err, store.ErrNotAdmin) {
		t.Errorf("an operator asks: got %v, want ErrNotAdmin", err)
	}
	want := []string{"user.disable", "user.enable", "user.role"}
	if got := did(t, s); !slices.Equal(got, want) {
		t.Errorf("audit log: got %v, want %v", got, want)
	}
}

// TestTwoAdminsAtOnce: of two changes that would each leave an admin, and
// together none, the second sees the first.
func TestTwoAdminsAtOnce(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(ctx context.Context, s *store.Store, id int64) error{
		"demote": func(ctx context.Context, s *store.Store, id int64) error {
			return s.SetRole(ctx, id, store.RoleAnalyst, moment)
		},
		"disable": func(ctx context.Context, s *store.Store, id int64) error { return s.DisableUser(ctx, id, moment) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.New(t)
			ada, eve := addUser(t, s, "ada", store.RoleAdmin), addUser(t, s, "eve", store.RoleAdmin)
			errs := atOnce(t, s,
				func() error { return change(by(t, ada), s, eve.ID) },
				func() error { return change(by(t, eve), s, ada.ID) },
			)
			if n := activeAdmins(t, s); n != 1 {
				t.Errorf("each other: got %d admins, want 1 (%v)", n, errs)
			}
			if !errors.Is(errors.Join(errs...), store.ErrNotAdmin) {
				t.Errorf("each other: got %v, want one refused as no admin", errs)
			}
		})
		t.Run(name+" by commands", func(t *testing.T) {
			t.Parallel()
			s := storetest.New(t)
			ada, eve := addUser(t, s, "ada", store.RoleAdmin), addUser(t, s, "eve", store.RoleAdmin)
			errs := atOnce(t, s,
				func() error { return change(t.Context(), s, eve.ID) },
				func() error { return change(t.Context(), s, ada.ID) },
			)
			if n := activeAdmins(t, s); n != 1 || !errors.Is(errors.Join(errs...), store.ErrLastAdmin) {
				t.Errorf("got %d admins, %v; want 1 and ErrLastAdmin once", n, errs)
			}
		})
	}
}

// atOnce runs both while the rows of all users are locked, and lets them go
// when both wait: neither has seen what the other does.
func atOnce(t *testing.T, s *store.Store, first, second func() error) []error {
	t.Helper()
	lock, err := s.SQL().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Rollback() }()
	if _, err := lock.ExecContext(t.Context(), "SELECT FROM users FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	errs := make([]error, 2)
	var running sync.WaitGroup
	running.Go(func() { errs[0] = first() })
	running.Go(func() { errs[1] = second() })
	for waiting := 0; waiting < 2; {
		err := s.SQL().QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	running.Wait()
	return errs
}

func TestWhatEndsSessions(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *store.Store, u *store.User, keep []byte) (kept bool, err error){
		"disable": func(s *store.Store, u *store.User, _ []byte) (bool, error) {
			return false, s.DisableUser(t.Context(), u.ID, moment)
		},
		"a command's password": func(s *store.Store, u *store.User, _ []byte) (bool, error) {
			return false, s.ReplacePassword(t.Context(), u.ID, "new", moment)
		},
		"a reset": func(s *store.Store, u *store.User, _ []byte) (bool, error) {
			return false, s.ResetPassword(t.Context(), reset(u, "link"), "unusable")
		},
		"an admin's word": func(s *store.Store, u *store.User, _ []byte) (bool, error) {
			n, err := s.EndUserSessions(t.Context(), u.ID, moment)
			if n != 2 {
				err = errors.Join(err, errors.New("not two"))
			}
			return false, err
		},
		"their own password": func(s *store.Store, u *store.User, keep []byte) (bool, error) {
			return true, s.ChangePassword(t.Context(), u.ID, u.PasswordHash, "new", keep, moment)
		},
		"their own word": func(s *store.Store, u *store.User, keep []byte) (bool, error) {
			return true, s.EndOtherSessions(t.Context(), u.ID, keep, moment)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.New(t)
			addUser(t, s, "ada", store.RoleAdmin)
			bob, carol := addUser(t, s, "bob", store.RoleAnalyst), addUser(t, s, "carol", store.RoleAnalyst)
			mine, other, hers := session(t, s, bob, "mine"), session(t, s, bob, "other"), session(t, s, carol, "hers")
			kept, err := end(s, bob, mine)
			if err != nil {
				t.Fatal(err)
			}
			if lives(t, s, mine) != kept || lives(t, s, other) || !lives(t, s, hers) {
				t.Errorf("got mine %v, other %v, hers %v; want %v, false, true", lives(t, s, mine), lives(t, s, other), lives(t, s, hers), kept)
			}
		})
	}
}

// TestASignInThatComesTooLate: what was checked before a change of the password
// or the account opens nothing after it.
func TestASignInThatComesTooLate(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	addUser(t, s, "ada", store.RoleAdmin)
	bob := addUser(t, s, "bob", store.RoleAnalyst)
	begin := func() error {
		row := &store.Session{TokenHash: []byte("late"), UserID: &bob.ID, Data: []byte("{}"), CreatedAt: moment, LastSeenAt: moment, ExpiresAt: moment.Add(time.Hour)}
		return s.BeginSession(t.Context(), row, bob.PasswordHash, nil)
	}
	if err := s.DisableUser(t.Context(), bob.ID, moment); err != nil {
		t.Fatal(err)
	}
	if err := begin(); !errors.Is(err, store.ErrStale) {
		t.Errorf("disabled: got %v, want ErrStale", err)
	}
	if err := s.EnableUser(t.Context(), bob.ID, moment); err != nil {
		t.Fatal(err)
	}
	if err := s.ReplacePassword(t.Context(), bob.ID, "new", moment); err != nil {
		t.Fatal(err)
	}
	if err := begin(); !errors.Is(err, store.ErrStale) {
		t.Errorf("another password: got %v, want ErrStale", err)
	}
	if err := s.ChangePassword(t.Context(), bob.ID, "x", "newer", nil, moment); !errors.Is(err, store.ErrStale) {
		t.Errorf("a change of the old one: got %v, want ErrStale", err)
	}
	if slices.Contains(did(t, s), "user.sign_in") {
		t.Error("a sign-in that didn't happen is in the audit log")
	}
}

// TestEndSessionIsTheirOwn: nobody ends a session of somebody else by its id.
func TestEndSessionIsTheirOwn(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	bob, carol := addUser(t, s, "bob", store.RoleAnalyst), addUser(t, s, "carol", store.RoleAnalyst)
	mine := session(t, s, bob, "mine")
	rows, err := s.PageSessions(t.Context(), bob.ID, mine, moment, moment.Add(-time.Minute))
	if err != nil || len(rows) != 1 || !rows[0].This {
		t.Fatalf("got %+v, %v", rows, err)
	}
	if err := s.EndSession(t.Context(), carol.ID, rows[0].ID, moment); !errors.Is(err, store.ErrNotFound) || !lives(t, s, mine) {
		t.Errorf("by carol: got %v, want ErrNotFound", err)
	}
	if err := s.EndSession(t.Context(), bob.ID, rows[0].ID, moment); err != nil || lives(t, s, mine) {
		t.Errorf("by bob: got %v", err)
	}
}
