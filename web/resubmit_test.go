package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rollcall/store"
)

func TestResubmitTicked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "november", 8)
	failed := []int64{s.items[1], s.items[5]}
	b.exec(t, `UPDATE items SET error_code = 'SYNC_LOST', error_retryable = true WHERE id = $1`, failed[0])
	list := v.get("/failures")
	if boxes := list.doc.Find("form[action='/resubmit'] input[name=item]"); boxes.Length() != 2 {
		t.Errorf("boxes: got %d, want 2", boxes.Length())
	}
	// A stored item that was ticked before it came is left alone.
	plan := v.get(fmt.Sprintf("/resubmit?item=%d&item=%d&item=%d", failed[0], failed[1], s.items[0]))
	for _, want := range []string{"2 URLs are asked for again", "Up to 2 requests, in 1 job", "1 URL may be charged a second time", "1 URL is left alone"} {
		if text := plan.text("[data-testid=plan]"); !strings.Contains(text, want) {
			t.Errorf("plan: got %q, want %q in it", text, want)
		}
	}
	if text := plan.text("[data-testid=plan]"); !strings.Contains(text, "It may help with 1 of them; 1 is marked as not worth another try") {
		t.Errorf("plan: got %q, want what is hardly worth it", text)
	}
	form := plan.hidden("/resubmit")
	got := v.submit("/resubmit", form)
	if got.status != http.StatusSeeOther || len(b.pipeline.resent) != 1 || !slices.Equal(b.pipeline.resent[0], failed) {
		t.Fatalf("got %d, resent %v, want %v", got.status, b.pipeline.resent, failed)
	}
	if back := got.header.Get("Location"); back != fmt.Sprintf("/batches/%d", s.batch) {
		t.Errorf("back to %q, want the batch", back)
	}
	// The same form again, when one has failed again: its plan was about the first failure.
	b.exec(t, `UPDATE items SET ended_at = now() + interval '1 s' WHERE id = $1`, failed[0])
	b.exec(t, `UPDATE items SET state = 'outstanding', ended_at = NULL WHERE id = $1`, failed[1])
	v.submit("/resubmit", form)
	if len(b.pipeline.resent) != 1 {
		t.Errorf("a second press sent %v", b.pipeline.resent[1:])
	}
	if note := v.get("/failures").text(".note-info"); !strings.Contains(note, "Nothing was resubmitted") {
		t.Errorf("note: got %q", note)
	}
}

// TestResubmitMatching carries the filter from the list's address to the press.
func TestResubmitMatching(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s, other := b.seed(t, "november", 12), b.seed(t, "december", 8)
	b.exec(t, `UPDATE items SET error_code = 'TIMEOUT' WHERE id = $1`, s.items[1])
	b.exec(t, `UPDATE items SET url = 'https://b.example/x' WHERE id = $1`, s.items[5])
	filters := url.Values{"batch": {idText(s.batch)}, "code": {"NOT_FOUND"}, "host": {"HTTPS://A.example:443/path"}}
	list := v.get("/failures?" + filters.Encode())
	if rows := list.doc.Find("[data-testid=failures] tbody tr"); rows.Length() != 1 || list.text(".filters-total") != "1 failure" {
		t.Fatalf("got %d failures, %q, want 1", rows.Length(), list.text(".filters-total"))
	}
	all, _ := list.doc.Find(".tick-bar a[href^='/resubmit?']").Attr("href")
	plan := v.get(all)
	if text := plan.text("[data-testid=plan]"); !strings.Contains(text, "1 URL is asked for again: every failure with the code NOT_FOUND at a.example of the batch november") {
		t.Errorf("plan: got %q", text)
	}
	form := plan.hidden("/resubmit")
	// The set is frozen: what comes to match later is not in it.
	b.exec(t, `UPDATE items SET url = 'https://a.example/late', error_code = 'NOT_FOUND' WHERE id = $1`, s.items[1])
	got := v.submit("/resubmit", form)
	if len(b.pipeline.resent) != 1 || !slices.Equal(b.pipeline.resent[0], []int64{s.items[9]}) {
		t.Fatalf("got %d, sent %v, want the item of the plan alone", got.status, b.pipeline.resent)
	}
	if back := got.header.Get("Location"); back != fmt.Sprintf("/failures?batch=%d&code=NOT_FOUND&host=a.example", s.batch) {
		t.Errorf("back to %q, want the filtered list", back)
	}
	if note := v.get("/failures").text(".note-success"); note != "1 URL was resubmitted." {
		t.Errorf("note: got %q", note)
	}
	b.pipeline.sealed = []int64{7, 9}
	v.submit("/resubmit", form)
	if note := v.get("/failures").text(".note-warning"); !strings.Contains(note, "1 URL was resubmitted. The URLs of the batches 7 and 9 stay as they are") {
		t.Errorf("note: got %q, want the batches that can't be sent", note)
	}
	if link := v.get(fmt.Sprintf("/batches/%d/items?state=failed", other.batch)).doc.Find(fmt.Sprintf("a[href='/resubmit?all=1&standing=all&batch=%d']", other.batch)); link.Length() != 1 {
		t.Error("no way to resubmit all failures of a batch on its page")
	}
}

