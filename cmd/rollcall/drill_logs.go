package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// logError is a line of level error that a process logged, and how many like it were left out for its sake.
type logError struct {
	at      time.Time
	process string
	text    string
	folded  int
}

// What is told of a process that ended by itself. One that is started while the database is away ends at once, for its
// keeper to start it again; one that is ready must live through that.
const (
	fallen    = "ended by itself: "
	stillborn = "ended by itself before it was ready: "
)

// readErrors reads the lines of level error in the logs of all processes, and what they said that is no log line, such
// as a panic.
func readErrors(dir string) ([]logError, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return nil, fmt.Errorf("logs: %w", err)
	}
	var all []logError
	for _, file := range files {
		some, err := errorsOf(file)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// longestLine bounds a line of a log; past it reading fails rather than missing something.
const longestLine = 4 << 20

func errorsOf(path string) ([]logError, error) {
	file, err := os.Open(path) //nolint:gosec // A log of the drill's own.
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("logs: %w", err)
	}
	defer func() { _ = file.Close() }() // It was only read.
	process := strings.TrimSuffix(filepath.Base(path), ".log")
	var found []logError
	var last time.Time
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		l, bad := readLine(lines.Text())
		if l.at.IsZero() {
			l.at = last
		}
		last = l.at
		if bad {
			l.process = process
			found = append(found, l)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("logs: %s: %w", path, err)
	}
	return found, nil
}

// crash is how a Go program begins to tell that it dies, or this one that it gives up.
var crash = regexp.MustCompile(`^(panic:|fatal error:|rollcall: |WARNING: DATA RACE|SIG[A-Z]+: )`)

// readLine returns a line, and whether it is an error. What is no log line has no time.
func readLine(line string) (logError, bool) {
	var record struct {
		Time  time.Time `json:"time"`
		Level string    `json:"level"`
		Times int       `json:"times"`
	}
	if err := json.Unmarshal([]byte(line), &record); err != nil || record.Level == "" {
		return logError{text: line}, crash.MatchString(line)
	}
	return logError{text: line, at: record.Time, folded: record.Times}, record.Level == "ERROR"
}
