package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"rollcall/store"
)

// Incoming is one request that reached the webhook endpoint, its body whole.
type Incoming struct {
	Endpoint   string // The last segment of the path.
	Header     http.Header
	Body       []byte
	Source     string // The sender's address.
	ReceivedAt time.Time
}

// Answer is what to tell the sender, and why.
type Answer struct {
	Status  int
	Verdict store.Verdict
	Message string
}

// keptBody is how much of a verified body is kept, in bytes. Refused ones are
// kept whole: they may have to be verified again.
const keptBody = 256 << 10

// keptText is how much of a name or an id is kept for people to read, in bytes.
const keptText = 200

// keptHeaders is how much of the headers is kept, in bytes of JSON.
const keptHeaders = 16 << 10

// Receive takes up one delivery and says what to answer. A 2xx is answered
// only after the delivery, the processed event and the wake are committed
// together. A fault of ours is a 503, never a 4xx: the vendor tries again.
func (p *Pipeline) Receive(ctx context.Context, in Incoming) Answer {
	e, err := p.secrets.get(ctx, in.Endpoint)
	if errors.Is(err, store.ErrNotFound) {
		return Answer{Status: http.StatusNotFound, Message: "no such endpoint"}
	}
	if err != nil {
		return p.ourFault(ctx, "look up the endpoint", err)
	}
	req := p.signed(in)
	version, f, ok := e.verify(req, p.cfg.Signature, p.now())
	if !ok {
		if e, err = p.secrets.fresh(ctx, in.Endpoint); err != nil {
			return p.ourFault(ctx, "read the secrets", err)
		}
		if version, f, ok = e.verify(req, p.cfg.Signature, p.now()); !ok {
			return p.refuse401(ctx, e, in, req)
		}
	}
	return p.verified(ctx, e, in, version, f)
}

func (p *Pipeline) signed(in Incoming) signedRequest {
	return signedRequest{
		signature: in.Header.Get(p.cfg.Signature.Header), deliveryID: in.Header.Get(p.cfg.Signature.DeliveryHeader),
		timestamp: sync.OnceValue(func() string { return timestampOf(in.Body) }), body: in.Body,
	}
}

func (p *Pipeline) ourFault(ctx context.Context, what string, err error) Answer {
	p.log.ErrorContext(ctx, "delivery not taken up", slog.String("doing", what), slog.Any("error", err))
	return Answer{Status: http.StatusServiceUnavailable, Message: "try again later"}
}

// refuse401 keeps a delivery that no known secret signed. While the secret is
// being changed that is our fault, and the vendor is asked to try again.
func (p *Pipeline) refuse401(ctx context.Context, e *endpoint, in Incoming, req signedRequest) Answer {
	a := Answer{Status: http.StatusUnauthorized, Verdict: store.VerdictRefused, Message: "signature does not match"}
	if req.signature == "" {
		a.Message = "signature missing"
	}
	switch e.webhook.State {
	case store.WebhookRegistering, store.WebhookRotating, store.WebhookSecretUnknown:
		a.Status = http.StatusServiceUnavailable
	case store.WebhookLive, store.WebhookPaused, store.WebhookInactive, store.WebhookMoved, store.WebhookGone, store.WebhookRemoved:
	}
	d := p.delivery(in, &e.webhook.ID)
	d.Verdict, d.Status, d.Reason = a.Verdict, a.Status, a.Message
	d.VendorDeliveryID = clip(req.deliveryID, keptText)
	d.EventType = clip(in.Header.Get(p.cfg.Signature.EventHeader), keptText)
	d.Unsigned = req.signature == ""
	p.refused.add(ctx, d, e.newest())
	return a
}

// delivery is the record of a request, before its verdict.
func (p *Pipeline) delivery(in Incoming, webhookID *int64) *store.Delivery {
	body := in.Body
	if body == nil {
		body = []byte{}
	}
	return &store.Delivery{
		WebhookID: webhookID, ReceivedAt: in.ReceivedAt, Source: in.Source, Headers: keepHeaders(in.Header),
		Body: body, BodySize: int64(len(in.Body)),
	}
}

// keepHeaders keeps headers as JSON, without what could hold a credential.
func keepHeaders(h http.Header) []byte {
	kept := map[string][]string{}
	for name, values := range h {
		if strings.EqualFold(name, "Authorization") || strings.EqualFold(name, "Cookie") || strings.EqualFold(name, "Proxy-Authorization") {
			values = []string{"(not kept)"}
		}
		kept[name] = values
	}
	encoded, err := json.Marshal(kept)
	if err != nil || len(encoded) > keptHeaders {
		return []byte(`{"_":["too large to keep"]}`)
	}
	return encoded
}

