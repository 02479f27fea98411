package pipeline

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// Options is how the vendor is asked to fetch the URLs of a batch. It is kept
// as JSON in batches.options; custom headers are kept apart, sealed.
type Options struct {
	Formats       []string `json:"formats"` // markdown, html; always sent.
	RenderJS      bool     `json:"render_js"`
	ProxyCountry  string   `json:"proxy_country,omitempty"` // Two letters.
	ProxyType     string   `json:"proxy_type,omitempty"`    // residential, datacenter.
	WaitUntil     string   `json:"wait_until,omitempty"`    // commit, domcontentloaded, load.
	WaitFor       string   `json:"wait_for,omitempty"`      // A selector.
	WaitTimeoutMS int      `json:"wait_timeout_ms,omitempty"`
	ExtractLinks  bool     `json:"extract_links,omitempty"`
	// Crawl is how far a crawl goes; nil in every other batch.
	Crawl *CrawlOptions `json:"crawl,omitempty"`
}

// Limits of the options.
const (
	maxWaitMS      = 120_000
	maxSelector    = 500
	maxHeaders     = 50
	maxHeaderBytes = 8000
)

// withDefaults asks for Markdown when no format was chosen.
func (o Options) withDefaults() Options {
	if len(o.Formats) == 0 {
		o.Formats = []string{string(geonode.FormatMarkdown)}
	}
	o.ProxyCountry = strings.ToUpper(strings.TrimSpace(o.ProxyCountry))
	o.WaitFor = strings.TrimSpace(o.WaitFor)
	o.Crawl = o.Crawl.withDefaults()
	return o
}

// forKind is what a job of the kind asks for: a page of a crawl that is fetched
// by itself keeps its links, as the crawl would have.
func (o Options) forKind(kind store.Kind) Options {
	if kind == store.KindExtract && o.Crawl != nil {
		o.Crawl, o.ExtractLinks = nil, true
	}
	return o
}

// check names each field that cannot be right.
func (o Options) check() []FieldError {
	var out []FieldError
	add := func(bad bool, field, message string) {
		if bad {
			out = append(out, FieldError{Field: field, Message: message})
		}
	}
	for _, f := range o.Formats {
		add(f != "markdown" && f != "html", "formats", fmt.Sprintf("%q is neither markdown nor html", f))
	}
	add(!regexp.MustCompile(`^([A-Z]{2})?$`).MatchString(o.ProxyCountry), "proxy_country",
		"a country is two letters, such as DE")
	add(!slices.Contains([]string{"", "residential", "datacenter"}, o.ProxyType), "proxy_type",
		"choose residential or datacenter")
	add(!slices.Contains([]string{"", "commit", "domcontentloaded", "load"}, o.WaitUntil), "wait_until",
		"choose commit, domcontentloaded or load")
	add(len(o.WaitFor) > maxSelector, "wait_for", fmt.Sprintf("the selector is over %d bytes", maxSelector))
	add(strings.ContainsRune(o.WaitFor, 0), "wait_for", "the selector holds a NUL character")
	add(o.WaitTimeoutMS < 0 || o.WaitTimeoutMS > maxWaitMS, "wait_timeout",
		fmt.Sprintf("the time is between 0 and %d milliseconds", maxWaitMS))
	return append(out, o.Crawl.check()...)
}

// checkHeaders names the custom headers that cannot be sent.
func checkHeaders(headers map[string]string) []FieldError {
	var out []FieldError
	size := 0
	for name, value := range headers {
		size += len(name) + len(value)
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			out = append(out, FieldError{Field: "headers", Message: fmt.Sprintf("%q is not a header that can be sent", name)})
		}
	}
	if len(headers) > maxHeaders || size > maxHeaderBytes {
		out = append(out, FieldError{
			Field:   "headers",
			Message: fmt.Sprintf("at most %d headers and %d bytes can be sent", maxHeaders, maxHeaderBytes),
		})
	}
	return out
}

// vendorOptions is the same in the client's words.
func (o Options) vendorOptions(headers map[string]string) geonode.Options {
	out := geonode.Options{RenderJS: o.RenderJS, Headers: headers}
	for _, f := range o.Formats {
		out.Formats = append(out.Formats, geonode.Format(f))
	}
	if o.ProxyCountry != "" || o.ProxyType != "" {
		out.Proxy = &geonode.Proxy{Country: o.ProxyCountry, Type: o.ProxyType}
	}
	if o.WaitUntil != "" || o.WaitFor != "" || o.WaitTimeoutMS > 0 {
		out.Wait = &geonode.WaitConfig{Until: o.WaitUntil, For: o.WaitFor, TimeoutMS: int64(o.WaitTimeoutMS)}
	}
	return out
}

// requestHash identifies a request by everything that is sent: kind, options,
// headers and URLs in order.
func requestHash(kind store.Kind, o Options, headers map[string]string, urls []string) []byte {
	sum := sha256.New()
	encoded, err := json.Marshal(o)
	if err != nil {
		encoded = fmt.Appendf(nil, "%+v", o) // Cannot happen: the type has nothing JSON lacks.
	}
	put(sum, string(kind), string(encoded))
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		put(sum, http.CanonicalHeaderKey(name), headers[name])
	}
	put(sum, urls...)
	return sum.Sum(nil)
}

// put hashes texts with their lengths, so that no two lists look alike.
func put(sum hash.Hash, texts ...string) {
	var size [8]byte
	for _, t := range texts {
		binary.BigEndian.PutUint64(size[:], uint64(len(t)))
		sum.Write(size[:])
		sum.Write([]byte(t))
	}
}
