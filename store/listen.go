package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

// ChannelBatch carries the id of a batch whose counters changed.
const ChannelBatch = "rollcall_batch"

// The pauses before Listen connects again: they double up to the longest,
// which is how long pages may stand still when the database is back.
const (
	listenBackoff    = 250 * time.Millisecond
	listenBackoffMax = 5 * time.Second
)

// listenAlive is how long Listen waits for a message before it asks whether
// the server is still there.
const listenAlive = time.Minute

// Listen is ListenTo for a single channel.
func (s *Store) Listen(ctx context.Context, channel string, hear func(payload string), lost func(error)) {
	s.ListenTo(ctx, []string{channel}, func(_, payload string) { hear(payload) }, lost)
}

// ListenTo calls hear with the channel and the payload of every notification
// on the channels until ctx ends, and with the payload "" for each of them each
// time it begins to listen: what was sent before that was missed. It uses one
// connection of its own, beside the pool's, and connects again when that is
// lost. hear must not block. The reason of every lost connection goes to lost,
// which may be nil.
func (s *Store) ListenTo(ctx context.Context, channels []string, hear func(channel, payload string), lost func(error)) {
	pause := listenBackoff
	for ctx.Err() == nil {
		heard, err := s.listenOnce(ctx, channels, hear)
		if ctx.Err() != nil {
			return
		}
		if lost != nil {
			lost(err)
		}
		if heard {
			pause = listenBackoff
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause/2)): //nolint:gosec // Only spreads the replicas' attempts.
		}
		pause = min(2*pause, listenBackoffMax)
	}
}

// listenOnce listens on one connection until it breaks; it reports whether it
// got as far as listening.
func (s *Store) listenOnce(ctx context.Context, channels []string, hear func(channel, payload string)) (bool, error) {
	cfg := s.pool.Config().ConnConfig
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return false, fmt.Errorf("listen on %s: %w", channels, err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
		defer cancel()
		_ = conn.Close(closing)
	}()
	for _, channel := range channels {
		if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
			return false, fmt.Errorf("listen on %s: %w", channel, err)
		}
	}
	for _, channel := range channels {
		hear(channel, "")
	}
	for {
		if err := waitOnce(ctx, conn, hear); err != nil {
			return true, fmt.Errorf("listen on %s: %w", channels, err)
		}
	}
}

// waitOnce waits for one notification; when none comes for a while it asks the
// server for a sign of life, as a dead connection is silent too.
func waitOnce(ctx context.Context, conn *pgx.Conn, hear func(channel, payload string)) error {
	waiting, cancel := context.WithTimeout(ctx, listenAlive)
	defer cancel()
	note, err := conn.WaitForNotification(waiting)
	switch {
	case err == nil:
		hear(note.Channel, note.Payload)
		return nil
	case ctx.Err() == nil && waiting.Err() != nil && !conn.IsClosed():
		asking, cancel := context.WithTimeout(ctx, connectTimeout)
		defer cancel()
		return conn.Ping(asking)
	default:
		return err
	}
}
