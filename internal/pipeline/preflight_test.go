package pipeline_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// preflights is a rig for preflights of two people, with a clock of its own.
type preflights struct {
	*rig
	now   time.Time
	alice *int64
	bob   *int64
}

func newPreflights(t *testing.T, s setup) *preflights {
	t.Helper()
	f := &preflights{now: time.Date(2026, 11, 29, 9, 0, 0, 0, time.UTC)}
	if s.stopped {
		s.pipeline = func(c *pipeline.Config) { c.Now = func() time.Time { return f.now }; c.URLsPerJob = 2 }
	}
	f.rig = newRig(t, s)
	for name, id := range map[string]**int64{"alice": &f.alice, "bob": &f.bob} {
		u := &store.User{Name: name, Role: store.RoleAnalyst, PasswordHash: "x", CreatedAt: f.now, PasswordChangedAt: f.now}
		if err := f.store.AddUser(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		*id = &u.ID
	}
	return f
}

func (f *preflights) make(in pipeline.PreflightInput) int64 {
	f.t.Helper()
	in.CreatedBy = f.alice
	id, err := f.pipe.Preflight(f.t.Context(), in)
	if err != nil {
		f.t.Fatal(err)
	}
	return id
}

// look is a preflight with its totals and its lines: "number verdict url of".
func (f *preflights) look(id int64) (*store.Preflight, pipeline.Totals, []string) {
	f.t.Helper()
	got, err := f.store.Preflight(f.t.Context(), id, f.alice, f.pipeNow())
	if err != nil {
		f.t.Fatal(err)
	}
	var sum pipeline.Totals
	if err := json.Unmarshal(got.Totals, &sum); err != nil {
		f.t.Fatal(err)
	}
	lines, err := f.store.PreflightLines(f.t.Context(), id, append(store.Sent(), store.Rejected()...), 0, 100)
	if err != nil {
		f.t.Fatal(err)
	}
	var shown []string
	for _, l := range lines {
		text := fmt.Sprint(l.Number, " ", l.Verdict, " ", l.URL)
		if l.DuplicateOf != nil {
			text += fmt.Sprint(" of ", *l.DuplicateOf)
		}
		shown = append(shown, strings.TrimSpace(text))
	}
	return got, sum, shown
}

// pipeNow is the pipeline's time: real when its workers run.
func (f *preflights) pipeNow() time.Time {
	if f.pipe.WorkersHealthy() == nil {
		return time.Now()
	}
	return f.now
}

const faultyCSV = "sku;page;seen on\r\n" +
	"1;https://shop.test/1;https://other.test/a\r\n" +
	"2;shop.test/2;https://other.test/b\r\n" +
	"3;\"HTTPS://shop.test:443/1\";https://other.test/c\r\n" +
	"4;ftp://shop.test/4;https://other.test/d\x00\r\n" +
	"5;https://shop.test/5;https://other.test/e\r\n"

// TestPreflightFlow walks one upload from its form to its batch.
func TestPreflightFlow(t *testing.T) {
	t.Parallel()
	f := newPreflights(t, setup{stopped: true, noWebhooks: true})
	ctx := t.Context()
	in := pipeline.PreflightInput{
		Submission: pipeline.Submission{Name: "shop", Headers: map[string]string{"X-Key": "secret"}},
		Files:      []pipeline.File{pipeline.FileOf(`C:\lists\shop`+"\u202e"+`.csv`, []byte(faultyCSV))},
		Choices:    pipeline.Choices{URLColumn: "page"},
	}
	id := f.make(in)
	row, sum, lines := f.look(id)
	if row.UploadName != "shop\uFFFD.csv" || row.Reading != 1 || strings.Contains(string(row.HeadersSealed), "secret") {
		t.Errorf("got name %q, reading %d", row.UploadName, row.Reading)
	}
	if sum.Submitted != 5 || sum.Accepted != 2 || sum.Fixed != 1 || sum.Duplicate != 1 || sum.Invalid != 1 {
		t.Errorf("totals: got %+v", sum)
	}
	want := []string{
		"2 accepted https://shop.test/1", "3 fixed https://shop.test/2", "4 duplicate HTTPS://shop.test:443/1 of 2", "5 invalid",
		"6 accepted https://shop.test/5",
	}
	if diff := cmp.Diff(lines, want); diff != "" {
		t.Errorf("lines (got -, want +):\n%s", diff)
	}
	plan, err := f.pipe.PlanPreflight(ctx, row)
	if err != nil || plan.Requests != 3 || plan.Jobs != 2 || plan.Kind != store.KindBatch || plan.Takes != 0 || plan.Left.Known {
		t.Errorf("plan: got %+v, %v", plan, err)
	}

	// Another column has other URLs; what was looked at before can't be submitted any more.
	if err := f.pipe.Reread(ctx, id, f.alice, pipeline.Choices{URLColumn: "seen on"}, 0); err != nil {
		t.Fatal(err)
	}
	if _, sum, _ := f.look(id); sum.Accepted != 4 || sum.Invalid != 1 {
		t.Errorf("totals by another column: got %+v", sum)
	}
	if _, err := f.pipe.SubmitPreflight(ctx, id, f.alice, 1); !errors.Is(err, pipeline.ErrReadAgain) {
		t.Errorf("submit what was looked at before: got %v", err)
	}
	if err := f.pipe.Reread(ctx, id, f.alice, pipeline.Choices{URLColumn: "page"}, 0); err != nil {
		t.Fatal(err)
	}

	// Nobody else has it.
	for _, other := range []*int64{f.bob, nil} {
		_, err := f.pipe.SubmitPreflight(ctx, id, other, 3)
		_, err2 := f.pipe.PreflightForm(ctx, id, other)
		if err3 := f.pipe.Reread(ctx, id, other, pipeline.Choices{}, 0); !errors.Is(err, store.ErrNotFound) || !errors.Is(err2, store.ErrNotFound) || !errors.Is(err3, store.ErrNotFound) {
			t.Errorf("another's preflight: got %v, %v, %v", err, err2, err3)
		}
	}

	// Back to the form, and on with the file that it kept.
	form, err := f.pipe.PreflightForm(ctx, id, f.alice)
	if err != nil || form.Kept != id || form.Headers["X-Key"] != "secret" || form.Name != "shop" || form.Choices.URLColumn != "page" {
		t.Errorf("the form: got %+v, %v", form, err)
	}
	if _, again, _ := f.look(f.make(form)); again.Submitted != 5 || again.Accepted != 2 {
		t.Errorf("totals of the kept file: got %+v", again)
	}

	f.submitTwice(id)
}

// submitTwice has two tabs submit at once: one batch comes of it, with what was
// beside the URLs and with what was left out.
func (f *preflights) submitTwice(id int64) {
	f.t.Helper()
	var got [2]pipeline.Submitted
	var errs [2]error
	var tabs sync.WaitGroup
	for i := range got {
		tabs.Go(func() { got[i], errs[i] = f.pipe.SubmitPreflight(f.t.Context(), id, f.alice, 3) })
	}
	tabs.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		f.t.Fatal(err)
	}
	if got[0].BatchID != got[1].BatchID {
		f.t.Errorf("two tabs made batches %d and %d", got[0].BatchID, got[1].BatchID)
	}
	b, err := f.store.Batch(f.t.Context(), got[0].BatchID)
	if err != nil {
		f.t.Fatal(err)
	}
	if b.Submitted != 5 || b.Invalid != 1 || b.Duplicate != 1 || b.Accepted != 3 || b.URLColumn != "page" || !cmp.Equal(b.Columns, []string{"sku", "seen on"}) {
		f.t.Errorf("batch: got %+v", b)
	}
	items, err := f.store.PageItems(f.t.Context(), b.ID, "", -1, 10)
	if err != nil || len(items) != 3 || !cmp.Equal(items[1].Extra, []string{"2", "https://other.test/b"}) || items[1].URL != "https://shop.test/2" {
		f.t.Errorf("items: got %+v, %v", items, err)
	}
	if got := f.sourcesOf(b.ID); got != "2, 3 shop.test/2, 6" {
		f.t.Errorf("the items come from lines %q", got)
	}
	rejected, err := f.store.PageRejected(f.t.Context(), b.ID, 0, 10)
	if err != nil || len(rejected) != 2 || *rejected[0].DuplicateOf != 2 || rejected[1].Text != "ftp://shop.test/4" ||
		!cmp.Equal(rejected[1].Extra, []string{"4", "https://other.test/d\uFFFD"}) {
		f.t.Errorf("rejected lines: got %+v, %v", rejected, err)
	}
	f.sweep(id)
}

