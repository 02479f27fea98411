package main

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

const (
	exampleFile = "../../.env.example"
	readmeFile  = "../../README.md"
	readmeBegin = "<!-- settings -->"
	readmeEnd   = "<!-- /settings -->"
)

func TestEnvExampleIsFresh(t *testing.T) {
	t.Parallel()
	got, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	want := rollcall(t, emptyEnv, "settings", "--format", "env").out
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf(".env.example is stale; make generate writes it:\n%s", diff)
	}
}

func TestReadmeTableIsFresh(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(readmeFile)
	if os.IsNotExist(err) {
		return // The table is checked from the day there is a README.
	}
	if err != nil {
		t.Fatal(err)
	}
	_, after, begun := strings.Cut(string(readme), readmeBegin)
	table, _, ended := strings.Cut(after, readmeEnd)
	if !begun || !ended {
		t.Fatalf("README.md lacks the marks %s and %s", readmeBegin, readmeEnd)
	}
	want := rollcall(t, emptyEnv, "settings", "--format", "markdown").out
	if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(table)); diff != "" {
		t.Errorf("the README's table is stale; make generate writes it:\n%s", diff)
	}
}

// TestNamesAgree makes sure that the table names the flags that exist.
func TestNamesAgree(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(new(commands), kong.Writers(io.Discard, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]string{}
	for _, flag := range parser.Model.Flags {
		if len(flag.Envs) > 0 {
			flags[flag.Envs[0]] = "--" + flag.Name
		}
	}
	named := map[string]string{}
	for _, s := range settings(new(Config)) {
		named[s.env] = s.flag()
		if s.group == "" || !strings.HasSuffix(s.help, ".") {
			t.Errorf("%s lacks a group or a sentence of help", s.env)
		}
	}
	if diff := cmp.Diff(flags, named); diff != "" {
		t.Error(diff)
	}
}

func TestLogSettingsHidesSecrets(t *testing.T) {
	t.Parallel()
	config := readConfig(t, map[string]string{"GEONODE_SCRAPER_API_KEY": "hunter2", "ROLLCALL_MODE": "poll"})
	var out bytes.Buffer
	config.logSettings(t.Context(), slog.New(slog.NewTextHandler(&out, nil)))
	got := out.String()
	for _, want := range []string{"geonode_scraper_api_key=set", `rollcall_secret_key="not set"`, "rollcall_mode=poll", "rollcall_max_body=32MiB"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %s", want, got)
		}
	}
	if strings.Contains(got, "hunter2") {
		t.Errorf("a secret is logged: %s", got)
	}
}
