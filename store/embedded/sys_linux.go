package embedded

import "syscall"

// endWithUs makes the kernel ask the server to shut down when the thread that started it ends.
func endWithUs(attr *syscall.SysProcAttr) *syscall.SysProcAttr {
	attr.Pdeathsig = syscall.SIGINT
	return attr
}
