package web

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"rollcall/views"
)

// The cost of argon2id: 19 MiB and two passes, about 30 ms, as OWASP advises
// where memory is scarce.
const (
	argonMemory  = 19 << 10
	argonTime    = 2
	argonThreads = 1
	argonKey     = 32
	argonSalt    = 16
)

// hashesAtOnce bounds the memory and the cores that sign-ins may take.
const hashesAtOnce = 2

// The bounds of a password. The upper one keeps hashing cheap to refuse.
const (
	minPasswordRunes = 10
	maxPasswordBytes = 200
)

// errWrongPassword reports a password that isn't the one of the hash.
var errWrongPassword = errors.New("wrong password")

// CheckPassword says in one sentence why a new password is not taken, or "".
func CheckPassword(ctx context.Context, password string) string {
	switch {
	case utf8.RuneCountInString(password) < minPasswordRunes:
		return views.Textf(ctx, "A password has at least %d characters.", minPasswordRunes)
	case len(password) > maxPasswordBytes:
		return views.Textf(ctx, "A password has at most %d bytes.", maxPasswordBytes)
	}
	return ""
}

// HashPassword makes the text that is kept of a password (argon2id, in the PHC
// string format).
func HashPassword(password string) string {
	salt := make([]byte, argonSalt)
	_, _ = rand.Read(salt)
	key := argon2.IDKey([]byte(password), salt, argonTime, argonMemory, argonThreads, argonKey)
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonThreads,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(key))
}

// hasher hashes passwords, at most two at a time.
type hasher struct {
	slots chan struct{}
	// dummy is checked where there is no user, so that a missing name takes as
	// long as a wrong password.
	dummy string
	// derive is argon2.IDKey; tests count what it is asked.
	derive func(password, salt []byte, time, memory uint32, threads uint8, length uint32) []byte
}

func newHasher() (*hasher, error) {
	h := &hasher{slots: make(chan struct{}, hashesAtOnce), dummy: HashPassword(newToken()), derive: argon2.IDKey}
	if _, err := parseHash(h.dummy); err != nil {
		return nil, err
	}
	return h, nil
}

// hash waits for a slot, or for the context to end.
func (h *hasher) hash(ctx context.Context, password string) (string, error) {
	if err := h.take(ctx); err != nil {
		return "", err
	}
	defer h.free()
	return HashPassword(password), nil
}

// check returns nil, errWrongPassword, or what kept it from finding out.
func (h *hasher) check(ctx context.Context, encoded, password string) error {
	want, err := parseHash(encoded)
	if err != nil {
		return err
	}
	if len(password) > maxPasswordBytes {
		password = password[:maxPasswordBytes+1]
	}
	if err := h.take(ctx); err != nil {
		return err
	}
	defer h.free()
	got := h.derive([]byte(password), want.salt, want.time, want.memory, want.threads, uint32(len(want.key))) //nolint:gosec // parseHash bounds the length.
	if subtle.ConstantTimeCompare(got, want.key) != 1 {
		return errWrongPassword
	}
	return nil
}

func (h *hasher) take(ctx context.Context) error {
	select {
	case h.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait to hash a password: %w", ctx.Err())
	}
}

func (h *hasher) free() { <-h.slots }

type parsedHash struct {
	memory, time uint32
	threads      uint8
	salt, key    []byte
}

// parseHash reads the PHC string format and bounds what it may ask for.
func parseHash(encoded string) (parsedHash, error) {
	var p parsedHash
	parts := strings.Split(encoded, "$")
	if len(parts) != 6 || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return p, errors.New("password hash: unknown form")
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.memory, &p.time, &p.threads); err != nil {
		return p, fmt.Errorf("password hash: parameters: %w", err)
	}
	var errSalt, errKey error
	p.salt, errSalt = base64.RawStdEncoding.DecodeString(parts[4])
	p.key, errKey = base64.RawStdEncoding.DecodeString(parts[5])
	if err := errors.Join(errSalt, errKey); err != nil {
		return p, fmt.Errorf("password hash: %w", err)
	}
	if p.memory > 1<<20 || p.time > 16 || p.time == 0 || p.threads == 0 || len(p.key) < 16 || len(p.key) > 64 {
		return p, errors.New("password hash: parameters out of bounds")
	}
	return p, nil
}
