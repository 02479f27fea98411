package store

import (
	"context"
	"time"
)

// InsertWebhook writes a subscription that is about to be registered, before
// the vendor is called, and fills in its ID.
func (q Queries) InsertWebhook(ctx context.Context, w *Webhook) error {
	_, err := q.db.NewInsert().Model(w).
		Column("endpoint", "event_type", "url", "description", "state", "vendor_webhook_id", "created_at", "state_at", "adopted").
		Returning("id").Exec(ctx)
	return translate(err)
}

// SetWebhookVendorID records the vendor's id of a subscription.
func (q Queries) SetWebhookVendorID(ctx context.Context, id int64, vendorID string) error {
	_, err := q.db.NewRaw(`UPDATE webhooks SET vendor_webhook_id = ? WHERE id = ?`, vendorID, id).Exec(ctx)
	return translate(err)
}

// BeginAgain prepares a webhook that the vendor lost, or that was removed, for
// being registered or adopted anew under an address and, when adopted, the
// vendor's new id. It reports false when the webhook was not in that state.
func (q Queries) BeginAgain(ctx context.Context, w *Webhook, from WebhookState, now time.Time) (bool, error) {
	n, err := affected(q.db.NewRaw(`UPDATE webhooks SET state = 'registering', state_at = ?now, checked_at = ?now, url = ?url,
		event_type = ?event, description = ?description, vendor_webhook_id = ?vendor, adopted = ?adopted
		WHERE id = ?id AND state = ?from`, named{
		"now": now, "url": w.URL, "event": w.EventType, "description": w.Description, "vendor": w.VendorWebhookID, "adopted": w.Adopted,
		"id": w.ID, "from": from,
	}).Exec(ctx))
	return n == 1, err
}

// WebhookByURL finds a subscription of ours by its whole address, removed ones
// too.
func (q Queries) WebhookByURL(ctx context.Context, url string) (*Webhook, error) {
	w := &Webhook{}
	err := q.db.NewSelect().Model(w).Where("url = ?", CleanText(url)).Order("id DESC").Limit(1).Scan(ctx)
	return w, translate(err)
}

// ForgetVendorID takes a vendor's id from a webhook that was removed, so that
// another can have it.
func (q Queries) ForgetVendorID(ctx context.Context, vendorID string) error {
	_, err := q.db.NewRaw(`UPDATE webhooks SET vendor_webhook_id = NULL WHERE vendor_webhook_id = ? AND state = 'removed'`, vendorID).Exec(ctx)
	return translate(err)
}

// SetWebhookURL records the address that a webhook has at the vendor.
func (q Queries) SetWebhookURL(ctx context.Context, id int64, url string) error {
	_, err := q.db.NewRaw(`UPDATE webhooks SET url = ? WHERE id = ?`, url, id).Exec(ctx)
	return translate(err)
}

// SetWebhookDescription records the description that a webhook has at the
// vendor.
func (q Queries) SetWebhookDescription(ctx context.Context, id int64, description string) error {
	_, err := q.db.NewRaw(`UPDATE webhooks SET description = ? WHERE id = ?`, CleanText(description), id).Exec(ctx)
	return translate(err)
}

// SetForm fixes the signature form of a webhook at a person's word; "" leaves
// it to the next verified delivery. It returns the form before.
func (t Tx) SetForm(ctx context.Context, webhookID int64, form string) (string, error) {
	w, err := t.LockWebhook(ctx, webhookID)
	if err != nil {
		return "", err
	}
	_, err = t.db.NewRaw(`UPDATE webhooks SET signature_form = ? WHERE id = ?`, form, webhookID).Exec(ctx)
	return w.SignatureForm, translate(err)
}

// EndAllSecrets ends all versions of a webhook's secret that have not ended.
func (q Queries) EndAllSecrets(ctx context.Context, webhookID int64, now time.Time) error {
	_, err := q.db.NewRaw(`UPDATE webhook_secrets SET valid_until = greatest(?::timestamptz, valid_from)
		WHERE webhook_id = ? AND (valid_until IS NULL OR valid_until > ?)`, now, webhookID, now).Exec(ctx)
	return translate(err)
}

