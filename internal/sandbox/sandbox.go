package sandbox

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Sandbox is one simulated vendor. Its methods may be called from many goroutines.
type Sandbox struct {
	cfg     Config
	log     *slog.Logger
	now     func() time.Time
	dice    dice
	boot    string // Sets the ids of this start apart from those of another.
	handler http.Handler
	fetcher *fetcher
	bodies  *bodyFile
	made    pageCache
	sender  *sender

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       lock // Guards all below and everything reachable from it.
	closed   bool
	faults   Faults
	switches Switches
	accounts map[string]*account
	jobs     map[string]*job
	jobList  []*job // In the order of acceptance.
	syncs    []*job // Sync calls, which are no jobs for the caller but stand in the books.
	ready    []*job // Jobs with an item to start, in turn.
	slots    int    // Items that may still start now.
	urls     int    // Of all jobs.
	serial   uint64
	secrets  []*MadeSecret     // Every secret of a webhook that was ever made.
	refused  map[string]int    // RefusedValid by secret.
	attempts map[string]int    // How often each URL that fails at first was submitted.
	looks    map[string]looked // What became of each made page, when pages change.
	rolls    map[uint64]uint64 // How often each question of chance was asked.
	calls    map[string]*CallCount
	sent     DeliveryCounts
}

// account is what belongs to one customer of the vendor.
type account struct {
	name     string
	limited  bool
	balance  int64 // What can still be charged or reserved; counts only when limited.
	charged  int64
	reserved int64
	lists    map[kind][]*job
	hooks    []*hook
}

// New makes a sandbox. It runs nothing until its Handler gets calls. The error names every setting that makes no
// sense. Close or Shutdown must be called in the end.
func New(cfg Config) (*Sandbox, error) {
	cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("sandbox settings: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Sandbox{
		cfg: cfg, log: cfg.Logger, now: cfg.Now, dice: dice(cfg.Seed),
		boot: strconv.FormatInt(cfg.Now().UnixNano(), 36),
		ctx:  ctx, cancel: cancel,
		fetcher: newFetcher(cfg), bodies: &bodyFile{limit: cfg.MaxKeptBytes},
		refused: map[string]int{},
		made:    pageCache{limit: cfg.CacheBytes, pages: map[string]content{}},
		faults:  maps.Clone(cfg.Faults), switches: cfg.Switches,
		accounts: map[string]*account{}, jobs: map[string]*job{},
		slots: cfg.Parallelism, attempts: map[string]int{}, looks: map[string]looked{}, rolls: map[uint64]uint64{}, calls: map[string]*CallCount{},
	}
	s.sender = newSender(s)
	for _, name := range cfg.APIKeys {
		s.accounts[name] = &account{
			name: name, limited: cfg.Balance > 0, balance: cfg.Balance, lists: map[kind][]*job{},
		}
	}
	s.handler = s.routes()
	return s, nil
}

// Handler serves the vendor's API and the admin paths.
func (s *Sandbox) Handler() http.Handler { return s.handler }

// Close stops all jobs and deliveries at once, waits until they are gone, and removes the temporary file. Calls that
// come later get 503.
func (s *Sandbox) Close() error { return s.Shutdown(context.Background()) }

// Shutdown is Close that waits no longer than ctx lasts; its error is then that of ctx.
func (s *Sandbox) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	gone := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-ctx.Done():
		return fmt.Errorf("stopping the sandbox: %w", ctx.Err())
	}
	s.fetcher.close()
	s.sender.client.CloseIdleConnections()
	return s.bodies.close()
}

// Faults is what goes wrong now.
func (s *Sandbox) Faults() Faults {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.faults)
}

// SetFaults replaces what goes wrong, for everything that starts from now on.
func (s *Sandbox) SetFaults(f Faults) error {
	if err := f.Check(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = maps.Clone(f)
	return nil
}

// Switches is how the open points of the contract are settled now.
func (s *Sandbox) Switches() Switches {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.switches
}

// SetSwitches settles the open points anew.
func (s *Sandbox) SetSwitches(w Switches) error {
	if err := w.Check(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.switches = w
	return nil
}

// SetBalance sets the tokens that every account can still spend; less than 0 is without limit.
func (s *Sandbox) SetBalance(tokens int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.accounts {
		a.limited, a.balance = tokens >= 0, tokens
	}
}

// spawn runs f in a goroutine that Shutdown waits for, unless the sandbox is closed. The caller holds mu.
func (s *Sandbox) spawn(f func()) {
	if !s.closed {
		s.wg.Go(f)
	}
}

// id makes a new UUID. The caller holds mu.
func (s *Sandbox) id(what string) string {
	s.serial++
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte(s.token(what))).String()
}

// secret makes a new webhook secret; its rest decodes as base64 in either alphabet. The caller holds mu.
func (s *Sandbox) secret() string {
	s.serial++
	made := &MadeSecret{Secret: "whsec_" + s.dice.text(32, s.token("secret")), Made: s.now()}
	s.secrets = append(s.secrets, made)
	return made.Secret
}

func (s *Sandbox) token(what string) string {
	return fmt.Sprintf("%s/%s/%d/%d", what, s.boot, s.cfg.Seed, s.serial)
}

// turn counts how often the names were asked for, from 1. The caller holds mu.
func (s *Sandbox) turn(names ...string) string {
	key := s.dice.number(names...)
	s.rolls[key]++
	return strconv.FormatUint(s.rolls[key], 10)
}

// sleep waits, and reports false when the sandbox or the caller ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
