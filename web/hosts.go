package web

import (
	"net/netip"
	"slices"
	"strconv"
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
// address, however it is written, or a name that the public DNS never has.
func privateHost(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if number, is := ipv4Number(host); err != nil && is {
		ip, err = number, nil
	}
	if err == nil {
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

// ipv4Number reads an address as browsers do: up to four numbers, decimal, octal
// or hexadecimal, of which the last fills what is left.
func ipv4Number(host string) (netip.Addr, bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var all uint64
	for i, part := range parts {
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		n, err := strconv.ParseUint(part, 0, bits)
		if err != nil || strings.ContainsAny(part, "_+ob") && !strings.HasPrefix(part, "0x") {
			return netip.Addr{}, false
		}
		all = all<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(all >> 24), byte(all >> 16), byte(all >> 8), byte(all)}), true
}
