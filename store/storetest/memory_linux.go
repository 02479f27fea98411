package storetest

import "syscall"

const (
	memory    = "/dev/shm"
	tmpfs     = 0x01021994 // TMPFS_MAGIC of statfs(2).
	enough    = 4 << 30    // Several packages' servers run at a time, each with its journal.
	elsewhere = "/tmp"     // os.TempDir may be too long for the path of a socket.
)

// base is where a private server's folder goes: in memory where there is room.
// A database is some hundred files, and tests make and drop hundreds of
// databases: on a disk's file system that alone costs ten times as much.
func base() string {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(memory, &fs); err != nil {
		return elsewhere
	}
	if fs.Type != tmpfs || fs.Bavail*uint64(fs.Bsize) < enough { //nolint:gosec // A block's size is positive.
		return elsewhere
	}
	return memory
}
