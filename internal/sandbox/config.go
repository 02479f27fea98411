package sandbox

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// DefaultAPIKey is the key that is accepted when Config.APIKeys is empty.
const DefaultAPIKey = "sandbox-key"

// DefaultAccount is the account that DefaultAPIKey belongs to.
const DefaultAccount = "main"

// Config says how the sandbox behaves. Every zero value stands for the default named at the field.
type Config struct {
	// Now is the clock of all stamps; waiting uses real timers. Default: the system clock.
	Now func() time.Time
	// Logger receives what goes wrong inside the sandbox. Default: nothing is logged.
	Logger *slog.Logger
	// Seed decides all that is left to chance. Zero is a seed like any other.
	Seed uint64
	// APIKeys maps a key to the account it opens. Default: DefaultAPIKey opens DefaultAccount.
	APIKeys map[string]string
	// AdminToken, sent as X-Sandbox-Admin, opens the admin paths to callers that are not on loopback. Default: none.
	AdminToken string
	// Faults is what goes wrong from the start, by name and rate. Default: nothing.
	Faults Faults
	// Switches settles what the contract leaves open.
	Switches Switches

	// RunTime is the median run length of one URL and RunSpread the sigma of its log-normal spread. Defaults: 200 ms, 0.5.
	RunTime   time.Duration
	RunSpread float64
	// Parallelism bounds the URLs of all jobs running at one time. Default: 32.
	Parallelism int

	// MaxURLsPerBatch is the plan's batch size. Default: 1,000.
	MaxURLsPerBatch int
	// MaxCrawlDepth is the plan's crawl depth. Default: 10.
	MaxCrawlDepth int
	// MaxWebhooks is the number of subscriptions an account may hold. Default: 10.
	MaxWebhooks int
	// MaxURLs is the number of URLs, of all jobs, that are remembered; past it every submit answers 503, and crawls
	// find no more pages. Default: 1,000,000.
	MaxURLs int
	// Balance is the tokens each account starts with; zero or less is without limit (see SetBalance).
	Balance int64

	// PagesChange is the share of made pages that changed a little since they were last submitted, from 0 to 1. The first
	// time a page is as always; a job that carries it twice sees it once. Default: 0, pages never change.
	PagesChange float64

	// AllowPrivate lets real pages come from loopback, private and link-local addresses. Default: refused.
	AllowPrivate bool
	// IgnoreRobots makes crawls disregard robots.txt. Default: respected.
	IgnoreRobots bool
	// FetchTimeout, MaxPageBytes and MaxRedirects bound one real page. Defaults: 20 s, 10 MiB, 5.
	FetchTimeout time.Duration
	MaxPageBytes int64
	MaxRedirects int
	// MaxKeptBytes bounds the temporary file that holds really fetched pages; a page that no longer fits fails
	// with SANDBOX_FULL. Default: 8 GiB.
	MaxKeptBytes int64
	// CacheBytes bounds the text of made pages that is kept ready in memory. Default: 32 MiB.
	CacheBytes int
	// SyncTimeout bounds one sync extraction, and MaxRequestBytes the body of any call. Defaults: 30 s, 16 MiB.
	SyncTimeout     time.Duration
	MaxRequestBytes int64

	// RetryGaps are the pauses between delivery attempts; there is one attempt more than gaps.
	// Default: 1 s, 5 s, 30 s, 2 min.
	RetryGaps []time.Duration
	// DeliveryTimeout bounds one attempt, DeliveryParallel the attempts in flight, and MaxQueued the deliveries not yet
	// ended; one past that is given up unsent. Defaults: 10 s, 16, 10,000.
	DeliveryTimeout  time.Duration
	DeliveryParallel int
	MaxQueued        int

	// DelayUnit is the typical lateness that the fault delay multiplies by 2 to 10. Default: 1 s.
	DelayUnit time.Duration
	// ReorderAfter is the number of later deliveries a reordered one waits for, at most ReorderHold. Defaults: 3, 3 s.
	ReorderAfter int
	ReorderHold  time.Duration
	// SlowMax is the longest wait of the fault slow. Default: 3 s.
	SlowMax time.Duration
	// RetryAfter is what a throttled caller is told to wait, in whole seconds. Default: 1 s.
	RetryAfter time.Duration
	// EarlyWait bounds how long a submit waits for its job under the fault early, and EarlyLag how long reads then
	// still show it running in the stale half of the cases. Defaults: 2 s, 1 s.
	EarlyWait time.Duration
	EarlyLag  time.Duration
	// LateFor is how long the fault late_rows hides rows. Default: 2 s.
	LateFor time.Duration
	// SpellLength is how long one spell of the faults outage and key_revoked lasts. Default: 2 s.
	SpellLength time.Duration
	// ClockSkew is how far the fault clock_skew moves the vendor's clock at rate 1. Default: 10 min.
	ClockSkew time.Duration
}

