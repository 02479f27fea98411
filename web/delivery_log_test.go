package web

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/store"
)

// fakeLogs counts how often somebody asked that the vendor's log be read.
type fakeLogs struct {
	logReads atomic.Int64
	logs     int
}

func (f *fakeLogs) ReadLogNow(context.Context) (int, error) {
	f.logReads.Add(1)
	return f.logs, nil
}

// attempts makes n lines of the vendor's log, a second each before now, for a
// vendor's job, of a webhook that it makes; one in five was refused here.
func (b *bench) attempts(t *testing.T, vendorJob string, n int) int64 {
	t.Helper()
	webhook := b.id(t, `INSERT INTO webhooks (endpoint, event_type, url, state, created_at, state_at, vendor_webhook_id)
		VALUES ($1, 'batch_completed', 'https://desk.example/webhooks/geonode/x', 'live', $2, $2, $1) RETURNING id`, newToken()[:32], time.Now())
	b.exec(t, `INSERT INTO deliveries (webhook_id, received_at, verdict, status, reason, diagnosis, event_type, vendor_job_id, vendor_delivery_id, headers, body, body_size)
		SELECT $1, $2::timestamptz - g * interval '1 s', CASE WHEN g % 5 = 0 THEN 'refused' ELSE 'accepted' END, CASE WHEN g % 5 = 0 THEN 401 ELSE 200 END,
			'signature does not match', CASE WHEN g % 5 = 0 THEN 'retired_secret: Version 1 made it.' ELSE '' END, 'batch_completed', $3, 'delivery-' || g, '{}', 'x', 1
		FROM generate_series(1, $4::int) g`, webhook, time.Now(), vendorJob, n)
	b.exec(t, `INSERT INTO delivery_log (webhook_id, vendor_id, attempt, event_type, vendor_job_id, status, http_status, created_at, seen_at, delivery_id)
		SELECT webhook_id, vendor_delivery_id, 1, event_type, vendor_job_id, CASE status WHEN 200 THEN 'success' ELSE 'failed' END, status, received_at, received_at, id
		FROM deliveries WHERE webhook_id = $1`, webhook)
	return webhook
}

const (
	logRows      = "[data-testid=log] tbody tr"
	receivedRows = "[data-testid=deliveries] tbody tr"
)

// TestDeliveryLog: filters in the address, what each attempt comes to, its way
// to the delivery, and who may replay.
func TestDeliveryLog(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.seed(t, "november", 4)
	webhook := b.attempts(t, s.vendorID, 120)
	b.exec(t, `INSERT INTO delivery_log (webhook_id, vendor_id, attempt, event_type, status, created_at, seen_at) VALUES ($1, 'odd.one', 0, '<b>', 'parked', now(), now())`, webhook)
	operator, analyst := b.as(t, store.RoleOperator), b.as(t, store.RoleAnalyst)
	for filter, want := range map[string]int{
		"": 121, "?standing=refused": 24, "?standing=received": 96, "?standing=lost": 1, "?status=failed": 24, "?status=parked": 1, "?http=401": 24, "?class=2": 96,
		"?attempt=1": 120, "?job=" + s.vendorID: 120, fmt.Sprintf("?job=%d", s.job): 120, fmt.Sprintf("?batch=%d", s.batch): 120,
		fmt.Sprintf("?webhook=%d&status=success", webhook): 96, "?event=%3Cb%3E": 1, "?since=1999-01-01&until=1999-12-31": 0, "?batch=999999": 0,
	} {
		got := analyst.get("/deliveries/log" + filter)
		if rows := walk(t, analyst, "/deliveries/log"+filter, logRows+" th"); len(rows) != want {
			t.Errorf("%s: got %d rows, want %d", filter, len(rows), want)
		}
		if total := got.text("[data-testid=total]"); !strings.HasPrefix(total, fmt.Sprint(want, " attempt")) {
			t.Errorf("%s: got the total %q, want %d", filter, total, want)
		}
	}
	got := operator.get("/deliveries/log?standing=refused&since=2026-01-01")
	row := got.doc.Find(logRows).First()
	if text := row.Text(); !strings.Contains(text, "Refused by us") || !strings.Contains(text, "retired secret") || !strings.Contains(text, "401") {
		t.Errorf("a refused attempt: got %q", strings.Join(strings.Fields(text), " "))
	}
	if pick := row.Find("input[name=pick]").AttrOr("value", ""); pick != fmt.Sprintf("%d.1.delivery-5", webhook) {
		t.Errorf("picked as %q", pick)
	}
	all, err := url.Parse(got.doc.Find("[data-testid=replay-bar] a").AttrOr("href", ""))
	if err != nil || all.Path != "/replays/new" || all.Query().Get("from") != "log" || all.Query().Get("standing") != "refused" || all.Query().Get("since") != "2026-01-01T00:00:00Z" {
		t.Errorf("replay all leads to %v, %v", all, err)
	}
	if n := analyst.get("/deliveries/log").doc.Find("[data-testid=replay-bar], input[name=pick], form[action='/deliveries/log/read']").Length(); n != 0 {
		t.Errorf("an analyst has %d ways to replay or to read the log", n)
	}
	href := row.Find("td[data-label=Here] a").AttrOr("href", "")
	if page := analyst.get(href); !strings.Contains(page.text("dl"), "attempt 1, failed, 401") {
		t.Errorf("%s says %q, want the vendor's word beside ours", href, page.text("dl"))
	}
}

