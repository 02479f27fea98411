package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// A setting that nothing reads is a promise nobody keeps.
func TestEverySettingIsUsed(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || file == "config_check.go" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	settings := reflect.TypeFor[Config]()
	for field := range settings.Fields() {
		if field.Tag.Get("env") == "" {
			continue
		}
		if !regexp.MustCompile(`\.` + field.Name + `\b`).MatchString(source.String()) {
			t.Errorf("%s is read by nothing", field.Tag.Get("env"))
		}
	}
}
