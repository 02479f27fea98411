package geonode

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptrace"
	"sync/atomic"
)

// sendTrace watches whether a request ever had a connection to go out on.
type sendTrace struct {
	asked atomic.Bool // The transport reports to traces, so its silence means something.
	got   atomic.Bool
}

// traceSend hooks a trace into the context. The hooks may run on other goroutines.
func traceSend(ctx context.Context) (context.Context, *sendTrace) {
	t := new(sendTrace)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { t.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { t.got.Store(true) },
	}), t
}

// notSent is true only with proof: the transport looked for a connection and had none,
// or the error itself is one of getting a connection. A transport that reports
// nothing proves nothing.
func (t *sendTrace) notSent(err error) bool {
	if t.got.Load() {
		return false
	}
	if t.asked.Load() {
		return true
	}
	var op *net.OpError
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &dns) || errors.As(err, &cert)
}
