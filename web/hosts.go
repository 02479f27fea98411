package web

import "golang.org/x/net/idna"

// readableHost is a host as people write it, where that is other than how it is
// sent: münchen.example for xn--mnchen-3ya.example. Empty elsewhere.
func readableHost(host string) string {
	name, err := idna.Display.ToUnicode(host)
	if err != nil || name == host {
		return ""
	}
	return name
}
