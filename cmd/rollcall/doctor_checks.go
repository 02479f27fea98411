package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/migrations"
	"rollcall/store"
)

const (
	// checkTimeout bounds one check that goes over the network.
	checkTimeout = 20 * time.Second
	// recountTimeout bounds the recount of all batches, recountPage how many are counted by one statement.
	recountTimeout = 30 * time.Minute
	recountPage    = 50
	// maxClockOffset is how far two clocks may differ; Date headers are good to a second.
	maxClockOffset = 30 * time.Second
)

// examineDatabase checks that the database answers and has this release's schema. It reports whether the store is open.
func (d *doctor) examineDatabase(ctx context.Context) bool {
	err := d.findDatabase(ctx)
	if err == nil {
		err = d.connect(ctx)
	}
	where := "a Postgres of your own answers"
	if d.config.DatabaseURL == "" {
		where = "the private Postgres in " + d.config.PostgresDir() + " answers"
	}
	if !d.note("database", where, err) {
		d.skip("needs the database", "schema")
		return false
	}
	err = migrations.Check(ctx, d.dsn)
	if errors.Is(err, migrations.ErrNotMigrated) {
		err = fmt.Errorf("%w; rollcall migrate up brings it up to date", err)
	}
	detail, newer := fmt.Sprintf("it is that of release %d", migrations.Release), ""
	if err == nil {
		newer, err = newerSchema(ctx, d.dsn)
	}
	if newer != "" {
		detail = "warning: " + newer
	}
	return d.note("schema", detail, err)
}

// findDatabase is shareDatabase, except that it makes no new one.
func (d *doctor) findDatabase(ctx context.Context) error {
	if d.config.DatabaseURL == "" {
		if _, err := os.Stat(d.config.PostgresDir()); err != nil {
			return fmt.Errorf("there is none yet in %s; rollcall serve makes it", d.config.PostgresDir())
		}
	}
	return d.shareDatabase(ctx)
}

// examineVendor asks for the account's usage, which needs a good key, and compares the clocks. It reports whether the
// vendor answered.
func (d *doctor) examineVendor(ctx context.Context) bool {
	if d.config.GeonodeScraperAPIKey == "" {
		d.skip("needs GEONODE_SCRAPER_API_KEY", "vendor", "clock")
		return false
	}
	if err := d.openVendor(); err != nil {
		d.note("vendor", "", err)
		d.skip("needs the vendor", "clock")
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	usage, err := d.vendor.Usage(ctx)
	if !d.note("vendor", d.config.ScraperAPIBaseURL+" answers and accepts the key", err) {
		d.skip("needs the vendor", "clock")
		return false
	}
	d.examineClock(usage.Reply.Date)
	return true
}

func (d *doctor) examineClock(vendor time.Time) {
	if vendor.IsZero() {
		d.skip("the vendor's answer has no Date", "clock")
		return
	}
	offset := vendor.Sub(d.now())
	var err error
	if offset.Abs() > maxClockOffset {
		err = fmt.Errorf("the vendor's clock differs from ours by %s; is NTP on?", offset.Round(time.Second))
	}
	d.note("clock", fmt.Sprintf("the vendor's differs from ours by less than %s", maxClockOffset), err)
}

// examinePublicURL calls our own liveness address the way the vendor would.
func (d *doctor) examinePublicURL(ctx context.Context) {
	const check = "public URL"
	if d.config.PublicURL == "" {
		d.skip("ROLLCALL_PUBLIC_URL is not set: jobs come home by polling only", check)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	d.note(check, d.config.publicBase()+" leads to a Rollcall", d.callPublicURL(ctx))
}

func (d *doctor) callPublicURL(ctx context.Context) error {
	address := d.config.publicBase() + "/healthz"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // It was only read.
	if _, err := io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)); err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", address, res.Status)
	}
	return nil
}

// examineRollCall recounts every batch.
func (d *doctor) examineRollCall(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, recountTimeout)
	defer cancel()
	var errs []error
	for after := int64(0); ; {
		differences, last, err := d.store.RecountBatches(ctx, after, recountPage)
		if err != nil {
			errs = append(errs, fmt.Errorf("recount the batches after %d: %w", after, err))
			break
		}
		for _, r := range differences {
			errs = append(errs, fmt.Errorf("batch %d counts %s %d, its rows say %d", r.BatchID, r.Column, r.Counter, r.Rows))
		}
		if last == 0 {
			break
		}
		after = last
	}
	d.note("roll call", "every batch's counters equal its rows", errors.Join(errs...))
}

// examineWebhooks asks the vendor for its list and looks for what keeps deliveries away.
func (d *doctor) examineWebhooks(ctx context.Context) {
	const check = "webhooks"
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	err := d.pipeline.CheckWebhooks(ctx)
	hooks, listErr := d.store.Webhooks(ctx)
	if err := errors.Join(err, listErr); err != nil {
		d.note(check, "", err)
		return
	}
	none, err := d.pipeline.WebhooksUnavailable(ctx)
	if err != nil || none != nil {
		// A vendor without webhooks is no problem: jobs come home by polling.
		d.note(check, textOf(none), err)
		return
	}
	live := map[string]bool{}
	count := 0
	for _, w := range hooks {
		if w.State == store.WebhookLive {
			count++
		}
		// A pause is somebody's decision here: jobs come home by polling.
		if w.State == store.WebhookLive || w.State == store.WebhookPaused {
			live[w.EventType] = true
		}
	}
	var errs []error
	for _, w := range hooks {
		// One that a later registration stands in for is no problem: nobody waits for it.
		if !live[w.EventType] && w.State != store.WebhookRemoved {
			errs = append(errs, fmt.Errorf("webhook %d (%s) is %s", w.ID, w.EventType, w.State))
		}
	}
	d.note(check, fmt.Sprintf("%d are live", count), errors.Join(append(errs, d.missingWebhooks(live)...)...))
}

// textOf is what the vendor said of its webhooks; "" when it said nothing.
func textOf(none *pipeline.Unavailable) string {
	if none == nil {
		return ""
	}
	return none.Text()
}

// missingWebhooks are the event types without a live webhook. Without a public address there are none to be had.
func (d *doctor) missingWebhooks(live map[string]bool) []error {
	if d.config.PublicURL == "" {
		return nil
	}
	var errs []error
	for _, event := range pipeline.EventTypes() {
		if !live[event] {
			errs = append(errs, fmt.Errorf("no live webhook for %s; rollcall webhook register makes one", event))
		}
	}
	return errs
}
