package web

import (
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/idna"
)

// readableHost is a host as people write it, where that is other than how it is
// sent: münchen.example for xn--mnchen-3ya.example. Empty elsewhere.
func readableHost(host string) string {
	name, err := idna.Display.ToUnicode(host)
	if err != nil || name == host {
		return ""
	}
	return name
}

// privateHost tells of a host that only a network of one's own can reach: such an
// address, or a name that the public DNS never has.
func privateHost(host string) bool {
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		ip = ip.Unmap()
		return ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified()
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	if len(labels) == 1 {
		return true
	}
	return slices.Contains([]string{"localhost", "local", "internal", "lan", "home", "corp"}, labels[len(labels)-1]) ||
		strings.HasSuffix(host, ".home.arpa")
}
