package preflight

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// HostCount is a host and how many URLs to send it has.
type HostCount struct {
	Host  string `json:"host"` // In its one spelling.
	Count int    `json:"count"`
	// Private tells of a host that only a network of one's own can reach: such an address, or a name that the public
	// DNS never has.
	Private bool `json:"private,omitempty"`
}

// MaxHosts is how many hosts Totals names.
const MaxHosts = 20

// CountHosts says how the URLs to send are spread over hosts, given how many each has.
func (t *Totals) CountHosts(urls map[string]int) {
	t.Hosts, t.OtherHosts, t.OtherURLs, t.PrivateURLs = make([]HostCount, 0, len(urls)), 0, 0, 0
	for host, n := range urls {
		each := HostCount{Host: host, Count: n, Private: isPrivate(host)}
		if each.Private {
			t.PrivateURLs += n
		}
		t.Hosts = append(t.Hosts, each)
	}
	slices.SortFunc(t.Hosts, func(a, b HostCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Host, b.Host))
	})
	for _, h := range t.Hosts[min(MaxHosts, len(t.Hosts)):] {
		t.OtherHosts, t.OtherURLs = t.OtherHosts+1, t.OtherURLs+h.Count
	}
	t.Hosts = slices.Clip(t.Hosts[:min(MaxHosts, len(t.Hosts))])
}

// isPrivate judges a host in its one spelling.
func isPrivate(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return privateAddress(ip)
	}
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	return last == host || strings.HasSuffix(host, ".home.arpa") ||
		slices.Contains([]string{"localhost", "local", "internal", "intranet", "private", "lan", "home", "corp"}, last)
}

var (
	nat64    = netip.MustParsePrefix("64:ff9b::/96") // Stands for the IPv4 address that it ends in.
	reserved = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("fec0::/10")}
)

func privateAddress(ip netip.Addr) bool {
	ip = ip.Unmap()
	if nat64.Contains(ip) {
		all := ip.As16()
		ip = netip.AddrFrom4([4]byte(all[12:]))
	}
	return ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() ||
		slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(ip) })
}
