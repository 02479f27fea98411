package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"rollcall/internal/geonode"
	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// cannedPrefix begins the ids of vendor jobs that were never submitted: a measurement wrote them into the database as
// accepted, and the vendor says of each that it has ended.
const cannedPrefix = "canned-"

// cannedPage is where pages are that cost the vendor nothing to make: 4 KB of Markdown.
const cannedPage = "https://canned.sandbox.test/huge/4kb?page="

// benchWorld is a stack with a simulated vendor on loopback, both of this process, and the settings with which a
// measured process joins them.
type benchWorld struct {
	*stack
	box   *sandbox.Sandbox
	calls *callCount
	vars  map[string]string
}

// callCount counts the calls to the vendor by what they are for.
type callCount struct {
	next http.Handler
	mu   sync.Mutex
	by   map[string]int
}

// ServeHTTP counts a call and hands it on, or answers for a canned job.
func (c *callCount) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, isJob := strings.CutPrefix(r.URL.Path, "/v1/extract/")
	what := r.Method + " " + r.URL.Path
	if isJob && id != "jobs" {
		what = r.Method + " /v1/extract/{id}"
	} else if rest, ok := strings.CutPrefix(r.URL.Path, "/v1/batch/"); ok && rest != "jobs" {
		what = r.Method + " /v1/batch/{id}"
	}
	c.mu.Lock()
	c.by[what]++
	c.mu.Unlock()
	if isJob && strings.HasPrefix(id, cannedPrefix) {
		answerCanned(w, id)
		return
	}
	c.next.ServeHTTP(w, r)
}

// total is how many calls there were about jobs; those about webhooks and usage come by the clock and are left out.
func (c *callCount) total() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for what, calls := range c.by {
		if strings.Contains(what, "/v1/extract") || strings.Contains(what, "/v1/batch") || strings.Contains(what, "/v1/crawl") {
			n += calls
		}
	}
	return n
}

// cannedBody is what a canned job brought: 4 KB of words.
//
//nolint:gochecknoglobals // It never changes.
var cannedBody = strings.Repeat("All the kettles of the harbor stand in one long quiet row. ", 70)

func answerCanned(w http.ResponseWriter, id string) {
	w.Header().Set("Content-Type", "application/json")
	// The client may have gone; it then asks again.
	_, _ = fmt.Fprintf(w, `{"job_id":%q,"status":"completed","created_at":"2026-11-29T12:00:00Z","completed_at":"2026-11-29T12:00:01Z",`+ //nolint:gosec // JSON, and only our own client asks.
		`"tokens_charged":1,"data":{"markdown":"# Canned\n\n%s"},"metadata":{"http_status":200,"duration_ms":1000}}`, id, cannedBody)
}

// openBenchWorld makes an empty database and the vendor, without faults.
func openBenchWorld(ctx context.Context, a *app, cfg sandbox.Config) (*benchWorld, error) {
	s, err := benchStack(ctx, a)
	if err != nil {
		return nil, err
	}
	w := &benchWorld{stack: s}
	if err := w.open(ctx, a, cfg); err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	return w, nil
}

func (w *benchWorld) open(ctx context.Context, a *app, cfg sandbox.Config) error {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // It never fails.
	w.config.SecretKey = base64.StdEncoding.EncodeToString(key)
	w.config.GeonodeScraperAPIKey = "bench-" + rand.Text()
	cfg.Now, cfg.Logger = a.now, a.log
	cfg.APIKeys = map[string]string{w.config.GeonodeScraperAPIKey: sandbox.DefaultAccount}
	box, err := sandbox.New(cfg)
	if err != nil {
		return err
	}
	w.box, w.calls = box, &callCount{next: box.Handler(), by: map[string]int{}}
	w.onClose("sandbox", box.Shutdown)
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	front := openDoor(listener, a.log, a.now)
	front.admit(w.calls)
	w.onClose("sandbox's server", front.close)
	w.config.ScraperAPIBaseURL = front.url()
	address, err := freeLoopback(ctx)
	if err != nil {
		return err
	}
	w.config.PublicURL = "http://" + address
	w.vars = map[string]string{
		"DATABASE_URL": w.dsn, "ROLLCALL_SECRET_KEY": w.config.SecretKey, "SCRAPER_API_BASE_URL": w.config.ScraperAPIBaseURL,
		"GEONODE_SCRAPER_API_KEY": w.config.GeonodeScraperAPIKey, "ROLLCALL_PUBLIC_URL": w.config.PublicURL,
		"ROLLCALL_LISTEN": address, "ROLLCALL_LOG_LEVEL": "warn", "ROLLCALL_VENDOR_RPS": "100000",
	}
	w.config.VendorRPS = benchSubmits
	if err := w.openVendor(); err != nil {
		return err
	}
	return w.openPipeline(ctx, func(c *pipeline.Config) { c.OnlySubmit = true })
}

// The ports below those that systems give to connections going out, which would take one before the process that it is for
// listens on it.
const (
	firstPort = 20_000
	ports     = 12_000
)

// freeLoopback is an address that nothing listens on. It has to be known before the measured process does.
func freeLoopback(ctx context.Context) (string, error) {
	var last error
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+mathrand.IntN(ports)) //nolint:gosec // No secret hangs on a port.
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err == nil {
			return address, listener.Close()
		}
		last = err
	}
	return "", fmt.Errorf("find a free port: %w", last)
}

// knownWebhook registers a webhook of which this process knows the secret too, and returns both.
func (w *benchWorld) knownWebhook(ctx context.Context) (*store.Webhook, string, error) {
	made, err := w.vendor.CreateWebhook(ctx, geonode.WebhookCreate{URL: w.config.PublicURL + "/elsewhere", EventType: geonode.EventExtractCompleted})
	if err != nil {
		return nil, "", fmt.Errorf("register a webhook: %w", err)
	}
	own, err := w.pipeline.AdoptWebhook(ctx, made.ID, made.Secret.Reveal())
	return own, made.Secret.Reveal(), err
}

