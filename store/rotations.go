package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// RotationState is where a change of a secret stands.
type RotationState string

// The states of a rotation. SecretUnknown: an answer was lost, and the vendor
// may sign with a secret that nobody saw until the next call. Stored: the new
// secret is in use, and what came meanwhile is looked through.
const (
	RotationCalling       RotationState = "calling"
	RotationSecretUnknown RotationState = "secret_unknown"
	RotationStored        RotationState = "stored"
	RotationDone          RotationState = "done"
	RotationFailed        RotationState = "failed"
)

// Rotation is one change of a webhook's secret, with what it did so far.
type Rotation struct {
	bun.BaseModel `bun:"table:rotations,alias:ro"`
	ID            int64 `bun:",pk,autoincrement"`
	WebhookID     int64
	Emergency     bool // Every older secret ends at once.
	StartedBy     string
	State         RotationState
	WebhookWas    WebhookState // What the webhook goes back to.
	StartedAt     time.Time
	Attempt       int // Calls begun.
	CalledAt      *time.Time
	LeaseUntil    *time.Time // While a call is under way.
	Lost          int        // Calls whose answer nobody saw.
	StoredAt      *time.Time
	Version       *int       // Of the new secret.
	SameAs        *int       // The older version whose secret it is again; nil as a rule.
	OldUntil      *time.Time // The end of the version before.
	VerifiedAt    *time.Time // When what was quarantined was first looked through.
	LogReadAt     *time.Time // When the vendor's delivery log was.
	EndedAt       *time.Time
	Quarantined   int // Refused deliveries that were there when the new secret was stored.
	Recovered     int // Those taken up since it was.
	Refused       int // Refusals in the vendor's log since the start.
	Woken         int // Their jobs that were not settled.
	// RefusedSecretLost are deliveries that came while the vendor signed with a
	// secret nobody saw: nothing can verify them any more.
	RefusedSecretLost int
	Note              string
}

// Open reports whether it is still under way.
func (r *Rotation) Open() bool { return r.EndedAt == nil }

// Webhook is one subscription, removed ones too; ErrNotFound when there is none.
func (q Queries) Webhook(ctx context.Context, id int64) (*Webhook, error) {
	w := new(Webhook)
	if err := q.db.NewSelect().Model(w).Where("w.id = ?", id).Scan(ctx); err != nil {
		return nil, translate(err)
	}
	return w, nil
}

// LockWebhook reads a webhook and keeps others from changing it or its secrets
// until the transaction ends; ErrNotFound when there is none.
func (t Tx) LockWebhook(ctx context.Context, id int64) (*Webhook, error) {
	w := new(Webhook)
	err := t.db.NewSelect().Model(w).Where("w.id = ?", id).For("UPDATE").Scan(ctx)
	if err != nil {
		return nil, translate(err)
	}
	return w, nil
}

// OpenRotation is the rotation under way for a webhook; ErrNotFound when there
// is none.
func (q Queries) OpenRotation(ctx context.Context, webhookID int64) (*Rotation, error) {
	return q.rotation(ctx, "ro.webhook_id = ? AND ro.ended_at IS NULL", webhookID)
}

// LastRotation is the newest rotation of a webhook; ErrNotFound when there was
// none.
func (q Queries) LastRotation(ctx context.Context, webhookID int64) (*Rotation, error) {
	return q.rotation(ctx, "ro.webhook_id = ?", webhookID)
}

// Rotation is one rotation; ErrNotFound when there is none.
func (q Queries) Rotation(ctx context.Context, id int64) (*Rotation, error) {
	return q.rotation(ctx, "ro.id = ?", id)
}

func (q Queries) rotation(ctx context.Context, where string, arg int64) (*Rotation, error) {
	r := new(Rotation)
	err := q.db.NewSelect().Model(r).Where(where, arg).OrderExpr("ro.id DESC").Limit(1).Scan(ctx)
	if err != nil {
		return nil, translate(err)
	}
	return r, nil
}

