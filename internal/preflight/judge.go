package preflight

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Judge gives one line its verdict by itself, as Read does for each: Accepted, Fixed or Invalid. Private hosts are the
// vendor's business.
func Judge(text string) Line {
	l, u := judge(text)
	if u != nil {
		l.Canonical = canonical(u, false, false)
	}
	return l
}

// judge returns the line without its canonical form, and its URL taken apart, or nil when it is invalid.
func judge(text string) (Line, *url.URL) {
	l := Line{Original: text, Verdict: Invalid}
	if problem := unreadable(text); problem != "" {
		l.Reason = problem
		return l, nil
	}
	mended, how := text, ""
	if len(text) <= maxMended {
		mended, how = mend(text)
	}
	u, err := parse(mended)
	if err != nil {
		l.Reason = err.Error()
		return l, nil
	}
	l.URL, l.Verdict = mended, Accepted
	if how != "" {
		l.Verdict, l.Reason = Fixed, how
	}
	return l, u
}

// What is longer than maxMended is not looked at closely: no mending makes it shorter than MaxURL. Nor does anybody put
// a URL into more than mostAround quotes and brackets.
const (
	maxMended  = 4 * MaxURL
	mostAround = 32
)

// unreadable says what no URL holds, whatever is mended.
func unreadable(text string) string {
	if !utf8.ValidString(text) {
		return "is not valid UTF-8 text"
	}
	for _, r := range strings.TrimFunc(text, unseen) {
		switch {
		case r == '\n' || r == '\r':
			return "holds the end of a line"
		case isControl(r):
			return "holds a control character"
		case unicode.Is(unicode.Bidi_Control, r):
			return fmt.Sprintf("holds a character that is not seen and turns the direction of text (U+%04X)", r)
		case r == utf8.RuneError:
			return "holds a character that could not be read (U+FFFD); perhaps the character set is another"
		}
	}
	return ""
}

// isControl leaves out the tab, which is a blank.
func isControl(r rune) bool { return unicode.IsControl(r) && r != '\t' }

// mend puts right what is wrong with many lines and can be meant in one way only. It returns the URL, and in words
// what was mended, "" when nothing was.
func mend(text string) (string, string) {
	s, how := stripped(text)
	if whole, ok := withScheme(s); ok {
		s, how = whole, joined(how, "https:// put in front")
	}
	if strings.ContainsFunc(s, unicode.IsSpace) && !twoURLs(s) {
		s, how = spacesEscaped(s), joined(how, "spaces inside written %20")
	}
	return s, how
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + ", " + b
}

// stripped takes away what stands around a URL: blanks, commas and semicolons after it, quotes and brackets.
func stripped(text string) (string, string) {
	s := strings.TrimFunc(text, unseen)
	blanks := s != text
	commas, quotes := false, false
	for n := 0; s != ""; n++ {
		if n > mostAround {
			return text, "" // This is no wrapping.
		}
		t := strings.TrimRight(s, ",;")
		if t != s {
			commas = true
		} else if t = unquoted(s); t != s {
			quotes = true
		} else {
			break
		}
		s = strings.TrimFunc(t, unseen)
	}
	how := ""
	if blanks {
		how = "blanks around it removed"
	}
	if quotes {
		how = joined(how, "quotes or brackets around it removed")
	}
	if commas {
		how = joined(how, "comma or semicolon after it removed")
	}
	return s, how
}

// around are the quotes and brackets, each with what closes it.
var around = map[rune]rune{
	'"': '"', '\'': '\'', '`': '`', '<': '>', '(': ')', '[': ']',
	'\u201C': '\u201D', '\u201D': '\u201D', '\u201E': '\u201C', '\u2018': '\u2019', '\u2019': '\u2019', '\u201A': '\u2018',
	'\u00AB': '\u00BB', '\u00BB': '\u00AB', '\u2039': '\u203A', '\u203A': '\u2039',
}

// unquoted takes a pair of quotes or brackets away, or a stray one.
func unquoted(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	last, lastSize := utf8.DecodeLastRuneInString(s)
	closer, opens := around[first]
	switch {
	case opens && len(s) > size && last == closer:
		return s[size : len(s)-lastSize]
	case opens && !startsIPv6(s) || first == '>' || first == ')' || first == ']':
		return s[size:]
	case strayAtEnd(s, last):
		return s[:len(s)-lastSize]
	}
	return s
}

// startsIPv6 reports an address in brackets, which is a host and no stray bracket.
func startsIPv6(s string) bool {
	inside, _, closed := strings.Cut(strings.TrimPrefix(s, "["), "]")
	_, err := netip.ParseAddr(inside)
	return s[0] == '[' && closed && err == nil && strings.Contains(inside, ":")
}

// strayAtEnd reports a quote or bracket at the end that is no part of the URL: those that may stand in a URL are only
// when they have no partner in it.
func strayAtEnd(s string, last rune) bool {
	switch last {
	case '\'':
		return strings.Count(s, "'")%2 == 1
	case ')':
		return strings.Count(s, "(") < strings.Count(s, ")")
	case ']':
		return strings.Count(s, "[") < strings.Count(s, "]")
	case '(', '[':
		return false
	case '>':
		return true
	}
	_, quote := around[last]
	return quote
}

