package pipeline_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"rollcall/internal/geonode"
	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// workerEnv makes the test binary a worker process instead: it holds the
// database and the vendor's address, a line each.
const workerEnv = "ROLLCALL_TEST_WORKER"

// workerMain is a Rollcall process that a test may kill: a pipeline and its
// webhook endpoint, whose address is the first line it prints.
func workerMain() int {
	dsn, vendor, _ := strings.Cut(os.Getenv(workerEnv), "\n")
	ctx := context.Background()
	s, err := store.Open(ctx, store.Config{DSN: dsn, MaxConns: 12})
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	client, err := geonode.New(geonode.Config{BaseURL: vendor, APIKey: sandbox.DefaultAPIKey, Now: time.Now})
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	h := &receiver{}
	hooks := httptest.NewServer(h)
	p, err := pipeline.New(pipeline.Config{
		Store: s, Vendor: client, Now: time.Now, Key: bytes.Repeat([]byte{7}, 32), Account: "test",
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)), PublicURL: hooks.URL, Mode: pipeline.ModeWebhook,
		WebhookFallback: time.Hour, PollTick: 50 * time.Millisecond, NoReconcile: true,
	})
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	h.pipe.Store(p)
	if err := p.Start(ctx); err != nil {
		fmt.Println("error:", err)
		return 1
	}
	fmt.Println(hooks.URL)
	select {} // Until it is killed.
}

// worker is such a process.
type worker struct {
	cmd *exec.Cmd
	url string
}

func (r *rig) startWorker() *worker {
	r.t.Helper()
	self, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	w := &worker{cmd: exec.Command(self)}
	w.cmd.Env = append(os.Environ(), workerEnv+"="+r.dsn+"\n"+r.vendor.URL)
	said := &bytes.Buffer{}
	w.cmd.Stderr = said
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		w.kill()
		if r.t.Failed() {
			r.t.Logf("the worker said:\n%s", said)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.HasPrefix(line, "error:") {
		r.t.Fatalf("worker: %s %v", line, err)
	}
	w.url = strings.TrimSpace(line)
	return w
}

// kill is kill -9.
func (w *worker) kill() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}

// forward makes the rig's webhook endpoint pass deliveries on to the worker.
func (w *worker) forward(rw http.ResponseWriter, r *http.Request, body []byte) {
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, w.url+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadGateway)
		return
	}
	req.Header = r.Header.Clone()
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	rw.WriteHeader(resp.StatusCode)
}

// barrier holds back statements in the database: whoever's statement matches
// waits inside its transaction until the barrier is lifted.
type barrier struct {
	t    testing.TB
	r    *rig
	conn *sql.Conn
}

// barrierKey is the advisory lock of the barriers.
const barrierKey = 4711

// newBarrier raises the barrier; points are triggers by name: "ON jobs WHEN".
func (r *rig) newBarrier(points map[string]string) *barrier {
	r.t.Helper()
	r.exec(`CREATE FUNCTION held_back() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN NEW; END $$`)
	for name, on := range points {
		r.exec(fmt.Sprintf(`CREATE TRIGGER held_%s %s EXECUTE FUNCTION held_back()`, name, on))
	}
	conn, err := r.eyes.Conn(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	b := &barrier{t: r.t, r: r, conn: conn}
	if _, err := conn.ExecContext(context.Background(), "SELECT pg_advisory_lock($1::bigint)", barrierKey); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(b.lift)
	return b
}

// waiting is how many statements the barrier holds.
func (b *barrier) waiting() int64 {
	return b.r.number(`SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
		AND objid = $1 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`, barrierKey)
}

// deafen has what the barrier holds go on waiting when it is told to give up, as
// where that message is lost; deaf counts what was told so.
func (b *barrier) deafen() {
	b.r.exec(`CREATE OR REPLACE FUNCTION held_back() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN LOOP BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN NEW;
			EXCEPTION WHEN query_canceled THEN PERFORM pg_advisory_xact_lock_shared(4712); END; END LOOP; END $$`)
}

// deaf is how many statements were told to give up and wait all the same.
func (b *barrier) deaf() int64 {
	return b.r.number(`SELECT count(*) FROM pg_locks AS told JOIN pg_locks AS waits USING (pid, locktype, database) WHERE locktype = 'advisory'
		AND told.objid = $1 AND told.granted AND waits.objid = $2 AND NOT waits.granted
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`, barrierKey+1, barrierKey)
}

// lift lets everything pass, now and later.
func (b *barrier) lift() {
	if b.conn == nil {
		return
	}
	if _, err := b.conn.ExecContext(context.Background(), "SELECT pg_advisory_unlock($1::bigint)", barrierKey); err != nil {
		b.t.Error(err)
	}
	if err := b.conn.Close(); err != nil {
		b.t.Error(err)
	}
	b.conn = nil
}

// age makes a killed process's leavings old enough to be taken over at once:
// its running tasks, its leadership of the queue, and its claims.
func (r *rig) age() {
	r.t.Helper()
	r.exec(`UPDATE river_job SET attempted_at = attempted_at - interval '1 hour' WHERE state = 'running'`)
	r.exec(`DELETE FROM river_leader`)
	r.exec(`UPDATE jobs SET lease_until = lease_until - interval '1 hour' WHERE state = 'calling'`)
	r.exec(`UPDATE rotations SET lease_until = lease_until - interval '1 hour'`)
}
