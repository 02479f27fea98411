package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Why a drill ends before its time though nobody interrupted it.
var (
	errUnread = errors.New("nobody reads what it says any more")
	errHungUp = errors.New("its terminal is gone")
)

// untilCutOff makes a context that also ends when the reader of what is written goes away or the terminal is closed: by
// default either ends the program at once, and leaves its folders and processes behind. The writer tells of the first;
// the signal for it comes for any connection that breaks, and is only kept from ending the program.
func untilCutOff(ctx context.Context, out io.Writer) (context.Context, io.Writer, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	broken, hungUp := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	if !signal.Ignored(syscall.SIGHUP) { // As nohup has it.
		signal.Notify(hungUp, syscall.SIGHUP)
	}
	go func() {
		select {
		case <-hungUp:
			cancel(errHungUp)
		case <-ctx.Done():
		}
	}()
	return ctx, readWriter{out, cancel}, func() {
		signal.Stop(broken)
		signal.Stop(hungUp)
		cancel(nil)
	}
}

// readWriter writes to somebody, and tells when nobody reads.
type readWriter struct {
	io.Writer
	unread context.CancelCauseFunc
}

// Write implements io.Writer.
func (w readWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err != nil {
		w.unread(fmt.Errorf("%w: %w", errUnread, err))
	}
	return n, err
}
