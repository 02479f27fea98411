package main

import "syscall"

// ownGroup puts a process of the drill into a group of its own, so that a Ctrl-C in the terminal reaches it only through
// the drill, and has the kernel kill it when the thread that started it ends.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
