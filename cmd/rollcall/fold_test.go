package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/slogtest"
	"testing/synctest"
	"time"
)

// foldedLog is a folding logger and what it writes.
func foldedLog() (*slog.Logger, func(), *bytes.Buffer) {
	var out bytes.Buffer
	log, flush := foldRepeats(slog.New(slog.NewTextHandler(&out, nil)))
	return log, flush, &out
}

// TestFoldRepeats warns for ten minutes, as an outage does, twice a second or as seldom as the slowest worker.
func TestFoldRepeats(t *testing.T) {
	t.Parallel()
	for _, gap := range []time.Duration{500 * time.Millisecond, 7 * time.Second} {
		t.Run(gap.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log, flush, out := foldedLog()
				for range 10 * time.Minute / gap {
					log.With(slog.String("queue", "settle")).Warn("no database", slog.Int("turn", 1))
					time.Sleep(gap)
				}
				flush()
				lines := strings.Split(strings.TrimSpace(out.String()), "\n")
				if len(lines) < 6 || len(lines) > 10 {
					t.Errorf("got %d lines, want the first three and a few more:\n%s", len(lines), out)
				}
				last := lines[len(lines)-1]
				if !strings.Contains(last, "queue=settle") || !strings.Contains(last, "times=") || strings.Contains(lines[0], "times=") {
					t.Errorf("got %q first and %q last, want the last with what is left out", lines[0], last)
				}
				log.Warn("no database")
				if got := strings.Count(out.String(), "\n"); got != len(lines)+1 {
					t.Error("after the flush: a warning is kept back, want it told at once")
				}
			})
		})
	}
}

// TestFoldForgets: what comes now and then is always told.
func TestFoldForgets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, flush, out := foldedLog()
		defer flush()
		for range 20 {
			log.Error("one thing")
			time.Sleep(4 * foldFirst)
		}
		if got := strings.Count(out.String(), "one thing"); got != 20 || strings.Contains(out.String(), "times=") {
			t.Errorf("got %d lines, want 20:\n%s", got, out)
		}
	})
}

// TestFoldKeeps: neither what is no warning is left out, nor what somebody was given an id for.
func TestFoldKeeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, flush, out := foldedLog()
		for range 50 {
			log.Info("request")
			log.Error("request failed", slog.String("error_id", "x"))
		}
		flush()
		if got := strings.Count(out.String(), "\n"); got != 100 {
			t.Errorf("got %d lines, want 100", got)
		}
	})
}

// TestFoldIsAHandler: groups and attributes are those of the handler beneath.
func TestFoldIsAHandler(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log, flush := foldRepeats(slog.New(slog.NewJSONHandler(&out, nil)))
	defer flush()
	err := slogtest.TestHandler(log.Handler(), func() []map[string]any { return decodeLines(t, out.Bytes()) })
	if err != nil {
		t.Error(err)
	}
	if log.Enabled(context.Background(), slog.LevelDebug) {
		t.Error("debug is enabled, want the level of the handler beneath")
	}
}

// decodeLines reads a log in JSON.
func decodeLines(t *testing.T, text []byte) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range bytes.Lines(text) {
		var one map[string]any
		if err := json.Unmarshal(line, &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}
