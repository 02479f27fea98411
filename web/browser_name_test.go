package web

import (
	"strings"
	"testing"
)

func TestBrowserName(t *testing.T) {
	t.Parallel()
	const gecko = "(KHTML, like Gecko)"
	for agent, want := range map[string]string{
		"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0":                                                            "Firefox 140 on Linux",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 " + gecko + " Chrome/141.0.0.0 Safari/537.36":                         "Chrome 141 on Windows",
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 " + gecko + " HeadlessChrome/156.0.0.0 Safari/537.36":                           "Chrome 156 on Linux",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 " + gecko + " Chrome/141.0.0.0 Safari/537.36 Edg/141.0.0.0":           "Edge 141 on Windows",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 " + gecko + " Version/26.0 Safari/605.1.15":                   "Safari 26 on macOS",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 " + gecko + " Version/18.6 Mobile/15E148 Safari/604.1": "Safari 18 on iPhone",
		"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 " + gecko + " Chrome/141.0.0.0 Mobile Safari/537.36":                         "Chrome 141 on Android",
		"curl/8.14.1":                      "curl 8",
		"Wget/1.25.0":                      "Wget/1.25.0",
		"":                                 "",
		"Firefox/123456789012345678901234": "Firefox 1234",
		strings.Repeat("ü", 200_000):       strings.Repeat("ü", 80) + "…",
	} {
		if got := browserName(t.Context(), agent); got != want {
			t.Errorf("%.100q: got %q, want %q", agent, got, want)
		}
	}
}