// sweep removes the lines of what became a batch, which still answers a reload,
// and the whole when its time is over.
func (f *preflights) sweep(id int64) {
	f.t.Helper()
	kept, err := f.pipe.Retain(f.t.Context())
	if err != nil || kept.Preflights != 1 {
		f.t.Errorf("sweep: got %+v, %v", kept, err)
	}
	if row, _, lines := f.look(id); row.BatchID == nil || lines != nil {
		f.t.Errorf("after the sweep: batch %v, lines %v", row.BatchID, lines)
	}
	if done, err := f.pipe.SubmitPreflight(f.t.Context(), id, f.alice, 3); err != nil || done.Accepted != 3 {
		f.t.Errorf("a reload after the sweep: got %+v, %v", done, err)
	}
	f.now = f.now.Add(pipeline.PreflightKept)
	if _, err := f.pipe.SubmitPreflight(f.t.Context(), id, f.alice, 3); !errors.Is(err, store.ErrNotFound) {
		f.t.Errorf("submit when its time is over: got %v", err)
	}
	if kept, err := f.pipe.Retain(f.t.Context()); err != nil || kept.Preflights != 2 {
		f.t.Errorf("sweep of what is over: got %+v, %v", kept, err)
	}
	var left int
	if err := f.store.SQL().QueryRowContext(f.t.Context(), `SELECT (SELECT count(*) FROM preflights) + (SELECT count(*) FROM preflight_lines)`).Scan(&left); err != nil || left != 0 {
		f.t.Errorf("left after all: %d, %v", left, err)
	}
}

