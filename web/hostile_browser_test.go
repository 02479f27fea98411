package web

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"rollcall/store"
)

// evilOrigin is another origin that notes who asks it for anything.
type evilOrigin struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func openEvilOrigin(t *testing.T) *evilOrigin {
	t.Helper()
	e := &evilOrigin{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.asked = append(e.asked, r.URL.Path)
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, `<title>evil</title><link rel="icon" href="data:,">`)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *evilOrigin) said() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	said := e.asked
	e.asked = nil
	return said
}

// hear is what the console said since it was last asked.
func (o *tab) hear() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	heard := o.console
	o.console = nil
	return heard
}

// TestHostileCorpusInABrowser: in a real browser no script of a stored page
// runs, no request leaves our origin, and our own pages need no policy to hold
// anything back. The pages themselves, opened without a frame around them, are
// held back by their policy alone.
func TestHostileCorpusInABrowser(t *testing.T) {
	t.Parallel()
	o := openTab(t)
	b := setup(t)
	evil := openEvilOrigin(t)
	user := b.addUser(t, "alice", store.RoleAnalyst)
	shelves := b.shelves(t, evil.URL)
	o.open(t, evil.URL+"/control")
	if got := evil.said(); !slices.Contains(got, "/control") {
		t.Fatalf("the other origin notes nothing: %q", got)
	}
	o.open(t, b.url+"/sign-in")
	o.signIn(t, user.Name)
	o.until(t, `location.pathname === "/"`)
	o.hear()
	for _, name := range slices.Sorted(maps.Keys(shelves)) {
		s := shelves[name]
		for path, shows := range map[string]string{
			fmt.Sprintf("/results/%d?tab=read", s.item): "#result", fmt.Sprintf("/results/%d?tab=links", s.item): "#result",
			fmt.Sprintf("/compare/results?a=%d&b=%d", s.before.items[0], s.item): "[data-testid=diff]", fmt.Sprintf("/batches/%d/stuck", s.batch): "[data-testid=stuck]",
			fmt.Sprintf("/failures?batch=%d", s.batch): "main .url",
		} {
			o.open(t, b.url+path)
			o.until(t, `window.ran === undefined && document.querySelector("`+shows+`") !== null`)
		}
		for _, line := range o.hear() {
			t.Errorf("%s: on a page of ours the console says %s", name, line)
		}
		if got := evil.said(); len(got) > 0 {
			t.Errorf("%s: the other origin was asked for %q", name, got)
		}
	}
	for _, path := range []string{"/search?q=hostilecorpus", "/search?q=hostilecorpus&order=best"} {
		o.open(t, b.url+path)
		o.until(t, fmt.Sprintf(`window.ran === undefined && document.querySelectorAll("[data-testid=found] li").length === %d`, len(shelves)))
	}
	for _, line := range o.hear() {
		t.Errorf("search: the console says %s", line)
	}
	o.openPreviews(t, b, shelves)
	if got := evil.said(); len(got) > 0 {
		t.Errorf("previews: the other origin was asked for %q", got)
	}
}

// shelves puts each file of the corpus into a result of its own.
func (b *bench) shelves(t *testing.T, evil string) map[string]*shelf {
	t.Helper()
	shelves := map[string]*shelf{}
	for name, content := range hostileCorpus(t, evil) {
		if strings.HasPrefix(name, "made: ") || name == "README.md" {
			continue
		}
		s := newShelf(t, b)
		b.exec(t, `DELETE FROM results WHERE item_id <> $1 AND job_id = (SELECT job_id FROM results WHERE item_id = $1)`, s.item)
		s.put(t, content)
		shelves[name] = s
	}
	return shelves
}

// openPreviews opens the stored pages as they are: each in a frame that shuts
// in nothing, so that only their own policy does, and the worst in the tab itself.
func (o *tab) openPreviews(t *testing.T, b *bench, shelves map[string]*shelf) {
	t.Helper()
	paths := make([]string, 0, len(shelves))
	for _, s := range shelves {
		paths = append(paths, fmt.Sprintf("'/results/%d/preview'", s.item))
	}
	o.run(t, `window.loaded = 0; for (const path of [`+strings.Join(paths, ",")+`]) {
		const frame = document.createElement("iframe"); frame.onload = () => window.loaded++; frame.src = path; document.body.append(frame); }`)
	o.until(t, fmt.Sprintf(`window.loaded >= %d && window.ran === undefined`, len(paths)))
	for _, name := range []string{"scripts.html", "fetches.html", "beacons.html"} {
		o.open(t, fmt.Sprintf("%s/results/%d/preview", b.url, shelves[name].item))
	}
	blocked := 0
	for _, line := range o.hear() {
		if !expectedBlock(line) {
			t.Errorf("previews: the console says %s", line)
		} else {
			blocked++
		}
	}
	if blocked == 0 {
		t.Error("previews: nothing was held back, so nothing was tried")
	}
}

// expectedBlock reports what a browser says as it holds a page back.
func expectedBlock(line string) bool {
	for _, words := range []string{
		"violates the following Content Security Policy", "Blocked script execution", "sandboxed", "Content-Security-Policy", "Refused to",
		"Blocked opening", "Blocked setting", "Blocked form submission", "is not an allowed", "Autofocus processing was blocked", "violates the document's Content Security Policy",
	} {
		if strings.Contains(line, words) {
			return true
		}
	}
	return false
}
