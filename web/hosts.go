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

// privateHost tells of a host in its one spelling that only a network of one's
// own can reach: such an address, or a name that the public DNS never has.
func privateHost(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return privateAddress(ip)
	}
	labels := strings.Split(host, ".")
	return len(labels) == 1 || strings.HasSuffix(host, ".home.arpa") ||
		slices.Contains([]string{"localhost", "local", "internal", "intranet", "private", "lan", "home", "corp"}, labels[len(labels)-1])
}

func privateAddress(ip netip.Addr) bool {
	ip = ip.Unmap()
	if nat64 := netip.MustParsePrefix("64:ff9b::/96"); nat64.Contains(ip) {
		all := ip.As16()
		ip = netip.AddrFrom4([4]byte(all[12:]))
	}
	for _, reserved := range []string{"0.0.0.0/8", "100.64.0.0/10", "fec0::/10"} {
		if netip.MustParsePrefix(reserved).Contains(ip) {
			return true
		}
	}
	return ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified()
}
