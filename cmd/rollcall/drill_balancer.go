package main

import (
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"
)

// drillBalancer gives the vendor's deliveries to the processes in turn, as a load balancer does that knows nothing of
// their health: what goes to a dead one is lost, and the vendor must try again.
type drillBalancer struct {
	next     atomic.Uint64
	backends []*httputil.ReverseProxy
}

func newDrillBalancer(addresses []string) (*drillBalancer, error) {
	b := &drillBalancer{}
	for _, address := range addresses {
		target, err := url.Parse(address)
		if err != nil {
			return nil, err
		}
		b.backends = append(b.backends, &httputil.ReverseProxy{
			Rewrite:      func(p *httputil.ProxyRequest) { p.SetURL(target) },
			Transport:    &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 10 * time.Second},
			ErrorLog:     log.New(io.Discard, "", 0), // A process that is dead is what this is about.
			ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		})
	}
	return b, nil
}

// ServeHTTP implements http.Handler.
func (b *drillBalancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.backends[b.next.Add(1)%uint64(len(b.backends))].ServeHTTP(w, r)
}
