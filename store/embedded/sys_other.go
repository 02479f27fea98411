//go:build !linux

package embedded

import "syscall"

// endWithUs does nothing here: a server outlives an owner that is killed, and the next owner ends it.
func endWithUs(attr *syscall.SysProcAttr) *syscall.SysProcAttr { return attr }
