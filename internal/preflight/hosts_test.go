package preflight_test

import (
	"fmt"
	"strings"
	"testing"

	"rollcall/internal/preflight"
)

// TestPrivateHosts: what only a network of one's own can reach is told, however it is written, and counted also where
// its host is one of too many to name.
func TestPrivateHosts(t *testing.T) {
	t.Parallel()
	private := []string{
		"127.0.0.1", "10.1.2.3", "192.168.0.1", "169.254.169.254", "[::1]", "[fd00::1]", "[::ffff:10.0.0.1]", "0.0.0.0", "0.1.2.3", "100.64.0.1",
		"127.9", "0x7f.2", "127.0.0.3.", "0177.0.0.4", "2130706437", "[64:ff9b::7f00:1]", "[fec0::1]",
		"localhost", "LOCALHOST.", "nas", "nas.local", "db.internal.", "x.home.arpa", "x.home.arpa.", "x.intranet",
	}
	public := []string{
		"93.184.216.34", "134744072", "8.8.2056", "100.128.0.1", "1.2.3.4.5", "[2606:2800::1]", "[64:ff9b::808:808]", "shop.example", "local.example", "shop.sandbox.test",
	}
	var text strings.Builder
	for _, host := range append(private, public...) {
		fmt.Fprintf(&text, "http://%s/\n", host)
	}
	for i := range preflight.MaxHosts {
		fmt.Fprintf(&text, "https://large%d.example/1\nhttps://large%d.example/2\n", i, i)
	}
	all, _, totals, err := readAll(t, text.String(), "", preflight.Choices{})
	if err != nil || totals.PrivateURLs != len(private) {
		t.Errorf("%d of %d are private, %v", totals.PrivateURLs, len(private), err)
	}
	for _, l := range all {
		_, _, totals, err := readAll(t, l.Original, "", preflight.Choices{})
		if want := l.Number <= len(private); err != nil || len(totals.Hosts) != 1 || totals.Hosts[0].Private != want {
			t.Errorf("%s: got %+v, %v, want private: %t", l.Original, totals.Hosts, err, want)
		}
	}
}