// PageRotations lists a webhook's rotations, newest first.
func (q Queries) PageRotations(ctx context.Context, webhookID, limit int64) ([]Rotation, error) {
	var out []Rotation
	err := q.db.NewSelect().Model(&out).Where("ro.webhook_id = ?", webhookID).OrderExpr("ro.id DESC").Limit(limit).Scan(ctx)
	return out, translate(err)
}

// InsertRotation writes a rotation that begins and fills in its id. A webhook
// has one at a time: ErrTaken.
func (t Tx) InsertRotation(ctx context.Context, r *Rotation) error {
	_, err := t.db.NewInsert().Model(r).
		Column("webhook_id", "emergency", "started_by", "state", "webhook_was", "started_at").Returning("id").Exec(ctx)
	return translate(err)
}

// HurryRotation makes a rotation under way an emergency.
func (t Tx) HurryRotation(ctx context.Context, id int64) (int64, error) {
	return affected(t.db.NewRaw(`UPDATE rotations SET emergency = true WHERE id = ? AND ended_at IS NULL`, id).Exec(ctx))
}

// ClaimRotation begins a call, unless another holds the rotation until its
// lease ends; ErrNotFound then. A lease that ran out is a call whose answer
// nobody wrote down: it counts as lost.
func (q Queries) ClaimRotation(ctx context.Context, id int64, now, lease time.Time) (*Rotation, error) {
	r := new(Rotation)
	err := q.db.NewRaw(`UPDATE rotations SET attempt = attempt + 1, called_at = ?now, lease_until = ?lease,
			lost = lost + CASE WHEN lease_until IS NULL THEN 0 ELSE 1 END,
			state = CASE WHEN lease_until IS NULL THEN state ELSE 'secret_unknown' END
		WHERE id = ?id AND state IN ('calling', 'secret_unknown') AND (lease_until IS NULL OR lease_until <= ?now)
		RETURNING *`, named{"id": id, "now": now, "lease": lease}).Scan(ctx, r)
	if err != nil {
		return nil, translate(err)
	}
	return r, nil
}

// FreeRotation ends a call that brought no secret; lost says that the vendor
// may have made one all the same. It reports false when another call has begun
// since.
func (t Tx) FreeRotation(ctx context.Context, id int64, attempt int, lost bool, note string) (bool, error) {
	n, err := affected(t.db.NewRaw(`UPDATE rotations SET lease_until = NULL, note = ?note,
			lost = lost + CASE WHEN ?lost THEN 1 ELSE 0 END, state = CASE WHEN ?lost THEN 'secret_unknown' ELSE state END
		WHERE id = ?id AND attempt = ?attempt AND state IN ('calling', 'secret_unknown')`,
		named{"id": id, "attempt": attempt, "lost": lost, "note": CleanText(note)}).Exec(ctx))
	return n == 1, err
}

// StoreRotation notes the new version of the secret, and which older one it is
// the same as, 0 for none. It reports false when the rotation has gone on without
// this call.
func (t Tx) StoreRotation(ctx context.Context, id int64, attempt, version, sameAs int, now, oldUntil time.Time) (bool, error) {
	n, err := affected(t.db.NewRaw(`UPDATE rotations SET state = 'stored', lease_until = NULL, version = ?version, stored_at = ?now,
			same_as = nullif(?same, 0), old_until = ?until, note = ''
		WHERE id = ?id AND attempt = ?attempt AND state IN ('calling', 'secret_unknown')`,
		named{"id": id, "attempt": attempt, "version": version, "same": sameAs, "now": now, "until": oldUntil}).Exec(ctx))
	return n == 1, err
}

// NoteOlderEnded notes that the versions before have ended already.
func (t Tx) NoteOlderEnded(ctx context.Context, id int64, now time.Time) error {
	_, err := t.db.NewRaw(`UPDATE rotations SET old_until = ? WHERE id = ?`, now, id).Exec(ctx)
	return translate(err)
}