// seedCanned writes n extract jobs into the database that the vendor has accepted and ended, each with its item.
func (w *benchWorld) seedCanned(ctx context.Context, run string, n int, now time.Time) error {
	_, err := w.store.SQL().ExecContext(ctx, `WITH batch AS (
			INSERT INTO batches (name, kind, options, created_at, submitted, accepted)
			VALUES ($1, 'extract', '{"formats":["markdown"]}', $3::timestamptz, $2::int, $2::int) RETURNING id),
		made AS (
			INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, accepted_at, vendor_job_id, account, call_no)
			SELECT batch.id, 'extract', 'accepted', 'submit', '', 1, $3, $3, $1 || '-' || n, $4, 1
			FROM batch, generate_series(1, $2::int) n RETURNING id, vendor_job_id),
		carried AS (
			INSERT INTO items (batch_id, position, url, url_hash, created_at, current_job_id)
			SELECT batch.id, n - 1, 'https://canned.sandbox.test/' || $1 || '/' || n, sha256(($1 || n)::bytea), $3, made.id
			FROM batch, generate_series(1, $2::int) n JOIN made ON made.vendor_job_id = $1 || '-' || n RETURNING id, current_job_id)
		INSERT INTO job_items (job_id, input_index, item_id) SELECT current_job_id, 0, id FROM carried`,
		cannedPrefix+run, n, now.UTC(), fingerprint(w.config.GeonodeScraperAPIKey))
	if err != nil {
		return fmt.Errorf("write jobs to receive for: %w", err)
	}
	return w.maintain(ctx)
}

// seedSettled writes n extract jobs into the database that are settled long since, each with its item. What they brought
// is left out: settling others never reads it. Autovacuum is kept away meanwhile: it would count no rows, as they aren't
// committed yet, and all foreign keys would then be checked by a plan for an empty table.
func (w *benchWorld) seedSettled(ctx context.Context, run string, n int, now time.Time) error {
	if err := w.autovacuum(ctx, "SET (autovacuum_enabled = false)"); err != nil {
		return err
	}
	_, err := w.store.SQL().ExecContext(ctx, `WITH batch AS (
			INSERT INTO batches (name, kind, options, created_at, submitted, accepted, stored_webhook, ended_at)
			VALUES ($1, 'extract', '{"formats":["markdown"]}', $3::timestamptz, $2::int, $2::int, $2::int, $3) RETURNING id),
		made AS (
			INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, accepted_at, vendor_job_id, account, call_no,
				ended_at, settle_net, webhook_at)
			SELECT batch.id, 'extract', 'settled', 'submit', '', 1, $3, $3, $1 || '-' || n, $4, 1, $3, 'webhook', $3
			FROM batch, generate_series(1, $2::int) n RETURNING id, vendor_job_id),
		carried AS (
			INSERT INTO items (batch_id, position, url, url_hash, created_at, current_job_id, state, net, ended_at)
			SELECT batch.id, n - 1, 'https://canned.sandbox.test/' || $1 || '/' || n, sha256(($1 || n)::bytea), $3, made.id, 'stored', 'webhook', $3
			FROM batch, generate_series(1, $2::int) n JOIN made ON made.vendor_job_id = $1 || '-' || n RETURNING id, current_job_id)
		INSERT INTO job_items (job_id, input_index, item_id, outcome, reported_at) SELECT current_job_id, 0, id, 'stored', $3 FROM carried`,
		cannedPrefix+run, n, now.UTC(), fingerprint(w.config.GeonodeScraperAPIKey))
	if err != nil {
		return fmt.Errorf("write settled jobs: %w", err)
	}
	if err := w.maintain(ctx); err != nil {
		return err
	}
	return w.autovacuum(ctx, "RESET (autovacuum_enabled)")
}

// autovacuum sets it for the tables of jobs.
func (w *benchWorld) autovacuum(ctx context.Context, how string) error {
	for _, table := range []string{"jobs", "items", "job_items"} {
		if _, err := w.store.SQL().ExecContext(ctx, "ALTER TABLE "+table+" "+how); err != nil {
			return fmt.Errorf("autovacuum of %s: %w", table, err)
		}
	}
	return nil
}

// maintain does what autovacuum and the checkpointer would do in their own time, so that it falls into no run.
func (w *benchWorld) maintain(ctx context.Context) error {
	if _, err := w.store.SQL().ExecContext(ctx, `VACUUM ANALYZE`); err != nil {
		return fmt.Errorf("vacuum: %w", err)
	}
	_, err := w.store.SQL().ExecContext(ctx, `CHECKPOINT`)
	const notAllowed = "42501" // On a server that isn't ours. It then comes when it comes.
	if e, ok := errors.AsType[*pgconn.PgError](err); err != nil && (!ok || e.Code != notAllowed) {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

// clear empties what runs fill, so that each begins with the same.
func (w *benchWorld) clear(ctx context.Context) error {
	_, err := w.store.SQL().ExecContext(ctx, `TRUNCATE batches, deliveries, processed_events, river_job CASCADE`)
	if err != nil {
		return fmt.Errorf("empty the tables: %w", err)
	}
	return nil
}

// count is one number from the database.
func (w *benchWorld) count(ctx context.Context, query string, args ...any) (int64, error) {
	var n int64
	if err := w.store.SQL().QueryRowContext(ctx, query, args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("count what came of it: %w", err)
	}
	return n, nil
}
