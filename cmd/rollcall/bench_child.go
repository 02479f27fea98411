package main

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// The ways to receive that are compared.
const (
	wayGroup  = "rollcall"
	wayPlain  = "one transaction each"
	wayVerify = "verification only"
)

// plainCommitters is how many transactions of one delivery each run at a time: more don't fit the pool beside the rest.
const plainCommitters = 16

// benchChildCmd is the measured side of a measurement. It prints where it listens as a line of JSON, answers each line
// of its input with its counts, and ends with its input.
type benchChildCmd struct {
	Way     string `default:"rollcall" help:"How deliveries are taken up."`
	Workers bool   `help:"Settle too."`
	Secret  string `help:"Of the webhook, for a way that knows no database."`
}

// Run serves until its input ends.
func (c *benchChildCmd) Run(ctx context.Context, a *app) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := newStack(a.config, a.log, a.now)
	err := c.serve(ctx, a, s)
	return errors.Join(err, s.close(ctx))
}

func (c *benchChildCmd) serve(ctx context.Context, a *app, s *stack) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.config.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.config.Listen, err)
	}
	front := openDoor(listener, s.log, s.now)
	s.onClose("server", front.close)
	var count statementCount
	if c.Way == wayVerify {
		front.admit(verifyOnly(c.Secret))
	} else if err := c.open(ctx, s, front, &count); err != nil {
		return err
	}
	return converse(a.in, a.out, front.url(), &count)
}

// open is stack.openAll with what is measured.
func (c *benchChildCmd) open(ctx context.Context, s *stack, front *door, count *statementCount) error {
	s.tracer = count
	if err := s.ownDatabase(ctx); err != nil {
		return err
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	if err := s.openVendor(); err != nil {
		return err
	}
	err := s.openPipeline(ctx, func(cfg *pipeline.Config) {
		cfg.OnlySubmit = !c.Workers
		if c.Way == wayPlain {
			cfg.GroupRows, cfg.Committers, cfg.PlainArrivals = 1, plainCommitters, true
		}
	})
	if err != nil {
		return err
	}
	if err := s.openWeb(front); err != nil { //nolint:contextcheck // A request's context is its own.
		return err
	}
	front.admit(s.web.Handler())
	return nil
}

// converse says where to find the process and answers for its counts until the other side has had enough.
func converse(in io.Reader, out io.Writer, url string, count *statementCount) error {
	say := json.NewEncoder(out)
	if err := say.Encode(benchReady{url}); err != nil {
		return fmt.Errorf("say where it listens: %w", err)
	}
	asked := bufio.NewScanner(in)
	for asked.Scan() {
		if err := say.Encode(benchCounts{count.statements.Load(), count.commits.Load()}); err != nil {
			return fmt.Errorf("say what was counted: %w", err)
		}
	}
	if err := asked.Err(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("hear what to count: %w", err)
	}
	return nil
}

// statementCount counts what is sent to the database, BEGIN and COMMIT included.
type statementCount struct{ statements, commits atomic.Int64 }

// TraceQueryStart implements pgx.QueryTracer.
func (c *statementCount) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	c.statements.Add(1)
	const outside = 'I' // Of a transaction, in the words of the protocol.
	if strings.EqualFold(data.SQL, "commit") || conn.PgConn().TxStatus() == outside && store.Writes(data.SQL) {
		c.commits.Add(1)
	}
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (*statementCount) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// verifyOnly is the least a receiver can do: read a delivery whole, verify it, answer. Nothing is kept.
func verifyOnly(secret string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, "the body did not arrive whole", http.StatusBadRequest)
			return
		}
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		given, err := hex.DecodeString(strings.TrimPrefix(r.Header.Get("X-Webhook-Signature"), "sha256="))
		if err != nil || !hmac.Equal(given, mac.Sum(nil)) {
			http.Error(w, "signature does not match", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"verdict":"accepted"}`) // The sender may have gone.
	})
}
