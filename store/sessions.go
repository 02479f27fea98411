package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

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

// seenEvery is how often at most a session's last use is written down.
const seenEvery = time.Minute

// AddSession inserts a session.
func (q Queries) AddSession(ctx context.Context, s *Session) error {
	_, err := q.db.NewInsert().Model(s).Exec(ctx)
	return translate(err)
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

// SeeSession notes that a session is in use, at most once a minute.
func (q Queries) SeeSession(ctx context.Context, hash []byte, at time.Time) (int64, error) {
	return affected(q.db.NewUpdate().Model((*Session)(nil)).Set("last_seen_at = ?", at).
		Where("token_hash = ?", hash).Where("last_seen_at < ?", at.Add(-seenEvery)).Exec(ctx))
}

// DeleteSession ends one session; zero rows means that it had ended.
func (q Queries) DeleteSession(ctx context.Context, hash []byte) (int64, error) {
	return affected(q.db.NewDelete().Model((*Session)(nil)).Where("token_hash = ?", hash).Exec(ctx))
}

// DeleteUserSessions ends every session of a person except the one with the
// given hash; nil ends them all.
func (q Queries) DeleteUserSessions(ctx context.Context, userID int64, except []byte) (int64, error) {
	if except == nil {
		except = []byte{}
	}
	return affected(q.db.NewDelete().Model((*Session)(nil)).Where("user_id = ?", userID).
		Where("token_hash <> ?", except).Exec(ctx))
}

// DeleteDeadSessions removes up to a thousand sessions that ended before now.
// Idle ones go when their absolute end comes; LiveSession refuses them before.
func (q Queries) DeleteDeadSessions(ctx context.Context, now time.Time) (int64, error) {
	return affected(q.db.NewRaw(`DELETE FROM sessions WHERE token_hash IN
		(SELECT token_hash FROM sessions WHERE expires_at <= ? ORDER BY expires_at LIMIT 1000)`, now).Exec(ctx))
}