// TestPreflightLeavesOutWhatIsStored, however the URL is spelled, and says how
// long the rest may take by what came before.
func TestPreflightLeavesOutWhatIsStored(t *testing.T) {
	t.Parallel()
	f := newPreflights(t, setup{noWebhooks: true})
	urls := sandbox.MadeURLs(2, 9)
	first := f.ended(f.submit("", urls[0]+"#top", urls[1]))
	if first.Stored() != 2 {
		t.Fatalf("stored: got %+v", first)
	}
	twin := strings.Replace(strings.Replace(urls[0], "https", "HTTPS", 1), "/item", ":443/item", 1)
	text := twin + "\nhttps://a.test/c\n\nhttps://a.test/c\n" + strings.TrimPrefix(urls[1], "https://")
	id := f.make(pipeline.PreflightInput{Submission: pipeline.Submission{Text: text}, StoredDays: 1})
	row, sum, lines := f.look(id)
	want := []string{"1 duplicate " + twin, "2 accepted https://a.test/c", "4 duplicate https://a.test/c of 2"}
	if len(lines) != 4 || !cmp.Equal(lines[:3], want) || !strings.HasPrefix(lines[3], "5 duplicate") {
		t.Errorf("lines: got %q", lines)
	}
	if sum.Submitted != 4 || sum.Accepted != 1 || sum.Fixed != 0 || sum.Duplicate != 3 || len(sum.Hosts) != 1 || sum.Hosts[0].Count != 1 {
		t.Errorf("totals: got %+v", sum)
	}
	got, err := f.store.PreflightLines(t.Context(), id, []store.LineVerdict{store.LineDuplicate}, 0, 1)
	if err != nil || got[0].StoredItem == nil || !strings.Contains(got[0].Reason, "was stored on "+time.Now().UTC().Format("2 Jan 2006")) {
		t.Errorf("line 1: got %+v, %v", got, err)
	}
	row.Kind = first.Kind
	if plan, err := f.pipe.PlanPreflight(t.Context(), row); err != nil || plan.Takes <= 0 || plan.Speed.Batches != 1 || plan.Speed.URLs != 2 {
		t.Errorf("plan: got %+v, %v", plan, err)
	}
	// A pause before a resubmission says nothing of the speed.
	f.exec(`UPDATE jobs SET origin = 'resubmit'`)
	if plan, err := f.pipe.PlanPreflight(t.Context(), row); err != nil || plan.Takes != 0 {
		t.Errorf("plan after a resubmission: got %+v, %v", plan, err)
	}
	done, err := f.pipe.SubmitPreflight(t.Context(), id, f.alice, 1)
	if err != nil {
		t.Fatal(err)
	}
	left, err := f.store.PageRejected(t.Context(), done.BatchID, 0, 10)
	if err != nil || len(left) != 3 || left[0].StoredItem == nil || *left[0].StoredItem != *got[0].StoredItem || left[1].StoredItem != nil {
		t.Errorf("the batch's rejected lines: got %+v, %v", left, err)
	}
	if _, err := f.store.SQL().ExecContext(t.Context(), `DELETE FROM results WHERE item_id = $1`, *got[0].StoredItem); err != nil {
		t.Fatal(err)
	}
	if left, err = f.store.PageRejected(t.Context(), done.BatchID, 0, 1); err != nil || left[0].StoredItem != nil {
		t.Errorf("a result that is gone: got %+v, %v", left, err)
	}
}

