package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"rollcall/internal/sandbox"
	"rollcall/store"
)

// page reads a page.
func (b *browser) page(address string) *goquery.Document {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		b.t.Fatal(err)
	}
	res, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }() // It was only read.
	doc, err := goquery.NewDocumentFromReader(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		b.t.Fatalf("%s: %s, %v", address, res.Status, err)
	}
	return doc
}

// terms are the numbers of the roll call that a page shows.
func terms(doc *goquery.Document) map[string]string {
	out := map[string]string{}
	for _, term := range doc.Find("[data-term]").EachIter() {
		out[term.AttrOr("data-term", "")] = term.Find(".term-count").Text()
	}
	return out
}

// TestRotatingUnderFaults: a vendor that loses, repeats, garbles and delays deliveries, two servers, and secrets that
// change again and again while the jobs run. No delivery that could be verified is refused for good, every URL is
// answered for once, and the pages tell the story of the vendor's books.
func TestRotatingUnderFaults(t *testing.T) {
	t.Parallel()
	d := newDesk(t, sandbox.Faults{
		sandbox.FaultDrop: 0.3, sandbox.FaultDup: 0.2, sandbox.FaultWrongSig: 0.1, sandbox.FaultOldSig: 0.1,
		sandbox.FaultAlter: 0.05, sandbox.FaultResetAfterAccept: 0.05,
	})
	lb := newBalancer(t)
	d.vars["ROLLCALL_PUBLIC_URL"], d.vars["ROLLCALL_VENDOR_RPS"] = lb.url, "40"
	servers := []*process{start(t, d.as("all", nil), "serve"), start(t, d.as("all", nil), "serve")}
	lb.to(servers[0].address(), servers[1].address())
	mustRun(t, d.vars, "webhook", "register")
	if err := d.addUser(t.Context(), "carol", store.RoleAdmin, "correct horse battery"); err != nil {
		t.Fatal(err)
	}
	carol := signIn(t, servers[1].address(), "carol", "correct horse battery")
	id := d.submit(store.KindExtract, 100)
	turns := 0
	for round := 0; round < 2 || d.outstanding(id) > 0 && round < 20; round++ {
		turns += d.turnAll(carol, servers[round%2].address())
	}
	b := d.home(id, patience)
	d.noneRefused(turns)
	want := map[string]string{
		"submitted": "100", "accepted": "100", "duplicate": "0", "invalid": "0",
		"stored": strconv.FormatInt(b.Stored(), 10), "failed": strconv.FormatInt(b.Failed, 10), "cancelled": "0", "outstanding": "0",
	}
	got := terms(carol.page(servers[0].address() + fmt.Sprintf("/batches/%d", id)))
	for term, n := range want {
		if got[term] != n {
			t.Errorf("the page says %s %s, want %s", got[term], term, n)
		}
	}
}

func (d *desk) outstanding(id int64) int64 {
	d.t.Helper()
	b, err := d.store.Batch(d.t.Context(), id)
	if err != nil {
		d.t.Fatal(err)
	}
	return b.Outstanding
}

// turnAll changes the secret of every webhook: of one by the page's button, of the others by the command, and waits.
func (d *desk) turnAll(carol *browser, base string) int {
	d.t.Helper()
	hooks, err := d.store.Webhooks(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	for i, w := range hooks {
		if i > 0 {
			d.turnedByCommand(w.ID)
			continue
		}
		page := fmt.Sprintf("%s/webhooks/%d", base, w.ID)
		form := url.Values{"csrf_token": {carol.token(page + "/rotation")}}
		if to := carol.post(page+"/rotate", form); !strings.HasSuffix(to, "/rotation") {
			d.t.Fatalf("rotate leads to %q, want the page that follows it", to)
		}
		eventually(d.t, "the rotation to end", patience, func() bool {
			last, err := d.store.LastRotation(d.t.Context(), w.ID)
			if err != nil {
				d.t.Fatal(err)
			}
			return !last.Open()
		})
	}
	return len(hooks)
}

func (d *desk) turnedByCommand(webhook int64) {
	d.t.Helper()
	var ended endedRotation
	out := mustRun(d.t, d.vars, "webhook", "rotate", strconv.FormatInt(webhook, 10), "--json")
	if err := json.Unmarshal([]byte(out), &ended); err != nil || ended.State != store.RotationDone || ended.WebhookID != webhook {
		d.t.Errorf("webhook rotate printed %q, want it done", out)
	}
}

// noneRefused holds the rotations against the vendor's books.
func (d *desk) noneRefused(turns int) {
	d.t.Helper()
	books := d.sandbox.Books().Deliveries
	if books.RefusedValid != 0 {
		d.t.Errorf("%d good deliveries were refused for good", books.RefusedValid)
	}
	if made := books.Rotations; made < turns || made-books.SecretsUntold < turns {
		d.t.Errorf("the vendor made %d secrets, %d of them untold, for %d rotations", made, books.SecretsUntold, turns)
	}
	if lost := d.number("SELECT coalesce(sum(lost), 0) FROM rotations"); lost < int64(books.SecretsUntold) {
		d.t.Errorf("%d answers are noted as lost, the vendor broke %d", lost, books.SecretsUntold)
	}
	if open := d.number("SELECT count(*) FROM rotations WHERE state <> 'done'"); open != 0 {
		d.t.Errorf("%d rotations are not done", open)
	}
	if kept := d.number("SELECT count(*) FROM deliveries WHERE verdict = 'refused'"); books.WrongSignature > 0 && kept == 0 {
		d.t.Error("no forged delivery is kept")
	}
	d.t.Logf("%d rotations, %d recovered, %+v", turns, d.number("SELECT sum(recovered) FROM rotations"), books)
}
