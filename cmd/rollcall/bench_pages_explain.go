package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"rollcall/store"
)

// statement is one statement that a page sent, as it sent it.
type statement struct {
	conn *pgx.Conn
	sql  string
	args []any
}

// listener notes the statements of a store. It implements pgx.QueryTracer.
type listener struct {
	mu   sync.Mutex
	said []statement
}

// TraceQueryStart implements pgx.QueryTracer.
func (l *listener) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.said != nil {
		l.said = append(l.said, statement{conn, data.SQL, slices.Clone(data.Args)})
	}
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (l *listener) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// begin notes from now on, take returns what was said and stops.
func (l *listener) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = make([]statement, 0, 64)
}

func (l *listener) take() []statement {
	l.mu.Lock()
	defer l.mu.Unlock()
	said := l.said
	l.said = nil
	return said
}

// explained is what EXPLAIN (ANALYZE, BUFFERS) says of one statement.
type explained struct {
	SQL     string   `json:"sql"`     // In one line, cut short.
	MS      float64  `json:"ms"`      // Planning and execution.
	Buffers int64    `json:"buffers"` // Blocks looked at, in memory or not.
	Scans   []string `json:"scans"`   // Large tables that were read from end to end.
}

// explainer runs statements again with EXPLAIN, each in a transaction that is rolled back.
type explainer struct {
	conn  *pgxpool.Conn
	large map[string]bool
	// noScans makes Postgres scan a table only when nothing else can be done. In a small database, where it would scan any
	// table, that shows what has no index to go by.
	noScans bool
}

// newExplainer calls large the tables that have at least that many rows, among those that grow without end when it is 0.
func newExplainer(ctx context.Context, s *store.Store, atLeast int64, noScans bool) (*explainer, error) {
	conn, err := s.Pool().Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("reach the database: %w", err)
	}
	x := &explainer{conn: conn, large: map[string]bool{}, noScans: noScans}
	rows, err := conn.Query(ctx, `SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
		AND (CASE WHEN $1::bigint > 0 THEN reltuples >= $1 ELSE relname = ANY ($2) END)`, atLeast, largeTables())
	if err != nil {
		x.close()
		return nil, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		x.close()
		return nil, err
	}
	for _, name := range names {
		x.large[name] = true
	}
	return x, nil
}

func (x *explainer) close() { x.conn.Release() }

// explain runs what one page said again. Statements of one connection between begin and commit share a transaction, so that
// what SET LOCAL says holds for those after it.
func (x *explainer) explain(ctx context.Context, said []statement) ([]explained, error) {
	var out []explained
	perConn := map[*pgx.Conn][]statement{}
	var order []*pgx.Conn
	for _, each := range said {
		if perConn[each.conn] == nil {
			order = append(order, each.conn)
		}
		perConn[each.conn] = append(perConn[each.conn], each)
	}
	for _, conn := range order {
		some, err := x.explainTx(ctx, perConn[conn])
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

func (x *explainer) explainTx(ctx context.Context, said []statement) ([]explained, error) {
	tx, err := x.begin(ctx)
	if err != nil {
		return nil, err
	}
	var out []explained
	for _, each := range said {
		word := strings.ToUpper(strings.Fields(each.sql + " ;")[0])
		switch {
		case word == "COMMIT" || word == "ROLLBACK":
			if err := tx.Rollback(ctx); err != nil {
				return nil, err
			}
			if tx, err = x.begin(ctx); err != nil {
				return nil, err
			}
		case strings.HasPrefix(strings.ToUpper(each.sql), "SET LOCAL") || strings.Contains(each.sql, "set_config("):
			if _, err := tx.Exec(ctx, each.sql, each.args...); err != nil {
				return nil, err
			}
		case word == "SELECT" || word == "WITH":
			one, err := x.one(ctx, tx, each)
			if err != nil {
				return nil, fmt.Errorf("explain %.200s: %w", each.sql, err)
			}
			out = append(out, one)
		}
	}
	return out, tx.Rollback(ctx)
}

func (x *explainer) begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := x.conn.Begin(ctx)
	if err != nil || !x.noScans {
		return tx, err
	}
	_, err = tx.Exec(ctx, `SET LOCAL enable_seqscan = off`)
	return tx, err
}

// plan is a node of a plan, as EXPLAIN tells it.
type plan struct {
	NodeType string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Hit      int64   `json:"Shared Hit Blocks"`
	Read     int64   `json:"Shared Read Blocks"`
	Loops    float64 `json:"Actual Loops"`
	Plans    []plan  `json:"Plans"`
}

func (x *explainer) one(ctx context.Context, tx pgx.Tx, each statement) (explained, error) {
	var text []byte
	if err := tx.QueryRow(ctx, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+each.sql, each.args...).Scan(&text); err != nil {
		return explained{}, err
	}
	var told []struct {
		Plan      plan    `json:"Plan"`
		Planning  float64 `json:"Planning Time"`
		Execution float64 `json:"Execution Time"`
	}
	if err := json.Unmarshal(text, &told); err != nil || len(told) != 1 {
		return explained{}, fmt.Errorf("read the plan: %w", err)
	}
	line := strings.Join(strings.Fields(each.sql), " ")
	out := explained{SQL: line[:min(len(line), 300)], MS: round(told[0].Planning + told[0].Execution), Buffers: told[0].Plan.Hit + told[0].Plan.Read, Scans: []string{}}
	x.scans(&told[0].Plan, &out.Scans)
	return out, nil
}

// scans collects the large tables that a plan reads from end to end. What was planned and never run doesn't count.
func (x *explainer) scans(p *plan, into *[]string) {
	if p.NodeType == "Seq Scan" && x.large[p.Relation] && p.Loops > 0 && !slices.Contains(*into, p.Relation) {
		*into = append(*into, p.Relation)
	}
	for i := range p.Plans {
		x.scans(&p.Plans[i], into)
	}
}
