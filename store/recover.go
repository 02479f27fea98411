package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// Refused lists refused deliveries of a webhook that were not taken up since,
// whole and by id, from after on.
func (q Queries) Refused(ctx context.Context, webhookID, after, limit int64) ([]Delivery, error) {
	var out []Delivery
	err := q.db.NewSelect().Model(&out).Where("d.webhook_id = ?", webhookID).
		// Said in the words of the quarantine's index as well.
		Where("d.verdict IN ('refused', 'unreadable')").Where("d.verdict = 'refused'").
		Where("d.recovered_at IS NULL").Where("d.id > ?", after).OrderExpr("d.id").Limit(limit).Scan(ctx)
	return out, translate(err)
}

// RefusedByID is the refused deliveries among the ids, and those that could not
// be read: the settings may name their fields by now. Those that were taken up
// since or are none are left out.
func (q Queries) RefusedByID(ctx context.Context, ids []int64) ([]Delivery, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var out []Delivery
	err := q.db.NewSelect().Model(&out).Where("d.id IN (?)", bun.List(ids)).
		Where("d.verdict IN ('refused', 'unreadable')").Where("d.recovered_at IS NULL").OrderExpr("d.id").Scan(ctx)
	return out, translate(err)
}

// Recover takes up deliveries that were refused and whose signature is known
// to be good by now, as Arrive does for those that come: it writes the
// processed events and returns the known jobs, to be woken in the same
// transaction, and how many of the deliveries it took up. One that somebody
// else took up meanwhile is left alone. The group is ordered by vendor job id
// by the caller, as for Arrive.
func (t Tx) Recover(ctx context.Context, group []*Arrival, now time.Time) ([]int64, int, error) {
	mine, err := t.stillRefused(ctx, group)
	if err != nil || len(mine) == 0 {
		return nil, 0, err
	}
	jobs, err := t.decide(ctx, mine)
	if err != nil {
		return nil, 0, err
	}
	for _, a := range mine {
		a.RecoveredAt = &now
		if err := t.noteRecovered(ctx, &a.Delivery); err != nil {
			return nil, 0, err
		}
	}
	return jobs, len(mine), nil
}

// CountRecovered counts deliveries that this transaction took up on the
// rotation that made their webhook's secret known, if that goes on. It comes
// last: the jobs are locked before the rotation, as elsewhere.
func (t Tx) CountRecovered(ctx context.Context, group []*Arrival) error {
	var hooks []int64
	for _, a := range group {
		if a.RecoveredAt != nil && a.WebhookID != nil {
			hooks = append(hooks, *a.WebhookID)
		}
	}
	if len(hooks) == 0 {
		return nil
	}
	_, err := t.tx.Tx.ExecContext(ctx, `UPDATE rotations r SET recovered = r.recovered + c.n
		FROM (SELECT id, count(*) AS n FROM unnest($1::bigint[]) AS id GROUP BY id) c
		WHERE r.webhook_id = c.id AND r.state = 'stored' AND r.ended_at IS NULL`, hooks)
	return translate(err)
}

func (t Tx) stillRefused(ctx context.Context, group []*Arrival) ([]*Arrival, error) {
	ids := make([]int64, len(group))
	for i, a := range group {
		ids[i] = a.ID
	}
	locked, err := t.lock(ctx, `SELECT id FROM deliveries WHERE id IN (?ids) AND verdict IN ('refused', 'unreadable') AND recovered_at IS NULL
		ORDER BY id FOR NO KEY UPDATE`, named{"ids": bun.List(ids)})
	if err != nil {
		return nil, err
	}
	still := map[int64]bool{}
	for _, id := range locked {
		still[id] = true
	}
	var mine []*Arrival
	for _, a := range group {
		if still[a.ID] {
			mine = append(mine, a)
		}
	}
	return mine, nil
}

func (t Tx) noteRecovered(ctx context.Context, d *Delivery) error {
	_, err := t.db.NewRaw(`UPDATE deliveries SET verdict = ?, recovered_at = ?, secret_version = ?, signature_form = ?,
			event_type = ?, vendor_job_id = ?, vendor_delivery_id = ?, secret_lost = false,
			body = CASE WHEN octet_length(body) > ? THEN substring(body FOR ?) ELSE body END
		WHERE id = ?`, d.Verdict, d.RecoveredAt, d.SecretVersion, d.SignatureForm, CleanText(d.EventType),
		CleanText(d.VendorJobID), CleanText(d.VendorDeliveryID), len(d.Body), len(d.Body), d.ID).Exec(ctx)
	return translate(err)
}

// NoteUnreadable keeps a refused delivery whose signature is good, and whose
// job or event can't be read.
func (t Tx) NoteUnreadable(ctx context.Context, d *Delivery) (int64, error) {
	return affected(t.db.NewRaw(`UPDATE deliveries SET verdict = 'unreadable', reason = ?, secret_version = ?, signature_form = ?
		WHERE id = ? AND verdict IN ('refused', 'unreadable') AND recovered_at IS NULL`,
		CleanText(d.Reason), d.SecretVersion, d.SignatureForm, d.ID).Exec(ctx))
}
