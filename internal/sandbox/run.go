package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"slices"
	"time"
)

// kick starts items while there are free slots, one from each job in turn. The caller holds mu.
func (s *Sandbox) kick() {
	for s.slots > 0 && len(s.ready) > 0 && !s.closed {
		j := s.ready[0]
		s.ready = s.ready[1:]
		if j.next >= len(j.items) || j.terminal() {
			continue
		}
		it := j.items[j.next]
		j.next++
		j.running++
		j.status, it.status = stateProcessing, stateProcessing
		s.slots--
		if j.next < len(j.items) {
			s.ready = append(s.ready, j)
		}
		rush := j.rush
		s.spawn(func() { s.run(j, it, rush) })
	}
}

// run carries one item to its end: waits its run length, unless it is in a rush, visits the page, records the outcome.
func (s *Sandbox) run(j *job, it *item, rush bool) {
	started := s.now()
	length := s.dice.logNormal(s.cfg.RunTime, s.cfg.RunSpread, "run", j.key, it.url)
	if !rush && !sleep(s.ctx, length) {
		return
	}
	page, end := s.visitItem(s.ctx, j, it)
	if s.ctx.Err() != nil {
		return
	}
	kept, err := s.keep(page)
	if err != nil {
		s.log.ErrorContext(s.ctx, "page not kept", slog.String("url", it.url), slog.Any("err", err))
		page, end = nil, outcome{code: "SANDBOX_FULL", message: "The sandbox has no room for this page."}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	it.body, it.duration = kept, max(s.now().Sub(started), length)
	s.record(j, it, page, end)
	s.slots++
	j.running--
	s.advance(j)
	s.kick()
}

// visitItem is visit, after the rules of a crawl and the faults of the item had their say.
func (s *Sandbox) visitItem(ctx context.Context, j *job, it *item) (*page, outcome) {
	if it.ordeal == "permanent" || (it.ordeal == "retryable" && it.attempt == 1) {
		return nil, ordealOutcome(it.ordeal, s.dice.pick(2, "ordeal code", it.url))
	}
	if j.crawl != nil && !s.cfg.IgnoreRobots && !s.robotsAllow(ctx, j.crawl, it.url) {
		return nil, outcome{code: "ROBOTS_DISALLOWED", message: "robots.txt of the site keeps crawlers away from this page."}
	}
	return s.visit(ctx, it, j.opts.headers)
}

func ordealOutcome(ordeal string, variant int) outcome {
	if ordeal == "permanent" {
		return []outcome{
			{code: "TARGET_BLOCKED", message: "The target keeps refusing the request.", httpStatus: 403},
			{code: "EXTRACTION_FAILED", message: "The page could not be extracted.", httpStatus: 200},
		}[variant]
	}
	return []outcome{
		{code: "RATE_LIMITED", message: "The target is throttling requests.", retryable: true, httpStatus: 429},
		{code: "TIMEOUT", message: "The target took too long.", retryable: true},
	}[variant]
}

// keep puts the text of a real page into the temporary file; that of a made page can be made again.
func (s *Sandbox) keep(p *page) (span, error) {
	if p == nil || p.made {
		return span{}, nil
	}
	return s.bodies.put(p.content)
}

// record writes the outcome of an item that ran. The caller holds mu.
func (s *Sandbox) record(j *job, it *item, p *page, end outcome) {
	it.end = end
	it.status = stateFailed
	if end.code == "" {
		it.status = stateCompleted
	}
	if j.frozen {
		it.status, p = stateCancelled, nil
	}
	j.account.release(j, it)
	s.raise(it)
	if p == nil || it.status != stateCompleted {
		return
	}
	if j.opts.wants("markdown") {
		it.mdSum = sum(p.content.Markdown)
	}
	if j.opts.wants("html") {
		it.htmlSum = sum(p.content.HTML)
	}
	if j.crawl != nil {
		it.links = p.content.Links
	}
}

// raise lets the child of an item share its end. The caller holds mu.
func (s *Sandbox) raise(it *item) {
	if it.child == nil {
		return
	}
	it.child.status = it.status
	if it.status == stateCancelled {
		return
	}
	s.end(it.child)
	if s.switches.ChildrenFire {
		s.fire(it.child)
	}
}

func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

// advance moves the job on after one of its items ended: a crawl follows links; a job with nothing left ends.
// The caller holds mu.
func (s *Sandbox) advance(j *job) {
	if j.vendorCancel && !j.terminal() && j.halfway() {
		s.stop(j)
	}
	if j.crawl != nil && !j.terminal() {
		before := j.next < len(j.items)
		s.expand(j)
		if !before && j.next < len(j.items) {
			s.ready = append(s.ready, j)
		}
	}
	if j.running > 0 || j.next < len(j.items) {
		return
	}
	if !j.terminal() && !j.never {
		s.finish(j)
	}
}

// halfway says that at least half of the items have ended. The caller holds mu.
func (j *job) halfway() bool { return 2*(j.next-j.running) >= len(j.items) }

// finish gives the job its last status and fires its event. The caller holds mu.
func (s *Sandbox) finish(j *job) {
	j.status = stateCompleted
	if j.kind != kindBatch && j.items[0].status == stateFailed {
		j.status = stateFailed
	}
	s.end(j)
	if j.rush && s.dice.pick(2, "stale", j.key) == 0 {
		j.stale = s.now().Add(s.cfg.EarlyLag)
	}
	if !j.rush {
		s.fire(j)
	}
	close(j.done)
}

// end stamps the end of the job, never before its start. The caller holds mu.
func (s *Sandbox) end(j *job) {
	j.ended = s.now()
	at := s.dice.stampAt(s.clock(), "completed", j.key)
	if at.Before(j.created.Time) {
		at = j.created
	}
	j.completed = &at
}

// cancelJob stops a batch or crawl; it returns how many items were running. The caller must not hold mu.
func (s *Sandbox) cancelJob(j *job) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.terminal() {
		return 0, errConflict()
	}
	s.stop(j)
	return j.running, nil
}

