package sandbox

import (
	"net/url"
	"slices"
	"strings"
	"testing"
)

// Some pages change from one batch to the next, as the seed will have it, and what a job answers stays what it was.
func TestPagesChange(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.PagesChange = 0.3
	shop := "https://shop.sandbox.test/"
	urls := append(MadeURLs(40, 1), shop+"plain/1", shop+"item/1#a", shop+"item/1#b")
	r := setup(t, cfg)
	paths, sums := threeBatches(r, urls)
	if _, same := threeBatches(setup(t, cfg), urls); !slices.EqualFunc(same, sums, slices.Equal) {
		t.Error("the same seed and calls bring other pages")
	}
	for run, path := range paths {
		page := r.call("GET", path+"?page_size=50", nil).want(200)
		for i := range urls {
			if hash(page.str("results", i, "data", "markdown")) != sums[run][i] {
				t.Errorf("%s of batch %d isn't what the books say, now that others came", urls[i], run)
			}
		}
	}
	for i, text := range urls {
		if sums[0][i] != hash(r.edition(text, 0)) {
			t.Errorf("the first time %s isn't as always", text)
		}
	}
	for run := range 2 {
		changed := 0
		for i := range 40 {
			if sums[run][i] != sums[run+1][i] {
				changed++
			}
		}
		if changed < 4 || changed > 24 {
			t.Errorf("after batch %d, %d of 40 pages changed, want about 12", run, changed)
		}
		if sums[run][40] != sums[run+1][40] || sums[run][41] != sums[run][42] {
			t.Errorf("after batch %d a special page changed, or a page under two fragments is two", run)
		}
	}
}

// An edition differs from those before it, and most of the page stays.
func TestEditions(t *testing.T) {
	t.Parallel()
	r := setup(t, quick())
	for _, text := range MadeURLs(30, 2) {
		var before []string
		for edition := range 4 {
			lines := strings.Split(r.edition(text, edition), "\n")
			lost := 0
			for _, line := range before {
				if !slices.Contains(lines, line) {
					lost++
				}
			}
			if edition > 0 && (lost == 0 && edition > 1 || lost > 9 || slices.Equal(lines, before)) {
				t.Errorf("%s, edition %d: %d of %d lines are gone", text, edition, lost, len(before))
			}
			before = lines
		}
	}
}

// threeBatches submits the URLs three times over; it returns the path of each batch and the sums that the books have.
func threeBatches(r *rig, urls []string) ([]string, [][]string) {
	r.t.Helper()
	var paths []string
	var sums [][]string
	for run := range 3 {
		path := r.batch(urls...)
		r.finish(path)
		var some []string
		outcomes := r.Books().Jobs[run].Outcomes
		for i := range outcomes {
			some = append(some, outcomes[i].MarkdownSHA256)
		}
		paths, sums = append(paths, path), append(sums, some)
	}
	return paths, sums
}

func (r *rig) edition(text string, n int) string {
	r.t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.makePage(u, n).Markdown
}
