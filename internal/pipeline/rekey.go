package pipeline

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"rollcall/store"
)

// Rekeyed counts what was sealed with another key.
type Rekeyed struct {
	Secrets int `json:"secrets"` // Versions of webhook secrets.
	Headers int `json:"headers"` // Batches' custom headers.
}

// ErrServing reports that another process of Rollcall is connected: it would
// go on with the old key.
var ErrServing = errors.New("another Rollcall is connected to this database: stop every server first, or it goes on with the old key")

// headersGroup is how many batches' headers are sealed anew together.
const headersGroup = 500

// Rekey seals everything that is sealed in the database with another key, in
// one transaction: either all of it opens with the new key afterwards, or all
// of it with the old one as before. What the old key does not open is
// ErrSealed, and nothing is changed. The store must have one connection only.
func Rekey(ctx context.Context, s *store.Store, oldKey, newKey []byte, now time.Time) (Rekeyed, error) {
	var done Rekeyed
	before, err := newSealer(oldKey)
	if err != nil {
		return done, fmt.Errorf("old key: %w", err)
	}
	after, err := newSealer(newKey)
	if err != nil {
		return done, fmt.Errorf("new key: %w", err)
	}
	r := rekeying{before: before, after: after, now: now}
	err = s.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := holdSealed(ctx, tx); err != nil {
			return err
		}
		if err := r.check(ctx, tx); err != nil {
			return err
		}
		if done.Secrets, err = r.secrets(ctx, tx); err != nil {
			return err
		}
		if done.Headers, err = r.headers(ctx, tx); err != nil {
			return err
		}
		return tx.Audit(ctx, now, store.Change{What: "secrets.rekey", Kind: "secrets", After: done})
	})
	if err != nil {
		return Rekeyed{}, fmt.Errorf("seal with the new key: %w", err)
	}
	return done, nil
}

// holdSealed keeps everybody from sealing and opening until the transaction ends;
// a server that runs would go on with the key that it read at its start.
func holdSealed(ctx context.Context, tx store.Tx) error {
	if err := tx.LockSealed(ctx); err != nil {
		return err
	}
	n, err := tx.Others(ctx)
	if err == nil && n > 0 {
		err = ErrServing
	}
	return err
}

// rekeying takes sealed values from one key to another; without the one before,
// nothing is left of them.
type rekeying struct {
	before, after *sealer
	now           time.Time
}

func (r rekeying) reseal(place string, sealed []byte) ([]byte, error) {
	if r.before == nil {
		return r.after.seal(place, nil), nil
	}
	plain, err := r.before.open(place, sealed)
	if err != nil {
		return nil, err
	}
	return r.after.seal(place, plain), nil
}

// check moves the text by which a server knows whether its key is the
// database's. A database that no server ran on has none.
func (r rekeying) check(ctx context.Context, tx store.Tx) error {
	kept, err := tx.Setting(ctx, keyCheck)
	if err != nil || kept == "" {
		return err
	}
	raw, err := base64.StdEncoding.DecodeString(kept)
	if err != nil {
		return err
	}
	sealed, err := r.reseal(keyCheck, raw)
	if err != nil {
		return err
	}
	_, err = tx.ReplaceSetting(ctx, keyCheck, base64.StdEncoding.EncodeToString(sealed), r.now)
	return err
}

func (r rekeying) secrets(ctx context.Context, tx store.Tx) (int, error) {
	rows, err := tx.EverySecret(ctx)
	if err != nil {
		return 0, err
	}
	for _, row := range rows {
		if row.Sealed, err = r.reseal(secretPlace(row.WebhookID, row.Version), row.Sealed); err != nil {
			return 0, err
		}
		if err := tx.ResealSecret(ctx, row); err != nil {
			return 0, err
		}
	}
	return len(rows), nil
}

func (r rekeying) headers(ctx context.Context, tx store.Tx) (int, error) {
	n := 0
	for _, table := range store.HeaderTables() {
		done, err := r.headersOf(ctx, tx, table)
		if n += done; err != nil {
			return n, fmt.Errorf("headers in %s: %w", table, err)
		}
	}
	return n, nil
}

func (r rekeying) headersOf(ctx context.Context, tx store.Tx, table string) (int, error) {
	n, after := 0, int64(0)
	for {
		rows, err := tx.EveryHeaders(ctx, table, after, headersGroup)
		if err != nil || len(rows) == 0 {
			return n, err
		}
		for _, row := range rows {
			if row.HeadersSealed, err = r.reseal(headersPlace, row.HeadersSealed); err != nil {
				return n, fmt.Errorf("id %d: %w", row.ID, err)
			}
			if err := tx.ResealHeaders(ctx, table, row); err != nil {
				return n, err
			}
			n, after = n+1, row.ID
		}
	}
}
