package pipeline

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"rollcall/store"
)

// leastText is how many letters and digits a page has that holds something.
const leastText = 40

// markWithin is the size of content above which no page is looked at: a check
// or a door is short.
const markWithin = 64 << 10

// A sign is what pages say that came back and hold nothing of what was asked
// for. It counts only in a page of at most that many letters and digits: longer
// ones are articles that speak of such things.
type sign struct {
	mark   store.Mark
	reason string
	within int
	says   []string // Any of them, in lower case.
}

// signs are all of them; the first that fits is the one shown.
//
//nolint:gochecknoglobals // A table that never changes.
var signs = []sign{
	{store.MarkBlocked, "asks for a captcha", 3000, []string{
		"captcha", "verify you are human", "verify you are a human", "are you a robot", "not a robot", "i'm not a robot", "press & hold to confirm",
		"unusual traffic from your", "bots use", "prove you are human",
	}},
	{store.MarkBlocked, "a check of Cloudflare's", 3000, []string{
		"checking your browser before", "attention required! | cloudflare", "cf-browser-verification", "cloudflare ray id", "performing security verification",
		"needs to review the security of your connection",
	}},
	{store.MarkBlocked, "the site's guard refuses it", 3000, []string{
		"access denied", "request blocked", "you have been blocked", "pardon our interruption", "incapsula incident id", "ddos protection by",
		"your request has been blocked", "automated access", "access to this page has been denied", "403 forbidden", "error 1020", "reference #18.",
	}},
	{store.MarkBlocked, "the site says there were too many requests", 1500, []string{"too many requests", "rate limit exceeded", "429 too many"}},
	{store.MarkBlocked, "asks to sign in", 1200, []string{
		"sign in to continue", "log in to continue", "login to continue", "please log in", "please sign in", "you must be logged in", "you need to log in",
		"sign in to view", "log in to view", "members only", "melden sie sich an", "connectez-vous pour",
	}},
	{store.MarkBlocked, "asks to subscribe", 2500, []string{"subscribe to continue reading", "subscribe to read", "this article is for subscribers"}},
	{store.MarkBlocked, "asks to accept cookies first", 800, []string{
		"accept cookies to continue", "before you continue to", "please enable cookies", "cookies must be enabled",
	}},
	{store.MarkEmpty, "asks for JavaScript", 1200, []string{
		"enable javascript", "javascript is disabled", "javascript is required", "requires javascript", "need to enable javascript",
		"turn on javascript", "without javascript", "javascript must be enabled", "aktivieren sie javascript",
	}},
	{store.MarkEmpty, "says only that it is loading", 120, []string{"loading", "please wait", "just a moment", "redirecting"}},
}

// markOf tells whether a page that came back looks as if it held nothing of
// what was asked for, and why. It is a guess, shown as one. A page whose status
// says already that it failed gets none.
func markOf(status *int, title string, markdown, html []byte) (store.Mark, string) {
	if status != nil && (*status < 200 || *status > 299) {
		return "", ""
	}
	if len(markdown) > markWithin || (len(markdown) == 0 && len(html) > 16*markWithin) {
		return "", ""
	}
	text := strings.ToLower(title + "\n" + plainText(markdown, html))
	n := letters(text)
	for _, s := range signs {
		if n > s.within {
			continue
		}
		for _, words := range s.says {
			if strings.Contains(text, words) {
				return s.mark, s.reason
			}
		}
	}
	switch {
	case n == 0:
		return store.MarkEmpty, "no text at all"
	case n < leastText:
		return store.MarkEmpty, fmt.Sprintf("only %d letters and digits", n)
	}
	return "", ""
}

// letters counts what a reader would read: an address of a link is none of it.
func letters(text string) int {
	n := 0
	for word := range strings.FieldsSeq(text) {
		if strings.Contains(word, "://") {
			continue
		}
		for _, r := range word {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				n++
			}
		}
	}
	return n
}

// markResult sets the mark of an answer that is to be stored.
func markResult(r *store.Result) {
	html := r.HTML
	if len(bytes.TrimSpace(r.Markdown)) > 0 {
		html = nil
	}
	r.Mark, r.MarkReason = markOf(r.HTTPStatus, r.Title, r.Markdown, html)
}
