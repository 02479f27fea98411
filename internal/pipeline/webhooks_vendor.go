package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// shownURL is how much of a foreign webhook's address is shown, in bytes.
const shownURL = 500

// VendorWebhook is a webhook at the vendor that isn't ours. It is shown, and
// never touched unless somebody adopts it.
type VendorWebhook struct {
	ID, URL, Event, Description string
	Inactive                    bool
	Here                        bool      // Its address is a free endpoint of ours already.
	CreatedAt                   time.Time // Zero when the vendor doesn't say.
}

// AtVendor is the vendor's side of the webhooks.
type AtVendor struct {
	Asked   bool // The list was read; else Trouble says why not.
	Trouble string
	// Unavailable is set when the vendor answered that there are no webhooks.
	Unavailable string
	Used, Most  int
	Foreign     []VendorWebhook
}

// VendorWebhooks reads the vendor's list within ctx's time. A vendor that can't
// be asked is no error: AtVendor says so.
func (p *Pipeline) VendorWebhooks(ctx context.Context) (AtVendor, error) {
	at := AtVendor{Most: geonode.MaxWebhooks}
	list, err := p.allWebhooks(ctx)
	record, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if err != nil {
		at.Trouble = vendorSaid(err)
		if _, err := p.noteUnavailable(record, err, askedToList); err != nil {
			return at, err
		}
	} else if err := p.noteAvailable(record, askedToList); err != nil {
		return at, err
	}
	none, noneErr := p.WebhooksUnavailable(record)
	if noneErr != nil {
		return at, noneErr
	}
	if none != nil {
		at.Unavailable = none.Text()
	}
	mine, mineErr := p.store.Webhooks(record)
	if mineErr != nil {
		return at, fmt.Errorf("look at the webhooks: %w", mineErr)
	}
	if err != nil {
		return at, nil
	}
	at.Asked, at.Used = true, len(list)
	for i := range list {
		if isOurs(&list[i], mine) {
			continue
		}
		v := foreignWebhook(&list[i])
		if _, was, err := p.endpointFor(record, &list[i]); err != nil {
			return at, err
		} else if was != "" {
			v.Here = true
		}
		at.Foreign = append(at.Foreign, v)
	}
	return at, nil
}

func foreignWebhook(v *geonode.Webhook) VendorWebhook {
	return VendorWebhook{
		ID: v.ID, URL: clip(store.CleanText(v.URL), shownURL), Event: clip(store.CleanText(string(v.EventType)), keptText),
		Description: clip(store.CleanText(v.Description), keptText), Inactive: v.Inactive(), CreatedAt: v.CreatedAt.Time,
	}
}

// SignaturePoint is one point of a signature's form with its listed values.
type SignaturePoint struct {
	Name, Text string
	Values     []string
}

// SignaturePoints are the points of a form, in the order in which a pinned form
// names them.
func SignaturePoints() []SignaturePoint {
	return []SignaturePoint{
		{"signed", "What is signed", signedAs()},
		{"key", "The key", keyForms()},
		{"prefix", "Before the signature", prefixes()},
		{"encoding", "How it is written", encodings()},
	}
}

// FormInUse is the form that deliveries to a webhook are checked by: the pinned
// one, Auto, or the one form that the settings leave, which stand over what was
// pinned. The second result says that the settings decide it.
func (p *Pipeline) FormInUse(pinned string) (string, bool) {
	choices := p.cfg.Signature.choices(pinned)
	f, ok := parseForm(pinned)
	switch {
	case ok && p.cfg.Signature.allow(f):
		return pinned, false
	case len(choices) == 1:
		return choices[0].String(), true
	}
	return Auto, false
}

// SetSignatureForm fixes the form by which deliveries to a webhook are checked,
// such as "body whole none hex"; "" or Auto leaves it to the next delivery that
// verifies under any. All processes follow within a second.
func (p *Pipeline) SetSignatureForm(ctx context.Context, id int64, pinned string) error {
	pinned = strings.TrimSpace(pinned)
	if pinned == Auto {
		pinned = ""
	}
	if err := p.checkForm(pinned); err != nil {
		return err
	}
	w, err := p.webhook(ctx, id)
	if err != nil {
		return err
	}
	err = p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		before, err := tx.SetForm(ctx, id, pinned)
		if err != nil || before == pinned {
			return err
		}
		return tx.Audit(ctx, p.now(), webhookChange("form", w, audited{Form: orAuto(before)}, audited{Form: orAuto(pinned)}))
	})
	if err != nil {
		return fmt.Errorf("set the signature form of webhook %d: %w", id, err)
	}
	p.secrets.forget(w.Endpoint)
	return nil
}

func (p *Pipeline) checkForm(pinned string) error {
	if pinned == "" {
		return nil
	}
	parts := strings.Split(pinned, " ")
	for i, point := range SignaturePoints() {
		if len(parts) != len(SignaturePoints()) || !slices.Contains(point.Values, parts[i]) {
			return &WebhookError{Field: "form", Text: "That isn't one of the listed forms."}
		}
	}
	if f, _ := parseForm(pinned); !p.cfg.Signature.allow(f) {
		return &WebhookError{Field: "form", Text: "The settings ROLLCALL_SIGNATURE_* of this installation fix another form, and stand over what is set here."}
	}
	return nil
}

func orAuto(form string) string {
	if form == "" {
		return Auto
	}
	return form
}
