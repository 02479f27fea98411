package web

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"rollcall/store"
)

// TestBatchItemsByFilter: the filter is in the address, pages keep it, and what
// it leaves out is said.
func TestBatchItemsByFilter(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "november", 240)
	b.exec(t, `UPDATE items SET url = 'https://b.example/' || position WHERE position % 2 = 0`)
	path := fmt.Sprintf("/batches/%d/items", s.batch)
	page := v.get(path + "?state=stored&url=EXAMPLE%2F1&host=a.example&http=2xx")
	if found := page.text("[data-testid=found]"); found != "28 items fit" {
		t.Errorf("got %q", found)
	}
	if got := len(walk(t, v, path+"?host=b.example", "[data-testid=items] tbody th a")); got != 120 {
		t.Errorf("the host's pages hold %d items, want 120", got)
	}
	if tab := page.doc.Find("#item-tabs a").First().AttrOr("href", ""); tab != path+"?host=a.example&http=2xx&url=EXAMPLE%2F1#items" {
		t.Errorf("a tab leads to %q", tab)
	}
	if part := page.doc.Find("#roll-call [data-part=failed] a").AttrOr("href", ""); part != path+"?state=failed#items" {
		t.Errorf("a part of the bar leads to %q", part)
	}
	if none := v.get(path + "?url=nowhere"); !strings.Contains(none.text("#items"), "No item fits the filter") || none.doc.Find("#items a[href='"+path+"#items']").Length() == 0 {
		t.Errorf("nothing fits: got %q", none.text("#items"))
	}
	wrong := v.get(path + "?http=40&url=x&min_ms=2s&max_ms=1s")
	if wrong.status != http.StatusUnprocessableEntity || wrong.text("#http-error") == "" || wrong.text("#max_ms-error") == "" || wrong.doc.Find("#url").AttrOr("value", "") != "x" {
		t.Errorf("got %d, %q", wrong.status, wrong.text("#error-summary"))
	}
	rows := v.get(fmt.Sprintf("%s/rows?id=%d&id=%d&id=99999", path, s.items[1], s.items[3]))
	if got := rows.doc.Find("hx-partial").Length(); got != 3 || !strings.Contains(rows.html(), "item-row-"+idText(s.items[1])) {
		t.Errorf("rows: got %d parts: %s", got, rows.html())
	}
}

func (p page) html() string {
	text, _ := goquery.OuterHtml(p.doc.Selection)
	return text
}

// TestStuckItemsAreJudgedByTheirHost, analysts have the vendor asked, and what it
// has not taken says why.
func TestStuckItemsAreJudgedByTheirHost(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	old, s := b.seed(t, "before", 120), b.seed(t, "november", 12)
	b.exec(t, `UPDATE jobs SET accepted_at = now() - interval '1 h', ended_at = now() WHERE id = $1`, old.job)
	b.exec(t, `UPDATE items SET ended_at = now() - interval '1 h' + interval '90 s' WHERE batch_id = $1 AND state = 'stored'`, old.batch)
	b.exec(t, `UPDATE batches SET created_at = now() - interval '1 h' WHERE id = $1`, s.batch)
	b.exec(t, `UPDATE jobs SET state = 'accepted', ended_at = NULL, settle_net = NULL, accepted_at = now() - interval '4 min' WHERE id = $1`, s.job)
	path := fmt.Sprintf("/batches/%d", s.batch)
	if stuck := v.get(path).doc.Find("[data-testid=stuck]"); stuck.Length() != 0 {
		t.Errorf("four minutes where 90 s are usual: got %q", stuck.Text())
	}
	b.exec(t, `UPDATE jobs SET accepted_at = now() - interval '5 min' WHERE id = $1`, s.job)
	page := v.get(path)
	if text := page.text("[data-testid=stuck]"); !strings.Contains(text, "Stuck 3") || !strings.Contains(text, "1 min 30 s for a.example") {
		t.Errorf("five minutes: got %q", text)
	}
	form := page.hidden(path + "/ask")
	form["job"] = []string{idText(s.job), idText(s.job), idText(old.job)}
	got := v.submit(path+"/ask", form)
	if got.header.Get("Location") != path || !slices.Equal(b.pipeline.settled, []int64{s.job}) {
		t.Errorf("asked about %v, want the batch's own job once", b.pipeline.settled)
	}
	if note := v.get(path + "/stuck").text(".note-success"); !strings.Contains(note, "asked about 1 job") {
		t.Errorf("note: got %q", note)
	}
	b.exec(t, `UPDATE items SET current_job_id = NULL WHERE batch_id = $1`, old.batch)
	for state, want := range map[string]string{"intended": "waits for its turn", "calling": "is being sent", "uncertain": "the answer was lost"} {
		b.exec(t, `UPDATE jobs SET state = $2, accepted_at = NULL, created_at = now() - interval '29 min' WHERE id = $1`, s.job, state)
		if early := v.get(path + "/stuck").doc.Find("[data-testid=stuck]"); early.Length() != 0 {
			t.Errorf("%s for 29 minutes: got %q", state, early.Text())
		}
		b.exec(t, `UPDATE jobs SET created_at = now() - interval '31 min' WHERE id = $1`, s.job)
		got := v.get(path + "/stuck")
		if text := got.text("[data-testid=stuck]"); !strings.Contains(text, "Stuck 3") || !strings.Contains(text, want) || got.doc.Find("form[action$='/ask']").Length() != 0 {
			t.Errorf("%s for 31 minutes: got %q, want its reason and nothing to ask", state, text)
		}
	}
}

