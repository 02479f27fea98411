package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"rollcall/store"
)

// hostile are values that no page of ours would send.
func hostile() []string {
	var many []string
	for i := range 1001 {
		many = append(many, strconv.Itoa(i+1))
	}
	return []string{
		"-1", "0", "9223372036854775807", "9223372036854775808", "99999999999999999999", "1e3", "0x10", " 1", "1;--", "\x00", "a\x00b", "\xff\xfe", "\u202e",
		"'\"><script>alert(1)</script>", "javascript:alert(1)", "//evil.example", "https://evil.example/", "../../x", "%", "{{", strings.Repeat("9", 5000), strings.Join(many, ","),
	}
}

// TestNothingTypedBringsAFault: whatever is in an address or a form, the answer
// is a page or a refusal of what was asked, never a fault of ours, and sends
// nobody elsewhere.
func TestNothingTypedBringsAFault(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleOperator)
	s := b.seed(t, "november", 8)
	crawl := b.crawlWith(t, "javascript:alert(1)")
	places := []string{
		"/preflights/%[1]s", "/preflights/%[1]s/rejected.csv", "/batches/new?from=%[1]s", "/batches/%[1]s/rejected.csv",
		"/batches/%[1]s", "/batches/%[1]s/items", "/batches/%[1]s/cancel", "/items/%[1]s", "/jobs/%[1]s", "/results/%[1]s", "/deliveries/%[1]s",
		"/jobs/cancel?job=%[1]s", "/resubmit?item=%[1]s", "/resubmit?all=1&batch=%[1]s", "/resubmit?all=1&code=%[1]s&host=%[1]s",
		"/failures?code=%[1]s&host=%[1]s&from=%[1]s", "/failures?batch=%[1]s", "/failures?from=%[1]s", "/reconcile?from=%[1]s",
		"/deliveries/log?webhook=%[1]s&event=%[1]s&status=%[1]s&class=%[1]s&http=%[1]s&attempt=%[1]s&since=%[1]s", "/deliveries/%[1]s/body",
		"/deliveries/log?job=%[1]s&batch=%[1]s", "/deliveries/log?standing=%[1]s&until=%[1]s", "/deliveries?job=%[1]s&http=%[1]s&since=%[1]s",
		"/deliveries/log?from=%[1]s", "/deliveries?event=%[1]s", "/deliveries/log?status=%[1]s", "/deliveries/log?job=%[1]s",
		"/deliveries?show=%[1]s&from=%[1]s&verdict=%[1]s&state=%[1]s", "/deliveries?show=foreign&from=%[1]s", "/deliveries?show=held&from=%[1]s",
		fmt.Sprintf("/batches/%d/items?view=%%[1]s&state=%%[1]s&parent=%%[1]s&from=%%[1]s&after=%%[1]s", crawl),
		fmt.Sprintf("/batches/%d/items?view=tree&parent=%%[1]s", crawl), fmt.Sprintf("/batches/%d/items?view=table&from=%%[1]s", crawl),
		fmt.Sprintf("/batches/%d/items?state=failed&from=%%[1]s", s.batch),
	}
	for _, place := range places {
		for _, value := range hostile() {
			path := fmt.Sprintf(place, url.QueryEscape(value))
			if !strings.Contains(place, "?") {
				path = fmt.Sprintf(place, url.PathEscape(value))
			}
			got := v.get(path)
			if got.status >= http.StatusInternalServerError {
				t.Errorf("GET %.120q: got %d", path, got.status)
			}
			v.wantHarmless(path, got)
		}
	}
	for _, at := range []string{"/try", "/crawls", "/jobs/cancel", "/resubmit", fmt.Sprintf("/batches/%d/cancel", crawl), "/batches"} {
		for _, value := range hostile() {
			form := url.Values{}
			for _, name := range []string{
				"urls", "name", "depth", "limit", "kind", "format", "proxy_country", "proxy_type", "wait_until", "wait_for", "wait_timeout",
				"headers", "job", "item", "batch", "code", "host", "before", "all", "next",
			} {
				form.Set(name, value)
			}
			got := v.submit(at, form)
			if got.status >= http.StatusInternalServerError {
				t.Errorf("POST %s with %.60q: got %d", at, value, got.status)
			}
			v.wantHarmless(at, got)
		}
	}
}

