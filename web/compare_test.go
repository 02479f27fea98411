package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rollcall/store"
	"rollcall/views"
)

// lines is a diff as text: what is marked stands in brackets.
func diffLines(d views.TextDiff) []string {
	side := func(no int, spans []views.DiffSpan) string {
		if no == 0 {
			return ""
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%d:", no)
		for _, s := range spans {
			if s.Changed {
				b.WriteString("[" + s.Text + "]")
			} else {
				b.WriteString(s.Text)
			}
		}
		return b.String()
	}
	var out []string
	for _, r := range d.Rows {
		if r.Kind == views.DiffFold {
			out = append(out, fmt.Sprintf("... %d", r.Hidden))
			continue
		}
		out = append(out, fmt.Sprintf("%s|%s|%s", r.Kind, side(r.LeftNo, r.Left), side(r.RightNo, r.Right)))
	}
	return out
}

// foldsOf says how many lines are left out, and how many were opened from which on.
func foldsOf(d views.TextDiff) string {
	var out []string
	n, from := 0, 0
	for i, r := range d.Rows {
		if r.Opened {
			n, from = 0, r.LeftNo
		}
		n++
		last := i == len(d.Rows)-aroundChange-2
		if from > 0 && (last || r.Kind == views.DiffSame && d.Rows[i+1].Kind == views.DiffFold) {
			out, from = append(out, fmt.Sprintf("%d from %d", n, from)), 0
		}
		if r.Kind == views.DiffFold {
			out = append(out, fmt.Sprintf("... %d", r.Hidden))
		}
	}
	return strings.Join(out, ", ")
}

func TestCompareTexts(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("same\n", 20)
	for name, test := range map[string]struct {
		a, b   string
		blanks bool
		want   []string
	}{
		"same":            {"a\nb", "a\nb", false, []string{"... 2"}},
		"a word":          {"price 12.00 EUR", "price 14.00 EUR", false, []string{"changed|1:price [12].00 EUR|1:price [14].00 EUR"}},
		"nothing alike":   {"alpha", "omega", false, []string{"changed|1:alpha|1:omega"}},
		"a line more":     {"a\nc", "a\nb\nc", false, []string{"same|1:a|1:a", "new||2:b", "same|2:c|3:c"}},
		"a line less":     {"a\nb\nc", "a\nc", false, []string{"same|1:a|1:a", "gone|2:b|", "same|3:c|2:c"}},
		"white space":     {"a  b\n\tc ", "a b\nc", true, []string{"... 2"}},
		"it counts":       {"a  b", "a b", false, []string{"changed|1:a[  ]b|1:a[ ]b"}},
		"far from change": {many + "x", many + "y", false, []string{"... 17", "same|18:same|18:same", "same|19:same|19:same", "same|20:same|20:same", "changed|21:x|21:y"}},
		"empty":           {"", "a", false, []string{"changed|1:|1:a"}},
		"other scripts":   {"日本 語", "日本 国", false, []string{"changed|1:日本 [語]|1:日本 [国]"}},
	} {
		if diff := cmp.Diff(diffLines(compareTexts(t.Context(), time.Now, test.a, test.b, test.blanks, 0)), test.want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
	long := strings.Repeat("same\n", openedLines+100)
	for open, want := range map[int]string{
		0: "... 597", -4: "... 597", 598: "... 597", 597: "... 596, 1 from 597", 1: "500 from 1, ... 97", 50: "... 49, 500 from 50, ... 48", 501: "... 500, 97 from 501",
	} {
		if got := foldsOf(compareTexts(t.Context(), time.Now, long+"x", long+"y", false, open)); got != want {
			t.Errorf("opened at line %d: got %q, want %q", open, got, want)
		}
	}
	var a, b strings.Builder
	for i := range 60_000 {
		fmt.Fprintln(&a, "left", i)
		fmt.Fprintln(&b, "right", i)
	}
	if d := compareTexts(t.Context(), time.Now, a.String(), b.String(), false, 0); len(d.Rows) != comparedRows || !d.CutRows || d.Gone != 60_000 {
		t.Errorf("too much: got %d rows, cut %v, %d gone", len(d.Rows), d.CutRows, d.Gone)
	}
}

// TestWordsShareOneTime: however many lines changed, a page spends one time on
// their words, says where that ended, and asks whether anybody still waits.
func TestWordsShareOneTime(t *testing.T) {
	t.Parallel()
	a, b := strings.Repeat("one two\n", 500), strings.Repeat("one three\n", 500)
	marked := func(ctx context.Context, step time.Duration) (int, bool) {
		at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
		d := compareTexts(ctx, func() time.Time { at = at.Add(step); return at }, a, b, false, 0)
		n := 0
		for _, row := range d.Rows {
			if row.Kind == views.DiffChanged && len(row.Left) > 1 {
				n++
			}
		}
		return n, d.CutWords
	}
	if n, cut := marked(t.Context(), 0); n != 500 || cut {
		t.Errorf("in no time: %d lines are marked, cut %v", n, cut)
	}
	if n, cut := marked(t.Context(), wordsTime/10); n != 9 || !cut {
		t.Errorf("a tenth of the time each: %d lines are marked, cut %v, want 9", n, cut)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if n, cut := marked(gone, 0); n != 0 || !cut {
		t.Errorf("for nobody: %d lines are marked, cut %v", n, cut)
	}
}

// FuzzCompareTexts: both sides of a diff are, line by line, the texts.
func FuzzCompareTexts(f *testing.F) {
	f.Add("a\nb\nc", "a\nx\nc", false)
	f.Add("\x00 \n", "\xff\n\n", true)
	f.Fuzz(func(t *testing.T, a, b string, blanks bool) {
		d := compareTexts(t.Context(), time.Now, a, b, blanks, len(a)%5)
		left, right := strings.Split(a, "\n"), strings.Split(b, "\n")
		join := func(spans []views.DiffSpan) string {
			var text strings.Builder
			for _, s := range spans {
				text.WriteString(s.Text)
			}
			return text.String()
		}
		for _, r := range d.Rows {
			if r.LeftNo > 0 && join(r.Left) != left[r.LeftNo-1] || r.RightNo > 0 && join(r.Right) != right[r.RightNo-1] {
				t.Errorf("%+v is of neither text", r)
			}
		}
	})
}

// TestCompareBatchesAndResults compares a batch with the one it runs again, and
// goes on to the two results of a page that changed.
func TestCompareBatchesAndResults(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before, after := b.seed(t, "nightly", 12), b.seed(t, "nightly", 12)
	b.exec(t, `UPDATE batches SET parent_batch_id = $1, rerun = 'all' WHERE id = $2`, before.batch, after.batch)
	b.exec(t, `UPDATE results SET markdown_sha256 = sha256(markdown), html_sha256 = sha256(html)`)
	// Of 1 4 5 8 9 12, stored: 1 changes, 4 fails, 5 gives way to 13. Of 2 6 10, failed: 6 comes, under the key of
	// another spelling. 3 7 11 are outstanding in both.
	b.exec(t, `UPDATE results SET markdown = '# Page two', markdown_sha256 = sha256('# Page two') WHERE item_id = $1`, after.items[0])
	b.exec(t, `DELETE FROM results WHERE item_id = $1`, after.items[3])
	b.exec(t, `UPDATE items SET state = 'failed', net = NULL, error_code = 'TIMEOUT' WHERE id = $1`, after.items[3])
	b.exec(t, `UPDATE items SET url = 'https://a.example/13' WHERE id = $1`, after.items[4])
	b.exec(t, `UPDATE items SET state = 'stored', net = 'poll', error_code = '' WHERE id = $1`, after.items[5])
	b.exec(t, `INSERT INTO results (item_id, job_id, net, stored_at, markdown, page_key) VALUES ($1, $2, 'poll', now(), 'six', decode(repeat('06', 16), 'hex'))`, after.items[5], after.job)
	b.exec(t, `UPDATE items SET url_hash = sha256(convert_to(url, 'UTF8'))`)
	v := b.as(t, store.RoleAnalyst)
	page := v.get(fmt.Sprintf("/compare/batches?b=%d", after.batch))
	if page.status != http.StatusOK || !strings.Contains(page.text("[data-testid=comparison]"), "Not compared yet") || page.doc.Find("input#a").AttrOr("value", "") != idText(before.batch) {
		t.Fatalf("before: got %d and %q", page.status, page.text("main"))
	}
	if got := v.get(fmt.Sprintf("/compare/batches?a=%d", after.batch)); got.doc.Find("input#a").AttrOr("value", "") != idText(before.batch) {
		t.Error("with one batch named it isn't compared with the one it runs again")
	}
	asked := v.submit("/compare/batches", url.Values{"a": {idText(before.batch)}, "b": {idText(after.batch)}})
	if asked.status != http.StatusSeeOther {
		t.Fatalf("ask: got %d", asked.status)
	}
	page = v.get(asked.header.Get("Location"))
	if got := page.text("[aria-label='Pages by what became of them']"); got != "Changed 1 Lost 1 Recovered 1 New 1 Gone 1 Failed in both 2 No result 3 Unchanged 3" {
		t.Fatalf("got %q", got)
	}
	if got := page.text("[data-testid=sum]"); got != "1 Changed + 1 Lost + 1 Recovered + 1 New + 1 Gone + 2 Failed in both + 3 No result + 3 Unchanged = 13 pages "+
		"Each page of either batch counts once. Before: 12; after: 12." {
		t.Errorf("the sum: got %q", got)
	}
	for kind, want := range map[string]string{
		"lost": "https://a.example/4 Lost 19 B Failed", "recovered": "https://a.example/6 Recovered Failed 3 B", "new": "https://a.example/13 New – 19 B",
		"gone": "https://a.example/5 Gone 19 B –", "failed": "https://a.example/2 Failed in both Failed Failed https://a.example/10 Failed in both Failed Failed",
		"missing": "https://a.example/3 No result Outstanding Outstanding https://a.example/7 No result Outstanding Outstanding https://a.example/11 No result Outstanding Outstanding",
	} {
		if got := v.get(asked.header.Get("Location") + "&kind=" + kind).text("[data-testid=compared] tbody"); got != want {
			t.Errorf("%s: got %q, want %q", kind, got, want)
		}
	}
	link := page.doc.Find("[data-testid=compared] td a.sub").AttrOr("href", "")
	diff := v.get(link)
	if got := diff.text("[data-testid=diff] tbody"); got != "1 gone # Page 1 new # Page two" {
		t.Errorf("the results: got %q", got)
	}
	b.exec(t, `UPDATE batches SET stored_poll = stored_poll + 1, accepted = accepted + 1, submitted = submitted + 1 WHERE id = $1`, after.batch)
	if got := v.get(asked.header.Get("Location")); got.doc.Find("[data-testid=stale]").Length() != 1 {
		t.Error("results came, and the page doesn't say so")
	}
	b.exec(t, `INSERT INTO result_versions (item_id, version, net, stored_at, replaced_at, markdown) VALUES ($1, 1, 'poll', now(), now(), 'Another page')`, after.items[0])
	b.exec(t, `UPDATE results SET version = 2 WHERE item_id = $1`, after.items[0])
	earlier := v.get(fmt.Sprintf("/compare/results?a=%d.1&b=%d&blanks=ignore", after.items[0], after.items[0]))
	if got := earlier.text("[data-testid=diff] tbody"); got != "1 gone Another page 1 new # Page two" || earlier.doc.Find("[data-testid=other-page]").Length() != 0 {
		t.Errorf("an earlier version: got %q", got)
	}
	for path, want := range map[string]int{
		"/compare/results?a=1": 400, "/compare/results?a=x&b=1": 400, "/compare/results?a=99999&b=99999": 404,
		fmt.Sprintf("/compare/results?a=%d.v9&b=%d", after.items[0], after.items[0]): 404, "/compare/batches": 404,
		fmt.Sprintf("/compare/batches?a=9999&b=%d", after.batch): 422, fmt.Sprintf("/compare/batches?a=%d&b=%d", after.batch, after.batch): 422,
	} {
		if got := v.get(path); got.status != want {
			t.Errorf("GET %s: got %d, want %d", path, got.status, want)
		}
	}
}
