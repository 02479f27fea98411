package geonode_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"rollcall/internal/geonode"
)

// TestCallsAreCounted makes one call of each kind, one that is answered with an
// error and one that nobody hears, over the turn of an hour.
func TestCallsAreCounted(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 10, 59, 59, 0, time.UTC)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	}))
	c, err := geonode.New(geonode.Config{BaseURL: server.URL, APIKey: "key", Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	ctx := t.Context()
	call := func(do func() error) {
		t.Helper()
		if err := do(); err == nil {
			t.Error("the teapot answered")
		}
	}
	call(func() error {
		_, err := c.SubmitBatch(ctx, geonode.BatchRequest{URLs: []string{"https://a.example/"}})
		return err
	})
	call(func() error { _, err := c.GetExtract(ctx, "j"); return err })
	call(func() error { _, err := c.GetBatch(ctx, "j", geonode.Page{Number: 1, Size: 50}); return err })
	call(func() error { _, err := c.GetBatch(ctx, "j", geonode.Page{Number: 2, Size: 50}); return err })
	call(func() error { _, err := c.GetBatch(ctx, "j/../k", geonode.Page{Number: 0, Size: 900}); return err }) // Refused before it is sent.
	now = now.Add(time.Second)
	call(func() error { _, err := c.ListExtracts(ctx, geonode.ExtractListParams{}); return err })
	call(func() error { _, err := c.CancelCrawl(ctx, "j"); return err })
	call(func() error { _, err := c.ListWebhooks(ctx, geonode.ListParams{Page: 3}); return err })
	call(func() error { _, _, err := c.RotateSecret(ctx, "w"); return err })
	call(func() error { _, err := c.ListDeliveries(ctx, "w", geonode.DeliveryParams{}); return err })
	call(func() error { _, err := c.Usage(ctx); return err })
	call(func() error { _, err := c.Statistics(ctx, time.Time{}, time.Time{}); return err })
	c.Close() // Its idle connections with it.
	server.Close()
	call(func() error { _, err := c.Usage(ctx); return err }) // Nobody is there any more.

	ten, eleven := now.Truncate(time.Hour).Add(-time.Hour), now.Truncate(time.Hour)
	want := map[geonode.Calls]int64{
		{Hour: ten, Kind: geonode.CallSubmit}: 1, {Hour: ten, Kind: geonode.CallStatus}: 2, {Hour: ten, Kind: geonode.CallPage}: 1,
		{Hour: eleven, Kind: geonode.CallList}: 1, {Hour: eleven, Kind: geonode.CallCancel}: 1, {Hour: eleven, Kind: geonode.CallWebhooks}: 2,
		{Hour: eleven, Kind: geonode.CallLog}: 1, {Hour: eleven, Kind: geonode.CallUsage}: 2,
	}
	taken := c.TakeCalls()
	if left := c.TakeCalls(); len(left) != 0 {
		t.Errorf("taken twice: %v", left)
	}
	c.GiveBackCalls(taken)
	for _, got := range c.TakeCalls() {
		n := got.N
		got.N = 0
		if want[got] != n {
			t.Errorf("%v: got %d, want %d", got, n, want[got])
		}
		delete(want, got)
	}
	for key, n := range want {
		t.Errorf("%v: none counted, want %d", key, n)
	}
	if !slices.ContainsFunc(taken, func(c geonode.Calls) bool { return c.Kind == geonode.CallPage }) {
		t.Errorf("no further page among %v", taken)
	}
}
