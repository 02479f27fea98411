package sandbox

import "sync"

// lock is a mutex that can tell when it was last let go of: whatever it guards
// may have changed by then, and not before.
type lock struct {
	sync.Mutex
	letGo chan struct{} // Made by who waits; guarded by the mutex itself.
}

// Unlock implements sync.Locker, and tells whoever waits.
func (l *lock) Unlock() {
	if l.letGo != nil {
		close(l.letGo)
		l.letGo = nil
	}
	l.Mutex.Unlock()
}

// next is closed when somebody else lets go of the lock. The caller holds it,
// and must let go of it with Mutex.Unlock.
func (l *lock) next() <-chan struct{} {
	if l.letGo == nil {
		l.letGo = make(chan struct{})
	}
	return l.letGo
}
