package store

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"
)

// ChannelPeople carries the id of a person whose sessions, or what they may
// see, have changed.
const ChannelPeople = "rollcall_people"

// Session is one browser's signed-in session. TokenHash is the SHA-256 of the
// token in its cookie; Data belongs to package web.
type Session struct {
	bun.BaseModel `bun:"table:sessions,alias:se"`
	TokenHash     []byte `bun:",pk"`
	UserID        *int64
	Data          []byte
	CreatedAt     time.Time
	LastSeenAt    time.Time
	ExpiresAt     time.Time
	Source        string
	UserAgent     string
}

const (
	// seenEvery is how often at most a session's last use is written down.
	seenEvery = time.Minute
	// maxSessionsListed bounds the list of somebody's sessions.
	maxSessionsListed = 100
)

// AddSession inserts a session.
func (q Queries) AddSession(ctx context.Context, s *Session) error {
	_, err := q.db.NewInsert().Model(s).Exec(ctx)
	return translate(err)
}

// BeginSession inserts the session of a person who has just shown that they
// may sign in, ends the one they came with (a token's hash, or nil), and notes
// the sign-in. ErrStale: the password is not that of the hash any more, or the
// account was disabled, between that and now.
func (s *Store) BeginSession(ctx context.Context, session *Session, passwordHash string, old []byte) error {
	err := s.InTx(ctx, func(ctx context.Context, tx Tx) error {
		u, err := tx.lockUser(ctx, *session.UserID)
		if err != nil {
			return err
		}
		if u.DisabledAt != nil || u.PasswordHash != passwordHash {
			return ErrStale
		}
		if len(old) > 0 {
			if _, err := tx.DeleteSession(ctx, old); err != nil {
				return err
			}
		}
		if err := tx.AddSession(ctx, session); err != nil {
			return err
		}
		if _, err := tx.SetSignedIn(ctx, u.ID, session.CreatedAt); err != nil {
			return err
		}
		return tx.Audit(ctx, session.CreatedAt, Change{What: "user.sign_in", Kind: "user", ID: u.Name})
	})
	if err != nil {
		return fmt.Errorf("begin a session of user %d: %w", *session.UserID, err)
	}
	return nil
}

// SetSessionData replaces what a session holds; zero rows means that it has
// ended meanwhile, and it isn't brought back.
func (q Queries) SetSessionData(ctx context.Context, hash, data []byte) (int64, error) {
	return affected(q.db.NewUpdate().Model((*Session)(nil)).Set("data = ?", data).
		Where("token_hash = ?", hash).Exec(ctx))
}

// LiveSession finds the session of a token's hash unless it's past its end or
// was last seen before idleSince; ErrNotFound then.
func (q Queries) LiveSession(ctx context.Context, hash []byte, now, idleSince time.Time) (*Session, error) {
	s := new(Session)
	err := q.db.NewSelect().Model(s).Where("se.token_hash = ?", hash).
		Where("se.expires_at > ?", now).Where("se.last_seen_at > ?", idleSince).Scan(ctx)
	if err != nil {
		return nil, translate(err)
	}
	return s, nil
}

// LivingSession is a session that may go on, with what its person may do now.
type LivingSession struct {
	TokenHash []byte
	Role      Role
}

// LivingSessions tells which of the sessions still stand: those that
// LiveSession would find, of people whose account isn't disabled.
func (q Queries) LivingSessions(ctx context.Context, hashes [][]byte, now, idleSince time.Time) ([]LivingSession, error) {
	if len(hashes) == 0 {
		return nil, nil
	}
	var living []LivingSession
	err := q.db.NewRaw(`SELECT se.token_hash, u.role FROM sessions se JOIN users u ON u.id = se.user_id
		WHERE se.token_hash IN (?) AND se.expires_at > ? AND se.last_seen_at > ? AND u.disabled_at IS NULL`,
		bun.List(hashes), now, idleSince).Scan(ctx, &living)
	return living, translate(err)
}

// SessionRow is a session in the list of somebody's.
type SessionRow struct {
	ID         int64
	CreatedAt  time.Time
	LastSeenAt time.Time
	ExpiresAt  time.Time
	Source     string
	UserAgent  string
	This       bool // It is the one that asks.
}

// PageSessions lists a person's living sessions, the latest seen first, at most
// a hundred; this is the hash of the one that asks.
func (q Queries) PageSessions(ctx context.Context, userID int64, this []byte, now, idleSince time.Time) ([]SessionRow, error) {
	var rows []SessionRow
	err := q.db.NewRaw(`SELECT id, created_at, last_seen_at, expires_at, source, user_agent, token_hash = ? AS this
		FROM sessions WHERE user_id = ? AND expires_at > ? AND last_seen_at > ?
		ORDER BY token_hash = ? DESC, last_seen_at DESC, id DESC LIMIT ?`,
		this, userID, now, idleSince, this, maxSessionsListed).Scan(ctx, &rows)
	return rows, translate(err)
}

