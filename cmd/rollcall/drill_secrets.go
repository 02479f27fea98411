package main

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"rollcall/internal/sandbox"
)

// refusals splits the deliveries that were refused though nothing was wrong with them, and counts the secrets that were
// told to Rollcall and are not here.
type refusals struct {
	// Valid were signed with a secret that Rollcall has, or must have: it should have accepted them.
	Valid int
	// Killed were signed with a secret that was told to a process which was killed, or robbed of its database, before it
	// could store it. Rollcall asks for another then; a vendor that still signs with the lost one is refused, by right.
	Killed int
	// Lost are secrets that went so, and Missing those that nothing excuses.
	Lost, Missing int
	told          []string
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
	hooks, err := d.store.Webhooks(ctx)
	if err != nil {
		return refusals{}, fmt.Errorf("look at the webhooks: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return splitRefusals(made, held, d.timeline, len(hooks)), nil
}

// splitRefusals: a secret that was told may be lost only when something kept a server from storing it, and one that a
// webhook has in the end not even then, told or not. No webhook loses more than one by the same fault, as the call for
// the next is made much later.
func splitRefusals(made []sandbox.MadeSecret, held map[string]bool, timeline []happening, webhooks int) refusals {
	var r refusals
	used := map[int]int{}
	for _, m := range made {
		fault := losesSecret(timeline, m.Made, func(i int) bool { return used[i] < webhooks })
		switch {
		case held[m.Secret]:
			r.Valid += m.RefusedValid
		case m.Untold && !m.Present:
		case fault >= 0 && !m.Present:
			used[fault]++
			r.Lost++
			r.Killed += m.RefusedValid
		default:
			r.Missing++
			r.Valid += m.RefusedValid
			r.told = append(r.told, fmt.Sprintf("a secret made at %s is not here, and nothing excuses that: told %t, a webhook's present one %t",
				m.Made.Format("15:04:05.000"), !m.Untold, m.Present))
		}
	}
	return r
}

// losesSecret is the first fault that may excuse that a secret made then is lost, of those that still excuse one; or -1.
func losesSecret(timeline []happening, made time.Time, still func(i int) bool) int {
	for i, h := range timeline {
		if still(i) && h.losesSecret(made) {
			return i
		}
	}
	return -1
}

// losesSecret tells whether a fault may have kept a server from storing a secret that was made then: one that died, or
// whose database was away or its disk full, while the answer was on its way or was stored. The vendor doesn't know which
// server it told, so a fault of any counts. One that is told to end stores what it was told.
func (h happening) losesSecret(made time.Time) bool {
	switch h.Kind {
	case actKill, actStep, actRestart, actPGKill, actCut, actDisk:
		return !made.Before(h.From.Add(-callLength)) && !made.After(h.ended().Add(secretLate))
	}
	return false
}

// secretLate is how long after a fault a secret may still be lost to it: a call that the dead server made is answered
// all the same, and connections that broke are noticed late.
const secretLate = 2 * time.Second

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
