package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
)

// maxLog is where the server's log is put aside and a new one begun; there are two files at most.
const maxLog = 8 << 20

// maxTail is how much of what a program said is kept for error messages.
const maxTail = 4 << 10

// tail keeps the end of what is written to it. It is safe for concurrent use.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - maxTail; over > 0 {
		t.text = bytes.Clone(t.text[over:])
	}
	return len(p), nil
}

// String is the end of what was written.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}

// serverLog is a file of bounded size. It is safe for concurrent use.
type serverLog struct {
	path  string
	limit int64
	log   *slog.Logger

	mu     sync.Mutex
	file   *os.File
	size   int64
	failed bool
}

// openLog goes on with the log at path.
func openLog(path string, log *slog.Logger) (*serverLog, error) {
	l := &serverLog{path: path, limit: maxLog, log: log}
	err := l.open()
	return l, err
}

func (l *serverLog) open() error {
	file, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("log of the database: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(fmt.Errorf("log of the database: %w", err), file.Close())
	}
	l.file, l.size = file, info.Size()
	return nil
}

// Write always takes everything: an error would close the pipe that the server writes to. Trouble is told once.
func (l *serverLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.write(p); err != nil && !l.failed {
		l.failed = true
		l.log.Error("database log can't be written", slog.String("path", l.path), slog.Any("error", err))
	}
	return len(p), nil
}

func (l *serverLog) write(p []byte) error {
	if l.size > 0 && l.size+int64(len(p)) > l.limit {
		if err := errors.Join(l.file.Close(), os.Rename(l.path, l.path+".1"), l.open()); err != nil {
			return err
		}
	}
	n, err := l.file.Write(p)
	l.size += int64(n)
	return err
}

// Close closes the file; it may be called more than once.
func (l *serverLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return closeOnce(l.file)
}
