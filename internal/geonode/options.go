package geonode

import (
	"fmt"
	"time"
)

// Format is a form of the content.
type Format string

// The published formats.
const (
	FormatMarkdown Format = "markdown"
	FormatHTML     Format = "html"
)

// Proxy picks where a page is fetched from. Empty members are left to the vendor.
type Proxy struct {
	// Country is a two-letter code.
	Country string `json:"country,omitempty"`
	// Type is residential or datacenter.
	Type string `json:"type,omitempty"`
}

// WaitConfig says what to wait for before a page is read.
type WaitConfig struct {
	// Until is commit, domcontentloaded or load.
	Until string `json:"wait_until,omitempty"`
	// For is a selector to wait for.
	For string `json:"wait_for,omitempty"`
	// TimeoutMS is in milliseconds; the vendor's pages disagree on what it bounds.
	TimeoutMS int64 `json:"wait_timeout,omitempty"`
}

// Options are what extractions, batches and crawls share.
type Options struct {
	// Formats is always sent, because the vendor's defaults are disputed; empty means Markdown.
	Formats  []Format
	RenderJS bool
	// Proxy and Wait are left out when nil.
	Proxy *Proxy
	Wait  *WaitConfig
	// Headers go with the vendor's request for the page. Crawls can't have any.
	Headers Headers
}

// wireOptions is how Options are sent.
type wireOptions struct {
	Formats  []Format          `json:"formats"`
	RenderJS bool              `json:"render_js"`
	Proxy    *Proxy            `json:"proxy,omitempty"`
	Headers  map[string]string `json:"headers,omitempty"`
	Wait     *WaitConfig       `json:"wait_config,omitempty"`
}

func (o Options) wire() wireOptions {
	formats := o.Formats
	if len(formats) == 0 {
		formats = []Format{FormatMarkdown}
	}
	return wireOptions{Formats: formats, RenderJS: o.RenderJS, Proxy: o.Proxy, Headers: o.Headers, Wait: o.Wait}
}

// wait is how long the vendor may be asked to hold a page before reading it.
func (o Options) wait() time.Duration {
	if o.Wait == nil || o.Wait.TimeoutMS <= 0 {
		return 0
	}
	return time.Duration(min(o.Wait.TimeoutMS, maxCallTimeout.Milliseconds())) * time.Millisecond
}

// wrongParam is for calls that are refused here, before anything is sent.
func wrongParam(format string, args ...any) error {
	return fmt.Errorf("wrong parameter: "+format, args...)
}
