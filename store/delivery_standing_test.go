package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"rollcall/store"
	"rollcall/store/storetest"
)

// TestRecoveredDeliveriesLeaveTheRefused, and deliveries that have gone leave
// their attempt received.
func TestRecoveredDeliveriesLeaveTheRefused(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	fillLog(t, s, 10)
	standing := func() store.Standing {
		rows, err := s.PageLog(t.Context(), store.LogFilter{From: noon().Add(3 * time.Second), Until: noon().Add(4 * time.Second)}, store.Key{}, 2)
		if err != nil || len(rows) != 1 {
			t.Fatalf("got %d attempts, %v", len(rows), err)
		}
		if got, err := s.PageLog(t.Context(), store.LogFilter{Standing: rows[0].Standing, Job: "vendor-3"}, store.Key{}, 2); len(got) != 1 || err != nil {
			t.Errorf("%s by the filter: got %d attempts, %v", rows[0].Standing, len(got), err)
		}
		return rows[0].Standing
	}
	if got := standing(); got != store.StandingRefused {
		t.Errorf("got %s, want refused", got)
	}
	exec(t, s, "UPDATE deliveries SET verdict = 'accepted', recovered_at = $1 WHERE vendor_delivery_id = 'delivery-3'", noon())
	if got := standing(); got != store.StandingReceived {
		t.Errorf("taken up later: got %s, want received", got)
	}
	exec(t, s, "DELETE FROM deliveries")
	if got := standing(); got != store.StandingReceived {
		t.Errorf("gone: got %s, want received", got)
	}
}

// TestRefusedDeliveriesThatGoAreNotReceived: an attempt that was refused here
// does not come to stand as received because its delivery is kept no longer.
func TestRefusedDeliveriesThatGoAreNotReceived(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	fillLog(t, s, 20)
	standings := func() string {
		rows, err := s.PageLog(t.Context(), store.LogFilter{From: noon().Add(2 * time.Second), Until: noon().Add(14 * time.Second)}, store.Key{}, 20)
		if err != nil {
			t.Fatal(err)
		}
		of := map[string]store.Standing{}
		for i := range rows {
			of[rows[i].VendorID] = rows[i].Standing
		}
		return fmt.Sprint(of["delivery-2"], " ", of["delivery-3"], " ", of["delivery-13"])
	}
	if got := standings(); got != "received refused refused" {
		t.Fatalf("before: got %s", got)
	}
	third := one(t, s, "SELECT id FROM deliveries WHERE vendor_delivery_id = 'delivery-3'")
	inTx(t, s, func(ctx context.Context, tx store.Tx) error { return tx.DropQuarantined(ctx, []int64{third}) })
	if got := standings(); got != "received lost refused" {
		t.Errorf("pushed out of the quarantine: got %s", got)
	}
	if got, err := s.DeleteDeliveries(t.Context(), noon().Add(time.Minute), store.Key{}, 100); got.Gone != 19 || err != nil {
		t.Errorf("too old: got %+v, %v", got, err)
	}
	if got := standings(); got != "received lost lost" {
		t.Errorf("kept for its time: got %s", got)
	}
}
