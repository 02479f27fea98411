package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// sender sends deliveries, many at a time and in no order.
type sender struct {
	client *http.Client
	slots  chan struct{}
	queued int        // Guarded by Sandbox.mu.
	held   []*holding // Guarded by Sandbox.mu.
}

// holding is a delivery that waits until some others were sent.
type holding struct {
	left int
	free chan struct{}
}

func newSender(s *Sandbox) *sender {
	transport := &http.Transport{
		MaxIdleConnsPerHost: s.cfg.DeliveryParallel, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10,
	}
	return &sender{
		client: &http.Client{
			Transport: transport, Timeout: s.cfg.DeliveryTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		slots: make(chan struct{}, s.cfg.DeliveryParallel),
	}
}

// delivery is one event on its way to one webhook.
type delivery struct {
	id, event, key string
	hook           *hook
	job            *job
	stamp          stamp  // The envelope's timestamp.
	firstSecret    string // Of the first attempt.

	early   bool
	dup     bool
	delay   time.Duration
	reorder bool

	first chan struct{} // Closed by tried when the first attempt was made, or can't be awaited.
	tried func()
}

// fire makes the deliveries of a job that ended. The caller holds mu.
func (s *Sandbox) fire(j *job) []*delivery {
	if !s.fires(j) {
		return nil
	}
	var made []*delivery
	for _, h := range j.account.hooks {
		if h.event == j.event() && h.active && s.hits(FaultWebhookOff, j.key, h.event) {
			h.active = false
			s.sent.SwitchedOff++
		}
		if h.event == j.event() && (h.active || s.switches.PausedKeep) {
			made = append(made, s.start(j, h, j.key+"/"+strconv.Itoa(len(made))))
		}
	}
	return made
}

// fires says whether a job that ended so has an event. The caller holds mu.
func (s *Sandbox) fires(j *job) bool {
	switch {
	case j.status == stateForgotten || (j.kind == kindSync && !s.switches.SyncFires):
		return false
	case j.status == stateFailed:
		return s.switches.EventsForFailed
	case j.status == stateCancelled:
		return s.switches.EventsForCancelled
	default:
		return true
	}
}

// start sets a delivery on its way; key names it in questions of chance. The caller holds mu.
func (s *Sandbox) start(j *job, h *hook, key string) *delivery {
	d := &delivery{
		id: s.id("delivery"), event: h.event, key: key, hook: h, job: j, early: j.rush, first: make(chan struct{}),
		dup: s.hits(FaultDup, key), reorder: s.hits(FaultReorder, key),
	}
	d.tried = sync.OnceFunc(func() { close(d.first) })
	if s.hits(FaultDelay, key) {
		d.delay = s.dice.between(2*s.cfg.DelayUnit, 10*s.cfg.DelayUnit, "delay", key)
	}
	s.sent.Events++
	switch {
	case s.hits(FaultDrop, key):
		s.drop(d)
	case !h.active:
		h.kept = append(h.kept, d)
		d.tried()
	case s.sender.queued >= s.cfg.MaxQueued:
		s.settle(s.open(d, 1), attemptAbandoned, 0, time.Time{})
		s.sent.Abandoned++
		d.tried()
	default:
		s.dispatch(d)
	}
	return d
}

// dispatch sends a delivery in a goroutine of its own. The caller holds mu.
func (s *Sandbox) dispatch(d *delivery) {
	s.sender.queued++
	s.spawn(func() {
		s.deliver(d)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sender.queued--
	})
}

// drop loses a delivery; half of the time the log knows of it. The caller holds mu.
func (s *Sandbox) drop(d *delivery) {
	s.sent.Dropped++
	if s.dice.pick(2, "drop log", d.key) == 0 {
		s.settle(s.open(d, 1), attemptAbandoned, 0, time.Time{})
	}
	d.tried()
}

// deliver makes attempts until one succeeds, the gaps are used up, or the webhook is gone or paused.
func (s *Sandbox) deliver(d *delivery) {
	s.mu.Lock()
	row := s.open(d, 1)
	s.mu.Unlock()
	if !d.early && !s.holdBack(d) {
		return
	}
	for n := 1; ; n++ {
		status, sent := s.attempt(d, n)
		if n == 1 {
			d.tried()
		}
		if s.ctx.Err() != nil {
			return
		}
		var again bool
		if row, again = s.after(d, row, status, sent); !again {
			return
		}
		if !sleep(s.ctx, s.cfg.RetryGaps[n-1]) {
			return
		}
	}
}

// holdBack waits as the faults delay and reorder want it; false when the sandbox ends.
func (s *Sandbox) holdBack(d *delivery) bool {
	if d.delay > 0 {
		s.mu.Lock()
		s.sent.Delayed++
		s.mu.Unlock()
		if !sleep(s.ctx, d.delay) {
			return false
		}
	}
	if !d.reorder {
		return true
	}
	h := &holding{left: s.cfg.ReorderAfter, free: make(chan struct{})}
	s.mu.Lock()
	s.sent.Reordered++
	s.sender.held = append(s.sender.held, h)
	s.mu.Unlock()
	timer := time.NewTimer(s.cfg.ReorderHold)
	defer timer.Stop()
	select {
	case <-h.free:
		return true
	case <-timer.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// free counts a delivery that was sent for those that wait for it. The caller holds mu.
func (s *Sandbox) free() {
	var rest []*holding
	for _, h := range s.sender.held {
		if h.left--; h.left > 0 {
			rest = append(rest, h)
			continue
		}
		close(h.free)
	}
	s.sender.held = rest
}

// attempt sends the delivery once, or twice under the fault dup. It returns the answer's status, 0 for none, and
// whether anything was sent.
func (s *Sandbox) attempt(d *delivery, n int) (int, bool) {
	select {
	case s.sender.slots <- struct{}{}:
		defer func() { <-s.sender.slots }()
	case <-s.ctx.Done():
		return 0, false
	}
	req, ok := s.prepare(d, n)
	if !ok {
		return 0, false
	}
	if d.dup && n == 1 {
		return s.sendTwice(d, req), true
	}
	status := s.post(req)
	s.mu.Lock()
	s.free()
	s.mu.Unlock()
	return status, true
}

// sendTwice sends the same delivery twice, in half of the cases at the same moment.
func (s *Sandbox) sendTwice(d *delivery, req outgoing) int {
	s.mu.Lock()
	s.sent.Duplicated++
	together := s.dice.pick(2, "dup together", d.key) == 0
	s.mu.Unlock()
	second := make(chan struct{})
	if together {
		go func() {
			defer close(second)
			s.post(req)
		}()
	}
	status := s.post(req)
	if !together {
		close(second)
		s.post(req)
	}
	<-second
	s.mu.Lock()
	s.free()
	s.mu.Unlock()
	return status
}

// outgoing is one request ready to be sent.
type outgoing struct {
	url, event, id, signature string
	body                      []byte
	hook                      *hook
	secret                    string // Of the hook's that signed the body as it is; empty when none did.
}

// prepare builds and signs the request; false when the webhook is gone or paused.
func (s *Sandbox) prepare(d *delivery, n int) (outgoing, bool) {
	envelope := wireEnvelope{Event: d.event, WebhookID: d.hook.id, Data: s.callbackData(d.job)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.hook.deleted || !d.hook.active {
		return outgoing{}, false
	}
	envelope.DeliveryID, envelope.Timestamp = d.id, d.stamp
	body, err := json.Marshal(envelope)
	if err != nil {
		s.log.ErrorContext(s.ctx, "delivery not encoded", slog.String("job_id", d.job.id), slog.Any("err", err))
		return outgoing{}, false
	}
	if d.firstSecret == "" {
		d.firstSecret = d.hook.secret
	}
	secret := d.hook.secret
	key := []string{d.key, strconv.Itoa(n)}
	if s.switches.RetriesKeepSignature {
		secret = d.firstSecret
	}
	if d.hook.oldSecret != "" && s.hits(FaultOldSig, key...) {
		secret = d.hook.oldSecret
	}
	sound := secret
	if s.hits(FaultWrongSig, key...) {
		secret, sound = "whsec_"+s.dice.text(32, "garbage", d.key), ""
		s.sent.WrongSignature++
	}
	req := outgoing{url: d.hook.url, event: d.event, id: d.id, body: body, hook: d.hook, secret: sound}
	req.signature = Sign(s.switches.Signature, secret, d.id, d.stamp.String(), body)
	if s.hits(FaultAlter, key...) {
		req.body, req.secret = bytes.Replace(body, []byte(`"data":{`), []byte(`"data":{"altered":true,`), 1), ""
		s.sent.Altered++
	}
	return req, true
}

// callbackData is what the envelope holds.
func (s *Sandbox) callbackData(j *job) any {
	form := s.Switches().CallbackBody
	switch {
	case j.extracting():
		return s.viewExtract(j, true)
	case form == "full" && j.kind == kindBatch:
		return s.viewBatch(j, 1, 0, true)
	case form == "full":
		return s.viewCrawl(j, 1, 0, true)
	}
	snap := s.snap(j, 1, 1, true)
	switch {
	case form == "empty":
		return wireNotice{JobID: j.id, Status: snap.status}
	case j.kind == kindBatch:
		return snap.batchSummary(j)
	default:
		return snap.crawlSummary(j)
	}
}

// post sends one request and returns the status of the answer, 0 for none.
func (s *Sandbox) post(o outgoing) int {
	status, err := s.exchange(o)
	if err != nil && s.ctx.Err() == nil {
		s.log.DebugContext(s.ctx, "delivery without answer", slog.String("url", o.url), slog.Any("err", err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent.Attempts++
	switch {
	case status == 0:
		s.sent.Unanswered++
	case status >= 200 && status <= 299:
		s.sent.Accepted++
	default:
		s.sent.Refused++
	}
	if o.secret != "" && !o.hook.untold[o.secret] && status == http.StatusUnauthorized {
		s.sent.RefusedValid++
		s.refused[o.secret]++
	}
	return status
}

func (s *Sandbox) exchange(o outgoing) (int, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.DeliveryTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url, bytes.NewReader(o.body))
	if err != nil {
		return 0, fmt.Errorf("request for a delivery: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "scraper-api-webhook/1.0")
	req.Header.Set("X-Webhook-Signature", o.signature)
	req.Header.Set("X-Webhook-Delivery-Id", o.id)
	req.Header.Set("X-Webhook-Event", o.event)
	resp, err := s.sender.client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("sending a delivery: %w", err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)); err != nil {
		return resp.StatusCode, fmt.Errorf("reading the answer to a delivery: %w", err)
	}
	return resp.StatusCode, nil
}

// after notes how an attempt ended; it returns the row of the next attempt, and whether there is one.
func (s *Sandbox) after(d *delivery, row *attempt, status int, sent bool) (*attempt, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	good := sent && status >= 200 && status <= 299
	last := !sent || row.number > len(s.cfg.RetryGaps)
	switch {
	case good:
		s.settle(row, attemptSuccess, status, s.clock())
		s.sent.Delivered++
		d.hook.refusals = 0
		return row, false
	case last:
		s.settle(row, attemptAbandoned, status, time.Time{})
		s.sent.Abandoned++
	default:
		s.settle(row, attemptFailed, status, time.Time{})
	}
	if sent {
		d.hook.refusals++
		if off := s.switches.DisableAfter; off > 0 && d.hook.refusals >= off {
			d.hook.active = false
		}
	}
	if last {
		return row, false
	}
	return s.open(d, row.number+1), true
}
