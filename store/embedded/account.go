package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// account is the system user that the server runs as.
type account struct {
	uid, gid uint32
	name     string
	drop     bool // This process is root and must become the account.
}

// chooseAccount returns this process's user; for root the owner of the data, else postgres, else nobody.
func (f folder) chooseAccount() (account, error) {
	owner, err := f.owner()
	if err != nil {
		return account{}, err
	}
	if uid := os.Geteuid(); uid != 0 {
		if owner != "" && owner != strconv.Itoa(uid) {
			return account{}, fmt.Errorf("%w: %s belongs to user id %s, and this is user id %d; run Rollcall as that user or as root",
				ErrFolder, f.data, owner, uid)
		}
		return byID(strconv.Itoa(uid))
	}
	if owner == "0" {
		return account{}, fmt.Errorf("%w: %s belongs to root, as whom PostgreSQL refuses to run; give it to another user with chown -R", ErrFolder, f.data)
	}
	found, err := unprivileged(owner)
	found.drop = true
	return found, err
}

// unprivileged returns the owner's account, or for a new folder that of postgres or nobody.
func unprivileged(owner string) (account, error) {
	if owner != "" {
		return byID(owner)
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil && u.Uid != "0" {
			return accountOf(u)
		}
	}
	return account{}, fmt.Errorf("%w: PostgreSQL refuses to run as root, and neither user postgres nor nobody exists", ErrFolder)
}

// owner is the user id that the data belongs to, or "" when there is none yet.
func (f folder) owner() (string, error) {
	info, err := os.Stat(f.data)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrFolder, err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", fmt.Errorf("%w: the owner of %s can't be told on this system", ErrFolder, f.data)
	}
	return strconv.FormatUint(uint64(stat.Uid), 10), nil
}

func byID(uid string) (account, error) {
	u, err := user.LookupId(uid)
	if err != nil {
		return account{}, fmt.Errorf("%w: user id %s has no name on this system, which PostgreSQL needs; add it to /etc/passwd or set DATABASE_URL", ErrFolder, uid)
	}
	return accountOf(u)
}

func accountOf(u *user.User) (account, error) {
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("%w: user %s: %w", ErrFolder, u.Username, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("%w: group of user %s: %w", ErrFolder, u.Username, err)
	}
	return account{uid: uint32(uid), gid: uint32(gid), name: u.Username}, nil
}

// mayPass tells by the mode bits whether the account may enter a folder.
func (a account) mayPass(info fs.FileInfo) bool {
	bit := fs.FileMode(0o001)
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		switch {
		case stat.Uid == a.uid:
			bit = 0o100
		case stat.Gid == a.gid:
			bit = 0o010
		}
	}
	return info.Mode()&bit != 0
}

// process describes how the server's programs are started: as the account, and in a session of their own, so that a
// Ctrl-C in the terminal reaches them only through us.
func (a account) process() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if a.drop {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return attr
}
