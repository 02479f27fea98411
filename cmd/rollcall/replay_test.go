package main

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"rollcall/internal/geonode"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// undelivered makes n jobs at the vendor that are ours and whose deliveries reach nobody, waits until the vendor has
// given them up, and returns the number of the webhook.
func (d *desk) undelivered(t *testing.T, n int) int64 {
	t.Helper()
	ctx := t.Context()
	hooks, err := d.store.Webhooks(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var hook *store.Webhook
	for _, w := range hooks {
		if w.EventType == "extract_completed" {
			hook = w
		}
	}
	for i := range n {
		got, err := d.vendor.SubmitExtract(ctx, geonode.ExtractRequest{URL: sandbox.MadeURLs(n, 7)[i], Options: geonode.Options{Formats: []geonode.Format{"markdown"}}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.store.SQL().ExecContext(ctx, `WITH b AS (INSERT INTO batches (name, kind, options, created_at, submitted, accepted)
				VALUES ('b', 'extract', '{}', now(), 1, 1) RETURNING id),
			j AS (INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, vendor_job_id, accepted_at)
				SELECT id, 'extract', 'accepted', 'submit', '\x01', 1, now(), $1, now() FROM b RETURNING id, batch_id),
			i AS (INSERT INTO items (batch_id, position, url, url_hash, current_job_id, created_at)
				SELECT batch_id, 1, 'https://a.example/', '\x02', id, now() FROM j RETURNING id, current_job_id)
			INSERT INTO job_items (job_id, input_index, item_id) SELECT current_job_id, 0, id FROM i`, got.JobID)
		if err != nil {
			t.Fatal(err)
		}
	}
	for given, limit := 0, time.After(patience); given < n; {
		list, err := d.vendor.ListDeliveries(ctx, *hook.VendorWebhookID, geonode.DeliveryParams{Page: 1, Status: geonode.DeliveryAbandoned})
		if err != nil {
			t.Fatal(err)
		}
		if given = len(list.Items); given >= n {
			break
		}
		select {
		case <-limit:
			t.Fatalf("the vendor gave up %d deliveries, want %d", given, n)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return hook.ID
}

// TestReplayCommand replays what the vendor gave up, with no server running; the second time there is nothing left to
// settle.
func TestReplayCommand(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	mustRun(t, d.vars, "webhook", "register")
	hook := strconv.FormatInt(d.undelivered(t, 3), 10)
	args := []string{"replay", "--webhook", hook, "--status", "abandoned", "--since", "2h"}
	told := func(more ...string) toldReplay {
		t.Helper()
		var got toldReplay
		if err := json.Unmarshal([]byte(mustRun(t, d.vars, append(args, more...)...)), &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := told("--json", "--dry-run"); got.Jobs != 3 || got.Calls != 3 || got.SettledNow != 0 || !got.DryRun || got.ID != 0 {
		t.Errorf("dry run: got %+v", got)
	}
	if got := told("--json"); got.State != store.ReplayDone || got.SettledNow != 3 || got.Errors != 0 || got.ID == 0 {
		t.Errorf("got %+v, want all three settled", got)
	}
	if got := told("--json"); got.SettledNow != 0 || got.AlreadySettled != 3 {
		t.Errorf("the same again: got %+v, want nothing settled", got)
	}
	text := mustRun(t, d.vars, append(args, "--refetch")...)
	for _, want := range []string{"3 jobs of ours: 3 settled already", "refetching the settled ones: about 3 further calls", "done: 3 already settled, 0 settled now", "fetched once more: 3 jobs, 0 results differ"} {
		if !strings.Contains(text, want) {
			t.Errorf("the command doesn't say %q:\n%s", want, text)
		}
	}
	var who, source string
	err := d.store.SQL().QueryRowContext(t.Context(), `SELECT who, source FROM audit_log WHERE what = 'replay.run' LIMIT 1`).Scan(&who, &source)
	if err != nil || who == "" || source != "command line" {
		t.Errorf("audit: got %q from %q, %v", who, source, err)
	}
	for line, want := range map[string]string{
		"replay":                                    "say what to replay",
		"replay --webhook 99":                       "there is no webhook 99",
		"replay --since yesterday-ish":              "neither a time span",
		"replay --received --status failed":         "with --received use --verdict",
		"replay --verdict refused":                  "use it with --received",
		"replay --standing odd":                     "choose one of received",
		"replay --received --verdict odd":           "choose one of accepted",
		"replay --webhook " + url.PathEscape("x y"): "--webhook",
	} {
		if got := rollcall(t, envOf(d.vars), strings.Fields(line)...); got.code == 0 || !strings.Contains(got.errOut, want) {
			t.Errorf("%s: got %d %s, want %q", line, got.code, got.errOut, want)
		}
	}
}

func TestSinceTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for text, want := range map[sinceTime]time.Time{
		"": {}, "2h": now.Add(-2 * time.Hour), "2026-11-28": now.Add(-36 * time.Hour), "2026-11-29T11:00:00Z": now.Add(-time.Hour), "2026-11-29 11:30": now.Add(-30 * time.Minute),
	} {
		if got, err := text.at(now); err != nil || !got.Equal(want) {
			t.Errorf("%q: got %s, %v, want %s", text, got, err, want)
		}
	}
	if got, err := sinceTime("2026-11-28").end(now); err != nil || !got.Equal(now.Add(-12*time.Hour)) {
		t.Errorf("until a day: got %s, %v, want the end of it", got, err)
	}
	for _, text := range []sinceTime{"-2h", "tomorrow", "2026-13-01"} {
		if _, err := text.at(now); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
