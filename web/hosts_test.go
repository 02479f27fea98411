package web

import "testing"

func TestHostsAsPeopleReadThem(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"xn--mnchen-3ya.example": "münchen.example", "shop.example": "", "127.0.0.1": "", "xn--a-ecp.example": "",
		"xn--pple-43d.example": "", "xn--80ak6aa92e.example": "аррӏе.example", "xn--80aswg.xn--p1ai": "сайт.рф", "xn--eckwd4c7cu47r2wf.example": "ドメイン名例.example",
	} {
		if got := readableHost(host); got != want {
			t.Errorf("%s: got %q, want %q", host, got, want)
		}
	}
}
