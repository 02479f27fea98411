package views

import (
	"encoding/json"
	"testing"
)

// TestCounted: a language has the forms that its rules ask for, and English two.
func TestCounted(t *testing.T) {
	t.Parallel()
	for _, each := range []struct {
		lang string
		c    Count
		want string
	}{
		{English, Known(1), "1 job"},
		{English, Known(0), "0 jobs"},
		{English, Known(12_480), "12,480 jobs"},
		{English, Count{}, "– jobs"},
		{English, Count{N: 1, Known: true, More: true}, "1+ jobs"},
		{pseudo, Known(1), "[1 job]"},
	} {
		if got := Counted(WithLanguage(t.Context(), each.lang), each.c, "%s job", "%s jobs"); got != each.want {
			t.Errorf("%s %v: got %q, want %q", each.lang, each.c, got, each.want)
		}
	}
	for n, want := range map[int64]string{1: "one", 3: "few", 5: "many", 22: "few", 12_000_001: "many"} {
		if got := formOf("pl", Known(n)); got != want {
			t.Errorf("%d in Polish: got %q, want %q", n, got, want)
		}
	}
	var texts map[string]phrase
	if err := json.Unmarshal([]byte(`{"a": "b", "%s jobs": {"one": "%s praca", "few": "%s prace"}}`), &texts); err != nil {
		t.Fatal(err)
	}
	if texts["a"][formOther] != "b" || texts["%s jobs"]["few"] != "%s prace" {
		t.Errorf("got %v", texts)
	}
	ctx := WithLanguage(t.Context(), pseudo)
	if got := Textf(ctx, "%s in %s", Counted(ctx, Known(2), "%s request", "%s requests"), "x"); got != "[[2 requests] in x]" {
		t.Errorf("got %q", got)
	}
}
