package sandbox

import (
	"context"
	"io"
	"net/url"
	"strings"
	"sync"

	"github.com/temoto/robotstxt"
)

// maxRobotsBytes is how much of a robots.txt is read.
const maxRobotsBytes = 512 << 10

// crawl is what a crawl job has besides its pages. The robots map has its own lock, since it is used while fetching;
// the rest is guarded by Sandbox.mu.
type crawl struct {
	depth, limit int
	seed         *url.URL
	seen         map[string]bool
	grown        int // Pages whose links were followed, in the order of discovery.

	mu     sync.Mutex
	robots map[string]func() *robotstxt.Group
}

// expand follows the links of the pages that ended, strictly in the order of their discovery, so that the pages a
// crawl finds don't depend on which of them is faster. The caller holds mu.
func (s *Sandbox) expand(j *job) {
	c := j.crawl
	for c.grown < len(j.items) {
		it := j.items[c.grown]
		if it.status != stateCompleted && it.status != stateFailed {
			return
		}
		c.grown++
		links := it.links
		it.links = nil
		if it.depth >= c.depth {
			continue
		}
		for _, link := range links {
			if len(j.items) >= c.limit || s.urls >= s.cfg.MaxURLs || !j.account.covers(1) {
				break
			}
			if c.seen[link] || !c.inside(link, j.opts) {
				continue
			}
			c.seen[link] = true
			j.account.reserve(j, 1)
			s.foretell(j, j.add(link, it.url, 0, it.depth+1))
		}
	}
}

// inside says whether the crawl may follow a link.
func (c *crawl) inside(link string, opts options) bool {
	if !opts.sameDomain {
		return true
	}
	u, err := url.Parse(link)
	if err != nil {
		return false
	}
	host, seed := hostKey(u), hostKey(c.seed)
	return host == seed || (opts.subdomains && strings.HasSuffix(host, "."+seed))
}

// robotsAllow says whether robots.txt lets crawlers have the page; it is read once per site and crawl.
func (s *Sandbox) robotsAllow(ctx context.Context, c *crawl, text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	site := u.Scheme + "://" + u.Host
	c.mu.Lock()
	load := c.robots[site]
	if load == nil {
		load = sync.OnceValue(func() *robotstxt.Group { return s.loadRobots(ctx, u) })
		c.robots[site] = load
	}
	c.mu.Unlock()
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	return load().Test(path)
}

// loadRobots reads a robots.txt. A site without one allows everything, one that answers 5xx for it nothing, and one
// that can't be reached everything: its pages will fail by themselves.
func (s *Sandbox) loadRobots(ctx context.Context, u *url.URL) *robotstxt.Group {
	all := &robotstxt.Group{}
	if isMade(u.Hostname()) {
		if data, err := robotstxt.FromString(madeRobots); err == nil {
			return data.FindGroup("RollcallSandbox")
		}
		return all
	}
	resp, err := s.fetcher.get(ctx, u.ResolveReference(&url.URL{Path: "/robots.txt"}), nil)
	if err != nil {
		return all
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRobotsBytes))
	if err != nil {
		return all
	}
	data, err := robotstxt.FromStatusAndBytes(resp.StatusCode, body)
	if err != nil {
		return all
	}
	return data.FindGroup("RollcallSandbox")
}
