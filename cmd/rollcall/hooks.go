package main

import (
	"net/http"
	"time"
)

// hooks are what a drill has put into a server. Outside one all are nil, but for the clock.
type hooks struct {
	now  func() time.Time
	step func(name string)
	fail func(write bool) error
	wrap func(http.RoundTripper) http.RoundTripper
}
