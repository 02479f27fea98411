//go:build !linux

package storetest

// base is where a private server's folder goes. os.TempDir may be too long for
// the path of a socket.
func base() string { return "/tmp" }
