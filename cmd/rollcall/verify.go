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

// verifyCmd verifies the stored bytes of a delivery again.
type verifyCmd struct {
	ID   int64 `arg:"" help:"Number of the delivery, as in its page's address."`
	JSON bool  `name:"json" help:"Print a JSON object."`
}

// Run says which secret and form verify the delivery today, or why none does. It ends with 1 when none does, so that a
// script can tell; nothing is taken up by it.
func (c *verifyCmd) Run(ctx context.Context, a *app) error {
	if a.config.GeonodeScraperAPIKey == "" {
		a.config.GeonodeScraperAPIKey = "none" // Nothing is asked of the vendor.
	}
	return a.withPipeline(ctx, func(ctx context.Context, s *stack) error {
		v, err := s.pipeline.VerifyStored(ctx, c.ID)
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("there is no delivery %d", c.ID)
		}
		if err != nil {
			return fmt.Errorf("verify: %w", err)
		}
		if err := printVerification(a.out, v, c.JSON); err != nil {
			return err
		}
		if !v.Matches {
			return exitError(1)
		}
		return nil
	})
}

func printVerification(out io.Writer, v pipeline.Verification, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(v)
	}
	_, err := fmt.Fprintf(out, "delivery %d, received %s, %s, answered %d\n%s\n%s\n",
		v.DeliveryID, v.ReceivedAt.UTC().Format(time.DateTime), v.Verdict, v.Status, v.Diagnosis.Code.Title(), v.Diagnosis.Text)
	if err != nil || !v.Matches || v.Verdict != store.VerdictRefused {
		return err
	}
	_, err = fmt.Fprintln(out, "It is still refused: verify it again on its page to have it taken up.")
	return err
}
