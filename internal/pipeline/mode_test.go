package pipeline_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"rollcall/internal/pipeline"
)

// history makes jobs that settled three minutes ago, some of them with their
// webhook in time, after what was made before.
func (s *shelf) history(jobs, inTime int) {
	s.r.t.Helper()
	s.r.exec(`INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, ended_at, webhook_at, vendor_status)
		SELECT 1, 'extract', 'settled', 'submit', '', 1, $3::timestamptz, $3::timestamptz - interval '3 min',
			CASE WHEN n <= $2 THEN $3::timestamptz - interval '3 min' + interval '59 s' END, 'completed'
		FROM generate_series(1, $1::int) n`, jobs, inTime, s.clock.now())
}

// modes is what was written of auto mode, a line for each change.
func (s *shelf) modes() string {
	return s.r.text(`SELECT string_agg(id || ' ' || mode || ': ' || reason, E'\n' ORDER BY id) FROM mode_changes`)
}

// wantMode asks for the mode when what is known of it is too old to be used.
func (s *shelf) wantMode(p *pipeline.Pipeline, webhooks bool) {
	s.r.t.Helper()
	s.clock.forward(10 * time.Second)
	got, err := p.WebhooksTrusted(s.r.t.Context())
	if err != nil || got != webhooks {
		s.r.t.Errorf("got %v, %v, want %v", got, err, webhooks)
	}
}

func newModes(t *testing.T) *shelf {
	t.Helper()
	return newShelf(t, func(c *pipeline.Config) { c.Mode, c.WebhookFallback = pipeline.ModeAuto, time.Minute })
}

// TestAutoModeChangesAreWrittenDown, each once and with its reason.
func TestAutoModeChangesAreWrittenDown(t *testing.T) {
	t.Parallel()
	s := newModes(t)
	s.wantMode(s.r.pipe, false)
	hook := s.r.newWebhook("batch_completed")
	s.wantMode(s.r.pipe, true)
	s.history(50, 31)
	s.wantMode(s.r.pipe, false)
	s.wantMode(s.r.pipe, false)
	s.clock.forward(time.Minute)
	s.history(50, 40)
	s.wantMode(s.r.pipe, true)
	s.r.exec(`UPDATE webhooks SET state = 'inactive' WHERE endpoint = $1`, hook)
	s.wantMode(s.r.pipe, false)
	want := strings.Join([]string{
		"1 poll: no webhook is registered",
		"2 webhook: every webhook is active, and too few jobs have completed to judge them by",
		"3 poll: 31 of the last 50 completed jobs had their webhook within 60 s",
		"4 webhook: 40 of the last 50 completed jobs had their webhook within 60 s",
		"5 poll: the webhook for batch_completed was switched off",
	}, "\n")
	if got := s.modes(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestWebhooksThatMayYetComeSayNothing: polling finds ends before webhooks do,
// which must not keep auto mode polling for ever.
func TestWebhooksThatMayYetComeSayNothing(t *testing.T) {
	t.Parallel()
	s := newModes(t)
	s.r.newWebhook("extract_completed")
	s.history(50, 50)
	s.r.exec(`INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, ended_at, vendor_status)
		SELECT 1, 'extract', 'settled', 'submit', '', 1, $1, $1, 'completed' FROM generate_series(1, 50)`, s.clock.now())
	s.wantMode(s.r.pipe, true)
	s.clock.forward(time.Minute)
	s.wantMode(s.r.pipe, false)
}

// TestReplicasWriteAChangeOnce, however many notice it at the same time.
func TestReplicasWriteAChangeOnce(t *testing.T) {
	t.Parallel()
	s := newModes(t)
	replicas := []*pipeline.Pipeline{s.r.pipe}
	for range 5 {
		replicas = append(replicas, s.r.newPipeline(setup{pipeline: func(c *pipeline.Config) {
			c.OnlySubmit, c.Now = true, s.clock.now
		}}))
	}
	for round := range 4 {
		var asking sync.WaitGroup
		for _, p := range replicas {
			asking.Go(func() { s.wantMode(p, round%2 == 1) })
		}
		asking.Wait()
		if got := s.r.number(`SELECT count(*) FROM mode_changes`); got != int64(round+1) {
			t.Errorf("got %d changes after %d, want each once:\n%s", got, round+1, s.modes())
		}
		if round%2 == 0 {
			s.r.newWebhook(fmt.Sprint("event_", round))
			s.r.exec(`UPDATE webhooks SET state = 'live'`)
		} else {
			s.r.exec(`UPDATE webhooks SET state = 'gone'`)
		}
	}
}

// TestJobsThatWaitForWebhooksArePolledSoon once webhooks are not to be relied
// on any more.
func TestJobsThatWaitForWebhooksArePolledSoon(t *testing.T) {
	t.Parallel()
	s := newModes(t)
	s.r.newWebhook("extract_completed")
	s.wantMode(s.r.pipe, true)
	s.open(20, 10*time.Second, "processing", "processing")
	s.r.exec(`UPDATE jobs SET next_poll_at = $1 WHERE id <= 15`, s.clock.now().Add(10*time.Minute))
	s.r.exec(`UPDATE jobs SET next_poll_at = $1 WHERE id > 15`, s.clock.now().Add(20*time.Second))
	s.r.exec(`UPDATE webhooks SET state = 'gone'`)
	s.wantMode(s.r.pipe, false)
	now := s.clock.now()
	if got := s.r.number(`SELECT count(*) FROM jobs WHERE next_poll_at <= $1`, now.Add(5*time.Second)); got != 15 {
		t.Errorf("got %d jobs to be polled within 5 s, want the 15 that waited for webhooks", got)
	}
	if got := s.r.number(`SELECT count(DISTINCT next_poll_at) FROM jobs`); got < 10 {
		t.Errorf("got %d times, want the polls spread", got)
	}
}

// TestPollNoticesThatWebhooksFail: with nothing else going on the loop itself
// judges.
func TestPollNoticesThatWebhooksFail(t *testing.T) {
	t.Parallel()
	s := newModes(t)
	s.r.newWebhook("extract_completed")
	s.wantMode(s.r.pipe, true)
	s.r.exec(`UPDATE webhooks SET state = 'moved'`)
	s.clock.forward(10 * time.Second)
	if _, err := s.r.pipe.Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.modes(); !strings.HasSuffix(got, "2 poll: the webhook for extract_completed was moved to another address") {
		t.Errorf("got %s", got)
	}
}
