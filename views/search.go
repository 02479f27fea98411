package views

import "net/url"

// searchPath is the search for words alone.
func searchPath(words string) string {
	if words == "" {
		return "/search"
	}
	return "/search?" + url.Values{"q": {words}}.Encode()
}
