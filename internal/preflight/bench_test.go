package preflight_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"rollcall/internal/preflight"
)

// benchLines is how many lines the benchmarks read: the 100,000.
const benchLines = 100_000

// BenchmarkRead reads 100,000 lines of each format.
func BenchmarkRead(b *testing.B) {
	for name, line := range map[string]func(i int) string{
		"txt": func(i int) string {
			return fmt.Sprintf("https://shop%d.test/item/%d?color=red&size=%d\n", i%50, i%99_000, i%7)
		},
		"csv": func(i int) string {
			if i == 0 {
				return "id,name,url,price\n"
			}
			return fmt.Sprintf("%d,\"Item, number %d\",https://shop%d.test/item/%d?color=red,\"1,%d\"\n", i, i, i%50, i%99_000, i%100)
		},
		"jsonl": func(i int) string {
			return fmt.Sprintf("{\"id\":%d,\"url\":\"https://shop%d.test/item/%d\",\"tags\":[\"a\", \"b\"],\"name\":\"Item %d\"}\n", i, i%50, i%99_000, i)
		},
		"fixed": func(i int) string { return fmt.Sprintf(" <B\u00fccher%d.example/a/../item %d%%7e>,\n", i%50, i%99_000) },
	} {
		b.Run(name, func(b *testing.B) {
			var text strings.Builder
			for i := range benchLines {
				text.WriteString(line(i))
			}
			b.SetBytes(int64(text.Len()))
			b.ReportAllocs()
			for b.Loop() {
				_, totals, err := preflight.Read(context.Background(), strings.NewReader(text.String()), "", preflight.Choices{},
					nil, func(preflight.Line) error { return nil })
				if err != nil || totals.Submitted < benchLines-1 {
					b.Fatalf("got %+v, %v", totals, err)
				}
			}
		})
	}
	b.Run("sitemap", benchmarkSitemap)
}

func benchmarkSitemap(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, totals, err := preflight.Read(context.Background(), generated(benchLines), "", preflight.Choices{},
			nil, func(preflight.Line) error { return nil })
		if err != nil || totals.Accepted != benchLines {
			b.Fatalf("got %+v, %v", totals, err)
		}
	}
}

// generated is a sitemap of so many entries that is made while it is read.
func generated(entries int) io.Reader {
	return &maker{next: func(i int) string {
		switch {
		case i == 0:
			return `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`
		case i <= entries:
			return fmt.Sprintf("<url><loc>https://shop.test/%d</loc><lastmod>2026-11-29</lastmod></url>", i)
		case i == entries+1:
			return "</urlset>"
		}
		return ""
	}}
}

// maker is a reader of text that is made piece by piece, until a piece is empty.
type maker struct {
	next func(i int) string
	i    int
	rest string
}

func (m *maker) Read(p []byte) (int, error) {
	if m.rest == "" {
		m.rest = m.next(m.i)
		m.i++
	}
	if m.rest == "" {
		return 0, io.EOF
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}
