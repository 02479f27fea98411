package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// webhookCmd looks after the vendor's subscriptions.
type webhookCmd struct {
	Register webhookRegisterCmd `cmd:"" help:"Register a webhook for each event type at ROLLCALL_PUBLIC_URL, unless it is there."`
	List     webhookListCmd     `cmd:"" help:"List the webhooks of this installation."`
	Pause    webhookPauseCmd    `cmd:"" help:"Have the vendor send nothing to a webhook for now."`
	Resume   webhookResumeCmd   `cmd:"" help:"Have the vendor deliver to a paused webhook again."`
	Adopt    webhookAdoptCmd    `cmd:"" help:"Take over a webhook that was registered elsewhere, with its secret."`
	Repair   webhookRepairCmd   `cmd:"" help:"Put right what the vendor did to a webhook: switch it on, give it its address back, or register it anew."`
	Describe webhookDescribeCmd `cmd:"" help:"Give a webhook another description at the vendor."`
	Remove   webhookRemoveCmd   `cmd:"" help:"Delete a webhook, here and at the vendor."`
	Rotate   webhookRotateCmd   `cmd:"" help:"Change a webhook's secret without losing a delivery, and wait until it is done."`
}

type webhookRegisterCmd struct {
	JSON bool `name:"json" help:"Print a JSON array of the webhooks."`
}

// Run registers what is missing and lists what there is.
func (c *webhookRegisterCmd) Run(ctx context.Context, a *app) error {
	if err := errors.Join(a.check(), a.config.requireVendor()); err != nil {
		return err
	}
	return a.withPipeline(ctx, func(ctx context.Context, s *stack) error {
		hooks, err := s.pipeline.RegisterWebhooks(ctx)
		if err != nil {
			return err
		}
		return printWebhooks(a.out, hooks, c.JSON)
	})
}

// withPipeline is withStore with a pipeline that runs no workers.
func (a *app) withPipeline(ctx context.Context, do func(context.Context, *stack) error) error {
	return a.withStore(ctx, func(ctx context.Context, s *stack) error {
		if err := s.openVendor(); err != nil {
			return err
		}
		if err := s.openPipeline(ctx, func(c *pipeline.Config) { c.OnlySubmit = true }); err != nil {
			return err
		}
		return do(ctx, s)
	})
}

type webhookListCmd struct {
	JSON   bool `name:"json" help:"Print a JSON array; with --vendor, an object."`
	Vendor bool `help:"Ask the vendor too, and list the webhooks there that are not ours."`
}

// Run lists the webhooks as they were last seen; doctor asks the vendor.
func (c *webhookListCmd) Run(ctx context.Context, a *app) error {
	if c.Vendor {
		return c.withVendor(ctx, a)
	}
	return a.withStore(ctx, func(ctx context.Context, s *stack) error {
		hooks, err := s.store.Webhooks(ctx)
		if err != nil {
			return fmt.Errorf("list webhooks: %w", err)
		}
		return printWebhooks(a.out, hooks, c.JSON)
	})
}

// listedWebhook is a webhook as the commands tell of it; its secret is nobody's business.
type listedWebhook struct {
	ID             int64              `json:"id"`
	EventType      string             `json:"event_type"`
	State          store.WebhookState `json:"state"`
	URL            string             `json:"url"`
	VendorID       string             `json:"vendor_webhook_id"`
	LastDeliveryAt *time.Time         `json:"last_delivery_at"`
	Description    string             `json:"description"`
	SignatureForm  string             `json:"signature_form"` // Empty: every listed form is tried.
	Adopted        bool               `json:"adopted"`
}

func listed(hooks []*store.Webhook) []listedWebhook {
	list := make([]listedWebhook, len(hooks))
	for i, w := range hooks {
		list[i] = listedWebhook{
			ID: w.ID, EventType: w.EventType, State: w.State, URL: w.URL, LastDeliveryAt: w.LastDeliveryAt,
			Description: w.Description, SignatureForm: w.SignatureForm, Adopted: w.Adopted,
		}
		if w.VendorWebhookID != nil {
			list[i].VendorID = *w.VendorWebhookID
		}
	}
	return list
}

func printWebhooks(out io.Writer, hooks []*store.Webhook, asJSON bool) error {
	list := listed(hooks)
	if asJSON {
		return json.NewEncoder(out).Encode(list)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintln(table, "ID\tEVENT\tSTATE\tLAST DELIVERY\tURL"); err != nil {
		return err
	}
	for _, w := range list {
		last := "none"
		if w.LastDeliveryAt != nil {
			last = w.LastDeliveryAt.UTC().Format(time.DateTime)
		}
		if _, err := fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\n", w.ID, w.EventType, w.State, last, w.URL); err != nil {
			return err
		}
	}
	return table.Flush()
}