// TestPaceOfABatch: what moves steadily is foretold closely, what moves by fits
// loosely, and what doesn't move not at all.
func TestPaceOfABatch(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 14, 0, 0, 0, time.UTC)
	batch := &store.Batch{Outstanding: 1000, CreatedAt: now.Add(-time.Hour)}
	parts := func(ended func(ago int) int64, upTo int) []store.PacePart {
		var all []store.PacePart
		for ago := upTo; ago > 0; ago-- {
			if n := ended(ago); n > 0 {
				at := now.Add(-time.Duration(ago) * store.PaceSlot)
				all = append(all, store.PacePart{Began: at, Ended: n, LastAt: at.Add(store.PaceSlot - time.Second)})
			}
		}
		return all
	}
	steady := paceOf(parts(func(int) int64 { return 25 }, 60), batch, now)
	if steady.PerMinute != 100 || steady.About != 10*time.Minute || steady.Soon < 9*time.Minute || steady.Late > 12*time.Minute || steady.HeardAt != now.Add(-time.Second) {
		t.Errorf("steady: got %+v", steady)
	}
	fits := paceOf(parts(func(ago int) int64 { return int64(ago%7/6) * 175 }, 60), batch, now)
	if fits.About < 7*time.Minute || fits.About > 14*time.Minute || fits.Late != 0 && fits.Late-fits.Soon < 2*(steady.Late-steady.Soon) {
		t.Errorf("by fits: got %+v", fits)
	}
	slow := paceOf(parts(func(ago int) int64 { return int64(ago / 50) }, 60), batch, now)
	if slow.Over != paceLong || slow.PerMinute == 0 {
		t.Errorf("quiet lately: got %+v", slow)
	}
	if none := paceOf([]store.PacePart{{Ended: 5, LastAt: now.Add(-time.Hour)}}, batch, now); none.PerMinute != 0 || none.About != 0 || none.HeardAt != now.Add(-time.Hour) {
		t.Errorf("nothing moves: got %+v", none)
	}
	if done := paceOf(parts(func(int) int64 { return 25 }, 60), &store.Batch{CreatedAt: batch.CreatedAt}, now); done.Open || done.About != 0 {
		t.Errorf("at its end: got %+v", done)
	}
	young := paceOf(parts(func(int) int64 { return 25 }, 2), &store.Batch{Outstanding: 100, CreatedAt: now.Add(-30 * time.Second)}, now)
	if young.PerMinute != 100 || young.Over != 30*time.Second {
		t.Errorf("a batch of half a minute: got %+v", young)
	}
	for seconds := range 15 {
		made := now.Add(-time.Duration(seconds) * time.Second)
		newborn := paceOf([]store.PacePart{{Ended: 4, LastAt: now}}, &store.Batch{Outstanding: 100, CreatedAt: made}, now)
		if age := time.Duration(max(seconds, 1)) * time.Second; newborn.Over != age || math.Abs(newborn.PerMinute-4/age.Minutes()) > 1e-9 {
			t.Errorf("a batch of %d s: got %+v", seconds, newborn)
		}
	}
}

// TestFrozenSetsThaw: any set comes back, and nothing else does.
func TestFrozenSetsThaw(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var ids []int64
		for range random.IntN(300) {
			ids = append(ids, 1+random.Int64N(1<<uint(1+random.IntN(62))))
		}
		got, ok := thaw(freeze(ids), 300)
		want := slices.Compact(slices.Sorted(slices.Values(ids)))
		if !ok || !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
	if _, ok := thaw(freeze([]int64{1, 2, 3}), 2); ok {
		t.Error("more than the most came back")
	}
}

// TestPaceInWords says what is known, and no more.
func TestPaceInWords(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "november", 8)
	path := fmt.Sprintf("/batches/%d", s.batch)
	if text := v.get(path).text("[data-testid=left]"); text != "unknown: nothing has come home lately" {
		t.Errorf("nothing heard: got %q", text)
	}
	b.exec(t, `UPDATE batches SET created_at = now() - interval '1 h' WHERE id = $1`, s.batch)
	b.exec(t, `INSERT INTO batch_pace (batch_id, slot, began, ended, last_at) SELECT $1, g, now() - g * interval '15 s', 1, now() - g * interval '15 s' FROM generate_series(1, 19) g`, s.batch)
	text := v.get(path).text("[data-testid=pace]")
	if !strings.Contains(text, "3.8 a minute over the last 5 min") || !strings.Contains(text, "about 30 s") {
		t.Errorf("got %q", text)
	}
}