// wantHarmless looks for links that run and for ways off the site.
func (v *visitor) wantHarmless(path string, got page) {
	v.t.Helper()
	if to := got.header.Get("Location"); to != "" && (!strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//")) {
		v.t.Errorf("%.100q leads to %q", path, to)
	}
	got.doc.Find("[href], [src], [action]").Each(func(_ int, e *goquery.Selection) {
		for _, name := range []string{"href", "src", "action"} {
			if to, ok := e.Attr(name); ok && strings.HasPrefix(strings.ToLower(strings.TrimSpace(to)), "javascript:") {
				v.t.Errorf("%.100q has %s=%q", path, name, to)
			}
		}
	})
}

// crawlWith is a settled crawl whose second page has a URL and a parent that
// are none.
func (b *bench) crawlWith(t *testing.T, bad string) int64 {
	t.Helper()
	batch := b.id(t, `INSERT INTO batches (name, kind, options, created_at, submitted, accepted, failed)
		VALUES ($1, 'crawl', '{"formats":["markdown"],"crawl":{"depth":2,"limit":9}}', now(), 2, 2, 2) RETURNING id`, bad)
	job := b.id(t, `INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, vendor_job_id, error_code, error_message, vendor_status)
		VALUES ($1, 'crawl', 'settled', 'submit', '\x01', 1, now(), $2, $2, $2, $2) RETURNING id`, batch, bad)
	for i, at := range []string{"https://a.example/", bad} {
		item := b.id(t, `INSERT INTO items (batch_id, position, url, url_hash, state, current_job_id, error_code, error_message, created_at, ended_at, original)
			VALUES ($1, $2, $3, sha256(convert_to($3, 'UTF8')), 'failed', $4, $5, $5, now(), now(), $5) RETURNING id`, batch, i+1, at, job, bad)
		b.exec(t, `INSERT INTO job_items (job_id, input_index, item_id, outcome, error_code, error_message) VALUES ($1, $2, $3, 'failed', $4, $4)`, job, i, item, bad)
		b.exec(t, `INSERT INTO crawl_pages (job_id, url_hash, item_id, parent_url, depth) VALUES ($1, sha256(convert_to($2, 'UTF8')), $3, $4, 2147483647)`, job, at, item, bad)
	}
	return batch
}

// TestPagesOfACrawlThatNamesBadURLs: what the vendor names is shown and never
// run.
func TestPagesOfACrawlThatNamesBadURLs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleOperator)
	for _, bad := range []string{"javascript:alert(1)", "JaVaScRiPt://%0aalert(1)", "data:text/html,<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>"} {
		batch := b.crawlWith(t, bad)
		job := b.id(t, `SELECT max(id) FROM jobs`)
		item := b.id(t, `SELECT max(id) FROM items`)
		for _, path := range []string{
			"/", "/batches", fmt.Sprintf("/batches/%d", batch), fmt.Sprintf("/batches/%d/items?view=table", batch), fmt.Sprintf("/batches/%d/cancel", batch),
			fmt.Sprintf("/batches/%d/items?view=tree&parent=%d", batch, item), fmt.Sprintf("/items/%d", item), fmt.Sprintf("/jobs/%d", job), "/failures",
			fmt.Sprintf("/resubmit?item=%d", item), fmt.Sprintf("/resubmit?all=1&batch=%d", batch), fmt.Sprintf("/jobs/cancel?job=%d", job),
		} {
			got := v.get(path)
			if got.status != http.StatusOK {
				t.Errorf("%s: got %d", path, got.status)
			}
			v.wantHarmless(path, got)
			got.doc.Find("a[href]").Each(func(_ int, e *goquery.Selection) {
				if to, _ := e.Attr("href"); strings.HasPrefix(to, "data:") {
					t.Errorf("%s links to %q", path, to)
				}
			})
			if n := got.doc.Find("img[onerror]").Length(); n > 0 {
				t.Errorf("%s: the vendor's words are markup", path)
			}
		}
		b.exec(t, `UPDATE jobs SET vendor_job_id = NULL`)
	}
}