// verified takes up a delivery that a known secret signed.
func (p *Pipeline) verified(ctx context.Context, e *endpoint, in Incoming, version int, f form) Answer {
	d := p.delivery(in, &e.webhook.ID)
	d.SecretVersion, d.SignatureForm = &version, f.String()
	if p.stale(in) {
		d.Verdict, d.Status, d.Reason = store.VerdictRefused, http.StatusUnauthorized, "the timestamp is too old"
		p.refused.add(ctx, d, notSigned)
		return Answer{Status: d.Status, Verdict: d.Verdict, Message: d.Reason}
	}
	env, err := p.envelopeOf(in)
	d.EventType, d.VendorDeliveryID = clip(env.event, keptText), clip(env.deliveryID, keptText)
	if err != nil {
		d.VendorJobID = clip(env.jobID, keptText)
		d.Verdict, d.Status, d.Reason = store.VerdictUnreadable, http.StatusBadRequest, err.Error()
		p.refused.add(ctx, d, notSigned)
		return Answer{Status: d.Status, Verdict: d.Verdict, Message: d.Reason}
	}
	a := &store.Arrival{Delivery: *d}
	if len(a.Body) > keptBody {
		// A copy: a part would keep the whole in memory for as long as it waits.
		a.Body = bytes.Clone(a.Body[:keptBody])
	}
	// Not clipped: 200 characters may be more bytes, and half an id is another.
	a.VendorJobID, a.Status = env.jobID, http.StatusOK
	if err := p.arrivals.commit(ctx, a); err != nil {
		return p.ourFault(ctx, "commit the delivery", err)
	}
	p.noteUse(ctx, e, f)
	return Answer{Status: a.Status, Verdict: a.Verdict, Message: "taken up"}
}

// envelopeOf reads what a verified delivery is about.
func (p *Pipeline) envelopeOf(in Incoming) (envelope, error) {
	env, err := p.cfg.Fields.readEnvelope(in.Body)
	if named := in.Header.Get(p.cfg.Signature.EventHeader); err == nil && named != "" && env.event != "" && named != env.event {
		err = errors.New("the event in the header is not the one in the body")
	}
	return env, err
}

// stale reports a body whose timestamp is older than the setting allows. A
// body without a readable timestamp is stale once there is a limit.
func (p *Pipeline) stale(in Incoming) bool {
	if p.cfg.Signature.MaxAge <= 0 {
		return false
	}
	at, err := time.Parse(time.RFC3339Nano, timestampOf(in.Body))
	return err != nil || in.ReceivedAt.Sub(at) > p.cfg.Signature.MaxAge
}

// noteUse pins the form and the time of the last delivery, once a second at
// most. Both are notes: the delivery is committed whether or not they can be
// written.
func (p *Pipeline) noteUse(ctx context.Context, e *endpoint, f form) {
	now := p.now()
	if !p.secrets.dueNote(e.webhook.ID, now) {
		return
	}
	if e.webhook.SignatureForm == "" {
		if err := p.store.PinForm(ctx, e.webhook.ID, f.String()); err != nil {
			p.log.WarnContext(ctx, "signature form not pinned", slog.Int64("webhook_id", e.webhook.ID), slog.Any("error", err))
		}
	}
	if err := p.store.TouchWebhook(ctx, e.webhook.ID, now); err != nil {
		p.log.WarnContext(ctx, "last delivery not noted", slog.Int64("webhook_id", e.webhook.ID), slog.Any("error", err))
	}
}

// RefuseUnread records a request that was refused before its body was read:
// a wrong method, type or size.
func (p *Pipeline) RefuseUnread(ctx context.Context, endpoint string, header http.Header, source string, status int, reason string) {
	e, err := p.secrets.get(ctx, endpoint)
	if err != nil {
		return // Nobody's endpoint: there is nowhere to show it.
	}
	d := p.delivery(Incoming{Header: header, Source: source, ReceivedAt: p.now()}, &e.webhook.ID)
	d.Verdict, d.Status, d.Reason = store.VerdictRefused, status, reason
	d.Unsigned = header.Get(p.cfg.Signature.Header) == ""
	p.refused.add(ctx, d, notSigned)
}

// KnownEndpoint reports whether the endpoint is one of ours, so that others
// can be answered 404 before a byte is read. An error means it is not known.
func (p *Pipeline) KnownEndpoint(ctx context.Context, endpoint string) (bool, error) {
	_, err := p.secrets.get(ctx, endpoint)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
