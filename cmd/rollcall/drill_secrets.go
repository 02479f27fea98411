package main

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/hex"
	"fmt"
	"net/http"

	"rollcall/internal/sandbox"
)

// refusals splits the deliveries that were refused though nothing was wrong with them.
type refusals struct {
	// Valid were signed with a secret that Rollcall has: it should have accepted them.
	Valid int
	// Killed were signed with a secret that was told to a process which was killed before it could store it. Rollcall
	// asks for another then; a vendor that still signs with the lost one is refused, by right.
	Killed int
	told   []string
}

// refused asks the vendor which secrets signed what was refused, and holds them against those that Rollcall has.
func (d *drill) refused(ctx context.Context) (refusals, error) {
	made, err := d.madeSecrets(ctx)
	if err != nil {
		return refusals{}, err
	}
	held, err := d.heldSecrets(ctx)
	if err != nil {
		return refusals{}, err
	}
	var again int
	if err := d.store.SQL().QueryRowContext(ctx, "SELECT coalesce(sum(attempt - 1), 0) FROM rotations").Scan(&again); err != nil {
		return refusals{}, fmt.Errorf("look for rotations that were made again: %w", err)
	}
	return splitRefusals(made, held, again), nil
}

// splitRefusals: no more secrets can have been lost with a process than rotations were made again for that.
func splitRefusals(made []sandbox.MadeSecret, held map[string]bool, again int) refusals {
	var r refusals
	lost := 0
	for _, m := range made {
		switch {
		case m.RefusedValid == 0:
		case held[m.Secret]:
			r.Valid += m.RefusedValid
		default:
			r.Killed += m.RefusedValid
			lost++
		}
	}
	if lost > again {
		r.Valid, r.Killed = r.Valid+r.Killed, 0
		r.told = append(r.told, fmt.Sprintf("%d secrets that were told to Rollcall are not here, only %d rotations were made again", lost, again))
	}
	return r
}

func (d *drill) madeSecrets(ctx context.Context) ([]sandbox.MadeSecret, error) {
	var made []sandbox.MadeSecret
	err := d.admin(ctx, http.MethodGet, "/_sandbox/secrets", "", &made)
	return made, err
}

// heldSecrets are the secrets of webhooks that Rollcall has, opened as it does itself: AES-256-GCM with the nonce in
// front, and the row as associated data.
func (d *drill) heldSecrets(ctx context.Context) (map[string]bool, error) {
	key, err := hex.DecodeString(d.config.SecretKey)
	if err != nil {
		return nil, fmt.Errorf("secret key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("secret key: %w", err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("secret key: %w", err)
	}
	rows, err := d.store.SQL().QueryContext(ctx, "SELECT webhook_id, version, sealed FROM webhook_secrets")
	if err != nil {
		return nil, fmt.Errorf("look at the secrets: %w", err)
	}
	defer func() { _ = rows.Close() }() // Err tells what went wrong.
	held := map[string]bool{}
	for rows.Next() {
		var id, version int64
		var sealed []byte
		if err := rows.Scan(&id, &version, &sealed); err != nil {
			return nil, fmt.Errorf("look at the secrets: %w", err)
		}
		n := min(gcm.NonceSize(), len(sealed))
		plain, err := gcm.Open(nil, sealed[:n], sealed[n:], fmt.Appendf(nil, "webhook_secrets/%d/%d", id, version))
		if err != nil {
			return nil, fmt.Errorf("version %d of webhook %d: %w", version, id, err)
		}
		held[string(plain)] = true
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("look at the secrets: %w", err)
	}
	return held, nil
}
