package web

import "testing"

func TestHostsAsPeopleReadThem(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{"xn--mnchen-3ya.example": "münchen.example", "shop.example": "", "127.0.0.1": "", "xn--a-ecp.example": ""} {
		if got := readableHost(host); got != want {
			t.Errorf("%s: got %q, want %q", host, got, want)
		}
	}
	for host, want := range map[string]bool{
		"127.0.0.1": true, "10.1.2.3": true, "192.168.0.1": true, "169.254.169.254": true, "[::1]": true, "::1": true, "fd00::1": true,
		"::ffff:10.0.0.1": true, "0.0.0.0": true, "localhost": true, "nas": true, "nas.local": true, "db.internal.": true, "a.home.arpa": true,
		"127.0.0.1.": true, "100.64.0.1": true, "0.1.2.3": true, "x.home.arpa.": true,
		"[64:ff9b::7f00:1]": true, "[fec0::1]": true, "x.intranet": true, "100.128.0.1": false, "1.2.3.4.5": false,
		"93.184.216.34": false, "2606:2800::1": false, "shop.example": false, "local.example": false, "shop.sandbox.test": false,
	} {
		if got := privateHost(host); got != want {
			t.Errorf("%s: got %t, want %t", host, got, want)
		}
	}
}
