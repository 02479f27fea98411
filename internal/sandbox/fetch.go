package sandbox

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// userAgent is how the sandbox names itself to the sites it fetches.
const userAgent = "Mozilla/5.0 (compatible; RollcallSandbox/1.0; simulated scraper)"

// errAddress says that an address is not public.
var errAddress = errors.New("address is not public")

// errRedirects says that a site redirects too often, or to something that is not http or https.
var errRedirects = errors.New("too many redirects, or one to a URL that is not http or https")

// fetcher gets real pages. Addresses are judged when the connection is made, after the name was resolved and for each
// redirect again, so a name can't be turned around in between.
type fetcher struct {
	client    *http.Client
	transport *http.Transport
	maxBytes  int64
	now       func() time.Time
}

func newFetcher(cfg Config) *fetcher {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	if !cfg.AllowPrivate {
		dialer.Control = refusePrivate
	}
	transport := &http.Transport{
		DialContext: dialer.DialContext, TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: 4,
		IdleConnTimeout: 30 * time.Second, ResponseHeaderTimeout: cfg.FetchTimeout, MaxResponseHeaderBytes: 256 << 10,
		ForceAttemptHTTP2: true,
	}
	f := &fetcher{transport: transport, maxBytes: cfg.MaxPageBytes, now: cfg.Now}
	f.client = &http.Client{Transport: transport, Timeout: cfg.FetchTimeout, CheckRedirect: followAtMost(cfg.MaxRedirects)}
	return f
}

func (f *fetcher) close() { f.transport.CloseIdleConnections() }

// followAtMost allows n redirects to http and https. The headers of the job stay with the host they were meant for.
func followAtMost(n int) func(*http.Request, []*http.Request) error {
	return func(r *http.Request, via []*http.Request) error {
		if len(via) > n || checkURL(r.URL.String()) != nil {
			return errRedirects
		}
		if hostKey(r.URL) != hostKey(via[0].URL) {
			r.Header = http.Header{"User-Agent": {userAgent}, "Accept": {acceptHeader}} //nolint:gosec // G119: nothing of the job's headers is left.
		}
		return nil
	}
}

// refusePrivate is the net.Dialer's Control: it sees the address that is really about to be connected to.
func refusePrivate(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s", errAddress, address)
	}
	if !isPublic(at.Addr()) {
		return fmt.Errorf("%w: %s", errAddress, at.Addr())
	}
	return nil
}

// isPublic says whether an address may be fetched from: it is none of loopback, private, link-local, multicast,
// unspecified, shared, benchmark, documentation or reserved, and doesn't embed an IPv4 address of these.
func isPublic(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return false
	}
	for _, block := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "240.0.0.0/4", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32",
		"2002::/16", "fec0::/10",
	} {
		if netip.MustParsePrefix(block).Contains(ip) {
			return false
		}
	}
	return true
}

const acceptHeader = "text/html,application/xhtml+xml,text/plain;q=0.8,application/json;q=0.8,*/*;q=0.5"

// visit fetches a page and turns it into content.
func (f *fetcher) visit(ctx context.Context, u *url.URL, headers map[string]string) (*page, outcome) {
	resp, err := f.get(ctx, u, headers)
	if err != nil {
		return nil, fetchOutcome(err)
	}
	defer resp.Body.Close()
	end := outcome{httpStatus: resp.StatusCode, finalURL: resp.Request.URL.String()}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		end.code = "TARGET_HTTP_" + strconv.Itoa(resp.StatusCode)
		end.message = "The target answered " + resp.Status + "."
		end.retryable = resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests
		return nil, end
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, f.maxBytes+1))
	if err != nil {
		return nil, fetchOutcome(err)
	}
	if int64(len(raw)) > f.maxBytes {
		end.code, end.message = "CONTENT_TOO_LARGE", fmt.Sprintf("The page is larger than %d bytes.", f.maxBytes)
		return nil, end
	}
	c, err := readContent(ctx, raw, resp.Header.Get("Content-Type"), resp.Request.URL)
	switch {
	case errors.Is(err, errUnsupported):
		end.code, end.message = "UNSUPPORTED_CONTENT", "The target is not a page: "+err.Error()+"."
		return nil, end
	case err != nil:
		end.code, end.message = "EXTRACTION_FAILED", "The page could not be turned into Markdown."
		return nil, end
	}
	return &page{content: c}, end
}

// get sends the request. The caller closes the body.
func (f *fetcher) get(ctx context.Context, u *url.URL, headers map[string]string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("request for a page: %w", err)
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", acceptHeader)
	for name, value := range headers {
		if !ownHeader(name) {
			req.Header.Set(name, value)
		}
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("fetching a page: %w", err)
	}
	return resp, nil
}

// ownHeader says that a header belongs to the transport, so that a job can't set it.
func ownHeader(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Accept-Encoding", "Connection", "Content-Length", "Host", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	default:
		return false
	}
}

// fetchOutcome says how a fetch without answer ends.
func fetchOutcome(err error) outcome {
	var dns *net.DNSError
	var timeout net.Error
	var cert *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errAddress):
		return outcome{code: "ADDRESS_REFUSED", message: "The target's address is not public."}
	case errors.Is(err, errRedirects):
		return outcome{code: "TOO_MANY_REDIRECTS", message: "The target redirects too often or to no page."}
	case errors.As(err, &dns):
		return outcome{code: "DNS_FAILED", message: "The target's name can't be resolved.", retryable: dns.IsTemporary}
	case errors.As(err, &cert):
		return outcome{code: "TLS_ERROR", message: "The target's certificate can't be trusted."}
	case errors.As(err, &timeout) && timeout.Timeout():
		return outcome{code: "TIMEOUT", message: "The target took too long.", retryable: true}
	default:
		return outcome{code: "CONNECTION_FAILED", message: "The target can't be reached.", retryable: true}
	}
}

// errUnsupported says that a page is neither HTML nor text.
var errUnsupported = errors.New("unsupported content type")

// readContent turns the bytes of an answer into content: HTML into Markdown, other text into a code block.
func readContent(ctx context.Context, raw []byte, contentType string, at *url.URL) (content, error) {
	if strings.TrimSpace(contentType) == "" {
		contentType = http.DetectContentType(raw)
	}
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		media, _, _ = strings.Cut(strings.ToLower(contentType), ";")
	}
	switch kind := strings.TrimSpace(media); {
	case kind == "text/html" || kind == "application/xhtml+xml":
		return htmlContent(ctx, decodeText(raw, contentType), at)
	case kind == "application/json" || strings.HasSuffix(kind, "+json"):
		return textContent(decodeText(raw, contentType), "json"), nil
	case kind == "application/xml" || kind == "text/xml" || strings.HasSuffix(kind, "+xml"):
		return textContent(decodeText(raw, contentType), "xml"), nil
	case strings.HasPrefix(kind, "text/"):
		return textContent(decodeText(raw, contentType), ""), nil
	default:
		return content{}, fmt.Errorf("%w %s", errUnsupported, kind)
	}
}

// textContent is text that is no HTML; its html is the same text, since there is nothing else.
func textContent(text, language string) content {
	if strings.TrimSpace(text) == "" {
		return content{HTML: text, Links: []string{}}
	}
	return content{Markdown: fenced(text, language), HTML: text, Links: []string{}}
}
