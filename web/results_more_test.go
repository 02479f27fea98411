package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"rollcall/store"
)

// replaceStored keeps the stored version of a result apart and puts another in its
// place, as replacing it by a replay's difference does.
func (b *bench) replaceStored(t *testing.T, item int64, markdown, html []byte) {
	t.Helper()
	b.exec(t, `INSERT INTO result_versions (item_id, version, job_id, net, stored_at, replaced_at, title, markdown, html, markdown_sha256, html_sha256)
		SELECT item_id, version, job_id, net, stored_at, now(), title, markdown, html, sha256(markdown), sha256(html) FROM results WHERE item_id = $1`, item)
	b.exec(t, `UPDATE results SET version = version + 1, stored_at = now(), markdown = $2, html = $3, markdown_sha256 = sha256($2), html_sha256 = sha256($3)
		WHERE item_id = $1`, item, markdown, html)
}

// TestStoryOfAResult: what its page tells beside the content.
func TestStoryOfAResult(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "november", 8)
	path := fmt.Sprintf("/results/%d", s.items[0])
	b.exec(t, `UPDATE results SET page_key = decode('00112233445566778899aabbccddeeff', 'hex') WHERE item_id IN ($1, $2)`, s.items[0], s.items[3])
	b.exec(t, `UPDATE results SET mark = 'blocked', mark_reason = 'asks for a captcha', charged = 1 WHERE item_id = $1`, s.items[0])
	b.put(t, s.items[0], []byte("# Old page\n\none two three"), []byte("<p>old <b>html</b>"))
	b.replaceStored(t, s.items[0], []byte("# New page"), []byte("<p>new"))
	delivery := b.deliver(t, s.vendorID, "accepted", []byte("{}"))
	b.exec(t, `UPDATE deliveries SET secret_version = 3 WHERE id = $1`, delivery)

	b.exec(t, `UPDATE job_events SET detail = 'vendor says completed: 4 stored, 1 to retry' WHERE job_id = $1 AND kind = 'settled'`, s.job)
	b.exec(t, `INSERT INTO job_events (job_id, at, kind, net, detail) VALUES ($1, now() + interval '1 min', 'retry', '', 'into 1 job')`, s.job)

	details := v.get(path + "?tab=metadata")
	for _, want := range []string{"Submitted", "Accepted by the vendor", "Stored", "Submitted to stored", "3 words"} {
		if want != "3 words" && !strings.Contains(details.text("[data-testid=times]"), want) {
			t.Errorf("times: got %q, want %q in it", details.text("[data-testid=times]"), want)
		}
	}
	if got := details.text("[data-testid=content]"); !strings.Contains(got, "Words 3") || !strings.Contains(got, "10 bytes") || !strings.Contains(got, "SHA-256") {
		t.Errorf("contents: got %q", got)
	}
	if got := details.text("main"); !strings.Contains(got, "Tokens charged 1") || !strings.Contains(got, "asks for a captcha") {
		t.Errorf("facts and mark: got %q", got)
	}
	story := v.get(path + "?tab=story")
	told := story.doc.Find(fmt.Sprintf("[data-testid=timeline] a[href='/deliveries/%d']", delivery))
	if told.Text() != "The delivery that told of it" || !strings.Contains(story.text("[data-testid=timeline]"), "verified with version 3 of the secret") {
		t.Errorf("provenance: got %q", story.text("[data-testid=timeline]"))
	}
	if got := story.text("[data-testid=timeline]"); !strings.Contains(got, "Its job settled Webhook of all its URLs: vendor says completed: 4 stored, 1 to retry") || !strings.Contains(got, "Other URLs of its job tried again into 1 job") {
		t.Errorf("what became of the job's other URLs reads as if it were this one's: %q", got)
	}
	b.exec(t, `UPDATE jobs SET settle_net = 'poll' WHERE id = $1`, s.job)
	b.exec(t, `UPDATE deliveries SET received_at = (SELECT ended_at FROM jobs WHERE id = $1) WHERE id = $2`, s.job, delivery)
	if got := v.get(path + "?tab=story").text("[data-testid=timeline]"); !strings.Contains(got, "Its delivery, which came later") || strings.Contains(got, "told of it") {
		t.Errorf("provenance of what polling brought: got %q", got)
	}
	if got := story.text("[data-testid=timeline]"); !strings.Contains(got, "Submitted in november") || strings.Index(got, "Submitted") > strings.Index(got, "version 1") || !strings.Contains(got, "Replaced by a person") {
		t.Errorf("provenance: got %q, want it from the form to the version that stands", got)
	}
	history := v.get(path + "?tab=history")
	if history.doc.Find("[data-testid=versions] tbody tr").Length() != 2 || history.doc.Find("[data-testid=same] tbody tr").Length() != 1 {
		t.Errorf("history: got %q", history.text("#result"))
	}
	if to := history.doc.Find("[data-testid=same] a").First().AttrOr("href", ""); to != fmt.Sprintf("/results/%d", s.items[3]) {
		t.Errorf("the page's other result: got %q", to)
	}
	old := v.get(path + "?version=1")
	if !strings.Contains(old.text("[data-testid=prose]"), "Old page") || !strings.Contains(old.text("[data-testid=earlier]"), "This is version 1 of 2") {
		t.Errorf("version 1: got %q", old.text("main"))
	}
	frame := v.get(path+"?version=1&tab=preview").doc.Find("iframe").AttrOr("src", "")
	if got := v.get(frame); got.body != "<p>old <b>html</b>" {
		t.Errorf("its page at %s: got %q", frame, got.body)
	}
	file := v.get(path + "/download?format=html&version=1")
	if file.body != "<p>old <b>html</b>" || !strings.Contains(file.header.Get("Content-Disposition"), "-version-1.html") {
		t.Errorf("its download: got %q as %q", file.body, file.header.Get("Content-Disposition"))
	}
	for _, version := range []string{"0", "3", "-1", "x", "99999999999"} {
		if got := v.get(path + "?version=" + version); got.status != http.StatusNotFound {
			t.Errorf("version %s: got %d, want 404", version, got.status)
		}
	}
	b.linksAndLines(t, v, path, s.items[0])
}