// TestPreflightRefuses what no reading can mend, naming the field, and shows
// what is wrong with the rest.
func TestPreflightRefuses(t *testing.T) {
	t.Parallel()
	f := newPreflights(t, setup{stopped: true, noWebhooks: true})
	refused := func(in pipeline.PreflightInput, field string) {
		t.Helper()
		in.CreatedBy = f.alice
		_, err := f.pipe.Preflight(t.Context(), in)
		invalid, ok := errors.AsType[*pipeline.InvalidSubmission](err)
		if !ok || invalid.Fields[0].Field != field {
			t.Errorf("got %v, want a mistake in %s", err, field)
		}
	}
	text := func(s string) pipeline.Submission { return pipeline.Submission{Text: s} }
	refused(pipeline.PreflightInput{Submission: text(" \n ")}, "urls")
	refused(pipeline.PreflightInput{Files: []pipeline.File{pipeline.FileOf("empty.csv", nil)}}, "file")
	refused(pipeline.PreflightInput{Submission: text("https://a.test/"), Files: []pipeline.File{pipeline.FileOf("a.csv", []byte(faultyCSV))}}, "file")
	refused(pipeline.PreflightInput{Submission: text(strings.Repeat("x", pipeline.MaxPasted+1))}, "urls")
	refused(pipeline.PreflightInput{Submission: pipeline.Submission{Text: "https://a.test/", Kind: store.KindCrawl}}, "kind")
	refused(pipeline.PreflightInput{Submission: text("https://a.test/"), StoredDays: -1}, "stored_days")
	refused(pipeline.PreflightInput{Kept: 99}, "file")
	for _, c := range []pipeline.Choices{{KeepFragment: true}, {SortQuery: true}} {
		refused(pipeline.PreflightInput{Submission: text("https://a.test/#/b"), StoredDays: 1, Choices: c}, "stored_days")
		id := f.make(pipeline.PreflightInput{Submission: text("https://a.test/#/b"), Choices: c})
		if err := f.pipe.Reread(t.Context(), id, f.alice, c, 1); err == nil || !strings.Contains(err.Error(), "stored pages are told") {
			t.Errorf("what is stored by %+v: got %v", c, err)
		}
	}
	// A text file's lines follow the pasted ones; nothing good is left to submit.
	id := f.make(pipeline.PreflightInput{Submission: text("nonsense://x"), Files: []pipeline.File{pipeline.FileOf("more.txt", []byte("\uFEFFftp://y/"))}})
	if _, sum, lines := f.look(id); sum.Invalid != 2 || !cmp.Equal(lines, []string{"1 invalid", "2 invalid"}) {
		t.Errorf("pasted and uploaded: got %+v, %q", sum, lines)
	}
	if _, err := f.pipe.SubmitPreflight(t.Context(), id, f.alice, 1); err == nil || !strings.Contains(err.Error(), "not one of the lines") {
		t.Errorf("submit nothing: got %v", err)
	}
	// A wrong choice is told, and what it is about.
	id = f.make(pipeline.PreflightInput{Files: []pipeline.File{pipeline.FileOf("a.csv", []byte(faultyCSV))}, Choices: pipeline.Choices{URLColumn: "9"}})
	if row, _, _ := f.look(id); row.Problem == "" || row.ProblemField != "url_column" {
		t.Errorf("a column that isn't there: got %q about %q", row.Problem, row.ProblemField)
	}
	if _, err := f.pipe.SubmitPreflight(t.Context(), id, f.alice, 1); err == nil {
		t.Error("a reading that broke off was submitted")
	}
	// Only the newest of one owner are kept.
	for range store.PreflightsKept {
		f.make(pipeline.PreflightInput{Submission: text("https://a.test/")})
	}
	if _, err := f.store.Preflight(t.Context(), id, f.alice, f.now); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the oldest of many: got %v", err)
	}
}

