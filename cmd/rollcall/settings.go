package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
)

// setting describes one field of Config.
type setting struct {
	env, group, help, fallback string
	name                       string   // Of the flag, where it doesn't follow from the variable's.
	words                      []string // What a field with `oneof` accepts.
	secret                     bool
	value                      reflect.Value
}

// flag is the command-line spelling.
func (s *setting) flag() string {
	if s.name != "" {
		return "--" + s.name
	}
	name := strings.ToLower(strings.TrimPrefix(s.env, "ROLLCALL_"))
	return "--" + strings.ReplaceAll(name, "_", "-")
}

// settings lists the fields of Config in their order.
func settings(config *Config) []*setting {
	value := reflect.ValueOf(config).Elem()
	var list []*setting
	for field := range value.Type().Fields() {
		env, ok := field.Tag.Lookup("env")
		if !ok {
			continue
		}
		_, secret := field.Tag.Lookup("secret")
		s := &setting{
			env: env, group: field.Tag.Get("group"), fallback: field.Tag.Get("default"), secret: secret,
			help:  strings.ReplaceAll(field.Tag.Get("help"), "$$", "$"),
			name:  field.Tag.Get("name"),
			value: value.FieldByIndex(field.Index),
		}
		if oneof := field.Tag.Get("oneof"); oneof != "" {
			s.words = strings.Split(oneof, "|")
		}
		list = append(list, s)
	}
	return list
}

// sentence is the help with the accepted words, and for secrets the second way to give them.
func (s *setting) sentence() string {
	text := s.help
	if s.words != nil {
		text += " One of `" + strings.Join(s.words, "`, `") + "`."
	}
	if s.secret {
		text += " Secret: " + s.env + "_FILE may name a file that holds it."
	}
	return text
}

// logSettings writes every setting in one record; of secrets only whether they are set.
func (c *Config) logSettings(ctx context.Context, log *slog.Logger) {
	var attrs []slog.Attr
	for _, s := range settings(c) {
		text := fmt.Sprint(s.value.Interface())
		switch {
		case s.secret && text == "":
			text = "not set"
		case s.secret:
			text = "set"
		}
		attrs = append(attrs, slog.String(strings.ToLower(s.env), text))
	}
	log.LogAttrs(ctx, slog.LevelInfo, "settings", attrs...)
}

// settingsCmd prints what .env.example and the README say about settings.
type settingsCmd struct {
	Format string `enum:"env,markdown" default:"env" help:"env or markdown."`
}

// Run prints the settings in the wanted form.
func (c *settingsCmd) Run(a *app) error {
	if c.Format == "markdown" {
		return writeMarkdown(a.out)
	}
	return writeEnv(a.out)
}

// writeEnv writes .env.example: every setting commented out, with its default.
func writeEnv(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Every setting of Rollcall with its default. Copy to .env, take the # away where you change one.\n")
	b.WriteString("# Made from cmd/rollcall/config.go by: rollcall settings --format env\n")
	group := ""
	for _, s := range settings(new(Config)) {
		if s.group != group {
			group = s.group
			fmt.Fprintf(&b, "\n# == %s ==\n", group)
		}
		fmt.Fprintf(&b, "\n# %s\n#%s=%s\n", strings.Join(wrap(s.sentence(), 100), "\n# "), s.env, s.fallback)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeMarkdown writes the table of the README.
func writeMarkdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString("| variable | flag | default | what it does |\n| --- | --- | --- | --- |\n")
	for _, s := range settings(new(Config)) {
		fallback := ""
		if s.fallback != "" {
			fallback = "`" + s.fallback + "`"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", s.env, s.flag(), fallback, s.sentence())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// wrap breaks text between words into lines of at most width bytes where its words allow.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