// TestResubmitLeavesWhatWasResolvedSince: between a plan and its press somebody
// else resolves what is in it, whether it was ticked or matched.
func TestResubmitLeavesWhatWasResolvedSince(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "november", 12)
	failed := []int64{s.items[1], s.items[5], s.items[9]}
	for _, plan := range []string{
		fmt.Sprintf("/resubmit?item=%d&item=%d", failed[0], failed[1]), "/resubmit?all=1&batch=" + idText(s.batch), "/resubmit?all=1&standing=all&batch=" + idText(s.batch),
	} {
		b.pipeline.resent = nil
		form := v.get(plan).hidden("/resubmit")
		b.exec(t, `UPDATE items SET resolved_at = now(), resolved_note = 'gone' WHERE id = $1`, failed[0])
		v.submit("/resubmit", form)
		if len(b.pipeline.resent) != 1 || slices.Contains(b.pipeline.resent[0], failed[0]) || !slices.Contains(b.pipeline.resent[0], failed[1]) {
			t.Errorf("%s: sent %v, want %d without what was resolved", plan, b.pipeline.resent, failed[1])
		}
		b.exec(t, `UPDATE items SET resolved_at = NULL, resolved_note = '' WHERE id = $1`, failed[0])
	}
	// A group's press leads to the batch, or to the list without the group.
	if one := v.get("/failures?batch=%20" + idText(s.batch)); one.doc.Find("#batch").AttrOr("value", "") != idText(s.batch) || one.doc.Find("[data-testid=of-batch] a[href='/batches/"+idText(s.batch)+"']").Length() != 1 {
		t.Errorf("the filter by batch says %q", one.text("main"))
	}
	for _, wrong := range []string{"9999999", "x", "0", "-1"} {
		if got := v.get("/failures?batch=" + wrong); got.status != http.StatusUnprocessableEntity || got.text("#batch-error") != "There is no batch of that number." || got.doc.Find("#batch").AttrOr("value", "") != wrong {
			t.Errorf("batch %q: got %d, %q", wrong, got.status, got.text("#batch-error"))
		}
	}
	if v.get("/failures").doc.Find("#batch").Length() != 1 {
		t.Error("failures of all batches can't be narrowed to one")
	}
	groups := v.get("/failures?batch=" + idText(s.batch)).doc.Find("[data-testid=groups] a[href^='/resubmit?']")
	form := v.get(groups.First().AttrOr("href", "")).hidden("/resubmit")
	for to, want := range map[int64]string{0: "/failures?batch=" + idText(s.batch), s.batch: "/batches/" + idText(s.batch)} {
		b.pipeline.resentTo = to
		if got := v.submit("/resubmit", form).header.Get("Location"); got != want || form.Get("group") == "" {
			t.Errorf("from a group of batch %d: back to %q, want %q", to, got, want)
		}
	}
	// What was resolved before, and is in the plan, is asked for by whoever presses.
	b.exec(t, `UPDATE items SET resolved_at = now() - interval '1 hour', resolved_note = 'gone' WHERE id = $1`, failed[2])
	b.pipeline.resent = nil
	v.submit("/resubmit", v.get("/resubmit?all=1&standing=resolved").hidden("/resubmit"))
	if len(b.pipeline.resent) != 1 || !slices.Equal(b.pipeline.resent[0], failed[2:]) {
		t.Errorf("the resolved ones: sent %v, want %v", b.pipeline.resent, failed[2:])
	}
}

func TestResubmitRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "november", 8)
	if got := v.get("/resubmit"); got.status != http.StatusOK || got.doc.Find("form[action='/resubmit']").Length() != 0 || !strings.Contains(got.text("main"), "Nothing is ticked") {
		t.Errorf("nothing ticked: got %d %q", got.status, got.text("main"))
	}
	for query, want := range map[string]int{
		"item=x": 400, "item=-1": 400, "all=1&batch=x": 404, "all=1&batch=99999": 404, "all=1&code=%00&host=%00": 200,
		"all=1&host=%27%3B--": 200, "item=99999": 200,
	} {
		if got := v.get("/resubmit?" + query); got.status != want {
			t.Errorf("plan %s: got %d, want %d", query, got.status, want)
		}
	}
	item := idText(s.items[1])
	for _, before := range []string{"", "x", "0", "-5", strconv.FormatInt(time.Now().Add(time.Hour).UnixMicro(), 10), "99999999999999999999"} {
		if got := v.submit("/resubmit", url.Values{"item": {item}, "before": {before}}); got.status != http.StatusBadRequest {
			t.Errorf("before %q: got %d, want 400", before, got.status)
		}
	}
	now := strconv.FormatInt(time.Now().UnixMicro(), 10)
	for _, set := range []string{"!", "gA", "AA", "_____________________w"} {
		if got := v.submit("/resubmit", url.Values{"all": {"1"}, "set": {set}, "before": {now}}); got.status != http.StatusBadRequest {
			t.Errorf("set %q: got %d, want 400", set, got.status)
		}
	}
	if len(b.pipeline.resent) != 0 {
		t.Error("something was sent")
	}
}