// MoveWebhook moves a webhook from one state to another, or to the same, and
// notes that it was looked at. It reports false when the webhook was not in the
// first state any more.
func (q Queries) MoveWebhook(ctx context.Context, id int64, from, to WebhookState, now time.Time) (bool, error) {
	n, err := affected(q.db.NewRaw(`UPDATE webhooks SET checked_at = ?now,
		state_at = CASE WHEN state = ?to THEN state_at ELSE ?now END, state = ?to WHERE id = ?id AND state = ?from`,
		named{"now": now, "from": from, "to": to, "id": id}).Exec(ctx))
	return n == 1, err
}

// AddSecret stores a webhook's next secret version. The version it follows
// ends at oldUntil; versions that have an end keep it. The webhook's row is
// locked, so quarantining (FOR SHARE) happens wholly before or wholly after.
func (t Tx) AddSecret(ctx context.Context, webhookID int64, version int, sealed []byte, now, oldUntil time.Time) error {
	var id int64
	if err := t.db.NewRaw(`SELECT id FROM webhooks WHERE id = ? FOR UPDATE`, webhookID).Scan(ctx, &id); err != nil {
		return translate(err)
	}
	if _, err := t.db.NewRaw(`UPDATE webhook_secrets SET valid_until = ?
		WHERE webhook_id = ? AND valid_until IS NULL`, oldUntil, webhookID).Exec(ctx); err != nil {
		return translate(err)
	}
	_, err := t.tx.Tx.ExecContext(ctx, `INSERT INTO webhook_secrets (webhook_id, version, sealed, valid_from)
		VALUES ($1, $2, $3, $4)`, webhookID, version, sealed, now)
	return translate(err)
}

// NextSecretVersion is the version number a webhook's next secret gets.
func (q Queries) NextSecretVersion(ctx context.Context, webhookID int64) (int, error) {
	return q.count(ctx, `SELECT coalesce(max(version), 0) + 1 FROM webhook_secrets WHERE webhook_id = ?`, webhookID)
}

// Webhooks lists our subscriptions, removed ones left out.
func (q Queries) Webhooks(ctx context.Context) ([]*Webhook, error) {
	var out []*Webhook
	err := q.db.NewSelect().Model(&out).Where("state <> 'removed'").Order("id").Scan(ctx)
	return out, translate(err)
}

// WebhookByEndpoint finds a subscription by the last segment of its address.
func (q Queries) WebhookByEndpoint(ctx context.Context, endpoint string) (*Webhook, error) {
	w := &Webhook{}
	err := q.db.NewSelect().Model(w).Where("endpoint = ?", CleanText(endpoint)).
		Where("state <> 'removed'").Scan(ctx)
	return w, translate(err)
}

// Secrets lists a webhook's secret versions that are valid at the time, newest
// first.
func (q Queries) Secrets(ctx context.Context, webhookID int64, at time.Time) ([]WebhookSecret, error) {
	var out []WebhookSecret
	err := q.db.NewSelect().Model(&out).Where("webhook_id = ?", webhookID).
		Where("valid_until IS NULL OR valid_until > ?", at).Order("version DESC").Scan(ctx)
	return out, translate(err)
}

// PinForm fixes the signature form of a webhook that had none.
func (q Queries) PinForm(ctx context.Context, webhookID int64, form string) error {
	_, err := q.db.NewRaw(`UPDATE webhooks SET signature_form = ? WHERE id = ? AND signature_form = ''`,
		form, webhookID).Exec(ctx)
	return translate(err)
}

// TouchWebhook notes a webhook's last verified delivery, at most once a second
// so that a busy one is not all updates.
func (q Queries) TouchWebhook(ctx context.Context, webhookID int64, at time.Time) error {
	_, err := q.db.NewRaw(`UPDATE webhooks SET last_delivery_at = ?at
		WHERE id = ?id AND (last_delivery_at IS NULL OR last_delivery_at < ?before)`,
		named{"at": at, "id": webhookID, "before": at.Add(-time.Second)}).Exec(ctx)
	return translate(err)
}
