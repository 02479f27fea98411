package contracttest

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	t.Parallel()
	counts.deliberate.Add(1)
	var b strings.Builder
	report(&b)
	if !strings.HasPrefix(b.String(), "contract: ") || !strings.Contains(b.String(), "marked deliberate") || strings.Contains(b.String(), " 0 marked") {
		t.Errorf("got %q", b.String())
	}
}
