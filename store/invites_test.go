package store_test

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/store"
	"rollcall/store/storetest"
)

func invitation(name, hash string) *store.Invite {
	return &store.Invite{
		TokenHash: []byte(hash), Name: name, Role: store.RoleOperator, MadeBy: "ada", CreatedAt: moment, ExpiresAt: moment.Add(time.Hour),
	}
}

func reset(u *store.User, hash string) *store.Invite {
	in := invitation("", hash)
	in.UserID = &u.ID
	return in
}

func TestInviteIsGoodOnceAndForAWhile(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	ada := addUser(t, s, "ada", store.RoleAdmin)
	use := func(hash string, at time.Time) error {
		_, err := s.UseInvite(t.Context(), []byte(hash), "hash", at)
		return err
	}
	for _, hash := range []string{"replaced", "good"} {
		if err := s.Invite(by(t, ada), invitation("bob", hash)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Invite(by(t, ada), invitation("ADA", "taken")); !errors.Is(err, store.ErrTaken) {
		t.Errorf("a name with an account: got %v, want ErrTaken", err)
	}
	for name, err := range map[string]error{
		"replaced": use("replaced", moment), "unknown": use("unknown", moment), "expired": use("good", moment.Add(time.Hour)),
	} {
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: got %v, want ErrNotFound", name, err)
		}
	}
	if err := use("good", moment.Add(59*time.Minute)); err != nil {
		t.Errorf("in time: got %v", err)
	}
	if err := use("good", moment); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("used: got %v, want ErrNotFound", err)
	}
	bob, err := s.UserByName(t.Context(), "bob")
	if err != nil || bob.Role != store.RoleOperator || bob.PasswordHash != "hash" {
		t.Errorf("got %+v, %v", bob, err)
	}
	want := []string{"user.invite", "user.invite", "user.accept_invite"}
	if got := did(t, s); !slices.Equal(got, want) {
		t.Errorf("audit log: got %v, want %v", got, want)
	}
}

// TestInviteUsedManyTimesAtOnce makes one account.
func TestInviteUsedManyTimesAtOnce(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	if err := s.Invite(t.Context(), invitation("bob", "good")); err != nil {
		t.Fatal(err)
	}
	var made atomic.Int32
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			_, err := s.UseInvite(t.Context(), []byte("good"), "hash", moment)
			switch {
			case err == nil:
				made.Add(1)
			case !errors.Is(err, store.ErrNotFound):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if made.Load() != 1 {
		t.Errorf("got %d accounts, want 1", made.Load())
	}
}

func TestInviteOfANameThatWasTakenMeanwhile(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	if err := s.Invite(t.Context(), invitation("bob", "good")); err != nil {
		t.Fatal(err)
	}
	addUser(t, s, "Bob", store.RoleAnalyst)
	if _, err := s.UseInvite(t.Context(), []byte("good"), "hash", moment); !errors.Is(err, store.ErrTaken) {
		t.Errorf("got %v, want ErrTaken", err)
	}
	if _, err := s.LiveInvite(t.Context(), []byte("good"), moment); err != nil {
		t.Errorf("the link that did nothing: got %v, want it still there", err)
	}
}

func TestResetLink(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	ada, bob := addUser(t, s, "ada", store.RoleAdmin), addUser(t, s, "bob", store.RoleAnalyst)
	if err := s.ResetPassword(by(t, ada), reset(bob, "first"), "unusable"); err != nil {
		t.Fatal(err)
	}
	if err := s.ResetPassword(by(t, ada), reset(bob, "second"), "unusable"); err != nil {
		t.Fatal(err)
	}
	if u, err := s.UserByID(t.Context(), bob.ID); err != nil || u.PasswordHash != "unusable" {
		t.Errorf("the old password: got %+v, %v", u, err)
	}
	if _, err := s.UseInvite(t.Context(), []byte("first"), "hash", moment); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the first link: got %v, want ErrNotFound", err)
	}
	u, err := s.UseInvite(t.Context(), []byte("second"), "hash", moment)
	if err != nil || u.ID != bob.ID || u.PasswordHash != "hash" {
		t.Errorf("the second link: got %+v, %v", u, err)
	}
	if err := s.ResetPassword(by(t, ada), reset(bob, "third"), "unusable"); err != nil {
		t.Fatal(err)
	}
	if err := s.DisableUser(by(t, ada), bob.ID, moment); err != nil {
		t.Fatal(err)
	}
	if _, err := s.UseInvite(t.Context(), []byte("third"), "hash", moment); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("of a disabled account: got %v, want ErrNotFound", err)
	}
	if err := s.ResetPassword(by(t, ada), reset(bob, "fourth"), "unusable"); !errors.Is(err, store.ErrStale) {
		t.Errorf("reset while disabled: got %v, want ErrStale", err)
	}
}

func TestRevokedAndOldLinks(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	in := invitation("bob", "good")
	if err := s.Invite(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if err := s.RevokeInvite(t.Context(), in.ID, moment); err != nil {
		t.Fatal(err)
	}
	if err := s.RevokeInvite(t.Context(), in.ID, moment); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("revoked again: got %v, want ErrNotFound", err)
	}
	if _, err := s.LiveInvite(t.Context(), in.TokenHash, moment); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("revoked: got %v, want ErrNotFound", err)
	}
	if err := s.Invite(t.Context(), invitation("bob", "old")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		at   time.Duration
		want int64
	}{{7*24*time.Hour + time.Hour, 0}, {7*24*time.Hour + 2*time.Hour, 1}} {
		if n, err := s.DeleteOldInvites(t.Context(), moment.Add(tt.at)); n != tt.want || err != nil {
			t.Errorf("after %s: got %d removed, %v; want %d", tt.at, n, err, tt.want)
		}
	}
}

// TestLinkIsLockedAfterItsPerson: who uses a link and who replaces it at that
// moment wait for one another, and not each for the other.
func TestLinkIsLockedAfterItsPerson(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	ada := addUser(t, s, "ada", store.RoleAdmin)
	bob := addUser(t, s, "bob", store.RoleAnalyst)
	if err := s.ResetPassword(by(t, ada), reset(bob, "link"), "unusable"); err != nil {
		t.Fatal(err)
	}
	replacing, err := s.SQL().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = replacing.Rollback() }()
	if _, err := replacing.ExecContext(t.Context(), "SELECT FROM users WHERE id = $1 FOR NO KEY UPDATE", bob.ID); err != nil {
		t.Fatal(err)
	}
	used := make(chan error, 1)
	go func() {
		_, err := s.UseInvite(t.Context(), []byte("link"), "hash", moment)
		used <- err
	}()
	for one(t, s, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") == 0 {
		continue // It is on its way to the lock.
	}
	if _, err := replacing.ExecContext(t.Context(), "SELECT FROM invites WHERE user_id = $1 FOR UPDATE NOWAIT", bob.ID); err != nil {
		t.Errorf("the link is held by who waits for the person: %v", err)
	}
	if _, err := replacing.ExecContext(t.Context(), "DELETE FROM invites"); err != nil {
		t.Error(err)
	}
	if err := errors.Join(replacing.Commit(), <-used); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v, want that the link is gone", err)
	}
}
