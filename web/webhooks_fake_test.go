package web

import (
	"context"
	"fmt"
	"sync"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// fakeWebhooks notes what the pages ask about webhooks, and answers what a test
// wants.
type fakeWebhooks struct {
	mu      sync.Mutex
	asked   []string
	refuse  error
	vendor  pipeline.AtVendor
	adopted *store.Webhook
	sent    pipeline.Submitted
	fixed   string // The form that the settings leave.
}

func (f *fakeWebhooks) ask(what string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, fmt.Sprintf(what, args...))
	return f.refuse
}

// all is what was asked so far, in order.
func (f *fakeWebhooks) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.asked...)
}

func (f *fakeWebhooks) RegisterWebhooks(context.Context) ([]*store.Webhook, error) {
	return nil, f.ask("register")
}

func (f *fakeWebhooks) VendorWebhooks(context.Context) (pipeline.AtVendor, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.vendor, nil
}

func (f *fakeWebhooks) AdoptWebhook(_ context.Context, vendorID, secret string) (*store.Webhook, error) {
	if err := f.ask("adopt %s %s", vendorID, secret); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.adopted != nil {
		return f.adopted, nil
	}
	return &store.Webhook{ID: 1}, nil
}

func (f *fakeWebhooks) PauseWebhook(_ context.Context, id int64) error { return f.ask("pause %d", id) }

func (f *fakeWebhooks) ResumeWebhook(_ context.Context, id int64) error {
	return f.ask("resume %d", id)
}

func (f *fakeWebhooks) RepairWebhook(_ context.Context, id int64) error {
	return f.ask("repair %d", id)
}

func (f *fakeWebhooks) RemoveWebhook(_ context.Context, id int64) error {
	return f.ask("remove %d", id)
}

func (f *fakeWebhooks) DescribeWebhook(_ context.Context, id int64, description string) error {
	return f.ask("describe %d %s", id, description)
}

func (f *fakeWebhooks) SetSignatureForm(_ context.Context, id int64, form string) error {
	return f.ask("form %d %s", id, form)
}

func (f *fakeWebhooks) FormInUse(pinned string) (string, bool) {
	switch {
	case f.fixed != "":
		return f.fixed, true
	case pinned == "":
		return pipeline.Auto, false
	}
	return pinned, false
}

func (f *fakeWebhooks) SendOne(_ context.Context, id int64, url string, _ *int64) (pipeline.Submitted, error) {
	return f.sent, f.ask("send %d %s", id, url)
}
