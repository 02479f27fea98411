package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// Others counts the connections that other processes of Rollcall hold to the
// database. The store that asks must have one connection only.
func (t Tx) Others(ctx context.Context) (int64, error) {
	var n int64
	err := t.db.NewRaw(`SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'rollcall' AND pid <> pg_backend_pid()`).Scan(ctx, &n)
	return n, translate(err)
}

// LockSealed keeps everybody else from writing what is sealed until the
// transaction ends.
func (t Tx) LockSealed(ctx context.Context) error {
	_, err := t.db.NewRaw(`LOCK TABLE webhook_secrets, settings, batches, preflights IN EXCLUSIVE MODE`).Exec(ctx)
	return translate(err)
}

// EverySecret lists the sealed secrets of all webhooks, removed ones too.
func (t Tx) EverySecret(ctx context.Context) ([]WebhookSecret, error) {
	var out []WebhookSecret
	err := t.db.NewSelect().Model(&out).Order("webhook_id", "version").Scan(ctx)
	return out, translate(err)
}

// ResealSecret replaces what a secret version is sealed as.
func (t Tx) ResealSecret(ctx context.Context, s WebhookSecret) error {
	_, err := t.tx.Tx.ExecContext(ctx, `UPDATE webhook_secrets SET sealed = $3 WHERE webhook_id = $1 AND version = $2`,
		s.WebhookID, s.Version, s.Sealed)
	return translate(err)
}

// SealedHeaders are custom headers, sealed: of a batch, or of a preflight.
type SealedHeaders struct {
	ID            int64
	HeadersSealed []byte
}

// HeaderTables are the tables that hold custom headers.
func HeaderTables() []string { return []string{"batches", "preflights"} }

// EveryHeaders lists rows of one of the HeaderTables that have custom headers,
// by id after the one given.
func (t Tx) EveryHeaders(ctx context.Context, table string, after int64, limit int) ([]SealedHeaders, error) {
	var out []SealedHeaders
	err := t.db.NewRaw(`SELECT id, headers_sealed FROM ? WHERE headers_sealed IS NOT NULL AND id > ?
		ORDER BY id LIMIT ?`, bun.Ident(table), after, limit).Scan(ctx, &out)
	return out, translate(err)
}

// ResealHeaders replaces what a row's custom headers are sealed as.
func (t Tx) ResealHeaders(ctx context.Context, table string, h SealedHeaders) error {
	_, err := t.db.NewRaw(`UPDATE ? SET headers_sealed = ? WHERE id = ?`, bun.Ident(table), h.HeadersSealed, h.ID).Exec(ctx)
	return translate(err)
}

// ReplaceSetting changes a fact that is there.
func (t Tx) ReplaceSetting(ctx context.Context, key, value string, now time.Time) (int64, error) {
	return affected(t.db.NewRaw(`UPDATE settings SET value = ?, updated_at = ? WHERE key = ?`, value, now, key).Exec(ctx))
}
