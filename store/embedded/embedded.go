// Package embedded runs a private PostgreSQL server in a folder, from the programs installed on this machine.
//
// The server has no TCP port and no password: it listens on a socket in a folder only its own user can enter, and
// lets in the user of this process and root. When this process is root the server runs as postgres, else nobody.
// One process owns a folder at a time; what a killed owner leaves behind is put in order by the next one. Data is
// never removed: a folder of another PostgreSQL major version is refused.
package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// Errors that Start returns, wrapped in a sentence that says what to do.
var (
	// ErrInUse means that another process owns the folder.
	ErrInUse = errors.New("database folder is in use")
	// ErrOtherVersion means that the folder's data is of a PostgreSQL major version that isn't installed.
	ErrOtherVersion = errors.New("database folder is of another PostgreSQL version")
	// ErrNoServer means that no PostgreSQL server programs were found.
	ErrNoServer = errors.New("no PostgreSQL server found")
	// ErrFolder means that the folder can't hold a database: its place, its name or its owner is wrong.
	ErrFolder = errors.New("database folder can't be used")
)

// appName is the database, and the role that owns it.
const appName = "rollcall"

// Config says where and how to run the server.
type Config struct {
	// Dir holds everything and nothing else; it is made when absent. When this process is root, others may pass it
	// (0711), but what is in it stays closed. Its path may have about 85 bytes.
	Dir string
	// BinDir holds postgres and initdb. Empty: FindBinaries looks for them.
	BinDir string
	// Settings are further server settings, such as max_connections; they win over ours.
	Settings map[string]string
	Logger   *slog.Logger
	// Now is the clock. Nil: time.Now.
	Now func() time.Time

	// pause is the shortest wait before a server that died is started again; it doubles. Zero: 100 ms.
	pause time.Duration
}

// Server is a running PostgreSQL server. A server that dies is started again, until Stop.
type Server struct {
	// Version is the server's, such as 15.14.
	Version string

	folder folder
	run    launcher
	lock   *os.File
	log    *slog.Logger
	now    func() time.Time
	pause  time.Duration

	end    context.CancelFunc // Ends the supervision.
	done   chan struct{}      // Closed when the server is gone for good.
	result error              // Why it went; written before done is closed.

	mu   sync.Mutex
	proc *postmaster // The present process; nil between two.
}

// Start runs the server in config.Dir and returns when it answers. ctx bounds only the start; a first start takes
// about a second, one after a crash as long as the recovery does. The caller must call Stop.
func Start(ctx context.Context, config Config) (*Server, error) {
	if config.Now == nil {
		config.Now = time.Now //nolint:forbidigo // The documented default.
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	f, err := openFolder(config.Dir)
	if err != nil {
		return nil, err
	}
	lock, err := f.own(ctx)
	if err != nil {
		return nil, err
	}
	s, err := start(ctx, f, lock, config)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

// start runs the server in a folder that this process owns.
func start(ctx context.Context, f folder, lock *os.File, config Config) (*Server, error) {
	bin, err := f.binaries(ctx, config.BinDir)
	if err != nil {
		return nil, err
	}
	out, err := openLog(f.log, config.Logger)
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	s := &Server{
		Version: bin.Version,
		folder:  f,
		run:     launcher{folder: f, bin: bin, out: out, settings: config.Settings},
		lock:    lock,
		log:     config.Logger,
		now:     config.Now,
		pause:   cmp.Or(config.pause, 100*time.Millisecond),
		end:     end,
		done:    make(chan struct{}),
	}
	started := make(chan error, 1)
	go s.supervise(ctx, life, started)
	if err := <-started; err != nil {
		end()
		<-s.done
		return nil, errors.Join(err, out.Close())
	}
	return s, nil
}

// DSN is the address of the database for pgx or psql. It holds no secret.
func (s *Server) DSN() string { return s.folder.dsn(appName) }

// Done is closed when the server is gone for good: after Stop, or when it died again and again.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err tells why the server is gone; nil before Done is closed and after an orderly Stop.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.result
	default:
		return nil
	}
}

// PID is the process id of the server, or 0 while there is none.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return 0
	}
	return s.proc.pid()
}

// Stop ends all connections, shuts the server down and gives the folder free. It may be called more than once.
// When ctx ends first the shutdown is forced, which costs the next start a recovery but no data, and told as an error.
func (s *Server) Stop(ctx context.Context) error {
	s.end()
	s.mu.Lock()
	proc := s.proc
	s.mu.Unlock()
	var err error
	if proc != nil {
		err = proc.stop(ctx)
	}
	<-s.done
	return errors.Join(err, s.run.out.Close(), closeOnce(s.lock))
}

// closeOnce closes a file that may be closed already.
func closeOnce(file *os.File) error {
	if err := file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("give the database folder free: %w", err)
	}
	return nil
}

// Find returns the address of the database that another process runs in dir, or false when none does.
func Find(dir string) (string, bool) {
	f, err := layout(dir)
	if err != nil || !f.owned() {
		return "", false
	}
	return f.dsn(appName), true
}

// dsn is the address of one database of the server.
func (f folder) dsn(database string) string {
	query := url.Values{"host": {f.run}, "port": {port}, "sslmode": {"disable"}}
	u := url.URL{Scheme: "postgres", User: url.User(appName), Path: "/" + database, RawQuery: strings.ReplaceAll(query.Encode(), "+", "%20")} // libpq knows no +.
	return u.String()
}
