package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"rollcall/internal/geonode"
	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/store/storetest"
)

// cord is the way of one process to the database. Cut, it ends every
// connection in the middle of whatever it was doing, as a crash does.
type cord struct {
	dsn      string
	network  string
	address  string
	listener net.Listener
	wg       sync.WaitGroup
	mu       sync.Mutex
	conns    []net.Conn
	gone     bool
}

func newCord(tb testing.TB, dsn string) *cord {
	tb.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "cord") //nolint:usetesting // A socket needs a short name.
	if err != nil {
		tb.Fatal(err)
	}
	c := &cord{dsn: fmt.Sprintf("host=%s port=%d user=%s dbname=%s sslmode=disable", dir, cfg.Port, cfg.User, cfg.Database)}
	if cfg.Password != "" {
		c.dsn += " password='" + cfg.Password + "'"
	}
	c.network, c.address = pgconn.NetworkAddress(cfg.Host, cfg.Port)
	if c.listener, err = net.Listen("unix", filepath.Join(dir, ".s.PGSQL."+strconv.Itoa(int(cfg.Port)))); err != nil {
		tb.Fatal(err)
	}
	c.wg.Go(c.serve)
	tb.Cleanup(func() {
		c.cut()
		_ = os.RemoveAll(dir)
	})
	return c
}

func (c *cord) serve() {
	for {
		near, err := c.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial(c.network, c.address)
		if err != nil || !c.hold(near, far) {
			_ = near.Close()
			continue
		}
		for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
			c.wg.Go(func() {
				_, _ = io.Copy(way[0], way[1])
				_, _ = way[0].Close(), way[1].Close()
			})
		}
	}
}

// hold keeps the connections for the cut; one that comes after it is ended.
func (c *cord) hold(conns ...net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		for _, one := range conns {
			_ = one.Close()
		}
		return false
	}
	c.conns = append(c.conns, conns...)
	return true
}

func (c *cord) cut() {
	c.mu.Lock()
	c.gone = true
	for _, one := range c.conns {
		_ = one.Close()
	}
	c.conns = nil
	c.mu.Unlock()
	_ = c.listener.Close()
	c.wg.Wait()
}

// process is a Rollcall that can crash: it has ways of its own to the database
// and to the vendor.
type process struct {
	pipe  *pipeline.Pipeline
	store *store.Store
	cord  *cord
	dead  atomic.Bool
}

var errDead = errors.New("this process is dead")

// via fails a dead process's calls, and keeps it from hearing of those
// that were under way.
func (p *process) via(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if p.dead.Load() {
			return nil, errDead
		}
		resp, err := next.RoundTrip(req)
		if err == nil && p.dead.Load() {
			_ = resp.Body.Close()
			return nil, errDead
		}
		return resp, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// newProcess makes and starts a process on the rig's database and takes its
// deliveries.
func (r *rig) newProcess(change func(*pipeline.Config)) (*process, error) {
	r.t.Helper()
	p := &process{cord: newCord(r.t, r.dsn)}
	p.store = storetest.Open(r.t, p.cord.dsn)
	client := r.newClient(func(c *geonode.Config) { c.Transport = p.via(c.Transport) })
	r.t.Cleanup(client.Close)
	p.pipe = r.newPipeline(setup{pipeline: func(c *pipeline.Config) {
		change(c)
		c.Store, c.Vendor = p.store, client
	}})
	if err := p.pipe.Start(context.Background()); err != nil {
		return nil, fmt.Errorf("start a process: %w", err)
	}
	r.receiver.pipe.Store(p.pipe)
	return p, nil
}

// stop ends the process in good order.
func (p *process) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), patienceOfTests)
	defer cancel()
	err := p.pipe.Stop(ctx)
	_ = p.store.Close()
	p.cord.cut()
	return err
}

// crash ends the process in the middle of what it does. What it leaves behind
// is made old enough for the next one to take over at once. The goroutines
// find out in their own time; the test ends after them.
func (r *rig) crash(p *process) {
	r.t.Helper()
	p.dead.Store(true)
	p.cord.cut()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.stop() // Whatever it says: it has no database any more.
	}()
	r.t.Cleanup(func() { <-ended })
	eventually(r.t, "the dead process's connections to go", func() bool {
		return r.number(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
			AND state IN ('active', 'idle in transaction') AND pid <> pg_backend_pid()`) == 0
	})
	r.exec(`UPDATE river_job SET state = 'available', scheduled_at = created_at WHERE state = 'running'`)
	r.exec(`DELETE FROM river_leader`)
	r.exec(`UPDATE jobs SET lease_until = lease_until - interval '1 hour' WHERE state = 'calling'`)
	r.exec(`UPDATE sync_calls SET lease_until = lease_until - interval '1 hour' WHERE ended_at IS NULL`)
}
