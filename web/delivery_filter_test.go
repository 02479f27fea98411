package web

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rollcall/store"
)

func berlin(t *testing.T) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// TestFiltersOfDeliveriesThereAndBack: what an address says becomes a filter,
// its times in the reader's zone, and the address made of that says the same in
// every zone.
func TestFiltersOfDeliveriesThereAndBack(t *testing.T) {
	t.Parallel()
	query := url.Values{
		"webhook": {"3"}, "event": {" batch_completed "}, "verdict": {"refused"}, "status": {"parked"}, "class": {"4"}, "http": {"401"}, "attempt": {"2"},
		"job": {"104"}, "batch": {"12"}, "standing": {"refused"}, "since": {"2026-11-29 14:00"}, "until": {"2026-11-29"},
	}
	from, until := time.Date(2026, 11, 29, 13, 0, 0, 0, time.UTC), time.Date(2026, 11, 29, 23, 0, 0, 0, time.UTC)
	log, err := logFilterOf(query, berlin(t))
	wantLog := store.LogFilter{
		Webhook: 3, Event: "batch_completed", Status: "parked", Class: 4, HTTPStatus: 401, Attempt: 2, Job: "104", Batch: 12,
		Standing: store.StandingRefused, From: from, Until: until,
	}
	if diff := cmp.Diff(log, wantLog); diff != "" || err != nil {
		t.Errorf("log: %v, (-got +want):\n%s", err, diff)
	}
	if again, err := logFilterOf(logValues(log), time.UTC); err != nil || again != log {
		t.Errorf("log, back and there: got %+v, %v, want %+v", again, err, log)
	}
	received, err := deliveryFilterOf(query, berlin(t))
	wantReceived := store.DeliveryFilter{
		Webhook: 3, Event: "batch_completed", Verdict: store.VerdictRefused, Class: 4, Status: 401, Job: "104", Batch: 12, From: from, Until: until,
	}
	if diff := cmp.Diff(received, wantReceived); diff != "" || err != nil {
		t.Errorf("received: %v, (-got +want):\n%s", err, diff)
	}
	if again, err := deliveryFilterOf(deliveryValues(received), time.UTC); err != nil || again != received {
		t.Errorf("received, back and there: got %+v, %v, want %+v", again, err, received)
	}
	if got := logValues(store.LogFilter{}); len(got) != 0 {
		t.Errorf("no filter: got %v", got)
	}
}

// TestBadFiltersNameTheirField.
func TestBadFiltersNameTheirField(t *testing.T) {
	t.Parallel()
	for field, values := range map[string][]string{
		"webhook": {"0", "-1", "x", "1.5", "9223372036854775808"}, "class": {"1", "4xx", "44"}, "http": {"99", "1000", "ok"},
		"attempt": {"0", "2147483648"}, "batch": {"0", "november"}, "standing": {"lost?", "REFUSED"}, "since": {"yesterday", "2026-13-01", "0001-01-01"},
		"until": {"soon"}, "job": {strings.Repeat("x", 801), "a\x01b"}, "event": {"a\nb"}, "status": {"a\u202eb"},
	} {
		for _, value := range values {
			_, err := logFilterOf(url.Values{field: {value}}, time.UTC)
			if got := slices.Collect(maps.Keys(mistakesOf(t.Context(), err))); !slices.Equal(got, []string{field}) {
				t.Errorf("%s=%.40q: got mistakes in %v", field, value, got)
			}
		}
	}
	_, err := deliveryFilterOf(url.Values{"verdict": {"fine"}, "http": {"x"}, "since": {"2026-11-29"}, "until": {"2026-11-28"}}, time.UTC)
	if got := slices.Sorted(maps.Keys(mistakesOf(t.Context(), err))); !slices.Equal(got, []string{"http", "verdict"}) {
		t.Errorf("two mistakes: got %v", got)
	}
	_, err = deliveryFilterOf(url.Values{"since": {"2026-11-29"}, "until": {"2026-11-28"}}, time.UTC)
	if got := mistakesOf(t.Context(), err)["until"]; got == "" {
		t.Errorf("an end before the beginning: got %v", err)
	}
}
