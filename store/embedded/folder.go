package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// port is part of the socket's name; nothing listens on it.
	port = "5432"
	// maxSocketPath is what every system's sockaddr_un can hold.
	maxSocketPath = 103
)

// folder is the layout of a database folder. Its base belongs to the owner process, data and run to the server.
type folder struct {
	base     string
	data     string  // PostgreSQL's data folder; there only when complete.
	init     string  // The same while initdb works on it.
	initLock string  // Held by initdb and its children.
	run      string  // Holds the socket.
	log      string  // What the server says.
	lock     string  // Held by the owner process, whose id it holds.
	account  account // Whom the server runs as.
}

// layout names the parts of a folder without touching it.
func layout(dir string) (folder, error) {
	base, err := filepath.Abs(dir)
	if err != nil {
		return folder{}, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	// Of a path with links the real one is taken, so that all owners speak of the same place.
	existing, rest := existingPart(base)
	if existing, err = filepath.EvalSymlinks(existing); err != nil {
		return folder{}, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	base = filepath.Join(existing, rest)
	return folder{
		base:     base,
		data:     filepath.Join(base, "data"),
		init:     filepath.Join(base, "data.init"),
		initLock: filepath.Join(base, "init.lock"),
		run:      filepath.Join(base, "run"),
		log:      filepath.Join(base, "postgres.log"),
		lock:     filepath.Join(base, "owner.lock"),
	}, nil
}

// existingPart splits a path into the part that exists and the rest.
func existingPart(path string) (string, string) {
	rest := ""
	for {
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			return path, rest
		}
		rest = filepath.Join(filepath.Base(path), rest)
		path = filepath.Dir(path)
	}
}

// openFolder checks that the folder can hold a database and makes what is missing of it.
func openFolder(dir string) (folder, error) {
	f, err := layout(dir)
	if err != nil {
		return folder{}, err
	}
	if socket := filepath.Join(f.run, ".s.PGSQL."+port); len(socket) > maxSocketPath {
		return folder{}, fmt.Errorf("%w: the path of its socket, %s, has %d bytes and may have %d; choose a folder with a shorter path",
			ErrFolder, socket, len(socket), maxSocketPath)
	}
	if strings.ContainsAny(f.base, ",\n\r") { // Clients take the comma for a list of hosts.
		return folder{}, fmt.Errorf("%w: its path %q holds a comma or a line break; choose another folder", ErrFolder, f.base)
	}
	if f.account, err = f.chooseAccount(); err != nil {
		return folder{}, err
	}
	if err := f.checkReach(); err != nil {
		return folder{}, err
	}
	return f, f.make()
}

// checkReach makes sure that the server's user may pass every folder on the way. The base folder, and those still
// missing, will let it pass.
func (f folder) checkReach() error {
	if !f.account.drop {
		return nil
	}
	existing, _ := existingPart(filepath.Dir(f.base))
	for dir := existing; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrFolder, err)
		}
		if !f.account.mayPass(info) {
			return fmt.Errorf("%w: PostgreSQL refuses to run as root, so it runs as %s, who may not enter %s (mode %#o); choose a folder that others may pass, such as /var/lib/rollcall, or run Rollcall as another user",
				ErrFolder, f.account.name, dir, info.Mode().Perm())
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// make makes the base folder, which the server's user may pass, and the socket's folder.
func (f folder) make() error {
	if err := f.makeBase(); err != nil {
		return fmt.Errorf("%w: %w", ErrFolder, err)
	}
	return f.makeOwn(f.run)
}

func (f folder) makeBase() error {
	mode := fs.FileMode(0o700)
	if f.account.drop {
		mode = 0o711
	}
	info, err := os.Stat(f.base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(filepath.Dir(f.base), 0o755); err != nil { //nolint:gosec // Parents hold nothing of ours and must be passable.
			return err
		}
		return makeDir(f.base, mode)
	case err == nil && f.account.drop && !f.account.mayPass(info):
		return os.Chmod(f.base, mode)
	}
	return err
}

// makeOwn makes a folder that only the server may enter, or gives it to the server when it is there.
func (f folder) makeOwn(dir string) error {
	if err := makeDir(dir, 0o700); err != nil {
		return fmt.Errorf("%w: %w", ErrFolder, err)
	}
	return f.give(dir)
}

// give makes a file or folder the server's.
func (f folder) give(path string) error {
	if !f.account.drop {
		return nil
	}
	if err := os.Chown(path, int(f.account.uid), int(f.account.gid)); err != nil {
		return fmt.Errorf("%w: %w", ErrFolder, err)
	}
	return nil
}

// makeDir makes a folder of exactly this mode, whatever the umask is.
func makeDir(dir string, mode fs.FileMode) error {
	if err := os.Mkdir(dir, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Chmod(dir, mode)
}

// major is the PostgreSQL version of the data, or 0 when there is none yet.
func (f folder) major() (int, error) {
	text, err := os.ReadFile(filepath.Join(f.data, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(f.data); errors.Is(err, fs.ErrNotExist) {
			return 0, nil
		}
		return 0, fmt.Errorf("%w: %s holds no PostgreSQL database; move it away (nothing was changed)", ErrFolder, f.data)
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	// Versions before 10 had two numbers, such as 9.6.
	first, _, _ := strings.Cut(strings.TrimSpace(string(text)), ".")
	major, err := strconv.Atoi(first)
	if err != nil {
		return 0, fmt.Errorf("%w: %s has version %q; choose another folder (nothing was changed)", ErrOtherVersion, f.data, text)
	}
	return major, nil
}

// own takes the folder for this process until the returned file is closed or the process ends, however it ends.
// Children don't inherit the lock.
func (f folder) own(ctx context.Context) (*os.File, error) {
	file, err := os.OpenFile(f.lock, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	// A Find holds the lock for a moment, so one refusal isn't believed.
	if err := flock(ctx, file, 250*time.Millisecond); err != nil {
		pid := make([]byte, 20)
		n, _ := file.ReadAt(pid, 0) // A short read is the normal case.
		return nil, errors.Join(
			fmt.Errorf("%w: %s belongs to the running process %s; stop that one first, or choose another folder",
				ErrInUse, f.base, strings.TrimSpace(string(pid[:n]))),
			file.Close())
	}
	if err := errors.Join(file.Truncate(0), writeAt(file, strconv.Itoa(os.Getpid())+"\n")); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrFolder, err), file.Close())
	}
	return file, nil
}

func writeAt(file *os.File, text string) error {
	_, err := file.WriteAt([]byte(text), 0)
	return err
}

// flock locks a file, trying for as long as patience says.
func flock(ctx context.Context, file *os.File, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil || !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// owned tells whether a process owns the folder.
func (f folder) owned() bool {
	file, err := os.Open(f.lock)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }() // It was only read; closing gives the shared lock back.
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	return errors.Is(err, syscall.EWOULDBLOCK)
}
