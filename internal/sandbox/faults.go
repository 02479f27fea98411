package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The faults that the sandbox knows.
const (
	// FaultDrop never sends a delivery. In half of the cases the delivery log shows it as abandoned, in the other half
	// the log knows nothing of it.
	FaultDrop = "drop"
	// FaultDup sends the same delivery twice, in half of the cases at the same moment. The log shows one attempt.
	FaultDup = "dup"
	// FaultDelay sends a delivery 2 to 10 times Config.DelayUnit late.
	FaultDelay = "delay"
	// FaultReorder holds a delivery back until later ones were sent.
	FaultReorder = "reorder"
	// FaultEarly sends the delivery of a job before the 202 answer of its submit leaves. In half of the cases reads
	// already show the job finished; in the other half they still show it running for Config.EarlyLag.
	FaultEarly = "early"
	// FaultWrongSig signs one attempt with garbage.
	FaultWrongSig = "wrong_sig"
	// FaultOldSig signs one attempt with the secret before the last rotation, when there is one.
	FaultOldSig = "old_sig"
	// FaultAlter changes the body of one attempt after it was signed.
	FaultAlter = "alter"
	// FaultRateLimit answers 429 with Retry-After in seconds; FaultRateLimitDate gives a date, FaultRateLimitBare
	// no header at all.
	FaultRateLimit     = "rate_limit"
	FaultRateLimitDate = "rate_limit_date"
	FaultRateLimitBare = "rate_limit_bare"
	// FaultErr5xx answers 500, 502, 503 or 504 and does nothing; reads sometimes get HTML or no body.
	FaultErr5xx = "err5xx"
	// FaultSlow answers up to Config.SlowMax late.
	FaultSlow = "slow"
	// FaultResetAfterAccept does what a submit asks and then breaks the connection without an answer.
	FaultResetAfterAccept = "reset_after_accept"
	// FaultTruncate breaks the connection in the middle of the answer to a read.
	FaultTruncate = "truncate"
	// FaultNever leaves a job processing for ever.
	FaultNever = "never"
	// FaultLateRows hides the last rows of a batch or crawl for Config.LateFor after it ended.
	FaultLateRows = "late_rows"
	// FaultForget accepts a job and loses it: it never runs, costs nothing, and is unknown to every read and list.
	FaultForget = "forget"
	// FaultOutage answers 503 to everything for spells of Config.SpellLength; the rate is the share of the time.
	FaultOutage = "outage"
	// FaultKeyRevoked answers 401 to everything for such spells.
	FaultKeyRevoked = "key_revoked"
	// FaultVendorCancel cancels a job without being asked: an extraction before it runs, others halfway.
	FaultVendorCancel = "vendor_cancel"
	// FaultBalanceOut answers 402 to a submit.
	FaultBalanceOut = "balance_out"
	// FaultWebhookOff switches a webhook off when an event for it comes up.
	FaultWebhookOff = "webhook_off"
	// FaultClockSkew lets the vendor's clock, in bodies and Date headers, be ahead by the rate times Config.ClockSkew.
	FaultClockSkew = "clock_skew"
	// FaultItemFail fails a URL: half of them with a retryable code that goes away when the URL is sent again, half for
	// good.
	FaultItemFail = "item_fail"
)

// Faults is what goes wrong: rate by name, each in [0, 1]. A name that is missing has rate 0.
type Faults map[string]float64

// FaultNames lists the known names in alphabetical order.
func FaultNames() []string {
	names := []string{
		FaultDrop, FaultDup, FaultDelay, FaultReorder, FaultEarly, FaultWrongSig, FaultOldSig, FaultAlter,
		FaultRateLimit, FaultRateLimitDate, FaultRateLimitBare, FaultErr5xx, FaultSlow, FaultResetAfterAccept,
		FaultTruncate, FaultNever, FaultItemFail, FaultLateRows, FaultForget, FaultOutage, FaultKeyRevoked,
		FaultVendorCancel, FaultBalanceOut, FaultWebhookOff, FaultClockSkew,
	}
	slices.Sort(names)
	return names
}

// DefaultFaults is the mix of the demo.
func DefaultFaults() Faults {
	return Faults{
		FaultDrop: 0.1, FaultDup: 0.1, FaultDelay: 0.1, FaultReorder: 0.1, FaultEarly: 0.05,
		FaultRateLimit: 0.02, FaultErr5xx: 0.02, FaultItemFail: 0.03,
	}
}

// ParseFaults reads "drop=0.1,dup=0.1". "none" and the empty text mean no faults. The error names every part that
// can't be read, and the known names.
func ParseFaults(text string) (Faults, error) {
	faults := Faults{}
	text = strings.TrimSpace(text)
	if text == "" || text == "none" {
		return faults, nil
	}
	var errs []error
	for part := range strings.SplitSeq(text, ",") {
		name, rate, found := strings.Cut(strings.TrimSpace(part), "=")
		name = strings.TrimSpace(name)
		value, err := strconv.ParseFloat(strings.TrimSpace(rate), 64)
		switch {
		case !found:
			errs = append(errs, fmt.Errorf("fault %q is not NAME=RATE", part))
		case err != nil:
			errs = append(errs, fmt.Errorf("fault %s: the rate %q is not a number", name, rate))
		default:
			faults[name] = value
		}
	}
	errs = append(errs, faults.Check())
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return faults, nil
}

// Check names every unknown fault and every rate outside 0 to 1.
func (f Faults) Check() error {
	var errs []error
	known := FaultNames()
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if !slices.Contains(known, name) {
			errs = append(errs, fmt.Errorf("there is no fault %q; the names are: %s", name, strings.Join(known, ", ")))
		}
		if rate := f[name]; !(rate >= 0 && rate <= 1) {
			errs = append(errs, fmt.Errorf("fault %s: the rate %v is not in 0 to 1", name, rate))
		}
	}
	return errors.Join(errs...)
}

// String is the form that ParseFaults reads: names in order, those of rate 0 left out, "none" when nothing is left.
func (f Faults) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if f[name] > 0 {
			parts = append(parts, name+"="+strconv.FormatFloat(f[name], 'g', -1, 64))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ",")
}

// spell says whether a fault that comes in spells holds now. The caller holds mu.
func (s *Sandbox) spell(fault string) bool {
	return s.hits(fault, strconv.FormatInt(s.now().UnixNano()/int64(s.cfg.SpellLength), 10))
}

// clock is the vendor's clock. The caller holds mu.
func (s *Sandbox) clock() time.Time {
	return s.now().Add(time.Duration(s.faults[FaultClockSkew] * float64(s.cfg.ClockSkew)))
}

// hits says whether the fault strikes the thing that the names stand for. The caller holds mu.
func (s *Sandbox) hits(fault string, names ...string) bool {
	rate := s.faults[fault]
	return rate > 0 && s.dice.share(append([]string{"fault", fault}, names...)...) < rate
}