// TestSitemapIndexIsUploadedWithItsSitemaps: they are found by their names in
// whatever order they come, read again as they were kept, and no file is passed
// over in silence.
func TestSitemapIndexIsUploadedWithItsSitemaps(t *testing.T) {
	t.Parallel()
	f := newPreflights(t, setup{stopped: true, noWebhooks: true})
	entry := func(url string) []byte { return []byte("<urlset><url><loc>" + url + "</loc></url></urlset>") }
	index := pipeline.FileOf("index.xml", []byte(`<sitemapindex><sitemap><loc>https://a.test/maps/one.xml?v=2</loc></sitemap>
		<sitemap><loc>https://a.test/two.xml</loc></sitemap><sitemap><loc>https://a.test/gone.xml</loc></sitemap></sitemapindex>`))
	one, two := pipeline.FileOf("one.xml", entry("https://a.test/1")), pipeline.FileOf(`C:\maps\two.xml`, entry("https://a.test/2"))
	id := f.make(pipeline.PreflightInput{Files: []pipeline.File{two, index, one}})
	form, err := f.pipe.PreflightForm(t.Context(), id, f.alice)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.pipe.Reread(t.Context(), id, f.alice, pipeline.Choices{KeepDuplicates: true}, 0); err != nil {
		t.Fatal(err)
	}
	for _, each := range []int64{id, f.make(form)} {
		row, sum, lines := f.look(each)
		want := []string{"1 accepted https://a.test/1", "2 accepted https://a.test/2", "3 invalid"}
		if !cmp.Equal(lines, want) || sum.Accepted != 2 || row.UploadName != "index.xml and 2 more files" || row.UploadSize < 300 {
			t.Errorf("preflight %d: got %q of %q, %d bytes", each, lines, row.UploadName, row.UploadSize)
		}
	}
	for want, files := range map[string][]pipeline.File{
		"several files are taken only":       {one, two},
		`does not name "three.xml"`:          {index, one, pipeline.FileOf("three.xml", entry("https://a.test/3"))},
		`two files have the name "one.xml"`:  {index, one, one},
		"over 1000 files":                    slices.Repeat([]pipeline.File{one}, 1001),
		"over 64 MB":                         {pipeline.FileOf("large.txt", make([]byte, pipeline.MaxPreflight+1))},
		"only a plain text file can go toge": {index, one, two, {Name: "pasted"}},
	} {
		in := pipeline.PreflightInput{Submission: pipeline.Submission{CreatedBy: f.alice}, Files: files}
		if last := len(files) - 1; files[last].Open == nil {
			in.Text, in.Files = "https://a.test/", files[:last]
		}
		_, err := f.pipe.Preflight(t.Context(), in)
		invalid, ok := errors.AsType[*pipeline.InvalidSubmission](err)
		if !ok || invalid.Fields[0].Field != "file" || !strings.Contains(invalid.Fields[0].Message, want) {
			t.Errorf("got %v, want %q about the file", err, want)
		}
	}
	// What was kept by the release before is read as it came.
	f.exec(`UPDATE preflights SET packed = false, upload = 'https://a.test/old', upload_name = 'old.txt' WHERE id = $1`, id)
	if err := f.pipe.Reread(t.Context(), id, f.alice, pipeline.Choices{}, 0); err != nil {
		t.Fatal(err)
	}
	if _, _, lines := f.look(id); !cmp.Equal(lines, []string{"1 accepted https://a.test/old"}) {
		t.Errorf("an upload of the release before: got %q", lines)
	}
}
