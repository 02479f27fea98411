package store_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"rollcall/store"
	"rollcall/store/storetest"
)

// stepped is a store in a drill, and what its steps saw from outside: each
// step's name with what was there then, at first a setting's value.
type stepped struct {
	*store.Store
	t    *testing.T
	look string // What is looked at from outside.
	seen []string
	full atomic.Bool // Whether the disk is.
}

func newStepped(t *testing.T) *stepped {
	t.Helper()
	dsn := storetest.DSN(t)
	outside := storetest.Open(t, dsn)
	s := &stepped{t: t, look: `SELECT coalesce((SELECT value FROM settings WHERE key = 'k'), '')`}
	var err error
	s.Store, err = store.Open(t.Context(), store.Config{DSN: dsn, Fail: s.fail, Step: func(name string) {
		s.seen = append(s.seen, name+"="+word(t, outside, s.look))
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (s *stepped) fail(write bool) error {
	if write && s.full.Load() {
		return &pgconn.PgError{Code: "53100"}
	}
	return nil
}

// set writes the setting in a transaction, which then ends as end says.
func (s *stepped) set(value string, end func(store.Tx) error) error {
	return s.InTx(s.t.Context(), func(ctx context.Context, tx store.Tx) error {
		if err := tx.SetSetting(ctx, "k", value, time.Now()); err != nil {
			return err
		}
		return end(tx)
	})
}

func well(store.Tx) error { return nil }

func (s *stepped) wantSeen(want ...string) {
	s.t.Helper()
	if !slices.Equal(s.seen, want) {
		s.t.Errorf("got the steps %q, want %q", s.seen, want)
	}
	s.seen = nil
}

// wantCode wants an error of Postgres.
func (s *stepped) wantCode(err error, code string) {
	s.t.Helper()
	if got, ok := errors.AsType[*pgconn.PgError](err); !ok || got.Code != code {
		s.t.Errorf("got %v, want an error with SQLSTATE %s", err, code)
	}
}

// TestStepsStandAroundEachCommit: a step right before each commit and one right
// after it, none around what is read or rolled back, each named after who asked.
func TestStepsStandAroundEachCommit(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	if err := s.set("1", well); err != nil {
		t.Fatal(err)
	}
	s.wantSeen("stepped.set.commit.before=", "stepped.set.commit.after=1")
	if err := s.SetSetting(t.Context(), "k", "2", time.Now()); err != nil {
		t.Fatal(err)
	}
	s.wantSeen("Queries.SetSetting.commit.before=1", "Queries.SetSetting.commit.after=2")
	s.look = `SELECT count(*)::text FROM deliveries`
	group := []*store.Arrival{{Delivery: store.Delivery{VendorJobID: "a", ReceivedAt: time.Now(), Headers: []byte{}, Body: []byte{}, Status: 200}}}
	if _, err := s.Arrive(t.Context(), group, store.JobTask{}, time.Now()); err != nil {
		t.Fatal(err)
	}
	s.wantSeen("Store.Arrive.commit.before=0", "Store.Arrive.commit.after=1")
	if _, err := s.Gates(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.set("3", func(store.Tx) error { return errors.ErrUnsupported }); !errors.Is(err, errors.ErrUnsupported) {
		t.Fatal(err)
	}
	s.wantSeen()
}

// TestFullDisk: writes and commits fail as the server would fail them, and
// leave nothing behind; what reads goes on.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	s.full.Store(true)
	s.wantCode(s.SetSetting(t.Context(), "k", "1", time.Now()), "53100")
	s.wantCode(s.set("2", well), "53100")
	s.wantCode(s.InTx(t.Context(), func(ctx context.Context, tx store.Tx) error {
		s.wantCode(tx.SetSetting(ctx, "k", "3", time.Now()), "53100")
		_, err := tx.Setting(ctx, "k")
		return err
	}), "25P02")
	s.wantCode(s.InTx(t.Context(), func(ctx context.Context, tx store.Tx) error {
		s.wantCode(tx.SetSetting(ctx, "k", "4", time.Now()), "53100")
		return nil
	}), "53100")
	s.full.Store(false)
	s.wantCode(s.set("5", func(store.Tx) error {
		s.full.Store(true)
		return nil
	}), "53100")
	if value, err := s.Setting(t.Context(), "k"); value != "" || err != nil {
		t.Errorf("got %q, %v, want a setting that was never stored", value, err)
	}
	s.wantSeen()
}
