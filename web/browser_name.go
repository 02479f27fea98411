package web

import (
	"context"
	"regexp"
	"strings"

	"rollcall/views"
)

// browserNames are the marks of browsers in what they call themselves, those
// first that also carry the marks of others.
//
//nolint:gochecknoglobals // Patterns that never change.
var browserNames = []struct {
	name string
	mark *regexp.Regexp
}{
	{"Edge", regexp.MustCompile(`\bEdg(?:e|A|iOS)?/(\d{1,4})`)},
	{"Opera", regexp.MustCompile(`\bOPR/(\d{1,4})`)},
	{"Samsung Internet", regexp.MustCompile(`\bSamsungBrowser/(\d{1,4})`)},
	{"Firefox", regexp.MustCompile(`\b(?:Firefox|FxiOS)/(\d{1,4})`)},
	{"Chrome", regexp.MustCompile(`(?:Chrome|\bCriOS)/(\d{1,4})`)},
	{"Safari", regexp.MustCompile(`\bVersion/(\d{1,4})[\d.]* .*\bSafari/`)},
	{"curl", regexp.MustCompile(`^curl/(\d{1,4})`)},
}

// systemMarks are the marks of operating systems, in the same order.
//
//nolint:gochecknoglobals // A list that never changes.
var systemMarks = [][2]string{
	{"Android", "Android"},
	{"iPhone", "iPhone"},
	{"iPad", "iPad"},
	{"CrOS", "ChromeOS"},
	{"Windows", "Windows"},
	{"Mac OS X", "macOS"},
	{"Linux", "Linux"},
}

// browserName is what a browser is in a person's words, such as "Firefox 140 on
// Linux": a guess from its User-Agent header, which is given back as it is where
// it says nothing known.
func browserName(ctx context.Context, agent string) string {
	for _, each := range browserNames {
		found := each.mark.FindStringSubmatch(agent)
		if found == nil {
			continue
		}
		name := each.name + " " + found[1]
		for _, system := range systemMarks {
			if strings.Contains(agent, system[0]) {
				return views.Textf(ctx, "%s on %s", name, system[1])
			}
		}
		return name
	}
	return clipped(agent)
}

// clipped is the beginning of what a browser calls itself: people look for a
// word they know in it.
func clipped(agent string) string {
	const most = 80
	if runes := []rune(agent); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return agent
}
