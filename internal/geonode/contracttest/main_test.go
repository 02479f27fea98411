package contracttest_test

import (
	"fmt"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"rollcall/internal/geonode/contracttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// spy is a test that keeps the breaches reported to it and ends when end is called.
type spy struct {
	testing.TB
	mu       sync.Mutex
	breaches []string
	ends     []func()
}

func newSpy(t *testing.T) *spy {
	t.Helper()
	return &spy{TB: t}
}

func (s *spy) Helper() {}

func (s *spy) Cleanup(f func()) { s.ends = append(s.ends, f) }

func (s *spy) Errorf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.breaches = append(s.breaches, fmt.Sprintf(format, args...))
}

func (s *spy) end() {
	for _, f := range s.ends {
		f()
	}
}

func (s *spy) got() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.breaches...)
}

func mustExample(t *testing.T, name string) []byte {
	t.Helper()
	b, err := contracttest.Example(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
