package preflight

import (
	"net/netip"
	"strconv"
	"strings"
)

// ipv4 reads a host in lower case as browsers do, to whom a name that ends in a number is an address: one to four
// numbers, decimal, octal after a 0 or hexadecimal after 0x, of which the last fills what is left. So 127.1, 0x7f.1 and
// 2130706433 are 127.0.0.1. It reports false for a name, and for numbers that are no address.
func ipv4(host string) (netip.Addr, bool) {
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	if last == "" || !isDigit(last[0]) { // As nearly every name: this is asked of each.
		return netip.Addr{}, false
	}
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	all := uint64(0)
	for i, part := range parts {
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (4 - i)
		}
		n, ok := hostNumber(part, bits)
		if !ok {
			return netip.Addr{}, false
		}
		all = all<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(all >> 24), byte(all >> 16), byte(all >> 8), byte(all)}), true
}

// hostNumber is one of the numbers, and whether it is one of so many bits.
func hostNumber(part string, bits int) (uint64, bool) {
	base, digits := 10, part
	if hex, ok := strings.CutPrefix(part, "0x"); ok {
		base, digits = 16, "0"+hex // To browsers 0x alone is 0.
	} else if strings.HasPrefix(part, "0") {
		base = 8
	}
	n, err := strconv.ParseUint(digits, base, bits)
	return n, err == nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
