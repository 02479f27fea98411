package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"rollcall/internal/geonode"
	"rollcall/internal/pipeline"
	"rollcall/migrations"
	"rollcall/store"
	"rollcall/store/embedded"
	"rollcall/web"
)

const (
	// startTimeout bounds the start of the database, recovery after a crash included.
	startTimeout = 5 * time.Minute
	// leastStop is what the end of one part may take even when the time for the whole is up: a database that is killed
	// must recover at its next start.
	leastStop = 5 * time.Second
	// leastConnections is what a private Postgres offers at least.
	leastConnections = 100
)

// stack is what most commands run on, built from the bottom up: database, store, vendor, pipeline, pages. Each part is made
// by a method of its own, so that a command builds no more than it needs, and close takes them down in reverse.
type stack struct {
	config *Config
	log    *slog.Logger
	now    func() time.Time
	hooks  hooks // A drill's; none outside one.
	hurry  bool  // Waits that are minutes are seconds.
	parts  []part

	dsn      string
	private  *embedded.Server // Nil unless this process runs the database.
	store    *store.Store
	vendor   *geonode.Client
	pipeline *pipeline.Pipeline
	web      *web.Server

	tracer pgx.QueryTracer // Nil but for measurements.
}

// part is one part of a stack that must be taken down.
type part struct {
	name string
	stop func(context.Context) error
}

// newStack begins a stack with these settings. The caller closes it, also after an error of one of its methods.
func newStack(config *Config, log *slog.Logger, now func() time.Time) *stack {
	return &stack{config: config, log: log, now: now}
}

// onClose adds a part; the last added is the first to be taken down.
func (s *stack) onClose(name string, stop func(context.Context) error) {
	s.parts = append(s.parts, part{name, stop})
}

// close takes everything down within the shutdown grace, whatever has become of ctx.
func (s *stack) close(ctx context.Context) error {
	var errs []error
	deadline := s.now().Add(s.config.ShutdownGrace)
	for len(s.parts) > 0 {
		last := s.parts[len(s.parts)-1]
		s.parts = s.parts[:len(s.parts)-1]
		errs = append(errs, stopPart(ctx, last, max(leastStop, deadline.Sub(s.now()))))
	}
	return errors.Join(errs...)
}

func stopPart(ctx context.Context, p part, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if err := p.stop(ctx); err != nil {
		return fmt.Errorf("stop the %s: %w", p.name, err)
	}
	return nil
}

// temporaryDataDir makes a data folder that is removed when the stack is closed.
func (s *stack) temporaryDataDir() error {
	dir, err := os.MkdirTemp("", "rollcall-")
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	s.onClose("temporary folder", func(context.Context) error { return os.RemoveAll(dir) })
	s.config.DataDir = dataPath(dir)
	if os.Geteuid() != 0 {
		return nil
	}
	// Root's Postgres runs as another user, who must be able to pass.
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // What is in it stays closed.
		return fmt.Errorf("data folder: %w", err)
	}
	return nil
}