// linksAndLines: links are narrowed, and long sources come in parts.
func (b *bench) linksAndLines(t *testing.T, v *visitor, path string, item int64) {
	t.Helper()
	b.exec(t, `UPDATE results SET links = $2 WHERE item_id = $1`, item,
		[]byte(`["/rel", "https://www.a.example/in", "https://b.example/out", {"href": "mailto:x@a.example", "text": "Write"}, "java\nscript:alert(1)", "//c.example/x", 5, null, ""]`))
	for query, want := range map[string]int{"": 6, "&kind=internal": 2, "&kind=external": 4, "&find=EXAMPLE": 4, "&kind=internal&find=rel": 1, "&find=nothing": 0, "&kind=nonsense": 6} {
		got := v.get(path + "?tab=links" + query)
		if n := got.doc.Find("[data-testid=links] li").Length(); got.status != http.StatusOK || n != want {
			t.Errorf("links %q: got %d, want %d: %q", query, n, want, got.text("[data-testid=links]"))
		}
	}
	if to := v.get(path+"?tab=links&find=rel").doc.Find("[data-testid=links] a").AttrOr("href", ""); to != "https://a.example/rel" {
		t.Errorf("a relative link leads to %q", to)
	}
	b.put(t, item, []byte(strings.Repeat("line\r\n", sourceLines+10)), nil)
	first := v.get(path + "?tab=markdown")
	next := first.doc.Find("a[rel=next]").AttrOr("href", "")
	if n := first.doc.Find(".line").Length(); n != sourceLines || next == "" {
		t.Fatalf("first lines: got %d, and on to %q", n, next)
	}
	rest := v.get(next)
	if n := rest.doc.Find(".line").Length(); n != 10 || rest.doc.Find(fmt.Sprintf("#L%d", sourceLines+10)).Text() != "line\n" {
		t.Errorf("the other lines: got %d, want 10 with their own numbers", n)
	}
	for _, line := range []string{"0", "-5", "999999999", "x", "99999999999999999999"} {
		if got := v.get(path + "?tab=markdown&line=" + line); got.status != http.StatusOK || got.doc.Find(".line").Length() == 0 {
			t.Errorf("from line %s: got %d", line, got.status)
		}
	}
}

// TestLineOfAResult: its details tell an analyst where in the list it comes from, in the words of its item's page.
func TestLineOfAResult(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "november", 8)
	details := fmt.Sprintf("/results/%d?tab=metadata", s.items[0])
	if line := v.get(details).doc.Find("[data-testid=line]"); line.Length() != 0 {
		t.Errorf("of no list: got %q", line.Text())
	}
	b.exec(t, `UPDATE items SET line = 1082, original = ' ' || url WHERE id = $1`, s.items[0])
	b.replaceStored(t, s.items[0], []byte("# New page"), []byte("<p>new"))
	for _, path := range []string{details, details + "&version=1"} {
		if text := v.get(path).text("[data-testid=line]"); !inOrder(text, "Line of the file or text 1,082", "Was https://", "blanks around it removed") {
			t.Errorf("%s: got %q", path, text)
		}
	}
}
