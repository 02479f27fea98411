package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// oneWebhook is the argument of the commands about one webhook.
type oneWebhook struct {
	ID int64 `arg:"" help:"The webhook's number here, as webhook list shows it."`
}

type (
	webhookPauseCmd  struct{ oneWebhook }
	webhookResumeCmd struct{ oneWebhook }
	webhookRepairCmd struct{ oneWebhook }
	webhookRemoveCmd struct{ oneWebhook }
)

type webhookDescribeCmd struct {
	oneWebhook
	Text string `arg:"" help:"What the vendor's own list shows beside it."`
}

// Run pauses a webhook.
func (c *webhookPauseCmd) Run(ctx context.Context, a *app) error {
	return c.change(ctx, a, (*pipeline.Pipeline).PauseWebhook)
}

// Run resumes a webhook.
func (c *webhookResumeCmd) Run(ctx context.Context, a *app) error {
	return c.change(ctx, a, (*pipeline.Pipeline).ResumeWebhook)
}

// Run repairs a webhook.
func (c *webhookRepairCmd) Run(ctx context.Context, a *app) error {
	return c.change(ctx, a, (*pipeline.Pipeline).RepairWebhook)
}

// Run describes a webhook.
func (c *webhookDescribeCmd) Run(ctx context.Context, a *app) error {
	return c.change(ctx, a, func(p *pipeline.Pipeline, ctx context.Context, id int64) error {
		return p.DescribeWebhook(ctx, id, c.Text)
	})
}

// Run removes a webhook.
func (c *webhookRemoveCmd) Run(ctx context.Context, a *app) error {
	return c.change(ctx, a, (*pipeline.Pipeline).RemoveWebhook)
}

// change has do change the webhook and says how it stands then.
func (o oneWebhook) change(ctx context.Context, a *app, do func(*pipeline.Pipeline, context.Context, int64) error) error {
	if err := errors.Join(a.check(), a.config.requireVendor()); err != nil {
		return err
	}
	return a.withPipeline(ctx, func(ctx context.Context, s *stack) error {
		err := do(s.pipeline, ctx, o.ID)
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("there is no webhook %d: rollcall webhook list shows their numbers", o.ID)
		}
		if err != nil {
			return err
		}
		w, err := s.store.Webhook(ctx, o.ID)
		if err != nil {
			return fmt.Errorf("look at webhook %d: %w", o.ID, err)
		}
		return printWebhooks(a.out, []*store.Webhook{w}, false)
	})
}

type webhookAdoptCmd struct {
	VendorID   string `arg:"" name:"vendor-id" help:"The vendor's id of the webhook, as webhook list --vendor shows it."`
	SecretFile string `help:"File that holds its secret. Default: standard input, so that it stands in no command line."`
}

// Run adopts a webhook.
func (c *webhookAdoptCmd) Run(ctx context.Context, a *app) error {
	if err := errors.Join(a.check(), a.config.requireVendor()); err != nil {
		return err
	}
	secret, err := readSecret(a.in, c.SecretFile)
	if err != nil {
		return err
	}
	if strings.TrimSpace(secret) == "" {
		return errors.New("there is no secret: it is read from standard input, or from the file that --secret-file names")
	}
	return a.withPipeline(ctx, func(ctx context.Context, s *stack) error {
		w, err := s.pipeline.AdoptWebhook(ctx, c.VendorID, secret)
		if err != nil {
			return err
		}
		return printWebhooks(a.out, []*store.Webhook{w}, false)
	})
}

// secretFileMost is more than a secret may have.
const secretFileMost = 4 << 10

// readSecret reads a secret from a file, or from standard input.
func readSecret(in io.Reader, path string) (string, error) {
	if path != "" {
		file, err := os.Open(path) //nolint:gosec // Whoever runs the command names it.
		if err != nil {
			return "", fmt.Errorf("read the secret: %w", err)
		}
		defer func() { _ = file.Close() }() // It was only read.
		in = file
	}
	secret, err := io.ReadAll(io.LimitReader(in, secretFileMost))
	if err != nil {
		return "", fmt.Errorf("read the secret: %w", err)
	}
	return string(secret), nil
}

// listedForeign is a webhook at the vendor that isn't ours, as webhook list tells of it.
type listedForeign struct {
	VendorID    string `json:"vendor_webhook_id"`
	EventType   string `json:"event_type"`
	Active      bool   `json:"active"`
	URL         string `json:"url"`
	Description string `json:"description"`
}

// withVendor lists the webhooks and those at the vendor that are not ours.
func (c *webhookListCmd) withVendor(ctx context.Context, a *app) error {
	if err := errors.Join(a.check(), a.config.requireVendor()); err != nil {
		return err
	}
	return a.withPipeline(ctx, func(ctx context.Context, s *stack) error {
		hooks, err := s.store.Webhooks(ctx)
		if err != nil {
			return fmt.Errorf("list webhooks: %w", err)
		}
		at, err := s.pipeline.VendorWebhooks(ctx)
		if err != nil {
			return err
		}
		if !at.Asked {
			return fmt.Errorf("the vendor's webhooks: %s%s", at.Trouble, before(". ", at.Unavailable))
		}
		return c.print(a.out, hooks, at)
	})
}

// before puts a text before another, unless that is empty.
func before(glue, text string) string {
	if text == "" {
		return ""
	}
	return glue + text
}

func (c *webhookListCmd) print(out io.Writer, hooks []*store.Webhook, at pipeline.AtVendor) error {
	foreign := make([]listedForeign, len(at.Foreign))
	for i, v := range at.Foreign {
		foreign[i] = listedForeign{v.ID, v.Event, !v.Inactive, v.URL, v.Description}
	}
	if c.JSON {
		return json.NewEncoder(out).Encode(struct {
			Ours    []listedWebhook `json:"ours"`
			NotOurs []listedForeign `json:"not_ours"`
			Used    int             `json:"used"`
			Most    int             `json:"most"`
		}{listed(hooks), foreign, at.Used, at.Most})
	}
	if err := printWebhooks(out, hooks, false); err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintf(table, "\nnot ours (%d of the account's %d are used):\nVENDOR'S ID\tEVENT\tACTIVE\tURL\n", at.Used, at.Most); err != nil {
		return err
	}
	for _, f := range foreign {
		if _, err := fmt.Fprintf(table, "%s\t%s\t%t\t%s\n", f.VendorID, f.EventType, f.Active, f.URL); err != nil {
			return err
		}
	}
	return table.Flush()
}