// TestReadLogNow: operators only, once a press, and the page says that it is at
// it.
func TestReadLogNow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.pipeline.logs = 1
	webhook := b.attempts(t, "v", 1)
	operator, analyst := b.as(t, store.RoleOperator), b.as(t, store.RoleAnalyst)
	if got := analyst.submit("/deliveries/log/read", nil); got.status != http.StatusForbidden {
		t.Errorf("an analyst: got %d, want 403", got.status)
	}
	if got := operator.submit("/deliveries/log/read", nil); got.status != http.StatusSeeOther || b.pipeline.logReads.Load() != 1 {
		t.Errorf("an operator: got %d, asked %d times", got.status, b.pipeline.logReads.Load())
	}
	follows := func() string {
		got := operator.get("/deliveries/log?status=success")
		return got.text("[data-testid=readings]") + got.doc.Find("#follow").AttrOr("hx-get", "")
	}
	if got := follows(); got != "batch_completed not read yet" {
		t.Errorf("before: got %q", got)
	}
	if err := b.store.AskLogRead(t.Context(), []int64{webhook}, b.clock.now()); err != nil {
		t.Fatal(err)
	}
	if got := follows(); got != "batch_completed is being read…/deliveries/log?status=success" {
		t.Errorf("while it is read: got %q", got)
	}
	b.clock.advance(time.Hour)
	if got := follows(); got != "batch_completed not read yet" {
		t.Errorf("when its task died: got %q", got)
	}
	if err := b.store.SaveLogRead(t.Context(), &store.LogRead{WebhookID: webhook, ReadAt: new(b.clock.now()), Added: 7, NextPage: 5, Note: "page 5: <gone>"}); err != nil {
		t.Fatal(err)
	}
	if got := follows(); !strings.Contains(got, "(7 new, 0 changed)") || !strings.Contains(got, "more to come") || !strings.Contains(got, "<gone>") {
		t.Errorf("after: got %q", got)
	}
}

