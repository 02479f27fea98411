package export

import (
	"net/url"
	"strconv"
	"strings"
)

// longestFile bounds what of an address goes into the name of a file, in bytes.
const longestFile = 80

// FileName is a name that every file system takes and that no other item has:
// host and path of the address in small letters, digits and dashes, then the
// item's number. It has no ending.
func FileName(address string, item int64) string {
	text := ""
	if u, err := url.Parse(address); err == nil {
		text = u.Hostname() + u.EscapedPath()
	}
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() == longestFile {
			break
		}
	}
	safe := strings.Trim(b.String(), "-")
	if safe == "" {
		safe = "page"
	}
	return safe + "-" + strconv.FormatInt(item, 10)
}
