package main

import (
	"fmt"
	"io"
	"strings"

	"rollcall/internal/preflight"
)

// toldToPeople prints the counts, the hosts, and the first lines of each verdict that somebody may want to look at.
type toldToPeople struct {
	out   io.Writer
	name  string
	first map[preflight.Verdict][]preflight.Line
}

// shownOf is how many lines of a verdict are printed.
var shownOf = []struct {
	verdict preflight.Verdict
	most    int
}{{preflight.Invalid, 20}, {preflight.Fixed, 5}, {preflight.Duplicate, 5}}

func (p *toldToPeople) line(l preflight.Line) error {
	if p.first == nil {
		p.first = map[preflight.Verdict][]preflight.Line{}
	}
	for _, s := range shownOf {
		if l.Verdict == s.verdict && len(p.first[l.Verdict]) < s.most {
			l.Extra = nil
			p.first[l.Verdict] = append(p.first[l.Verdict], l)
		}
	}
	return nil
}

func (p *toldToPeople) end(d preflight.Detected, t preflight.Totals) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\n", p.name, readAs(d))
	for _, n := range []struct {
		what  string
		count int
	}{
		{"accepted", t.Accepted},
		{"fixed", t.Fixed},
		{"duplicate", t.Duplicate},
		{"invalid", t.Invalid},
		{"in all", t.Submitted},
		{"blank", t.Lines - t.Submitted},
	} {
		fmt.Fprintf(&b, "%9d  %s\n", n.count, n.what)
	}
	p.hosts(&b, t)
	p.lines(&b, map[preflight.Verdict]int{preflight.Invalid: t.Invalid, preflight.Fixed: t.Fixed, preflight.Duplicate: t.Duplicate})
	_, err := io.WriteString(p.out, b.String())
	return err
}

// readAs says how the file was read.
func readAs(d preflight.Detected) string {
	parts := []string{d.Format, d.Charset}
	if d.Gzipped {
		parts = append(parts, "gzipped")
	}
	if d.Format == preflight.FormatCSV {
		parts = append(parts, map[string]string{
			",": "comma", ";": "semicolon", "\t": "tab", "|": "|", "": "one column",
		}[d.Delimiter], map[bool]string{true: "with a header", false: "without a header"}[d.Header])
	}
	if d.URLColumn != "" {
		parts = append(parts, fmt.Sprintf("URLs in %q", d.URLColumn))
	}
	if len(d.Columns) > 0 {
		parts = append(parts, fmt.Sprintf("beside %q", d.Columns))
	}
	return strings.Join(parts, ", ")
}

func (p *toldToPeople) hosts(b *strings.Builder, t preflight.Totals) {
	if len(t.Hosts) == 0 {
		return
	}
	b.WriteString("\nURLs to send, by host:\n")
	for _, h := range t.Hosts {
		private := ""
		if h.Private {
			private = "  (private)"
		}
		fmt.Fprintf(b, "%9d  %s%s\n", h.Count, h.Host, private)
	}
	if t.OtherHosts > 0 {
		fmt.Fprintf(b, "%9d  on %d other hosts\n", t.OtherURLs, t.OtherHosts)
	}
	if t.PrivateURLs > 0 {
		fmt.Fprintf(b, "%9d  lead to private hosts, which the vendor most likely can't reach\n", t.PrivateURLs)
	}
}

func (p *toldToPeople) lines(b *strings.Builder, counts map[preflight.Verdict]int) {
	for _, s := range shownOf {
		shown := p.first[s.verdict]
		if len(shown) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n%s:\n", s.verdict)
		for _, l := range shown {
			fmt.Fprintf(b, "  line %d  %s  %s", l.Number, quoted(l.Original), l.Reason)
			if l.Verdict == preflight.Fixed {
				fmt.Fprintf(b, ": %s", quoted(l.URL))
			}
			b.WriteByte('\n')
		}
		if more := counts[s.verdict] - len(shown); more > 0 {
			fmt.Fprintf(b, "  and %d more\n", more)
		}
	}
}

// quoted shows a text of a file so that nothing in it can move the cursor or turn the direction of writing.
func quoted(s string) string {
	const most = 100
	runes := []rune(s[:min(len(s), most*4)])
	if len(runes) > most {
		return fmt.Sprintf("%q...", string(runes[:most]))
	}
	return fmt.Sprintf("%q", s)
}
