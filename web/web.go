// Package web serves Rollcall's pages and its webhook endpoint. It reads from
// store and changes jobs, items and webhooks only through the pipeline; people
// and their sessions are its own affair. routes.go lists every address with
// who may call it; errors.go turns every error into its answer.
package web

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/store"
)

// Config is what the pages need to know. New checks it.
type Config struct {
	// PublicURL is the address people and the vendor reach Rollcall at; empty
	// when there is none.
	PublicURL string
	// TrustedProxies may name the client in X-Forwarded-For. Without them the
	// connection's own address counts.
	TrustedProxies []netip.Prefix
	// MaxBody bounds one webhook delivery in bytes; zero means 32 MiB.
	MaxBody int64
	// MaxInFlight bounds the bytes of deliveries held at once; zero means 128 MiB.
	MaxInFlight int64
	// SessionIdle and SessionMax end a session that is unused, or old; zero
	// means 12 hours and 7 days.
	SessionIdle time.Duration
	SessionMax  time.Duration
	// DiskLimit is what the database may take up, in bytes; zero when that isn't
	// known.
	DiskLimit int64
	// KeepExports is how long files stay that were made in the background; zero
	// means 72 hours.
	KeepExports time.Duration
	// Sandbox says that the vendor is simulated: every page says so.
	Sandbox bool
	// SecureCookies keeps the session's cookie to https.
	SecureCookies bool
	// Mode is how jobs come home: auto, webhook or poll.
	Mode string
	// ReconcileEvery is the gap between two runs of the reconciler by itself.
	ReconcileEvery time.Duration
	// Schema says why this release can't run on the database as it is, for
	// /readyz; nil when nobody can tell.
	Schema func(context.Context) error
	// Version of this build.
	Version string
	// Dev relaxes nothing; it logs requests for static files too.
	Dev bool
	// beat is the streams' heartbeat, lookUpTime how long a delivery's endpoint
	// may take to be looked up and bodyTime its body to arrive; only tests
	// shorten them.
	beat, lookUpTime, bodyTime time.Duration
}

// The defaults of Config.
const (
	defaultMaxBody     = 32 << 20
	defaultMaxInFlight = 128 << 20

	defaultReconcileEvery = 10 * time.Minute
	defaultSessionIdle    = 12 * time.Hour
	defaultSessionMax     = 7 * 24 * time.Hour
	defaultKeepExports    = 72 * time.Hour
)

// Server is the web side of one process. Close ends it.
type Server struct {
	cfg      Config
	store    *store.Store
	pipeline Pipeline
	log      *slog.Logger
	now      func() time.Time
	echo     *echo.Echo
	origins  *http.CrossOriginProtection
	sessions *sessionStore
	hasher   *hasher
	flights  *byteBudget
	uploads  *uploads
	live     *hub
	open     *openStreams
	// peopled turns true, for good, once somebody has an account.
	peopled atomic.Bool
	// stop ends the background work; done tells that it ended.
	stop context.CancelFunc
	done chan struct{}
}

// New builds the server and starts what it needs in the background: the
// listener of live pages and the sweeping of dead sessions.
func New(cfg Config, st *store.Store, p Pipeline, log *slog.Logger, now func() time.Time) (*Server, error) {
	cfg = cfg.withDefaults()
	origins := http.NewCrossOriginProtection()
	if cfg.PublicURL != "" {
		u, err := url.Parse(cfg.PublicURL)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("public URL %q: not an absolute address", cfg.PublicURL)
		}
		if err := origins.AddTrustedOrigin(u.Scheme + "://" + u.Host); err != nil {
			return nil, fmt.Errorf("public URL: %w", err)
		}
	}
	hash, err := newHasher()
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, store: st, pipeline: p, log: log, now: now, origins: origins, hasher: hash,
		sessions: newSessionStore(cfg, st, now),
		flights:  newByteBudget(cfg.MaxInFlight),
		uploads:  newUploads(),
		done:     make(chan struct{}),
	}
	s.live = newHub(s)
	s.open = newOpenStreams(s.sessions)
	s.echo = s.newEcho()
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go s.background(ctx)
	return s, nil
}

func (c Config) withDefaults() Config {
	if c.MaxBody <= 0 {
		c.MaxBody = defaultMaxBody
	}
	if c.MaxInFlight <= 0 {
		c.MaxInFlight = defaultMaxInFlight
	}
	if c.SessionIdle <= 0 {
		c.SessionIdle = defaultSessionIdle
	}
	if c.beat <= 0 {
		c.beat = heartbeat
	}
	if c.lookUpTime <= 0 {
		c.lookUpTime = lookUpTime
	}
	if c.bodyTime <= 0 {
		c.bodyTime = bodyTime
	}
	if c.ReconcileEvery <= 0 {
		c.ReconcileEvery = defaultReconcileEvery
	}
	if c.KeepExports <= 0 {
		c.KeepExports = defaultKeepExports
	}
	if c.SessionMax <= 0 {
		c.SessionMax = defaultSessionMax
	}
	return c
}

// Handler serves every address of Rollcall.
func (s *Server) Handler() http.Handler { return s.echo }

// Close ends the live streams and the background work, and waits for the
// latter. Call it when the HTTP server begins to shut down, as a stream would
// otherwise keep its connection open; a second call does nothing.
func (s *Server) Close() {
	s.stop()
	s.live.close()
	<-s.done
}

// background runs until Close.
func (s *Server) background(ctx context.Context) {
	defer close(s.done)
	var others sync.WaitGroup
	others.Go(func() { s.sweep(ctx) })
	others.Go(func() { s.open.run(ctx) })
	s.live.listen(ctx)
	others.Wait()
}

// sweepEvery is how often dead sessions, forgotten failures and links that
// expired long ago are removed.
const sweepEvery = 10 * time.Minute

func (s *Server) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if _, err := s.store.DeleteDeadSessions(ctx, s.now()); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "dead sessions not removed", slog.Any("error", err))
		}
		if _, err := s.store.DeleteOldDelays(ctx, s.now()); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "old sign-in delays not removed", slog.Any("error", err))
		}
		if _, err := s.store.DeleteOldInvites(ctx, s.now()); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "old links not removed", slog.Any("error", err))
		}
	}
}

func (s *Server) newEcho() *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.IPExtractor = extractor(s.cfg.TrustedProxies)
	e.HTTPErrorHandler = s.answerError
	e.Use(s.logged, s.recovered, s.headers, s.sameOrigin, s.peopledFirst)
	for _, r := range s.routes() {
		s.mount(e, r)
	}
	return e
}
