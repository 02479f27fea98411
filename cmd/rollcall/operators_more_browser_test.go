package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// press clicks the first link of a list whose text is this.
func (b *chrome) press(list, text string) {
	b.t.Helper()
	b.until(list, regexp.QuoteMeta(text))
	if b.value(fmt.Sprintf(`(() => { const a = [...document.querySelectorAll(%q)].find((a) => a.textContent.trim() === %q); a?.click(); return a ? "pressed" : ""; })()`, list+" a", text)) == "" {
		b.t.Fatalf("%s has no link %q", list, text)
	}
}

// whole waits for the last of the page that is shown: what is far down it is there then, if it is there at all.
func (b *chrome) whole() {
	b.t.Helper()
	b.until("footer", "Times are in")
}

// verifyAgain is pressed on the page of a delivery that was signed with garbage.
func (s *show) verifyAgain() {
	s.t.Helper()
	page := s.path()
	s.click("form[action$='/verify'] button")
	s.until("[role=status]", "Still refused: .+")
	s.until(".facts", "Refused")
	s.whole()
	if s.path() != page || s.text("[data-testid=recovered]") != "" {
		s.t.Errorf("verified again: at %s, with %q", s.path(), s.text("[data-testid=recovered]"))
	}
}

// refetchAndReplace has a result of ours be another than the vendor's: a replay that fetches settled jobs once more
// shows both, and replaces ours when told to.
func (s *show) refetchAndReplace() {
	s.t.Helper()
	ctx, ours := s.t.Context(), "# Not what the vendor has"
	var item, job int64
	s.must(s.store.Pool().QueryRow(ctx, `UPDATE results SET markdown = $1, markdown_sha256 = sha256($1)
		WHERE item_id = (SELECT min(item_id) FROM results WHERE markdown IS NOT NULL) RETURNING item_id, job_id`, []byte(ours)).Scan(&item, &job))
	s.visit(fmt.Sprintf("/replays/new?settle=%d", job))
	s.click("form[action='/replays'] button[type=submit]")
	s.until("[data-testid=plan]", "1 job is settled already")
	s.click("#refetch")
	s.click("#run button[type=submit]")
	s.until("[data-testid=refetched]", "1 job; 1 result differs")
	s.until("[data-testid=replay-jobs]", "(?s)Already settled.*Differs")
	s.click("[data-testid=refetched] a")
	s.click("[data-testid=differences] tbody th a")
	s.until("[data-testid=part-Markdown] [data-side=Stored]", ours)
	s.whole()
	if theirs := s.text("[data-testid=part-Markdown] [data-side=Fetched] pre"); len(theirs) < 10 || strings.Contains(theirs, ours) {
		s.t.Errorf("got %q fetched", theirs)
	}
	s.check("difference")
	s.click("form[action$='/replace'] button")
	s.until("[role=status]", "Replaced. The earlier version is kept.")
	s.until("main", "Replaced by otto")
	var version int
	var now, before string
	s.must(s.store.Pool().QueryRow(ctx, `SELECT r.version, encode(r.markdown, 'escape'), encode(v.markdown, 'escape')
		FROM results r JOIN result_versions v ON v.item_id = r.item_id AND v.version = 1 WHERE r.item_id = $1`, item).Scan(&version, &now, &before))
	if version != 2 || now == ours || before != ours {
		s.t.Errorf("got version %d %q with %q kept", version, now, before)
	}
}

// emergency changes the secret that was just changed, and ends both that were before.
func (s *show) emergency() {
	s.t.Helper()
	s.until("[data-testid=secrets]", `(?s)Version 2\s+In use.*Version 1\s+Still accepted`)
	s.click("form[action$='/rotate'] .btn-danger")
	s.until("[data-testid=steps]", "Version 3. Every older version has ended")
	s.until("#steps-title", "Last rotation")
	s.until("[data-testid=secrets]", `(?s)Version 3\s+In use.*Version 2\s+Ended.*Version 1\s+Ended`)
}

// changeWebhook does to the webhook of crawls what its page offers, removing it last.
func (s *show) changeWebhook() {
	s.t.Helper()
	ctx := s.t.Context()
	s.visit("/webhooks")
	s.press("[data-testid=webhooks]", "crawl_completed")
	s.until("h1", "crawl_completed")
	s.whole()
	hook := s.hookShown()
	s.fill("#description", "Told by a browser")
	s.click("form[action$='/describe'] button")
	s.until("[role=status]", "The description is changed")
	s.whole()
	there, err := s.vendor.GetWebhook(ctx, *hook.VendorWebhookID)
	s.must(err)
	if typed := s.value(`document.querySelector("#description").value`); typed != "Told by a browser" || there.Description != typed {
		s.t.Errorf("got the description %q here and %q at the vendor", typed, there.Description)
	}
	for point, value := range map[string]string{"#signed": "body", "#key": "whole", "#prefix": "none", "#encoding": "base64"} {
		s.choose(point, value)
	}
	s.click("[data-testid=set-form]")
	s.until("[data-testid=form]", `In use:\s+Base64 of the body`)
	if pinned := s.hookShown().SignatureForm; !strings.HasSuffix(pinned, " base64") {
		s.t.Errorf("got the form %q", pinned)
	}
	s.click("[data-testid=reset-form]")
	s.until("[data-testid=form]", `In use:\s+auto`)
	if pinned := s.hookShown().SignatureForm; pinned != "" {
		s.t.Errorf("back to auto: got the form %q", pinned)
	}
	s.click("details:has([data-testid=remove]) > summary")
	s.click("[data-testid=remove]")
	s.until("[role=status]", "The webhook for crawl_completed is removed")
	s.whole()
	if rows := s.text("[data-testid=webhooks]"); strings.Contains(rows, "crawl_completed") || !strings.Contains(rows, "batch_completed") {
		s.t.Errorf("got the webhooks\n%s", rows)
	}
	if _, err := s.vendor.GetWebhook(ctx, *hook.VendorWebhookID); !errors.Is(err, geonode.ErrNotFound) {
		s.t.Errorf("removed: the vendor answers %v", err)
	}
}

// hookShown is the webhook whose page is open.
func (s *show) hookShown() *store.Webhook {
	s.t.Helper()
	var id int64
	_, err := fmt.Sscanf(s.path(), "/webhooks/%d", &id)
	s.must(err)
	hook, err := s.store.Webhook(s.t.Context(), id)
	s.must(err)
	return hook
}

// auditAsFiles takes the log along both ways, and finds the same in them.
func (s *show) auditAsFiles(whats ...string) {
	s.t.Helper()
	text := s.file("/audit.csv")
	cells, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(cells) < 2 || cells[0][5] != "what" {
		s.t.Fatalf("the CSV: %v in\n%s", err, text)
	}
	inCSV, inLines := map[string]bool{}, map[string]bool{}
	for _, each := range cells[1:] {
		inCSV[each[5]] = true
	}
	for line := range strings.Lines(s.file("/audit.jsonl")) {
		var row struct {
			At   string `json:"at"`
			What string `json:"what"`
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil || row.At == "" {
			s.t.Fatalf("the line %q: %v", line, err)
		}
		inLines[row.What] = true
	}
	for _, what := range whats {
		if !inCSV[what] || !inLines[what] {
			s.t.Errorf("%s: in the CSV %v, in the lines %v", what, inCSV[what], inLines[what])
		}
	}
}

// file is what the page's link to this path leads to.
func (s *show) file(path string) string {
	s.t.Helper()
	return s.value(fmt.Sprintf(`fetch(document.querySelector("a[href^='%s']").href).then((r) => r.text())`, path))
}
