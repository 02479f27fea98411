package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

// Bounds of the page of a webhook's secret.
const (
	rotationsShown = 10
	secretsShown   = 20
)

// rotation is GET /webhooks/{id}/rotation: the change of the secret under way,
// or the last one, and the versions.
func (s *Server) rotation(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	hook, err := s.store.Webhook(ctx, id)
	if err != nil {
		return err
	}
	rotations, err := s.store.PageRotations(ctx, id, rotationsShown)
	if err != nil {
		return fmt.Errorf("list rotations of webhook %d: %w", id, err)
	}
	secrets, counted, err := s.secretUses(ctx, []int64{id}, secretsShown)
	if err != nil {
		return err
	}
	props := views.RotationProps{
		WebhookID: idText(id), Event: hook.EventType, State: hookState(hook.State), CanRotate: rotatable(hook),
	}
	for i := range rotations {
		props.Earlier = append(props.Earlier, rotationProps(&rotations[i]))
	}
	if len(props.Earlier) > 0 {
		props.Rotation, props.Earlier = &props.Earlier[0], props.Earlier[1:]
	}
	for i := range secrets {
		props.Secrets = append(props.Secrets, secretRow(&secrets[i], counted, s.now()))
	}
	if props.Layout, err = s.layout(c, views.Textf(ctx, "Secret of %s", hook.EventType), views.SectionWebhooks); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.RotationPage(props))
}

// rotatable reports whether the vendor has a secret of the webhook to change.
func rotatable(hook *store.Webhook) bool {
	switch hook.State {
	case store.WebhookRegistering, store.WebhookGone, store.WebhookRemoved:
		return false
	case store.WebhookLive, store.WebhookPaused, store.WebhookInactive, store.WebhookMoved,
		store.WebhookRotating, store.WebhookSecretUnknown:
	}
	return hook.VendorWebhookID != nil
}

func rotationProps(r *store.Rotation) views.Rotation {
	known := func(when bool, n int) views.Count {
		if !when {
			return views.Count{} // Not looked at yet.
		}
		return views.Known(int64(n))
	}
	looked, read := r.VerifiedAt != nil, r.LogReadAt != nil
	return views.Rotation{
		State: string(r.State), By: r.StartedBy, Emergency: r.Emergency, StartedAt: r.StartedAt, CalledAt: orZero(r.CalledAt),
		Calls: r.Attempt, Lost: r.Lost, StoredAt: orZero(r.StoredAt), Version: orZero(r.Version), SameAs: orZero(r.SameAs), OldUntil: orZero(r.OldUntil),
		VerifiedAt: orZero(r.VerifiedAt), Quarantined: known(looked, r.Quarantined), Recovered: known(looked, r.Recovered),
		LogReadAt: orZero(r.LogReadAt), Refused: known(read, r.Refused), Woken: known(read, r.Woken),
		RefusedSecretLost: known(!r.Open(), r.RefusedSecretLost), EndedAt: orZero(r.EndedAt), Note: r.Note,
	}
}

// rotate is POST /webhooks/{id}/rotate. Pressing again joins the change under
// way.
func (s *Server) rotate(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	_, err = s.pipeline.Rotate(c.Request().Context(), id, field(c, "emergency", 1) != "")
	if errors.Is(err, pipeline.ErrNotRotatable) {
		return &problem{status: http.StatusConflict, title: "Nothing to rotate", text: "The vendor doesn't know this webhook, so there is no secret to change. Repair or register it first.", cause: err}
	}
	if err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, "/webhooks/"+idText(id)+"/rotation")
}

// rotationLive is GET /webhooks/{id}/rotation/live.
func (s *Server) rotationLive(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	if _, err := s.store.Webhook(c.Request().Context(), id); err != nil {
		return err
	}
	return s.follow(c, overviewTopic, func(ctx context.Context) (string, bool, error) {
		r, err := s.store.LastRotation(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			return "", true, nil
		}
		if err != nil {
			return "", false, err
		}
		return fmt.Sprint(r.ID, r.State, r.Attempt, r.Lost, r.Emergency, r.VerifiedAt != nil, r.LogReadAt != nil, !r.Open()), !r.Open(), nil
	})
}
