package store_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/store"
	"rollcall/store/storetest"
)

// moment is the tests' present: Postgres keeps microseconds.
var moment = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func addUser(t *testing.T, s *store.Store, name string, role store.Role) *store.User {
	t.Helper()
	u := &store.User{Name: name, Role: role, PasswordHash: "x", CreatedAt: moment, PasswordChangedAt: moment}
	if err := s.AddUser(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestUsers(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	if has, err := s.HasUsers(t.Context()); has || err != nil {
		t.Fatalf("fresh database has users: %v, %v", has, err)
	}
	alice := addUser(t, s, "Alice", store.RoleAdmin)
	addUser(t, s, "bob", store.RoleAnalyst)
	if err := s.AddUser(t.Context(), &store.User{Name: "ALICE", Role: store.RoleAnalyst, PasswordHash: "x", CreatedAt: moment, PasswordChangedAt: moment}); !errors.Is(err, store.ErrTaken) {
		t.Errorf("a name in other letters: got %v, want ErrTaken", err)
	}
	if has, err := s.HasUsers(t.Context()); !has || err != nil {
		t.Errorf("HasUsers: got %v, %v", has, err)
	}
	found, err := s.UserByName(t.Context(), "aLICE")
	if err != nil || found.ID != alice.ID {
		t.Errorf("by name: got %+v, %v", found, err)
	}
	for name, ask := range map[string]func() error{
		"name": func() error { _, err := s.UserByName(t.Context(), "carol"); return err },
		"id":   func() error { _, err := s.UserByID(t.Context(), 1<<62); return err },
	} {
		if err := ask(); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("unknown %s: got %v, want ErrNotFound", name, err)
		}
	}
	if rows, err := s.SetPassword(t.Context(), alice.ID, "y", moment.Add(time.Hour)); rows != 1 || err != nil {
		t.Errorf("SetPassword: got %d, %v", rows, err)
	}
	if rows, err := s.SetSignedIn(t.Context(), alice.ID, moment); rows != 1 || err != nil {
		t.Errorf("SetSignedIn: got %d, %v", rows, err)
	}
	users, err := s.Users(t.Context())
	if err != nil || len(users) != 2 || users[0].PasswordHash != "y" || users[0].LastSignInAt == nil {
		t.Errorf("Users: got %+v, %v", users, err)
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	u := addUser(t, s, "alice", store.RoleAnalyst)
	add := func(hash string) {
		err := s.AddSession(t.Context(), &store.Session{
			TokenHash: []byte(hash), UserID: &u.ID, Data: []byte("{}"), CreatedAt: moment, LastSeenAt: moment, ExpiresAt: moment.Add(time.Hour),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	alive := func(hash string, at time.Time) bool {
		_, err := s.LiveSession(t.Context(), []byte(hash), at, at.Add(-30*time.Minute))
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		return err == nil
	}
	add("one")
	add("two")
	add("three")
	if !alive("one", moment.Add(29*time.Minute)) || alive("one", moment.Add(30*time.Minute)) {
		t.Error("a session ends when it's idle for half an hour")
	}
	for after, want := range map[time.Duration]int64{59 * time.Second: 0, 25 * time.Minute: 1} {
		if rows, err := s.SeeSession(t.Context(), []byte("one"), moment.Add(after)); rows != want || err != nil {
			t.Errorf("seen after %s: got %d, %v, want %d", after, rows, err, want)
		}
	}
	if !alive("one", moment.Add(50*time.Minute)) || alive("one", moment.Add(time.Hour)) {
		t.Error("a session in use ends at its absolute end")
	}
	if rows, err := s.SetSessionData(t.Context(), []byte("one"), []byte(`{"a":"b"}`)); rows != 1 || err != nil {
		t.Errorf("SetSessionData: got %d, %v", rows, err)
	}
	if rows, err := s.DeleteUserSessions(t.Context(), u.ID, []byte("one")); rows != 2 || err != nil {
		t.Errorf("end the others: got %d, %v", rows, err)
	}
	if rows, err := s.DeleteSession(t.Context(), []byte("one")); rows != 1 || err != nil {
		t.Errorf("end one: got %d, %v", rows, err)
	}
	if rows, err := s.SetSessionData(t.Context(), []byte("one"), []byte("{}")); rows != 0 || err != nil {
		t.Errorf("an ended session: got %d, %v, want it to stay ended", rows, err)
	}
	add("four")
	if rows, err := s.DeleteDeadSessions(t.Context(), moment.Add(2*time.Hour)); rows != 1 || err != nil {
		t.Errorf("dead sessions: got %d, %v", rows, err)
	}
}

func TestSignInTries(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	keys := []store.TryKey{{Key: "name alice", Free: 2, Cap: 4 * time.Second}}
	at := moment
	var waits []time.Duration
	for range 8 {
		wait, err := s.ClaimSignIn(t.Context(), keys, at)
		if err != nil {
			t.Fatal(err)
		}
		waits = append(waits, wait)
		at = at.Add(wait)
	}
	// Free, free, failed once too often; then each claim must wait first.
	if got, want := fmt.Sprint(waits), "[0s 0s 0s 1s 0s 2s 0s 4s]"; got != want {
		t.Errorf("waits: got %s, want %s", got, want)
	}
	// What was refused counts nothing, and no wait is above the cap.
	for range 50 {
		if wait, err := s.ClaimSignIn(t.Context(), keys, at.Add(-time.Second)); err != nil || wait > 4*time.Second {
			t.Fatalf("got %s, %v", wait, err)
		}
	}
	if wait, err := s.ClaimSignIn(t.Context(), keys, at); wait != 0 || err != nil {
		t.Errorf("after the wait: got %s, %v, want to be let in", wait, err)
	}
	if err := s.SignedIn(t.Context(), keys, at); err != nil {
		t.Fatal(err)
	}
	if wait, err := s.ClaimSignIn(t.Context(), keys, at); wait != 0 || err != nil {
		t.Errorf("after a success: got %s, %v, want to be let in", wait, err)
	}
	if wait, err := s.ClaimSignIn(t.Context(), keys, at.Add(time.Hour)); wait != 0 || err != nil {
		t.Errorf("an hour later: got %s, %v", wait, err)
	}
	if wait, err := s.ClaimSignIn(t.Context(), keys, at.Add(time.Hour)); wait != 0 || err != nil {
		t.Errorf("failures are forgotten after an hour: got %s, %v", wait, err)
	}
	if rows, err := s.DeleteOldDelays(t.Context(), at.Add(3*time.Hour)); rows != 1 || err != nil {
		t.Errorf("old delays: got %d, %v", rows, err)
	}
}

// TestSignInTriesAtOnce: of many tries at one moment, no more pass than are
// free and one, however they interleave.
func TestSignInTriesAtOnce(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	keys := []store.TryKey{{Key: "b", Free: 2, Cap: time.Minute}, {Key: "a", Free: 50, Cap: time.Minute}}
	var passed atomic.Int64
	var tries sync.WaitGroup
	for i := range 24 {
		tries.Go(func() {
			mine := keys
			if i%2 == 0 {
				mine = []store.TryKey{keys[1], keys[0]}
			}
			wait, err := s.ClaimSignIn(t.Context(), mine, moment)
			if err != nil {
				t.Error(err)
			}
			if wait == 0 && err == nil {
				passed.Add(1)
			}
		})
	}
	tries.Wait()
	if got := passed.Load(); got != 3 {
		t.Errorf("got %d through, want 3", got)
	}
}

func TestFirstUser(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	user := func(name string) *store.User {
		return &store.User{Name: name, Role: store.RoleAdmin, PasswordHash: "x", CreatedAt: moment, PasswordChangedAt: moment}
	}
	if err := s.AddFirstUser(t.Context(), "h1", user("a")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("with no token: got %v, want ErrNotFound", err)
	}
	for i := range 10 {
		if err := s.AddSetupToken(t.Context(), fmt.Sprintf("h%d", i), moment); err != nil {
			t.Fatal(err)
		}
	}
	for _, hash := range []string{"", "h0", "h1", "h", "h9 h8"} {
		if err := s.AddFirstUser(t.Context(), hash, user("a")); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("token %q: got %v, want ErrNotFound", hash, err)
		}
	}
	var made atomic.Int64
	var tries sync.WaitGroup
	for i := range 8 {
		tries.Go(func() {
			err := s.AddFirstUser(t.Context(), fmt.Sprintf("h%d", 2+i), user(fmt.Sprintf("admin%d", i)))
			if err == nil {
				made.Add(1)
			} else if !errors.Is(err, store.ErrNotFound) {
				t.Error(err)
			}
		})
	}
	tries.Wait()
	users, err := s.Users(t.Context())
	if made.Load() != 1 || len(users) != 1 || err != nil {
		t.Errorf("got %d made and %d users, %v, want one", made.Load(), len(users), err)
	}
}

func TestIsAway(t *testing.T) {
	t.Parallel()
	if _, err := store.Open(t.Context(), store.Config{DSN: "host=/nowhere/at/all dbname=x"}); !store.IsAway(err) {
		t.Errorf("no server: got %v, want it to be away", err)
	}
	s := storetest.New(t)
	_, err := s.SQL().ExecContext(t.Context(), "SELECT pg_terminate_backend(pg_backend_pid())")
	if !store.IsAway(err) {
		t.Errorf("connection killed: got %v, want it to be away", err)
	}
	_, err = s.SQL().ExecContext(t.Context(), "SELECT nonsense")
	if err == nil || store.IsAway(err) || store.IsAway(store.ErrNotFound) || store.IsAway(nil) {
		t.Errorf("a wrong statement: got %v, want it not to be away", err)
	}
}
