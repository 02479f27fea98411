package preflight_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rollcall/internal/preflight"
)

// TestSitemap: entries with their fields; extensions and comments are passed over.
func TestSitemap(t *testing.T) {
	t.Parallel()
	text := `<?xml version="1.0" encoding="UTF-8"?>
<!-- made by hand -->
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
 <url><loc> https://a.test/?a=1&amp;b=2 </loc><image:image><image:loc>https://i.test/x</image:loc></image:image><image:loc>https://i.test/y</image:loc></url>
 <url><lastmod>2026-11-29</lastmod><loc><![CDATA[https://a.test/]]><!-- x -->2</loc><priority>0.5</priority></url>
 <url><lastmod>2026-11-30</lastmod></url>
 <url><loc>https://a.test/?a=1&amp;b=2</loc><loc>https://a.test/second</loc></url>
</urlset>
<junk>`
	for _, packing := range []string{text, packed(text)} {
		formatCase{
			text: packing, as: `sitemap "" false loc ["lastmod" "priority"]`,
			want: []string{
				"1 accepted https://a.test/?a=1&b=2", `2 accepted https://a.test/2 ["2026-11-29" "0.5"]`, `3 invalid "": has no <loc> ["2026-11-30"]`,
				"4 duplicate https://a.test/?a=1&b=2",
			},
		}.check(t, "sitemap")
	}
}

// TestSitemapIndex: what it names is read only through the opener, one level deep, and what can't be read is said.
func TestSitemapIndex(t *testing.T) {
	t.Parallel()
	index := `<sitemapindex xmlns="x"><sitemap><loc>https://a.test/one.xml</loc></sitemap><sitemap><loc>https://a.test/two.xml.gz</loc></sitemap>
		<sitemap><loc>https://a.test/gone.xml</loc></sitemap><sitemap><loc>https://a.test/index.xml</loc></sitemap><sitemap><loc>https://a.test/cut.xml</loc></sitemap>
		<sitemap><lastmod>2026</lastmod></sitemap></sitemapindex>`
	entry := func(url string) string { return "<urlset><url><loc>" + url + "</loc></url>" }
	files := map[string]string{
		"https://a.test/one.xml":    entry("https://a.test/1") + "</urlset>",
		"https://a.test/two.xml.gz": packed(entry("https://a.test/1") + "</urlset>"),
		"https://a.test/index.xml":  index,
		"https://a.test/cut.xml":    entry("https://a.test/3"),
	}
	open := func(url string) (io.ReadCloser, error) {
		text, ok := files[url]
		if !ok {
			return nil, errors.New("it is gone")
		}
		return io.NopCloser(strings.NewReader(text)), nil
	}
	for name, c := range map[string]struct {
		open preflight.Opener
		want []string
	}{
		"followed": {open, []string{
			"1 accepted https://a.test/1", "2 duplicate https://a.test/1", `3 invalid "https://a.test/gone.xml": is a sitemap that could not be read: it is gone`,
			`4 invalid "https://a.test/index.xml": is a sitemap that could not be read: line 1: is an index of sitemaps inside another one`,
			"5 accepted https://a.test/3", `6 invalid "https://a.test/cut.xml": is a sitemap that could not be read: line 1: is not well-formed XML: unexpected EOF`,
			`7 invalid "": has no <loc> ["2026"]`,
		}},
		"not followed": {nil, []string{
			`1 invalid "https://a.test/one.xml": is a sitemap of its own: it is not fetched; read it by itself`,
			`2 invalid "https://a.test/two.xml.gz": is a sitemap of its own: it is not fetched; read it by itself`,
			`3 invalid "https://a.test/gone.xml": is a sitemap of its own: it is not fetched; read it by itself`,
			`4 invalid "https://a.test/index.xml": is a sitemap of its own: it is not fetched; read it by itself`,
			`5 invalid "https://a.test/cut.xml": is a sitemap of its own: it is not fetched; read it by itself`,
			`6 invalid "": has no <loc> ["2026"]`,
		}},
	} {
		var got []string
		_, totals, err := preflight.Read(t.Context(), strings.NewReader(index), "", preflight.Choices{}, c.open, func(l preflight.Line) error {
			got = append(got, shown(l))
			return nil
		})
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" || totals.Submitted != len(c.want) {
			t.Errorf("%s: %v, %s", name, err, diff)
		}
	}
	// A limit of the whole reading ends it, inside a child too.
	_, totals, err := preflight.Read(t.Context(), strings.NewReader(index), "", preflight.Choices{MaxLines: 1}, open, func(preflight.Line) error { return nil })
	if err == nil || totals.Lines != 1 {
		t.Errorf("got %+v, %v, want to stop after the first", totals, err)
	}
}
