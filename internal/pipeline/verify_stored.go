package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rollcall/store"
)

// Verification is what the stored bytes of a delivery are worth today.
type Verification struct {
	DeliveryID int64         `json:"delivery_id"`
	WebhookID  int64         `json:"webhook_id,omitempty"`
	ReceivedAt time.Time     `json:"received_at"`
	Verdict    store.Verdict `json:"verdict"`
	Status     int           `json:"status"`
	// Matches: a secret that is good today verifies it, in a form that is taken.
	Matches bool   `json:"matches"`
	Version int    `json:"secret_version,omitempty"`
	Form    string `json:"signature_form,omitempty"`
	// Diagnosis is what was found, in the same words as on the pages.
	Diagnosis Diagnosis `json:"diagnosis"`
}

// VerifyStored verifies the stored bytes of a delivery with every secret that
// is known, today's and retired ones. It changes nothing but the reason that
// is kept with a refused delivery; store.ErrNotFound when there is none.
func (p *Pipeline) VerifyStored(ctx context.Context, deliveryID int64) (Verification, error) {
	d, err := p.store.WholeDelivery(ctx, deliveryID)
	if err != nil {
		return Verification{}, fmt.Errorf("delivery %d: %w", deliveryID, err)
	}
	v := Verification{DeliveryID: d.ID, ReceivedAt: d.ReceivedAt, Verdict: d.Verdict, Status: d.Status}
	if d.WebhookID != nil {
		v.WebhookID = *d.WebhookID
	}
	if v.Diagnosis, err = p.reasonOf(ctx, d); err != nil {
		return v, err
	}
	if v.Diagnosis.Code == DiagnosedMatches {
		if err := p.verifiedBy(ctx, d, &v); err != nil {
			return v, err
		}
	}
	if d.Verdict != store.VerdictRefused {
		return v, nil
	}
	_, err = p.store.Diagnose(ctx, []int64{d.ID}, v.Diagnosis.String(), p.now())
	return v, err
}

// verifiedBy fills in what verifies a delivery today.
func (p *Pipeline) verifiedBy(ctx context.Context, d *store.Delivery, v *Verification) error {
	e, err := p.endpointOf(ctx, d, map[int64]*endpoint{})
	if err != nil {
		return err
	}
	if e == nil {
		return errors.New("the webhook is gone")
	}
	in := Incoming{Header: keptHeader(d.Headers), Body: d.Body}
	version, f, ok := e.verify(p.signed(in), p.cfg.Signature, p.now())
	v.Matches, v.Version = ok, version
	if ok {
		v.Form = f.String()
	}
	return nil
}
