package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"rollcall/store"
	"rollcall/store/storetest"
)

// sharedID is what the vendor calls it, which is no part of a statement.
const sharedID = `it's ?0 "shared"`

// sharedLog is the log of one delivery that the vendor tries again and again.
type sharedLog struct {
	t *testing.T
	s *store.Store
	n int // Readings so far.
}

func newSharedLog(t *testing.T) *sharedLog {
	t.Helper()
	s := storetest.New(t)
	fillLog(t, s, 0)
	return &sharedLog{t: t, s: s}
}

// arrives writes a refused delivery with the vendor's id, answered 401.
func (l *sharedLog) arrives(after time.Duration) int64 {
	l.t.Helper()
	return one(l.t, l.s, `INSERT INTO deliveries (webhook_id, received_at, verdict, status, vendor_delivery_id, headers, body, body_size)
		VALUES (1, $1, 'refused', 401, $2, '', '', 0) RETURNING id`, noon().Add(after), sharedID)
}

// mirror reads one attempt of the log. The vendor's time is that of the first
// one, whichever it is.
func (l *sharedLog) mirror(attempt int, status *int) {
	l.t.Helper()
	l.n++
	word := "failed"
	if status == nil {
		word = "pending"
	}
	inTx(l.t, l.s, func(ctx context.Context, tx store.Tx) error {
		_, _, err := tx.MirrorLog(ctx, []store.LogRow{{
			WebhookID: 1, VendorID: sharedID, Attempt: attempt, Status: word, HTTPStatus: status,
			CreatedAt: noon(), SeenAt: noon().Add(time.Duration(l.n) * time.Hour),
		}})
		return err
	})
}

func (l *sharedLog) match() {
	l.t.Helper()
	if err := l.s.MatchLog(l.t.Context(), 1, noon().Add(-time.Hour), 100); err != nil {
		l.t.Fatal(err)
	}
}

// want compares the deliveries of the attempts, zero for none.
func (l *sharedLog) want(when string, ids ...int64) {
	l.t.Helper()
	got := word(l.t, l.s, `SELECT coalesce(string_agg(coalesce(delivery_id, 0)::text, ' ' ORDER BY attempt), '') FROM delivery_log`)
	if want := strings.Trim(fmt.Sprint(ids), "[]"); got != want {
		l.t.Errorf("%s: the attempts are the deliveries %q, want %q", when, got, want)
	}
}

// TestAttemptsOfOneIDAreTheirOwnDeliveries: each attempt comes to be the
// delivery that it was, in whatever order the two become known.
func TestAttemptsOfOneIDAreTheirOwnDeliveries(t *testing.T) {
	t.Parallel()
	l := newSharedLog(t)
	// The vendor's time is nearer to the second than to the first, which is it all the same while it is the only attempt.
	first, second := l.arrives(-400*time.Millisecond), l.arrives(100*time.Millisecond)
	l.mirror(1, new(401))
	l.want("one attempt of two is read", first)
	l.mirror(2, new(401))
	l.want("both are read", first, second)
	l.mirror(3, nil)
	l.want("one more is planned", first, second, 0)
	l.mirror(3, new(401))
	l.want("what it was is not written yet", first, second, 0)
	third := l.arrives(200 * time.Millisecond)
	l.match()
	l.want("it is written", first, second, third)
	exec(t, l.s, "DELETE FROM deliveries WHERE id = $1", second)
	exec(t, l.s, "UPDATE delivery_log SET delivery_id = NULL WHERE delivery_id = $1", second)
	l.match()
	l.want("one is pushed out: no other takes its place", first, 0, third)
	exec(t, l.s, "DELETE FROM deliveries WHERE id = $1", first)
	fourth := l.arrives(time.Second)
	l.mirror(4, new(401))
	l.want("one that has gone stays its attempt's", first, 0, third, fourth)
}

// TestAttemptsAreMatchedAlongIndexes: neither a reading nor the second look
// goes through the log or the deliveries.
func TestAttemptsAreMatchedAlongIndexes(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	fillLog(t, s, 20_000)
	var statements []string
	watched := *s
	store.Watch(&watched, func(query string) { statements = append(statements, query) })
	inTx(t, &watched, func(ctx context.Context, tx store.Tx) error {
		_, _, err := tx.MirrorLog(ctx, []store.LogRow{{WebhookID: 1, VendorID: "delivery-8", Attempt: 9, Status: "failed", HTTPStatus: new(401), CreatedAt: noon(), SeenAt: noon()}})
		return err
	})
	if err := watched.MatchLog(t.Context(), 1, noon().Add(5*time.Hour), 100); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, statement := range statements {
		if !strings.Contains(statement, "UPDATE delivery_log") {
			continue
		}
		seen++
		if plan := planOf(t, s, statement); wholeTable.MatchString(plan) || strings.Contains(plan, "Seq Scan on delivery_log") {
			t.Errorf("%s\n%s", statement, plan)
		}
	}
	if seen != 2 {
		t.Errorf("looked at %d statements, want 2", seen)
	}
}
