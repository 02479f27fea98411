//go:build !linux

package main

import "syscall"

// ownGroup puts a process of the drill into a group of its own, so that a Ctrl-C in the terminal reaches it only through
// the drill. Should the drill be killed, its processes live on here.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