// withDefaults replaces every zero value.
func (c *Config) withDefaults() {
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // The one place that sets the clock when none was handed in.
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if len(c.APIKeys) == 0 {
		c.APIKeys = map[string]string{DefaultAPIKey: DefaultAccount}
	}
	if c.RetryGaps == nil {
		c.RetryGaps = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute}
	}
	if c.RunSpread == 0 {
		c.RunSpread = 0.5
	}
	c.defaultLimits()
	c.defaultTimes()
}

func (c *Config) defaultLimits() {
	for _, d := range []struct {
		at *int
		to int
	}{
		{&c.Parallelism, 32},
		{&c.MaxURLsPerBatch, 1000},
		{&c.MaxCrawlDepth, 10},
		{&c.MaxWebhooks, 10},
		{&c.MaxURLs, 1_000_000},
		{&c.MaxRedirects, 5},
		{&c.DeliveryParallel, 16},
		{&c.MaxQueued, 10_000},
		{&c.ReorderAfter, 3},
		{&c.CacheBytes, 32 << 20},
	} {
		if *d.at == 0 {
			*d.at = d.to
		}
	}
	if c.MaxPageBytes == 0 {
		c.MaxPageBytes = 10 << 20
	}
	if c.MaxKeptBytes == 0 {
		c.MaxKeptBytes = 8 << 30
	}
	if c.MaxRequestBytes == 0 {
		c.MaxRequestBytes = 16 << 20
	}
}

func (c *Config) defaultTimes() {
	for _, d := range []struct{ at, to *time.Duration }{
		{&c.RunTime, new(200 * time.Millisecond)},
		{&c.FetchTimeout, new(20 * time.Second)},
		{&c.SyncTimeout, new(30 * time.Second)},
		{&c.DeliveryTimeout, new(10 * time.Second)},
		{&c.DelayUnit, new(time.Second)},
		{&c.ReorderHold, new(3 * time.Second)},
		{&c.SlowMax, new(3 * time.Second)},
		{&c.RetryAfter, new(time.Second)},
		{&c.EarlyWait, new(2 * time.Second)},
		{&c.EarlyLag, new(time.Second)},
		{&c.LateFor, new(2 * time.Second)},
		{&c.SpellLength, new(2 * time.Second)},
		{&c.ClockSkew, new(10 * time.Minute)},
	} {
		if *d.at == 0 {
			*d.at = *d.to
		}
	}
}

// check names every setting that makes no sense, all at once.
func (c *Config) check() error {
	var errs []error
	for name, n := range map[string]int{
		"Parallelism": c.Parallelism, "MaxURLsPerBatch": c.MaxURLsPerBatch, "MaxCrawlDepth": c.MaxCrawlDepth,
		"MaxWebhooks": c.MaxWebhooks, "MaxURLs": c.MaxURLs, "MaxRedirects": c.MaxRedirects,
		"DeliveryParallel": c.DeliveryParallel, "MaxQueued": c.MaxQueued, "ReorderAfter": c.ReorderAfter,
	} {
		if n < 0 {
			errs = append(errs, fmt.Errorf("%s is %d, less than 0", name, n))
		}
	}
	if !(c.PagesChange >= 0 && c.PagesChange <= 1) { // NaN is neither.
		errs = append(errs, fmt.Errorf("PagesChange is %g, not from 0 to 1", c.PagesChange))
	}
	for key, account := range c.APIKeys {
		if key == "" || account == "" {
			errs = append(errs, errors.New("APIKeys holds an empty key or account"))
		}
	}
	for _, gap := range c.RetryGaps {
		if gap < 0 {
			errs = append(errs, fmt.Errorf("RetryGaps holds %s, less than 0", gap))
		}
	}
	return errors.Join(append(errs, c.Faults.Check(), c.Switches.Check())...)
}