// ownDatabase finds the database: the one of DATABASE_URL, else a private Postgres in the data folder, which this
// process then owns.
func (s *stack) ownDatabase(ctx context.Context) error {
	if s.config.DatabaseURL != "" {
		s.dsn = s.config.DatabaseURL
		return nil
	}
	if err := s.config.ensureDataDir(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	server, err := embedded.Start(ctx, embedded.Config{
		Dir: s.config.PostgresDir(), BinDir: s.config.PostgresBin, Logger: s.log, Now: s.now,
		Settings: map[string]string{"max_connections": strconv.Itoa(max(leastConnections, s.config.DatabaseConnections+20))},
	})
	if err != nil {
		return err
	}
	s.onClose("database", server.Stop)
	s.private, s.dsn = server, server.DSN()
	return nil
}

// shareDatabase is ownDatabase for commands that may run beside a server: they use its private Postgres.
func (s *stack) shareDatabase(ctx context.Context) error {
	if s.config.DatabaseURL == "" {
		if dsn, ok := embedded.Find(s.config.PostgresDir()); ok {
			s.dsn = dsn
			return nil
		}
	}
	return s.ownDatabase(ctx)
}

// openStore brings the schema up to date and connects. It refuses a schema that this release can't live with.
func (s *stack) openStore(ctx context.Context) error {
	if err := migrations.Up(ctx, s.dsn); err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	if err := migrations.Check(ctx, s.dsn); err != nil {
		return fmt.Errorf("check the schema: %w", err)
	}
	newer, err := newerSchema(ctx, s.dsn)
	if err != nil {
		return err
	}
	if newer != "" {
		s.log.WarnContext(ctx, "schema of a newer release", slog.String("detail", newer))
	}
	return s.connect(ctx)
}

// connect opens the store on a database as it is.
func (s *stack) connect(ctx context.Context) error {
	st, err := store.Open(ctx, store.Config{
		DSN: s.dsn, Tracer: s.tracer, Step: s.hooks.step, Fail: s.hooks.fail,
		MaxConns: int32(s.config.DatabaseConnections), //nolint:gosec // Check bounds it.
	})
	if err != nil {
		return err
	}
	s.onClose("store", func(context.Context) error { return st.Close() })
	s.store = st
	return nil
}

// openVendor makes the client of the vendor's API; it calls nobody.
func (s *stack) openVendor() error {
	timeout := s.config.VendorTimeout
	client, err := geonode.New(geonode.Config{
		BaseURL: s.config.ScraperAPIBaseURL, APIKey: s.config.GeonodeScraperAPIKey, Now: s.now,
		UserAgent: "rollcall/" + thisRelease().Version, Wrap: s.hooks.wrap,
		Timeouts: geonode.Timeouts{Submit: timeout, Status: timeout, List: timeout},
	})
	if err != nil {
		return fmt.Errorf("vendor: %w", err)
	}
	s.onClose("vendor's client", func(context.Context) error {
		client.Close()
		return nil
	})
	s.vendor = client
	return nil
}

// openPipeline makes the pipeline on store and vendor, changed by tune, and starts it.
func (s *stack) openPipeline(ctx context.Context, tune func(*pipeline.Config)) error {
	key, err := s.config.loadSecretKey()
	if err != nil {
		return err
	}
	cfg := s.pipelineConfig(key)
	tune(&cfg)
	p, err := pipeline.New(cfg)
	if err != nil {
		return err
	}
	if err := p.CheckKey(ctx); errors.Is(err, pipeline.ErrSealed) {
		return errors.New("ROLLCALL_SECRET_KEY is not the key that this database was begun with: use that one, which may lie in another data folder; if it is lost for good, \"rollcall secrets begin-anew\" says what goes with it")
	} else if err != nil {
		return err
	}
	if err := p.Start(ctx); err != nil {
		return err
	}
	s.onClose("pipeline", p.Stop)
	s.pipeline = p
	return nil
}

// pipelineConfig is what the settings say of the pipeline.
func (s *stack) pipelineConfig(key []byte) pipeline.Config {
	c := s.config
	return pipeline.Config{
		Store: s.store, Vendor: s.vendor, Logger: s.log, Now: s.now, Key: key,
		Account: fingerprint(c.GeonodeScraperAPIKey), PublicURL: c.publicBase(), Mode: pipeline.Mode(c.Mode),
		PollFirst: c.PollFirst, PollCap: c.PollCap, PollMaxWait: c.PollMaxWait, WebhookFallback: c.WebhookFallback,
		ReconcileEvery: c.ReconcileEvery, ReconcileOlderThan: c.ReconcileOlderThan, ReconcileWindow: c.ReconcileWindow,
		ClaimLease: c.ClaimLease, URLsPerJob: c.URLsPerJob, GiveUpAfter: c.GiveUpAfter, GraceTime: c.SecretGrace,
		VendorRPS: c.VendorRPS, VendorConcurrency: c.VendorConcurrency, ReplayRPS: c.ReplayRPS,
		Signature: pipeline.SignatureSettings{
			Header: c.SignatureHeader, DeliveryHeader: c.DeliveryHeader, EventHeader: c.EventHeader,
			Encoding: c.SignatureEncoding, Prefix: c.SignaturePrefix, Signed: c.SignatureSigned, Key: c.SignatureKey,
			MaxAge: c.SignatureMaxAge,
		},
		QuarantineRows: c.QuarantineRows, QuarantineBytes: int64(c.QuarantineBytes),
		SoftStop: c.ShutdownGrace * 3 / 5, KeepExports: c.KeepExports, ExportSpace: int64(c.ExportSpace),
		KeepBodies: forEver(c.KeepBodies), KeepDeliveries: forEver(c.KeepDeliveries), KeepLog: forEver(c.KeepLog),
		KeepBatches: forEver(c.KeepBatches), KeepEvents: forEver(c.KeepEvents), KeepRuns: forEver(c.KeepRuns),
		KeepStats: forEver(c.KeepStats), KeepAudit: forEver(c.KeepAudit),
		Fields: pipeline.FieldSettings{
			JobID: c.FieldJobID, Event: c.FieldEvent, DeliveryID: c.FieldDeliveryID,
			QuotaLeft: c.FieldQuotaLeft, QuotaLimit: c.FieldQuotaLimit, QuotaUsed: c.FieldQuotaUsed,
		},
	}
}

// forEver says of a time to keep something for what the pipeline is told: zero is for ever, which is below zero there.
func forEver(keep time.Duration) time.Duration {
	if keep == 0 {
		return -1
	}
	return keep
}

// openWeb makes the pages. front is the door they will be served through: closing the stack ends live pages and waits
// for the requests in flight before the pipeline under them stops.
func (s *stack) openWeb(front *door) error {
	c := s.config
	pages, err := web.New(web.Config{
		PublicURL: c.publicBase(), TrustedProxies: c.Proxies(), MaxBody: int64(c.MaxBody), MaxInFlight: int64(c.MaxInFlight),
		KeepExports: c.KeepExports, DiskLimit: int64(c.DiskLimit),
		SessionIdle: c.SessionIdle, SessionMax: c.SessionMax, SecureCookies: strings.HasPrefix(c.PublicURL, "https://"),
		Sandbox: c.simulated(), Mode: c.Mode, ReconcileEvery: c.ReconcileEvery, Schema: s.schemaReady(), Version: thisRelease().Version,
	}, s.store, s.pipeline, s.log, s.now)
	if err != nil {
		return err
	}
	s.onClose("requests in flight", func(ctx context.Context) error {
		front.refuseNew()
		pages.Close()
		return front.wait(ctx)
	})
	s.web = pages
	return nil
}

// simulated tells whether the vendor is a sandbox: the actual one is never on loopback.
func (c *Config) simulated() bool {
	u, err := url.Parse(c.ScraperAPIBaseURL)
	return err == nil && isLoopback(u.Hostname())
}

// fingerprint tells accounts apart without telling the key: the first 16 hex characters of its SHA-256.
func fingerprint(apiKey string) string {
	sum := sha256.Sum256([]byte(apiKey))
	return hex.EncodeToString(sum[:])[:16]
}

// publicBase is the public address without a slash at its end.
func (c *Config) publicBase() string { return strings.TrimRight(c.PublicURL, "/") }