// withScheme puts https:// before what begins with a host's name, and reports whether it did.
func withScheme(s string) (string, bool) {
	if rest, ok := strings.CutPrefix(s, "//"); ok {
		return "https://" + rest, looksLikeHost(authority(rest))
	}
	scheme, rest, found := strings.Cut(s, ":")
	if found && isScheme(scheme) && !isHostBefore(scheme, rest) {
		return s, false
	}
	if !looksLikeHost(authority(s)) {
		return s, false
	}
	return "https://" + s, true
}

func authority(s string) string {
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		return s[:i]
	}
	return s
}

func isScheme(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !isAlphanumeric(c) && (i == 0 || c != '+' && c != '-' && c != '.') {
			return false
		}
	}
	return s != ""
}

// isHostBefore reports that the colon after name is a port's: no scheme that is used has a dot in it.
func isHostBefore(name, rest string) bool {
	port := authority(rest)
	_, err := strconv.ParseUint(port, 10, 32)
	return err == nil && (strings.Contains(name, ".") || strings.EqualFold(name, "localhost"))
}

// looksLikeHost reports what people write without http:// in front: a name with a dot and an ending of letters, an IP
// address, or localhost. What stands before an @ would be a user's name: parse refuses that.
func looksLikeHost(host string) bool {
	host = host[strings.LastIndexByte(host, '@')+1:]
	if name, port, found := cutPort(host); found {
		if _, err := strconv.ParseUint(port, 10, 32); err != nil {
			return false
		}
		host = name
	}
	if startsIPv6(host + " ") {
		return strings.HasSuffix(host, "]")
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return !strings.Contains(host, ":")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	name, ok := asciiHost(host)
	if !ok {
		return false
	}
	name = strings.TrimSuffix(name, ".")
	dot := strings.LastIndexByte(name, '.')
	return dot > 0 && len(name)-dot > 2 && !isNumber(name[dot+1:])
}

// cutPort cuts a host at the colon before its port.
func cutPort(host string) (string, string, bool) {
	colon := strings.LastIndexByte(host, ':')
	if colon < 0 || strings.HasSuffix(host, "]") {
		return host, "", false
	}
	return host[:colon], host[colon+1:], true
}

func isNumber(s string) bool {
	return strings.Trim(s, "0123456789") == ""
}

// twoURLs reports that another URL follows the first after a blank.
func twoURLs(s string) bool {
	fields := strings.Fields(s)
	for _, f := range fields[min(1, len(fields)):] {
		f = strings.ToLower(f)
		if strings.HasPrefix(f, "http://") || strings.HasPrefix(f, "https://") {
			return true
		}
	}
	return false
}

// spacesEscaped writes each blank %20.
func spacesEscaped(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsSpace(r) {
			b.WriteString("%20")
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// parse takes a URL apart that the vendor can be sent, or says in plain words what is wrong with it.
func parse(s string) (*url.URL, error) {
	switch {
	case s == "":
		return nil, errors.New("holds no URL")
	case len(s) > MaxURL:
		return nil, fmt.Errorf("is %d bytes long; the limit is %d", len(s), MaxURL)
	case twoURLs(s):
		return nil, errors.New("holds two URLs; put each on a line of its own")
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil, errors.New("cannot be read as a URL" + why(err))
	}
	switch {
	case u.Scheme == "":
		return nil, errors.New("has no http:// or https:// in front and does not begin with a host's name")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("begins with %q instead of http:// or https://", clip(u.Scheme, 40)+":")
	case u.Hostname() == "":
		return nil, errors.New("names no host")
	case u.User != nil:
		return nil, errors.New("holds a user name or password, which would be sent along")
	}
	return u, checkHost(u)
}

// checkHost says what keeps a host from being found by anybody.
func checkHost(u *url.URL) error {
	host := u.Hostname()
	if (host == "http" || host == "https") && strings.HasPrefix(u.Path, "//") {
		return errors.New("begins with http:// or https:// twice")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 64); err != nil || n == 0 || n > 65535 {
			return fmt.Errorf("has a port outside 1 to 65535: %s", clip(port, 20))
		}
	}
	if strings.HasPrefix(u.Host, "[") {
		ip, err := netip.ParseAddr(host)
		if err != nil {
			return errors.New("has brackets around its host, which is no IPv6 address")
		}
		if ip.Zone() != "" {
			return errors.New("has a host that one machine alone can reach: its address names an interface of it")
		}
		return nil
	}
	if _, ok := asciiHost(host); !ok {
		return fmt.Errorf("has a host's name that cannot be: %q", clip(host, 80))
	}
	return nil
}

// why tells what package url found, where it can be said plainly.
func why(err error) string {
	if escape, ok := errors.AsType[url.EscapeError](err); ok {
		if strings.HasPrefix(string(escape), "%20") {
			return ": there is a blank in its host's name"
		}
		return fmt.Sprintf(": %q begins an escape that is none", string(escape))
	}
	if host, ok := errors.AsType[url.InvalidHostError](err); ok {
		return fmt.Sprintf(": %q cannot be in a host's name", string(host))
	}
	if strings.Contains(err.Error(), "invalid port") {
		return ": its port is no number"
	}
	return ""
}

// clip shortens a text to at most n bytes without cutting a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
