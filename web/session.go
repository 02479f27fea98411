package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gorilla/sessions"

	"rollcall/store"
)

// What a session holds. All values are strings, kept as JSON.
const (
	keyToken      = "csrf"
	keyFlash      = "flash"
	keyFlashLevel = "flash_level"
)

// sessionStore keeps gorilla's sessions in Postgres. The cookie holds a random
// token; the table its SHA-256. Only a signed-in session is ever saved, so
// passers-by leave no rows.
type sessionStore struct {
	store   *store.Store
	now     func() time.Time
	cookie  string
	options sessions.Options
	idle    time.Duration
	max     time.Duration
}

// visitKey is where a session keeps its visit; as no text, it isn't saved.
type visitKey struct{}

// visit is the row behind a session, for those who need to know whose it is.
type visit struct {
	hash   []byte
	userID int64
}

func newSessionStore(cfg Config, st *store.Store, now func() time.Time) *sessionStore {
	name := "rollcall"
	if cfg.SecureCookies {
		// Browsers take this name only from https, for the whole host.
		name = "__Host-rollcall"
	}
	return &sessionStore{
		store: st, now: now, cookie: name, idle: cfg.SessionIdle, max: cfg.SessionMax,
		options: sessions.Options{
			Path: "/", HttpOnly: true, Secure: cfg.SecureCookies,
			SameSite: http.SameSiteLaxMode, MaxAge: int(cfg.SessionMax / time.Second),
		},
	}
}

// Get implements sessions.Store: one load a request.
func (s *sessionStore) Get(r *http.Request, name string) (*sessions.Session, error) {
	return sessions.GetRegistry(r).Get(s, name)
}

// New implements sessions.Store. A cookie without a living session gives a new
// session and no error; only the database's trouble is one.
func (s *sessionStore) New(r *http.Request, name string) (*sessions.Session, error) {
	session := sessions.NewSession(s, name)
	options := s.options
	session.Options, session.IsNew = &options, true
	cookie, err := r.Cookie(name)
	if err != nil || len(cookie.Value) != tokenLength {
		return session, nil //nolint:nilerr // No cookie is no error.
	}
	hash, now := tokenHash(cookie.Value), s.now()
	row, err := s.store.LiveSession(r.Context(), hash, now, now.Add(-s.idle))
	if errors.Is(err, store.ErrNotFound) {
		return session, nil
	}
	if err != nil {
		return session, fmt.Errorf("load session: %w", err)
	}
	if err := decodeValues(row.Data, session.Values); err != nil {
		return session, err
	}
	if row.UserID == nil {
		return session, nil
	}
	session.ID, session.IsNew = cookie.Value, false
	session.Values[visitKey{}] = visit{hash: hash, userID: *row.UserID}
	if _, err := s.store.SeeSession(r.Context(), hash, now); err != nil {
		return session, fmt.Errorf("see session: %w", err)
	}
	return session, nil
}

// Save implements sessions.Store. One with a negative MaxAge is ended; a
// session without an id is none yet.
func (s *sessionStore) Save(r *http.Request, w http.ResponseWriter, session *sessions.Session) error {
	if session.Options.MaxAge < 0 {
		if session.ID != "" {
			if _, err := s.store.DeleteSession(r.Context(), tokenHash(session.ID)); err != nil {
				return fmt.Errorf("end session: %w", err)
			}
		}
		http.SetCookie(w, sessions.NewCookie(session.Name(), "", session.Options))
		return nil
	}
	data, err := encodeValues(session.Values)
	if err != nil {
		return err
	}
	if session.ID == "" {
		return errors.New("a session begins with a sign-in, see begin")
	}
	if _, err := s.store.SetSessionData(r.Context(), tokenHash(session.ID), data); err != nil {
		return fmt.Errorf("save session: %w", err)
	}
	return nil
}

// begin gives a person who has just shown that they may sign in a fresh
// session, with a token and a row of its own; the one they came with ends.
// store.ErrStale: they may not any more.
func (s *sessionStore) begin(r *http.Request, w http.ResponseWriter, session *sessions.Session, user *store.User) error {
	var old []byte
	if session.ID != "" {
		old = tokenHash(session.ID)
	}
	session.Values = map[any]any{keyToken: newToken()}
	data, err := encodeValues(session.Values)
	if err != nil {
		return err
	}
	token, now := newToken(), s.now()
	row := &store.Session{
		TokenHash: tokenHash(token), UserID: &user.ID, Data: data, CreatedAt: now, LastSeenAt: now, ExpiresAt: now.Add(s.max),
		Source: clean(store.ActorOf(r.Context()).Source, 100), UserAgent: clean(r.UserAgent(), 300),
	}
	if err := s.store.BeginSession(r.Context(), row, user.PasswordHash, old); err != nil {
		return err
	}
	session.ID = token
	session.Values[visitKey{}] = visit{hash: row.TokenHash, userID: user.ID}
	http.SetCookie(w, sessions.NewCookie(session.Name(), token, session.Options))
	return nil
}

// living tells which of the sessions, by the hash of their tokens, still stand,
// and what their people may do, without counting as their use.
func (s *sessionStore) living(ctx context.Context, hashes [][]byte) (map[string]store.Role, error) {
	now := s.now()
	living, err := s.store.LivingSessions(ctx, hashes, now, now.Add(-s.idle))
	if err != nil {
		return nil, err
	}
	roles := make(map[string]store.Role, len(living))
	for _, each := range living {
		roles[string(each.TokenHash)] = each.Role
	}
	return roles, nil
}

// tokenLength is 32 random bytes in unpadded base64.
const tokenLength = 43

func newToken() string {
	var b [32]byte
	_, _ = rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func tokenHash(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

func encodeValues(values map[any]any) ([]byte, error) {
	plain := make(map[string]string, len(values))
	for key, value := range values {
		name, okName := key.(string)
		text, okText := value.(string)
		if okName && okText {
			plain[name] = text
		}
	}
	data, err := json.Marshal(plain)
	if err != nil {
		return nil, fmt.Errorf("write session: %w", err)
	}
	return data, nil
}

func decodeValues(data []byte, into map[any]any) error {
	var plain map[string]string
	if err := json.Unmarshal(data, &plain); err != nil {
		return fmt.Errorf("read session: %w", err)
	}
	for key, value := range plain {
		into[key] = value
	}
	return nil
}

// clean makes text fit for a Postgres column: valid UTF-8, no NUL, at most so
// many bytes.
func clean(text string, limit int) string {
	if len(text) > limit {
		text = text[:limit]
	}
	return store.CleanText(text)
}
