package views_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rollcall/views"
)

// The catalog of English texts is exactly what the pages say: what is missing there can't be translated, and what
// nobody says is translated in vain. -update writes it.
func TestCatalogHoldsEveryText(t *testing.T) {
	t.Parallel()
	want := said(t)
	catalog := filepath.Join("texts", "en.json")
	if *update {
		var raw bytes.Buffer
		encode := json.NewEncoder(&raw)
		encode.SetEscapeHTML(false)
		encode.SetIndent("", "  ")
		if err := encode.Encode(want); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(catalog, raw.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(catalog)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("texts/en.json is stale; go test ./views -run Catalog -update writes it (-got +want):\n%s", diff)
	}
}

func TestLanguageFor(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]string{"": "en", "en-GB,en;q=0.9": "en", "xx": "en", "*": "en", "de-AT, fr;q=0.5": "en", ";;;": "en", "en-XA": "en-XA"} {
		if got := views.LanguageFor(accept); got != want {
			t.Errorf("%q: got %q, want %q", accept, got, want)
		}
	}
}
