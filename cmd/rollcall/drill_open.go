package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// drill is a stage: the vendor and the servers as processes, a private Postgres, and a stack of this process's own that
// submits and looks.
type drill struct {
	*demo
	cmd       *drillCmd
	out       io.Writer // For people.
	dir       string    // Of logs and hooks.
	spawner   *spawner
	vendor    *child
	servers   []*child
	balancer  string // Its address.
	own       *ownConns
	balancing *drillBalancer
	began     time.Time

	// Acts that would undo each other wait for each other.
	killing, hooking   [3]sync.Mutex
	postgres, webhooks sync.Mutex
	rotating           atomic.Bool // A rotation is under way, or waits for the webhooks.

	mu       sync.Mutex
	timeline []happening
	kills    []*kill
	samples  []sample
	problems []string
	falls    []logError // Processes that ended by themselves.
	batches  []drillBatch
	mixed    func()            // Ends the vendor's present mix of faults on the time line.
	waiting  string            // What the open jobs wait for, to be told.
	secrets  map[string]string // By name, but those of the webhooks.
	acts     tally
	// rotationFailed is why the last rotation that went wrong did.
	rotationFailed string
}

// happening is a fault, or another event, on the time line. A fault lasts until its end.
type happening struct {
	From   time.Time
	To     time.Time
	Kind   string
	Detail string
}

// ended is the end of a fault, or its moment when it has none.
func (h happening) ended() time.Time {
	if h.To.IsZero() {
		return h.From
	}
	return h.To
}

// kill is the end of one server, and how it was got over.
type kill struct {
	at, ready time.Time
	child     string
	how       string // kill, term or step.
	step      string
}

// sample is how far the batches were at a moment.
type sample struct {
	at                    time.Time
	answered, outstanding int64
}