// RotationLooked notes that what was quarantined has been looked through for
// the first time, and how many stay refused beside those taken up so far.
func (t Tx) RotationLooked(ctx context.Context, id int64, refused int, now time.Time) error {
	_, err := t.db.NewRaw(`UPDATE rotations SET verified_at = ?, quarantined = recovered + ?
		WHERE id = ? AND state = 'stored' AND verified_at IS NULL`, now, refused, id).Exec(ctx)
	return translate(err)
}

// RotationRead notes that the vendor's delivery log has been read, or why not.
func (t Tx) RotationRead(ctx context.Context, id int64, refused, woken int, note string, now time.Time) error {
	_, err := t.db.NewRaw(`UPDATE rotations SET log_read_at = ?, refused = ?, woken = ?, note = ?
		WHERE id = ? AND state = 'stored' AND log_read_at IS NULL`, now, refused, woken, CleanText(note), id).Exec(ctx)
	return translate(err)
}

// EndRotation ends a rotation, done or failed, and reports whether it was this
// call that did. An empty note keeps what was noted before.
func (t Tx) EndRotation(ctx context.Context, id int64, to RotationState, note string, now time.Time) (bool, error) {
	n, err := affected(t.db.NewRaw(`UPDATE rotations SET state = ?, ended_at = ?,
			note = coalesce(nullif(?, ''), note), lease_until = NULL
		WHERE id = ? AND ended_at IS NULL`, to, now, CleanText(note), id).Exec(ctx))
	return n == 1, err
}

// CountSecretLost counts the kept deliveries that were signed with a secret
// nobody saw.
func (q Queries) CountSecretLost(ctx context.Context) (int64, error) {
	var n int64
	err := q.db.NewRaw(`SELECT count(*) FROM deliveries WHERE verdict IN ('refused', 'unreadable') AND secret_lost`).Scan(ctx, &n)
	return n, translate(err)
}

// SettleWebhook moves a webhook whose secret was being changed to what it is
// from now on; zero rows means that it was none of those any more.
func (t Tx) SettleWebhook(ctx context.Context, id int64, to WebhookState, now time.Time) (int64, error) {
	return affected(t.db.NewRaw(`UPDATE webhooks SET state = ?, state_at = ?
		WHERE id = ? AND state IN ('rotating', 'secret_unknown')`, to, now, id).Exec(ctx))
}

// EndSecrets ends every version of a webhook's secret before one, at once.
func (t Tx) EndSecrets(ctx context.Context, webhookID int64, before int, now time.Time) (int64, error) {
	return affected(t.db.NewRaw(`UPDATE webhook_secrets SET valid_until = ?now
		WHERE webhook_id = ?id AND version < ?before AND (valid_until IS NULL OR valid_until > ?now)`,
		named{"id": webhookID, "before": before, "now": now}).Exec(ctx))
}

// AddLateSecret stores a secret whose rotation has gone on without it: it may
// have signed something, so it stays good as long as an old one does.
func (t Tx) AddLateSecret(ctx context.Context, webhookID int64, version int, sealed []byte, now, until time.Time) error {
	_, err := t.tx.Tx.ExecContext(ctx, `INSERT INTO webhook_secrets (webhook_id, version, sealed, valid_from, valid_until)
		VALUES ($1, $2, $3, $4, $5)`, webhookID, version, sealed, now, until)
	return translate(err)
}

// MarkSecretLost marks refused deliveries that came while the vendor signed
// with a secret nobody saw, and notes on the rotation how many there are.
func (t Tx) MarkSecretLost(ctx context.Context, rotationID int64, from, until time.Time) (int64, error) {
	n, err := affected(t.db.NewRaw(`UPDATE deliveries d SET secret_lost = true FROM rotations r
		WHERE r.id = ? AND d.webhook_id = r.webhook_id AND d.verdict = 'refused' AND NOT d.secret_lost
		  AND d.reason = 'signature does not match' AND d.received_at BETWEEN ? AND ?`, rotationID, from, until).Exec(ctx))
	if err != nil || n == 0 {
		return n, err
	}
	_, err = t.db.NewRaw(`UPDATE rotations SET refused_secret_lost = refused_secret_lost + ? WHERE id = ?`, n, rotationID).Exec(ctx)
	return n, translate(err)
}