// TestItemTellsItsLineage: what each job said, who had it made, and that one was
// charged twice.
func TestItemTellsItsLineage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "november", 4)
	item := s.items[1]
	b.exec(t, `UPDATE job_items SET outcome = 'failed', error_code = 'TIMEOUT' WHERE item_id = $1`, item)
	for _, step := range []struct{ origin, outcome string }{{"retry", "superseded"}, {"resubmit", "stored"}} {
		job := b.id(t, `INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, ended_at)
			VALUES ($1, 'extract', 'settled', $2, '\x00', 1, now(), now()) RETURNING id`, s.batch, step.origin)
		b.exec(t, `INSERT INTO job_items (job_id, input_index, item_id, outcome) VALUES ($1, 0, $2, $3)`, job, item, step.outcome)
	}
	page := v.get("/items/" + idText(item))
	if text := page.text("[data-testid=lineage] tbody"); !inOrder(text, "submitted", "Failed", "TIMEOUT", "tried again by Rollcall", "Superseded", "Charged twice", "resubmitted by a person", "Stored") {
		t.Errorf("lineage: got %q", text)
	}
	if page.doc.Find("a[href='/resubmit?item="+idText(item)+"']").Length() != 1 || page.doc.Find("[data-live]").Length() != 0 {
		t.Error("a failed item can't be resubmitted from its page, or waits for news")
	}
	if jobs := v.get("/batches/" + idText(s.batch)).text("[data-testid=jobs] tbody"); !inOrder(jobs, "Job 3", "resubmitted", "Job 2", "tried again", "Job 1") || strings.Count(jobs, "resubmitted") != 1 {
		t.Errorf("jobs: got %q, want who sent them again told apart", jobs)
	}
	b.exec(t, `UPDATE items SET current_job_id = 3 WHERE id = $1`, item)
	if jobs := v.get("/batches/" + idText(s.batch)).text("[data-testid=jobs] tbody"); !strings.Contains(jobs, "Job 1 Batch, 4 URLs, 1 of them taken over") {
		t.Errorf("jobs: got %q, want what the first was made for", jobs)
	}
	if waiting := v.get("/items/" + idText(s.items[2])); waiting.doc.Find("[data-live]").Length() != 1 || waiting.doc.Find("a[href^='/resubmit']").Length() != 0 {
		t.Error("an outstanding item doesn't follow, or can be resubmitted")
	}
}

// inOrder reports whether the words stand in the text one after the other.
func inOrder(text string, words ...string) bool {
	for _, word := range words {
		at := strings.Index(text, word)
		if at < 0 {
			return false
		}
		text = text[at+len(word):]
	}
	return true
}

// TestTriedItem: under way, answered, and lost.
func TestTriedItem(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	batch := b.id(t, `INSERT INTO batches (name, kind, options, created_at, submitted, accepted) VALUES ('try', 'sync', '{}', now(), 1, 1) RETURNING id`)
	item := b.id(t, `INSERT INTO items (batch_id, position, url, url_hash, created_at) VALUES ($1, 1, 'https://a.example/', '\x00', now()) RETURNING id`, batch)
	b.exec(t, `INSERT INTO sync_calls (item_id, created_at, called_at, lease_until) VALUES ($1, now(), now(), now() + interval '140 s')`, item)
	path := "/items/" + idText(item)
	if got := v.get(path); !strings.Contains(got.text("[data-testid=asking]"), "for 2 min 20 s at most") || got.doc.Find("#live").Length() != 1 {
		t.Errorf("under way: got %q", got.text("[data-testid=asking]"))
	}
	b.exec(t, `UPDATE items SET state = 'failed', error_code = 'SYNC_LOST', error_message = 'cut off', ended_at = now() WHERE id = $1`, item)
	b.exec(t, `UPDATE sync_calls SET ended_at = now(), note = 'SYNC_LOST' WHERE item_id = $1`, item)
	lost := v.get(path)
	if text := lost.text("[data-testid=failure]"); !inOrder(text, "SYNC_LOST", "cut off", "won't ask for it again by itself", "Fetch it as an async job") {
		t.Errorf("lost: got %q", text)
	}
	if plan := v.get("/resubmit?item=" + idText(item)); !strings.Contains(plan.text("[data-testid=plan]"), "may be charged a second time") {
		t.Errorf("plan: got %q", plan.text("[data-testid=plan]"))
	}
	b.exec(t, `UPDATE items SET state = 'stored', net = 'sync', error_code = '' WHERE id = $1`, item)
	b.exec(t, `INSERT INTO results (item_id, net, stored_at, markdown) VALUES ($1, 'sync', now(), $2)`, item, []byte("# Kettle\n\n<script>alert(1)</script>[x](javascript:alert(1))"))
	got := v.get(path)
	if got.text("[data-testid=prose] h1") != "Kettle" || got.doc.Find("[data-testid=prose] script, [data-testid=prose] a[href^=javascript]").Length() != 0 {
		t.Errorf("answered: got %q", got.text("[data-testid=prose]"))
	}
}
