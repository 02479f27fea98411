package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// drillBalancer gives the vendor's deliveries to the processes in turn, as a load balancer does that knows nothing of
// their health: what goes to a dead one is lost, and the vendor must try again.
type drillBalancer struct {
	next     atomic.Uint64
	backends []*httputil.ReverseProxy
	// gate is held for reading by each delivery on its way, and for writing while none may pass.
	gate sync.RWMutex
}

func newDrillBalancer(addresses []string) (*drillBalancer, error) {
	b := &drillBalancer{}
	for _, address := range addresses {
		target, err := url.Parse(address)
		if err != nil {
			return nil, fmt.Errorf("balancer: %w", err)
		}
		b.backends = append(b.backends, &httputil.ReverseProxy{
			Rewrite:      func(p *httputil.ProxyRequest) { p.SetURL(target) },
			Transport:    &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 10 * time.Second},
			ErrorLog:     slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug), // A process that is dead is what this is about.
			ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		})
	}
	return b, nil
}

// ServeHTTP implements http.Handler. While the balancer is shut, connections are broken off.
func (b *drillBalancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !b.gate.TryRLock() {
		panic(http.ErrAbortHandler)
	}
	defer b.gate.RUnlock()
	b.backends[b.next.Add(1)%uint64(len(b.backends))].ServeHTTP(w, r)
}

// shut lets nothing pass any more and waits for what is on its way; what it returns opens again.
func (b *drillBalancer) shut() func() {
	b.gate.Lock()
	return b.gate.Unlock
}
