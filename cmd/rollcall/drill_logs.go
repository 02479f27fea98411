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
	"slices"
	"strings"
	"time"

	"rollcall/internal/sandbox"
)

// logError is a line of level error that a process logged.
type logError struct {
	at      time.Time
	process string
	text    string
}

// What is told of a process that ended by itself. One that is started while the database is away ends at once, for its
// keeper to start it again; one that is ready must live through that.
const (
	fallen    = "ended by itself: "
	stillborn = "ended by itself before it was ready: "
)

// excuse explains errors that the script brought about: what they say, by which faults, and how long after the end of
// one they may still come.
type excuse struct {
	says  *regexp.Regexp
	kinds []string // Of the script; or names of the vendor's faults. None: at any time.
	after time.Duration
}

// excuses are all there are. An error that none fits is a finding.
func excuses() []excuse {
	return []excuse{
		// SQLSTATE 57P01 to 57P03, 08006 and what the driver says when its connection goes.
		{
			regexp.MustCompile(`SQLSTATE (57P0[123]|08\w{3})|database server died|terminating connection|failed to connect|conn closed|connection refused|connection reset|broken pipe|unexpected EOF|bad connection`),
			[]string{actRestart, actPGKill, actCut},
			20 * time.Second,
		},
		{regexp.MustCompile(`SQLSTATE 53100`), []string{actDisk}, 20 * time.Second},
		// River's scheduler looks for equal tasks before it makes late ones available, and meets one that a wake added
		// meanwhile. Its transaction is undone, and made again five seconds later.
		{regexp.MustCompile(`JobScheduler: Error scheduling jobs.*river_job_unique_idx`), nil, 0},
		// River tells so when it is told to end between an insert and its notice; whoever works looks by itself too.
		{regexp.MustCompile(`Failed to send job insert notification.*context canceled`), []string{actTerm, actEnd}, termWithin},
		// River stops telling which tasks are done when that fails again and again; they are taken for stuck, and done again.
		{regexp.MustCompile(`jobcompleter.BatchCompleter: Too many errors`), []string{actRestart, actPGKill, actCut, actDisk}, 30 * time.Second},
		// A wake of many jobs locks the tasks that they have, and River marks others of them as done. The one that Postgres
		// ends of the two is made again.
		{regexp.MustCompile(`jobcompleter.BatchCompleter: Completer error \(will retry.*SQLSTATE 40P01`), nil, 0},
		// Jobs that the vendor lost are asked about until they are given up.
		{regexp.MustCompile(`"msg":"alarm".*does not know more than a fifth`), []string{sandbox.FaultForget, sandbox.FaultKeyRevoked}, giveUpLate + time.Minute},
		{regexp.MustCompile(`"msg":"vendor account refused, calls paused"`), []string{sandbox.FaultKeyRevoked, sandbox.FaultBalanceOut}, 10 * time.Second},
		{regexp.MustCompile("^" + stillborn + "exit status 1"), []string{actRestart, actPGKill, actCut, actDisk}, 20 * time.Second},
	}
}

// explains tells whether a fault of the time line brought the error about.
func (e excuse) explains(l logError, timeline []happening) bool {
	if !e.says.MatchString(l.text) {
		return false
	}
	if e.kinds == nil {
		return true
	}
	for _, h := range timeline {
		to := h.To
		if to.IsZero() {
			to = h.From
		}
		if !l.at.Before(h.From) && !l.at.After(to.Add(e.after)) && slices.ContainsFunc(e.kinds, h.is) {
			return true
		}
	}
	return false
}

// is tells whether it is a fault of that kind, or a mix of the vendor's faults with that one.
func (h happening) is(kind string) bool {
	return h.Kind == kind || h.Kind == actVendor && strings.Contains(","+h.Detail, ","+kind+"=")
}

// sortErrors parts what the script explains from what it doesn't.
func sortErrors(all []logError, timeline []happening) (int, []logError) {
	var unexplained []logError
	known := excuses()
	for _, l := range all {
		explained := false
		for _, e := range known {
			explained = explained || e.explains(l, timeline)
		}
		if !explained {
			unexplained = append(unexplained, l)
		}
	}
	return len(all) - len(unexplained), unexplained
}

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
		l, at, bad := readLine(lines.Text())
		if !at.IsZero() {
			last = at
		}
		if bad && len(found) > 0 && l == "" {
			continue
		}
		if bad {
			found = append(found, logError{at: last, process: process, text: l})
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("logs: %s: %w", path, err)
	}
	return found, nil
}

// crash is how a Go program begins to tell that it dies, or this one that it gives up.
var crash = regexp.MustCompile(`^(panic:|fatal error:|rollcall: |WARNING: DATA RACE|SIG[A-Z]+: )`)

// readLine returns the text and time of a line, and whether it is an error.
func readLine(line string) (string, time.Time, bool) {
	var record struct {
		Time  time.Time `json:"time"`
		Level string    `json:"level"`
	}
	if err := json.Unmarshal([]byte(line), &record); err != nil || record.Level == "" {
		return line, time.Time{}, crash.MatchString(line)
	}
	return line, record.Time, record.Level == "ERROR"
}