// TestBadFiltersOfDeliveriesStayAsTyped: 422, a message beside each field that
// is wrong, what was typed, and no rows that the filter did not ask for.
func TestBadFiltersOfDeliveriesStayAsTyped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.seed(t, "november", 4)
	b.attempts(t, s.vendorID, 3)
	v := b.as(t, store.RoleOperator)
	typed := map[string]string{
		"webhook": "first", "class": "9", "http": "teapot", "batch": "-3", "since": "yesterday", "until": "2026-02-30", "job": strings.Repeat("j", 801),
	}
	for path, more := range map[string]map[string]string{
		"/deliveries": {"verdict": "fine"}, "/deliveries/log": {"standing": "somewhere", "attempt": "first"},
	} {
		fields := maps.Clone(typed)
		maps.Copy(fields, more)
		query := url.Values{"event": {"batch_completed"}}
		for name, value := range fields {
			query.Set(name, value)
		}
		got := v.get(path + "?" + query.Encode())
		if got.status != http.StatusUnprocessableEntity || got.doc.Find(logRows+", "+receivedRows).Length() != 0 {
			t.Errorf("%s: got %d with rows", path, got.status)
		}
		for name, value := range fields {
			if text := got.text("#" + name + "-error"); text == "" {
				t.Errorf("%s: no message for %s", path, name)
			}
			if got.doc.Find("#error-summary a[href='#"+name+"']").Length() != 1 {
				t.Errorf("%s: the summary doesn't lead to %s", path, name)
			}
			box := got.doc.Find("#" + name)
			if is := box.AttrOr("value", ""); box.Is("input") && is != value {
				t.Errorf("%s: %s shows %q, want what was typed", path, name, is)
			}
		}
		if chosen := got.doc.Find("#event option[selected]").AttrOr("value", ""); chosen != "batch_completed" {
			t.Errorf("%s: the event shows %q", path, chosen)
		}
	}
	if got := v.get("/deliveries/log?from=abc"); got.status != http.StatusBadRequest {
		t.Errorf("a damaged cursor: got %d, want 400", got.status)
	}
}

// TestFiltersReadTimesInTheReadersZone, say which zone that is, and keep their
// rows when the reader moves to another while walking the list.
func TestFiltersReadTimesInTheReadersZone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.attempts(t, "v", 200)
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	b.exec(t, `UPDATE deliveries SET received_at = $1`, at)
	b.exec(t, `UPDATE delivery_log SET created_at = $1`, at)
	v := b.as(t, store.RoleAnalyst)
	in := func(zone string) { b.exec(t, `UPDATE users SET time_zone = $1`, zone) }
	for zone, want := range map[string]int{"": 200, "Europe/Berlin": 0, "America/New_York": 0} {
		in(zone)
		got := v.get("/deliveries?since=2026-07-01+12:00&until=2026-07-01+12:01")
		label := zone
		if zone == "" {
			label = "UTC"
		}
		if n := got.text("[data-testid=total]"); n != fmt.Sprint(want, " deliveries") || !strings.Contains(got.text("[data-testid=filter]"), label) {
			t.Errorf("%q: got %q, want %d, and the zone named", zone, n, want)
		}
	}
	seeded := b.seed(t, "november", 8)
	b.exec(t, `UPDATE items SET ended_at = $1 WHERE state = 'stored'`, at)
	in("Europe/Berlin")
	items := fmt.Sprintf("/batches/%d/items?since=2026-07-01+14:00&until=2026-07-01+14:01", seeded.batch)
	if got := v.get(items).text("[data-testid=found]"); got != "4 items fit" {
		t.Errorf("items of two o'clock in Berlin: got %q", got)
	}
	if got := v.get(fmt.Sprintf("/exports/new?batch=%d&since=2026-07-01+14:00", seeded.batch)).body; !strings.Contains(got, "2026-07-01T12:00:00Z") {
		t.Error("an export since two o'clock in Berlin is not one since noon in UTC")
	}
	if got := v.get("/deliveries/log?since=2026-07-01+14:00&until=2026-07-01+14:01").text("[data-testid=total]"); got != "200 attempts" {
		t.Errorf("two o'clock in Berlin: got %q", got)
	}
	if got := v.get("/deliveries/log?since=2026-07-01T12:00:00Z").doc.Find("#since").AttrOr("value", ""); got != "2026-07-01 14:00" {
		t.Errorf("a time that an address says for all: shown as %q", got)
	}
	zones := []string{"Pacific/Kiritimati", "America/Adak", "", "Asia/Kathmandu"}
	seen := map[string]bool{}
	for path, i := "/deliveries/log", 0; path != ""; i++ {
		in(zones[i%len(zones)])
		page := v.get(path)
		for _, box := range page.doc.Find(logRows + " td[data-label=Here] a").EachIter() {
			seen[box.AttrOr("href", "")] = true
		}
		path = page.doc.Find(".pager a[rel=next]").AttrOr("href", "")
	}
	if len(seen) != 200 {
		t.Errorf("got %d of 200 rows of one moment", len(seen))
	}
}