// stop cancels what of a job has not started. The caller holds mu.
func (s *Sandbox) stop(j *job) {
	j.status = stateCancelled
	j.ended = s.now()
	j.frozen = s.switches.CancelFreezes
	for _, it := range j.items[j.next:] {
		it.status = stateCancelled
		j.account.release(j, it)
		s.raise(it)
	}
	j.next = len(j.items)
	s.ready = slices.DeleteFunc(s.ready, func(r *job) bool { return r == j })
	if s.switches.EventsForCancelled && !j.rush {
		s.fire(j)
	}
	close(j.done)
}

// hurry waits until a job under the fault early has ended and its event was sent once; it gives up after EarlyWait,
// and the event then follows in its own time.
func (s *Sandbox) hurry(ctx context.Context, j *job) {
	s.mu.Lock()
	early := j.rush
	s.mu.Unlock()
	if !early {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.EarlyWait)
	defer cancel()
	select {
	case <-j.done:
	case <-ctx.Done():
		s.late(j) //nolint:contextcheck // Deliveries live on after the call.
		return
	}
	s.mu.Lock()
	sent := s.fire(j) //nolint:contextcheck // Deliveries live on after the call.
	s.sent.Early += len(sent)
	s.mu.Unlock()
	for _, d := range sent {
		select {
		case <-d.first:
		case <-ctx.Done():
			return
		}
	}
}

// late lets a job that was not early enough end like any other.
func (s *Sandbox) late(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.rush = false
	j.stale = time.Time{}
	if j.terminal() {
		s.fire(j)
	}
}

// millis is the run length of an item in milliseconds, as the vendor reports it.
func (it *item) millis() *int {
	ms := int(it.duration / time.Millisecond)
	return &ms
}
