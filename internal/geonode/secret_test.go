package geonode_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"rollcall/internal/geonode"
)

// TestSecretsDontShow prints and logs what holds secrets in every usual way.
func TestSecretsDontShow(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]any{
		"Secret":  geonode.Secret("hidden"),
		"Webhook": geonode.Webhook{ID: "a", Secret: "hidden"},
		"Headers": geonode.Headers{"Cookie": "hidden"},
		"Options": geonode.Options{Headers: geonode.Headers{"Cookie": "hidden"}},
		"Config":  geonode.Config{BaseURL: "https://a.example", APIKey: "hidden"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			_, _ = fmt.Fprintf(&out, "%v %+v %#v %s", value, value, value, value)
			slog.New(slog.NewTextHandler(&out, nil)).InfoContext(t.Context(), "a value", slog.Any("value", value))
			if strings.Contains(out.String(), "hidden") {
				t.Errorf("got %s", out.String())
			}
		})
	}
	if got := geonode.Secret("hidden").Reveal(); got != "hidden" {
		t.Errorf("got %q", got)
	}
	if got := fmt.Sprint(geonode.Secret(""), geonode.Headers(nil)); got != "[none][none]" {
		t.Errorf("got %q", got)
	}
}
