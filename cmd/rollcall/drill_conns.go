package main

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
)

// ownConns knows the backends of the drill's own connections to the database, so that a cut spares them: whoever watches
// must not be struck by what the servers are. They go by the same role and name as those of the servers.
type ownConns struct {
	mu   sync.Mutex
	pids map[int64]bool
}

func newOwnConns() *ownConns { return &ownConns{pids: map[int64]bool{}} }

// TraceConnectStart implements pgx.ConnectTracer.
func (*ownConns) TraceConnectStart(ctx context.Context, _ pgx.TraceConnectStartData) context.Context {
	return ctx
}

// TraceConnectEnd implements pgx.ConnectTracer.
func (o *ownConns) TraceConnectEnd(_ context.Context, data pgx.TraceConnectEndData) {
	if data.Err != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pids[int64(data.Conn.PgConn().PID())] = true
}

// TraceQueryStart implements pgx.QueryTracer, which a tracer must.
func (*ownConns) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (*ownConns) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// list returns the backends of all connections that there ever were.
func (o *ownConns) list() []int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.pids))
}