// SeeSession notes that a session is in use, at most once a minute.
func (q Queries) SeeSession(ctx context.Context, hash []byte, at time.Time) (int64, error) {
	return affected(q.db.NewUpdate().Model((*Session)(nil)).Set("last_seen_at = ?", at).
		Where("token_hash = ?", hash).Where("last_seen_at < ?", at.Add(-seenEvery)).Exec(ctx))
}

// DeleteSession ends one session; zero rows means that it had ended.
func (q Queries) DeleteSession(ctx context.Context, hash []byte) (int64, error) {
	return q.endSessions(ctx, q.db.NewDelete().Where("token_hash = ?", hash))
}

// DeleteUserSessions ends every session of a person except the one with the
// given hash; nil ends them all.
func (q Queries) DeleteUserSessions(ctx context.Context, userID int64, except []byte) (int64, error) {
	if except == nil {
		except = []byte{}
	}
	return q.endSessions(ctx, q.db.NewDelete().Where("user_id = ?", userID).Where("token_hash <> ?", except))
}

// endSessions deletes sessions of one person and has their open streams end.
func (q Queries) endSessions(ctx context.Context, which *bun.DeleteQuery) (int64, error) {
	var owners []int64
	_, err := which.Model((*Session)(nil)).Returning("user_id").Exec(ctx, &owners)
	if err != nil || len(owners) == 0 {
		return 0, translate(err)
	}
	return int64(len(owners)), q.tellSessions(ctx, owners[0])
}

// tellSessions has every process look whether the person's streams may go on.
func (q Queries) tellSessions(ctx context.Context, userID int64) error {
	_, err := q.db.NewRaw(`SELECT pg_notify(?, ?::bigint::text)`, ChannelPeople, userID).Exec(ctx)
	return translate(err)
}

// ended is how many sessions a person's or an admin's word ended.
type ended struct {
	Sessions int64 `json:"sessions_ended"`
}

// SignOut ends the session of a token's hash; it may have ended already.
func (s *Store) SignOut(ctx context.Context, userID int64, hash []byte, now time.Time) error {
	return s.endOwn(ctx, userID, "user.sign_out", now, func(q *bun.DeleteQuery) *bun.DeleteQuery {
		return q.Where("token_hash = ?", hash)
	})
}

// EndSession ends one of a person's sessions by its id; ErrNotFound when the
// person has none of that id.
func (s *Store) EndSession(ctx context.Context, userID, id int64, now time.Time) error {
	return s.endOwn(ctx, userID, "user.end_session", now, func(q *bun.DeleteQuery) *bun.DeleteQuery {
		return q.Where("id = ?", id)
	})
}

// EndOtherSessions ends a person's sessions but the one of the hash.
func (s *Store) EndOtherSessions(ctx context.Context, userID int64, keep []byte, now time.Time) error {
	return s.endOwn(ctx, userID, "user.end_sessions", now, func(q *bun.DeleteQuery) *bun.DeleteQuery {
		return q.Where("token_hash <> ?", keep)
	})
}

// endOwn ends some of a person's own sessions. It locks the person, as all do
// that end more than one.
func (s *Store) endOwn(ctx context.Context, userID int64, what string, now time.Time, which func(*bun.DeleteQuery) *bun.DeleteQuery) error {
	err := s.InTx(ctx, func(ctx context.Context, tx Tx) error {
		u, err := tx.lockUser(ctx, userID)
		if err != nil {
			return err
		}
		n, err := tx.endSessions(ctx, which(tx.db.NewDelete().Where("user_id = ?", userID)))
		if err != nil {
			return err
		}
		if n == 0 && what == "user.end_session" {
			return ErrNotFound
		}
		return tx.Audit(ctx, now, Change{What: what, Kind: "user", ID: u.Name, After: ended{n}})
	})
	if err != nil {
		return fmt.Errorf("end sessions of user %d: %w", userID, err)
	}
	return nil
}

// EndUserSessions signs a person out everywhere for an admin and returns how
// many sessions that ended. ErrNotAdmin, ErrNotFound.
func (s *Store) EndUserSessions(ctx context.Context, userID int64, now time.Time) (int64, error) {
	var n int64
	err := s.changeUser(ctx, userID, func(ctx context.Context, tx Tx, u *User, _ bool) error {
		var err error
		if n, err = tx.DeleteUserSessions(ctx, userID, nil); err != nil {
			return err
		}
		return tx.Audit(ctx, now, Change{What: "user.end_sessions", Kind: "user", ID: u.Name, After: ended{n}})
	})
	return n, err
}

// DeleteDeadSessions removes up to a thousand sessions that ended before now.
// Idle ones go when their absolute end comes; LiveSession refuses them before.
func (q Queries) DeleteDeadSessions(ctx context.Context, now time.Time) (int64, error) {
	return affected(q.db.NewRaw(`DELETE FROM sessions WHERE token_hash IN
		(SELECT token_hash FROM sessions WHERE expires_at <= ? ORDER BY expires_at LIMIT 1000)`, now).Exec(ctx))
}
