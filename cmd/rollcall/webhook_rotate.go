package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

type webhookRotateCmd struct {
	ID        int64 `arg:"" help:"The webhook's number here, as webhook list shows it."`
	Emergency bool  `help:"End every older secret at once: for one that leaked."`
	JSON      bool  `name:"json" help:"Print one JSON object when it has ended."`
}

// Run changes a webhook's secret, or joins the change under way, and waits for
// its end. It works with or without a running server.
func (c *webhookRotateCmd) Run(ctx context.Context, a *app) error {
	if err := errors.Join(a.check(), a.config.requireVendor()); err != nil {
		return err
	}
	return a.withPipeline(ctx, func(ctx context.Context, s *stack) error {
		begun, err := s.pipeline.Rotate(ctx, c.ID, c.Emergency)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return fmt.Errorf("there is no webhook %d: rollcall webhook list shows their numbers", c.ID)
		case errors.Is(err, pipeline.ErrNotRotatable):
			return pipeline.ErrNotRotatable
		case err != nil:
			return err
		}
		ended, err := s.pipeline.FollowRotation(ctx, begun.ID)
		if err != nil {
			return err
		}
		return c.tell(a.out, ended)
	})
}

// endedRotation is a rotation as the command tells of it.
type endedRotation struct {
	ID                int64               `json:"id"`
	WebhookID         int64               `json:"webhook_id"`
	State             store.RotationState `json:"state"`
	Emergency         bool                `json:"emergency"`
	Version           *int                `json:"version"`
	SameAs            *int                `json:"same_as"`
	OldUntil          *time.Time          `json:"old_until"`
	Calls             int                 `json:"calls"`
	LostAnswers       int                 `json:"lost_answers"`
	Quarantined       int                 `json:"quarantined"`
	Recovered         int                 `json:"recovered"`
	Refused           int                 `json:"refused"`
	Woken             int                 `json:"woken"`
	RefusedSecretLost int                 `json:"refused_secret_lost"`
	Seconds           float64             `json:"seconds"`
	Note              string              `json:"note"`
}

func (c *webhookRotateCmd) tell(out io.Writer, r *store.Rotation) error {
	var err error
	if c.JSON {
		err = json.NewEncoder(out).Encode(endedRotation{
			ID: r.ID, WebhookID: r.WebhookID, State: r.State, Emergency: r.Emergency, Version: r.Version, SameAs: r.SameAs, OldUntil: r.OldUntil,
			Calls: r.Attempt, LostAnswers: r.Lost, Quarantined: r.Quarantined, Recovered: r.Recovered, Refused: r.Refused,
			Woken: r.Woken, RefusedSecretLost: r.RefusedSecretLost, Seconds: r.EndedAt.Sub(r.StartedAt).Seconds(), Note: r.Note,
		})
	} else {
		err = c.print(out, r)
	}
	if err == nil && r.State == store.RotationFailed {
		return exitError(1)
	}
	return err
}

func (c *webhookRotateCmd) print(out io.Writer, r *store.Rotation) error {
	if r.State == store.RotationFailed {
		_, err := fmt.Fprintf(out, "not rotated: %s; the old secret is still in use\n", r.Note)
		return err
	}
	lines := fmt.Sprintf("rotated: version %d is in use since %s\n", *r.Version, r.StoredAt.UTC().Format(time.RFC3339))
	switch {
	case r.SameAs != nil:
		lines += fmt.Sprintf("the vendor made no new secret: it is that of version %d again, and whoever knows that one can still sign\n", *r.SameAs)
	case r.Emergency:
		lines += "every older secret has ended\n"
	case r.OldUntil != nil:
		lines += fmt.Sprintf("late retries signed with the one before are taken up until %s\n", r.OldUntil.UTC().Format(time.RFC3339))
	}
	lines += fmt.Sprintf("quarantine: %d looked at, %d taken up; the vendor's log: %d refused, %d jobs asked for\n",
		r.Quarantined, r.Recovered, r.Refused, r.Woken)
	if r.Lost > 0 {
		lines += fmt.Sprintf("%d answers were lost; %d deliveries were signed with a secret nobody saw\n", r.Lost, r.RefusedSecretLost)
	}
	if r.Note != "" {
		lines += r.Note + "\n"
	}
	_, err := io.WriteString(out, lines)
	return err
}
