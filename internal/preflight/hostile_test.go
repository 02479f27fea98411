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
	const n = preflight.MaxRecord / 2
	of := func(s string) string { return strings.Repeat(s, n/len(s)) }
	for name, text := range map[string]string{
		"blanks before quotes":      "url,x\nhttps://a.test/," + of(" ") + "a" + of(`"`) + "\n",
		"blanks, then a quote":      "url,x\nhttps://a.test/," + of(" ") + `"` + of(" ") + "\n",
		"blanks behind quotes":      "url,x\nhttps://a.test/,\"\"" + of(`  " `) + "\n",
		"cells of quotes":           "url,x\nhttps://a.test/," + of(`"",`) + "\n",
		"quotes around a URL":       of(`"`) + "https://a.test/" + of(`"`) + "\n",
		"brackets around a URL":     of("(<[") + "https://a.test/" + of("]>)") + "\n",
		"blanks around a URL":       of(" \u200b\t") + "https://a.test/" + of("\u00a0 ") + "\n",
		"commas behind a URL":       "https://a.test/" + of(",;") + "\n",
		"schemes":                   of("https://") + "\n",
		"dots":                      "https://a.test/" + of("../") + "\n",
		"labels":                    "https://" + of("a.") + "test/\n",
		"escapes":                   "https://a.test/?" + of("%2") + "\n",
		"parameters":                "https://a.test/?" + of("a&") + "\n",
		"braces of JSON":            `{"url":` + of(`{"a":`) + "\n",
		"fields of JSON":            `{"url":"https://a.test/"` + of(`,"a":1`) + "}\n",
		"elements of XML":           "<urlset><url><loc>" + of("<a>") + "</loc></url></urlset>",
		"blanks in XML":             "<urlset><url><loc>" + of(" ") + "a" + of(" ") + "</loc></url></urlset>",
		"a quote that never closes": "url,x\n" + of("https://a.test/,\"b\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended := make(chan error, 1)
			go func() {
				_, _, err := preflight.Read(t.Context(), strings.NewReader(text), "", preflight.Choices{}, nil, func(preflight.Line) error { return nil })
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
