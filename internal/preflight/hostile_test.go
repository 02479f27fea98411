package preflight_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"rollcall/internal/preflight"
)

// patience is a thousand times what a long line needs; one that is read over and over for each of its characters needs
// minutes.
const patience = 20 * time.Second

// TestLongestLines are read once, not once for each of their characters, whatever they are made of.
func TestLongestLines(t *testing.T) {
	t.Parallel()
	const n = preflight.MaxRecord/2 - 100 // Two of them fit a line.
	of := func(s string) string { return strings.Repeat(s, n/len(s)) }
	for name, text := range map[string]string{ // By the format that reads it, and what it is made of.
		"csv: blanks before quotes":      "url,x\nhttps://a.test/," + of(" ") + "a" + of(`"`) + "\n",
		"csv: blanks, then a quote":      "url,x\nhttps://a.test/," + of(" ") + `"` + of(" ") + "\n",
		"csv: blanks behind quotes":      "url,x\nhttps://a.test/,\"\"" + of(`  " `) + "\n",
		"csv: cells of quotes":           "url,x\nhttps://a.test/," + of(`"",`) + "\n",
		"txt: quotes around a URL":       of(`"`) + "https://a.test/" + of(`"`) + "\n",
		"txt: brackets around a URL":     of("(<[") + "https://a.test/" + of("]>)") + "\n",
		"txt: blanks around a URL":       of(" \u200b\t") + "https://a.test/" + of("\u00a0 ") + "\n",
		"txt: commas behind a URL":       "https://a.test/" + of(",;") + "\n",
		"txt: schemes":                   of("https://") + "\n",
		"txt: dots":                      "https://a.test/" + of("../") + "\n",
		"txt: labels":                    "https://" + of("a.") + "test/\n",
		"txt: escapes":                   "https://a.test/?" + of("%2") + "\n",
		"txt: parameters":                "https://a.test/?" + of("a&") + "\n",
		"jsonl: braces of JSON":          `{"url":` + of(`{"a":`) + "\n",
		"jsonl: fields of JSON":          `{"url":"https://a.test/"` + of(`,"a":1`) + "}\n",
		"sitemap: elements of XML":       "<urlset><url><loc>" + of("<a>") + "</loc></url></urlset>",
		"sitemap: blanks in XML":         "<urlset><url><loc>" + of(" ") + "a" + of(" ") + "</loc></url></urlset>",
		"csv: a quote that never closes": "url,x\n" + of("https://a.test/,\"b\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			format, _, _ := strings.Cut(name, ":")
			choices := preflight.Choices{Format: format}
			if format == preflight.FormatCSV {
				choices.Delimiter = ","
			}
			ended := make(chan error, 1)
			go func() {
				_, _, err := preflight.Read(t.Context(), strings.NewReader(text), "", choices, nil, func(preflight.Line) error { return nil })
				ended <- err
			}()
			select {
			case err := <-ended:
				if _, ok := errors.AsType[*preflight.FileError](err); err != nil && !ok {
					t.Error(err)
				}
			case <-time.After(patience):
				t.Fatal("is still being read")
			}
		})
	}
}

// TestReadEndsWithItsContext at the next line, although the file was read far ahead.
func TestReadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a.txt":   strings.Repeat("https://a.test/\n", 100),
		"a.csv":   "url,x\n" + strings.Repeat("https://a.test/,\"b\"\n", 100),
		"a.jsonl": strings.Repeat(`{"url":"https://a.test/"}`+"\n", 100),
		"a.xml":   "<urlset>" + strings.Repeat("<url><loc>https://a.test/</loc></url>", 100) + "</urlset>",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		lines := 0
		_, _, err := preflight.Read(ctx, strings.NewReader(text), name, preflight.Choices{}, nil, func(preflight.Line) error {
			lines++
			cancel()
			return nil
		})
		if lines != 1 || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %d lines, %v", name, lines, err)
		}
	}
}