// open sets the stage. On an error nothing of it is left.
func (c *drillCmd) open(ctx context.Context, a *app) (*drill, error) {
	dir, keep, err := c.keepDir()
	if err != nil {
		return nil, err
	}
	config := c.settings(a.config)
	log, err := os.OpenFile(filepath.Join(dir, "drill.log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600) //nolint:gosec // The folder is the caller's.
	if err != nil {
		return nil, fmt.Errorf("log of the drill: %w", err)
	}
	s := newStack(config, slog.New(slog.NewJSONHandler(log, nil)), a.now)
	s.onClose("log", func(context.Context) error {
		err := log.Close()
		if !keep {
			err = errors.Join(err, os.RemoveAll(dir))
		}
		return err
	})
	own := newOwnConns()
	s.tracer = own
	d := &drill{demo: &demo{stack: s}, cmd: c, out: a.err, dir: dir, spawner: newSpawner(), own: own, began: a.now()}
	s.onClose("thread of the processes", func(context.Context) error {
		d.spawner.close()
		return nil
	})
	if err := d.build(ctx); err != nil {
		return nil, errors.Join(err, d.close(ctx))
	}
	return d, nil
}

// settings are those of the drill: what the environment says of a real installation must not leak into it.
func (c *drillCmd) settings(given *Config) *Config {
	config := *given
	key := make([]byte, 32)
	_, _ = rand.Read(key) // It never returns an error.
	config.DatabaseURL, config.SecretKey, config.DataDir = "", hex.EncodeToString(key), ""
	config.GeonodeScraperAPIKey = "drill-" + rand.Text()
	config.DatabaseConnections, config.ShutdownGrace = 12, drillGrace
	config.VendorTimeout = drillVendorTimeout
	return &config
}

func (d *drill) build(ctx context.Context) error {
	d.say("Starting a private Postgres.")
	if err := d.temporaryDataDir(); err != nil {
		return err
	}
	if err := d.ownDatabase(ctx); err != nil {
		return err
	}
	if err := d.plantSecrets(); err != nil {
		return err
	}
	if err := d.openStore(ctx); err != nil {
		return err
	}
	if err := d.addUser(ctx, drillAdmin, store.RoleAdmin, d.secrets[adminPassword]); err != nil {
		return err
	}
	d.say("Starting the vendor and %d servers, and registering webhooks.", d.cmd.Processes)
	if err := d.startVendor(ctx); err != nil {
		return err
	}
	if err := d.openVendor(); err != nil {
		return err
	}
	if err := d.startServers(ctx); err != nil {
		return err
	}
	d.config.PublicURL = d.balancer
	if err := d.openPipeline(ctx, func(c *pipeline.Config) { c.OnlySubmit = true; c.URLsPerJob = drillURLsPerJob; hurry(c) }); err != nil {
		return err
	}
	return d.registerWebhooks(ctx)
}

const (
	// drillURLsPerJob keeps jobs small, so that many are under way at any moment.
	drillURLsPerJob = 25
	// drillVendorTimeout is past the vendor's slowest answers.
	drillVendorTimeout = 5 * time.Second
	// drillGrace gives tasks in flight three fifths of it, and the rest to those that heed nothing else.
	drillGrace = 25 * time.Second
)

// startVendor starts the sandbox as a process.
func (d *drill) startVendor(ctx context.Context) error {
	address, err := freePort(ctx)
	if err != nil {
		return err
	}
	d.config.ScraperAPIBaseURL = "http://" + address
	faults := d.cmd.Faults
	if faults == "" {
		faults = "none"
	}
	d.vendor, err = d.start(ctx, "sandbox", address, "/_sandbox/faults", nil, "sandbox", "--address", address, "--faults", faults,
		"--seed", strconv.FormatUint(d.cmd.Seed, 10), "--api-key", d.config.GeonodeScraperAPIKey)
	return err
}

// startServers starts the servers behind a balancer, all at once.
func (d *drill) startServers(ctx context.Context) error {
	addresses, urls := make([]string, d.cmd.Processes), make([]string, d.cmd.Processes)
	for i := range addresses {
		address, err := freePort(ctx)
		if err != nil {
			return err
		}
		addresses[i], urls[i] = address, "http://"+address
	}
	if err := d.openBalancer(ctx, urls); err != nil {
		return err
	}
	for i, address := range addresses {
		vars := d.serverVars(address)
		name := "server-" + strconv.Itoa(i+1)
		server, err := d.start(ctx, name, address, "/readyz", vars, "serve", "--hurry")
		if err != nil {
			return err
		}
		d.servers = append(d.servers, server)
	}
	for _, server := range d.servers {
		if err := server.waitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (d *drill) openBalancer(ctx context.Context, urls []string) error {
	balancer, err := newDrillBalancer(urls)
	if err != nil {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("balancer: %w", err)
	}
	front := openDoor(listener, d.log, d.now)
	d.onClose("balancer", front.close)
	front.admit(balancer)
	d.balancer, d.balancing = front.url(), balancer
	return nil
}

// serverVars are the settings of a server: those of the drill's own stack, and waits that suit a drill.
func (d *drill) serverVars(address string) map[string]string {
	vars := map[string]string{
		"DATABASE_URL": d.dsn, "ROLLCALL_DATA_DIR": filepath.Join(string(d.config.DataDir), "server"),
		"ROLLCALL_SECRET_KEY": d.config.SecretKey, "ROLLCALL_DATABASE_CONNECTIONS": strconv.Itoa(d.config.DatabaseConnections),
		"GEONODE_SCRAPER_API_KEY": d.config.GeonodeScraperAPIKey, "SCRAPER_API_BASE_URL": d.config.ScraperAPIBaseURL,
		"ROLLCALL_LISTEN": address, "ROLLCALL_PUBLIC_URL": d.balancer, "ROLLCALL_SHUTDOWN_GRACE": d.config.ShutdownGrace.String(),
		"ROLLCALL_URLS_PER_JOB": strconv.Itoa(drillURLsPerJob),
		"ROLLCALL_POLL_FIRST":   "500ms", "ROLLCALL_POLL_CAP": "3s", "ROLLCALL_WEBHOOK_FALLBACK": "3s",
		"ROLLCALL_RECONCILE_EVERY": "5s", "ROLLCALL_RECONCILE_OLDER_THAN": "4s",
		"ROLLCALL_VENDOR_RPS": "100", "ROLLCALL_VENDOR_TIMEOUT": d.config.VendorTimeout.String(), "ROLLCALL_CLAIM_LEASE": "7s",
	}
	if give := d.cmd.giveUpAfter(); give > 0 {
		vars["ROLLCALL_GIVE_UP_AFTER"], vars["ROLLCALL_POLL_MAX_WAIT"] = give.String(), (give / 4).String()
	}
	return vars
}

// start starts a process and waits until the vendor is ready; servers are waited for together.
func (d *drill) start(ctx context.Context, name, address, probe string, vars map[string]string, args ...string) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("this program: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(d.dir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND|os.O_TRUNC, 0o600) //nolint:gosec // The folder is the caller's.
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", name, err)
	}
	c := &child{
		name: name, program: program, args: args, url: "http://" + address, probe: probe, spawner: d.spawner, log: log, now: d.now,
		died: d.noteDeath, ready: d.noteReady,
	}
	if args[0] == "serve" {
		c.hooks = filepath.Join(d.dir, name)
		if err := os.MkdirAll(c.hooks, 0o700); err != nil {
			return nil, errors.Join(fmt.Errorf("hooks of %s: %w", name, err), log.Close())
		}
	}
	c.env = append([]string{"HOME=" + string(d.config.DataDir), "PATH=" + os.Getenv("PATH"), "ROLLCALL_DRILL_DIR=" + c.hooks, "ROLLCALL_LOG_FORMAT=json"}, d.cmd.extra...)
	for name, value := range vars {
		c.env = append(c.env, name+"="+value)
	}
	life := context.WithoutCancel(ctx) // It is ended by close.
	if err := c.begin(life); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	d.onClose(name, func(ctx context.Context) error { return errors.Join(c.halt(ctx, syscall.SIGKILL), log.Close()) })
	if args[0] == "serve" {
		return c, nil
	}
	if err := c.waitReady(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// hurry makes the waits of a pipeline, which are minutes, suit a drill or a demonstration.
func hurry(c *pipeline.Config) {
	c.PollTick, c.ListEvery = 200*time.Millisecond, 500*time.Millisecond
	c.RetryGaps = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}
	c.MissingGap, c.AdoptGap, c.ProbeEvery = demoMissingGap, 5*time.Second, time.Second/2
	c.CancelGrace, c.ForgottenAfter = demoMissingGap, 5*time.Second
}

// freePort is an address on loopback that nothing listens on, below the ports that the system gives to outgoing
// connections.
func freePort(ctx context.Context) (string, error) {
	var pick [2]byte
	for range 200 {
		_, _ = rand.Read(pick[:]) // It never returns an error.
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(10_000+(int(pick[0])<<8|int(pick[1]))%20_000))
		var config net.ListenConfig
		listener, err := config.Listen(ctx, "tcp", address)
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			return "", fmt.Errorf("look for a free port: %w", err)
		}
		return address, nil
	}
	return "", errors.New("no free port on loopback")
}

// books asks the vendor for its books.
func (d *drill) books(ctx context.Context) (sandbox.Books, error) {
	var books sandbox.Books
	err := d.admin(ctx, http.MethodGet, "/_sandbox/books", "", &books)
	return books, err
}