// TestDeliveryPage: headers without credentials, the body as text and as bytes,
// bounded, and as a file that no browser opens.
func TestDeliveryPage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.seed(t, "november", 4)
	script := []byte(`{"note":"<script>alert(1)</script>"}`)
	small := b.deliver(t, s.vendorID, "accepted", script)
	large := b.deliver(t, s.vendorID, "refused", []byte(strings.Repeat("é", 100_000)))
	raw := b.deliver(t, "", "refused", []byte("\x00\xff\x01"))
	v, operator := b.as(t, store.RoleAnalyst), b.as(t, store.RoleOperator)
	got := v.get("/deliveries/" + idText(small))
	if got.text("#source") != string(script) || !strings.Contains(got.text("#bytes"), "7b 22 6e 6f 74 65 22") || strings.Contains(got.body, "<script>alert") {
		t.Errorf("small: text %q, bytes %q", got.text("#source"), got.text("#bytes"))
	}
	if got.doc.Find("[data-testid=timeline] li").Length() == 0 {
		t.Error("no timeline of the job")
	}
	big := v.get("/deliveries/" + idText(large))
	if n := len(big.text("#source")); n < 65_000 || n > 65_536 || len(big.text("#bytes")) > 100_000 || !strings.Contains(big.text(".card-say"), "beginning is shown") {
		t.Errorf("large: got %d bytes of text, said %q", n, big.text(".card-say"))
	}
	if got := v.get("/deliveries/" + idText(raw)); got.doc.Find("#source").Length() != 0 || !strings.Contains(got.text("#bytes"), "00 ff 01") {
		t.Errorf("bytes: got %q", got.text("#bytes"))
	}
	file := v.get("/deliveries/" + idText(raw) + "/body")
	if file.body != "\x00\xff\x01" || file.header.Get("Content-Type") != "application/octet-stream" || file.header.Get("X-Content-Type-Options") != "nosniff" ||
		!strings.HasPrefix(file.header.Get("Content-Disposition"), "attachment;") || !strings.Contains(file.header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("file: got %q with %v", file.body, file.header)
	}
	if who := b.id(t, `SELECT count(*) FROM audit_log WHERE what = 'export.delivery' AND on_id = $1`, idText(raw)); who != 1 {
		t.Errorf("got %d lines in the audit log, want one", who)
	}
	if got := v.get("/deliveries/999999/body"); got.status != http.StatusNotFound {
		t.Errorf("no such delivery: got %d, want 404", got.status)
	}
	b.exec(t, `UPDATE deliveries SET headers = '', body = '', verdict = 'accepted', recovered_at = now() WHERE id = $1`, large)
	gone := v.get("/deliveries/" + idText(large))
	if !strings.Contains(gone.text("main"), "No body kept") || gone.doc.Find("a[href$='/body']").Length() != 0 || gone.text("[data-testid=recovered]") == "" {
		t.Errorf("gone and recovered: got %q", gone.text("main"))
	}
	if links := operator.get("/deliveries/" + idText(small)).doc.Find("a[href='/replays/new?pick=" + idText(small) + "']").Length(); links != 1 {
		t.Errorf("got %d ways to replay it, want one", links)
	}
	if got := v.do(v.request(http.MethodHead, "/deliveries/"+idText(raw)+"/body", nil)); got.status != http.StatusOK {
		t.Errorf("HEAD of the file: got %d", got.status)
	}
	if who := b.id(t, `SELECT count(*) FROM audit_log WHERE what = 'export.delivery'`); who != 1 {
		t.Errorf("HEAD takes no bytes, and is in the audit log: %d lines", who)
	}
}
