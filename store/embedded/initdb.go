package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// ensureData makes the database when there is none. It is made aside and renamed when complete, so an interrupted
// initdb leaves nothing that could be taken for data.
func (l launcher) ensureData(ctx context.Context) error {
	if _, err := os.Lstat(l.folder.data); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	lock, err := os.OpenFile(l.folder.initLock, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFolder, err)
	}
	defer func() { _ = lock.Close() }() // It holds nothing.
	// An initdb that outlived its killed owner still holds the lock; it ends by itself.
	if err := flock(ctx, lock, time.Minute); err != nil {
		return fmt.Errorf("%w: an earlier initdb still works on %s: %w", ErrFolder, l.folder.init, err)
	}
	if err := l.makeData(ctx, lock); err != nil {
		return errors.Join(err, os.RemoveAll(l.folder.init))
	}
	if err := os.Rename(l.folder.init, l.folder.data); err != nil {
		return fmt.Errorf("%w: %w", ErrFolder, err)
	}
	return syncDir(l.folder.base)
}

// makeData runs initdb with the locale C.UTF-8, or where the system doesn't know that one with C.
func (l launcher) makeData(ctx context.Context, lock *os.File) error {
	locales := [][]string{{"--locale=C.UTF-8"}, {"--locale=C"}}
	if l.bin.Major >= 17 { // These bring C.UTF-8 themselves, the same on every system.
		locales[0] = []string{"--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"}
	}
	var errs []error
	for _, locale := range locales {
		if err := os.RemoveAll(l.folder.init); err != nil {
			return fmt.Errorf("%w: %w", ErrFolder, err)
		}
		if err := l.folder.makeOwn(l.folder.init); err != nil {
			return err
		}
		err := l.initdb(ctx, lock, locale)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("initdb: %w", ctx.Err())
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// initdb runs the program once. The lock is handed to it and its children, so that it is free only when all are gone.
func (l launcher) initdb(ctx context.Context, lock *os.File, locale []string) error {
	args := append([]string{
		"-D", l.folder.init, "-U", appName, "-E", "UTF8", "--auth=peer", "--no-instructions",
	}, locale...)
	cmd := exec.CommandContext(ctx, filepath.Join(l.bin.Dir, "initdb"), args...) //nolint:gosec // The folder is a setting or a known place.
	cmd.Dir = l.folder.base
	cmd.Env = childEnv()
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = l.folder.account.process()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // With its children.
	cmd.WaitDelay = 5 * time.Second
	out := new(tail)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return nil
}

// childEnv is the whole environment of the server's programs: nothing of ours can change what they do.
func childEnv() []string { return []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL=C", "TZ=UTC"} }

// syncDir makes a rename in dir last.
func syncDir(dir string) error {
	file, err := os.Open(dir) //nolint:gosec // The folder is a setting.
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFolder, err)
	}
	return errors.Join(file.Sync(), file.Close())
}
