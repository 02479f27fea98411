package embedded

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// leastMajor is the oldest PostgreSQL that will do: lz4 compression of columns came with it.
const leastMajor = 14

// Binaries are the server programs of one PostgreSQL version.
type Binaries struct {
	Dir     string // Holds postgres and initdb.
	Version string // Such as 15.14.
	Major   int
}

// FindBinaries returns the server programs to use: those on the PATH, else the newest of Debian's, Red Hat's,
// Homebrew's or a source build's usual places. The error is ErrNoServer with what to install.
func FindBinaries(ctx context.Context) (Binaries, error) {
	found := findAll(ctx)
	if len(found) == 0 {
		return Binaries{}, fmt.Errorf("%w: install PostgreSQL %d or newer (Debian: apt-get install postgresql; macOS: brew install postgresql), or set DATABASE_URL",
			ErrNoServer, leastMajor)
	}
	return found[0], nil
}

// findAll returns every usable version in the order of preference.
func findAll(ctx context.Context) []Binaries {
	var found []Binaries
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			found = appendUsable(ctx, found, filepath.Dir(path))
		}
	}
	var others []Binaries
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql*/bin",
		"/usr/local/opt/postgresql*/bin",
		"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
		"/usr/local/pgsql/bin",
	} {
		dirs, _ := filepath.Glob(pattern) // Only a malformed pattern is an error.
		for _, dir := range dirs {
			others = appendUsable(ctx, others, dir)
		}
	}
	slices.SortStableFunc(others, func(a, b Binaries) int { return cmp.Compare(b.Major, a.Major) })
	return append(found, others...)
}

func appendUsable(ctx context.Context, list []Binaries, dir string) []Binaries {
	if bin, err := inspect(ctx, dir); err == nil {
		return append(list, bin)
	}
	return list
}

// inspect asks the programs in dir for their version.
func inspect(ctx context.Context, dir string) (Binaries, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return Binaries{}, fmt.Errorf("%w in %s: %w", ErrNoServer, dir, err)
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output() //nolint:gosec // The folder is a setting or a known place.
	if err != nil {
		return Binaries{}, fmt.Errorf("%w in %s: %w", ErrNoServer, dir, err)
	}
	match := regexp.MustCompile(`\(PostgreSQL\) ((\d+)[^\s]*)`).FindSubmatch(out)
	if match == nil {
		return Binaries{}, fmt.Errorf("%w in %s: postgres --version says %q", ErrNoServer, dir, strings.TrimSpace(string(out)))
	}
	major, err := strconv.Atoi(string(match[2]))
	if err != nil || major < leastMajor {
		return Binaries{}, fmt.Errorf("%w in %s: version %s is too old, %d or newer is needed", ErrNoServer, dir, match[1], leastMajor)
	}
	return Binaries{Dir: dir, Version: string(match[1]), Major: major}, nil
}

// binaries returns the programs for the folder: those of its data's version, or for a new folder the preferred ones.
func (f folder) binaries(ctx context.Context, dir string) (Binaries, error) {
	major, err := f.major()
	if err != nil {
		return Binaries{}, err
	}
	var found []Binaries
	if dir == "" {
		if _, err := FindBinaries(ctx); err != nil {
			return Binaries{}, err
		}
		found = findAll(ctx)
	} else {
		bin, err := inspect(ctx, dir)
		if err != nil {
			return Binaries{}, err
		}
		found = []Binaries{bin}
	}
	if major == 0 {
		return found[0], nil
	}
	for _, bin := range found {
		if bin.Major == major {
			return bin, nil
		}
	}
	return Binaries{}, fmt.Errorf("%w: %s holds data of PostgreSQL %d, but %s is PostgreSQL %s; install PostgreSQL %d, or choose another folder (nothing was changed)",
		ErrOtherVersion, f.data, major, found[0].Dir, found[0].Version, major)
}
