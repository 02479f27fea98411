package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// TryKey names who tries to sign in: a name, a source, or both together. Free
// is how many failures cost nothing; after them the next try must wait one
// second, doubling with every failure up to Cap.
type TryKey struct {
	Key  string
	Free int
	Cap  time.Duration
}

// forgetFailures is how long a failure counts.
const forgetFailures = 15 * time.Minute

// mustWaitError carries a wait out of the transaction that it rolls back.
type mustWaitError struct{ wait time.Duration }

// Error implements error.
func (e mustWaitError) Error() string { return "must wait " + e.wait.String() }

// ClaimSignIn counts a try against every key, before the password is looked
// at, so that many at once can't slip past one check. It returns how long to
// wait; the try is allowed, and counted, only when that is zero. SignedIn takes
// the count back. A refused try counts nothing, so that hammering can delay
// nobody for longer than a key's Cap.
func (s *Store) ClaimSignIn(ctx context.Context, keys []TryKey, at time.Time) (time.Duration, error) {
	// One order of locks for all: two claims can't wait for each other.
	keys = slices.Clone(keys)
	slices.SortFunc(keys, func(a, b TryKey) int { return strings.Compare(a.Key, b.Key) })
	err := s.InTx(ctx, func(ctx context.Context, tx Tx) error {
		for _, key := range keys {
			if err := tx.claimTry(ctx, key, at); err != nil {
				return fmt.Errorf("claim a sign-in: %w", err)
			}
		}
		return nil
	})
	if must, ok := errors.AsType[mustWaitError](err); ok {
		return must.wait, nil
	}
	return 0, err
}

func (t Tx) claimTry(ctx context.Context, key TryKey, at time.Time) error {
	failures, next := 0, at
	_, err := t.db.NewRaw(`INSERT INTO sign_in_delays (key, failures, last_failed_at, next_try_at)
		VALUES (?, 0, ?, ?) ON CONFLICT (key) DO NOTHING`, key.Key, at, at).Exec(ctx)
	if err != nil {
		return translate(err)
	}
	var last time.Time
	err = t.db.NewRaw(`SELECT failures, last_failed_at, next_try_at FROM sign_in_delays WHERE key = ? FOR UPDATE`,
		key.Key).Scan(ctx, &failures, &last, &next)
	if err != nil {
		return translate(err)
	}
	if next.After(at) {
		return mustWaitError{next.Sub(at)}
	}
	if at.Sub(last) > forgetFailures {
		failures = 0
	}
	failures++
	_, err = t.db.NewRaw(`UPDATE sign_in_delays SET failures = ?, last_failed_at = ?, next_try_at = ? WHERE key = ?`,
		failures, at, at.Add(key.delay(failures)), key.Key).Exec(ctx)
	return translate(err)
}

func (k TryKey) delay(failures int) time.Duration {
	over := failures - k.Free
	if over <= 0 {
		return 0
	}
	return min(time.Second<<min(over-1, 10), k.Cap)
}

// SignedIn takes one count back from each key, as the try was no failure, and
// lets the next one pass at once.
func (q Queries) SignedIn(ctx context.Context, keys []TryKey, at time.Time) error {
	for _, key := range keys {
		_, err := q.db.NewRaw(`UPDATE sign_in_delays SET failures = greatest(failures - 1, 0), next_try_at = ?
			WHERE key = ?`, at, key.Key).Exec(ctx)
		if err != nil {
			return translate(err)
		}
	}
	return nil
}

// DeleteOldDelays removes counts that no longer matter.
func (q Queries) DeleteOldDelays(ctx context.Context, now time.Time) (int64, error) {
	return affected(q.db.NewRaw(`DELETE FROM sign_in_delays WHERE last_failed_at < ?`,
		now.Add(-forgetFailures)).Exec(ctx))
}

const (
	setupKey = "setup_tokens"
	// maxSetupTokens bounds how many printed tokens are good at once: every
	// process of a fresh installation prints its own.
	maxSetupTokens = 8
)

// AddSetupToken remembers the hash (hexadecimal) of a set-up token; the oldest
// goes when there are more than eight. It is for installations without users.
func (q Queries) AddSetupToken(ctx context.Context, hash string, at time.Time) error {
	_, err := q.db.NewRaw(`INSERT INTO settings AS s (key, value, updated_at) VALUES (?, ?, ?)
		ON CONFLICT (key) DO UPDATE SET updated_at = EXCLUDED.updated_at, value = array_to_string(
			(string_to_array(EXCLUDED.value || ' ' || s.value, ' '))[1:?], ' ')`,
		setupKey, hash, at, maxSetupTokens).Exec(ctx)
	return translate(err)
}

// AddFirstUser makes the first account if the hash is that of a set-up token,
// and takes all tokens out of use in the same transaction. ErrNotFound: no such
// token, or somebody was faster.
func (s *Store) AddFirstUser(ctx context.Context, hash string, u *User) error {
	return s.InTx(ctx, func(ctx context.Context, tx Tx) error {
		var value string
		err := tx.db.NewRaw("SELECT value FROM settings WHERE key = ? FOR UPDATE", setupKey).Scan(ctx, &value)
		if errors.Is(err, sql.ErrNoRows) || err == nil && !slices.Contains(strings.Fields(value), hash) {
			return ErrNotFound
		}
		if err != nil {
			return translate(err)
		}
		has, err := tx.HasUsers(ctx)
		if err != nil {
			return err
		}
		if has {
			return ErrNotFound
		}
		if err := tx.AddUser(ctx, u); err != nil {
			return err
		}
		if _, err = tx.db.NewRaw("DELETE FROM settings WHERE key = ?", setupKey).Exec(ctx); err != nil {
			return translate(err)
		}
		return tx.Audit(asUser(ctx, u), u.CreatedAt, Change{What: "user.set_up", Kind: "user", ID: u.Name, After: userFacts{Role: u.Role}})
	})
}

const (
	signInFailed = "user.sign_in_failed"
	// mostFailuresNoted bounds the failed sign-ins that an hour adds to the audit
	// log. The delays bound each source; this bounds all sources together, as the
	// log only grows.
	mostFailuresNoted = 1000
)

// NoteFailedSignIn writes down that somebody tried a name and failed. What they
// typed is written down only when it is a person's name: people type their
// password there, and a line can't be taken back. Beyond a thousand an hour no more is
// written, and the thousandth says so. Of failures at the same moment a few
// more may get in.
func (s *Store) NoteFailedSignIn(ctx context.Context, name string, now time.Time) error {
	var noted int
	err := s.db.NewRaw(`SELECT count(*) FROM (SELECT FROM audit_log WHERE what = ? AND at > ? LIMIT ?) AS lately`,
		signInFailed, now.Add(-time.Hour), mostFailuresNoted).Scan(ctx, &noted)
	if err != nil || noted >= mostFailuresNoted {
		return translate(err)
	}
	c := Change{What: signInFailed, Kind: "user"}
	u, err := s.UserByName(ctx, name)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if err == nil {
		c.ID = u.Name
	}
	if noted == mostFailuresNoted-1 {
		c.After = struct {
			Note string `json:"note"`
		}{"further failures of the hour before and after are not written down one by one"}
	}
	return s.Audit(ctx, now, c)
}
