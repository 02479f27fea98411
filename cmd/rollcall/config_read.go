package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// maxSecretFile bounds what is read from a ..._FILE.
const maxSecretFile = 64 << 10

// SettingError is one wrong setting. Value is empty for secrets.
type SettingError struct{ Name, Value, Reason string }

// Error names the setting, its value unless that is secret, and what is wrong.
func (e *SettingError) Error() string {
	if e.Value == "" {
		return e.Name + ": " + e.Reason
	}
	return fmt.Sprintf("%s=%q: %s", e.Name, e.Value, e.Reason)
}

// envResolver fills the flags that the command line doesn't set from the environment. It never stops the parse:
// what it can't read is kept in config.problems, so that Check can tell of all mistakes together.
type envResolver struct {
	env    lookup
	names  map[*kong.Flag]string
	config *Config
}

// newEnvResolver takes the reading of the environment away from kong, which would stop at the first mistake.
func newEnvResolver(model *kong.Application, env lookup, config *Config) *envResolver {
	r := &envResolver{env: env, names: map[*kong.Flag]string{}, config: config}
	for _, flag := range model.Flags {
		if len(flag.Tag.Envs) == 1 {
			r.names[flag] = flag.Tag.Envs[0]
			flag.Tag.Envs = nil
		}
	}
	return r
}

// Validate is part of kong.Resolver; Config.Check does the checking.
func (*envResolver) Validate(*kong.Application) error { return nil }

// Resolve returns the environment's text for a flag, or nil when there is none that can be read.
func (r *envResolver) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	name, ours := r.names[flag]
	if !ours {
		return nil, nil
	}
	secret := flag.Tag.Has("secret")
	text, err := r.read(name, secret)
	if err != nil {
		r.config.problems = append(r.config.problems, err)
		return nil, nil
	}
	if text == "" {
		return nil, nil
	}
	if reason := unreadable(flag, text); reason != "" {
		problem := &SettingError{Name: name, Value: text, Reason: reason}
		if secret {
			problem.Value = ""
		}
		r.config.problems = append(r.config.problems, problem)
		return nil, nil
	}
	return text, nil
}

// read returns the value of a variable, for secrets also from the file that NAME_FILE names. Empty is the same as unset.
func (r *envResolver) read(name string, secret bool) (string, error) {
	text, _ := r.env(name)
	if !secret {
		return text, nil
	}
	path, _ := r.env(name + "_FILE")
	switch {
	case path == "":
		return text, nil
	case text != "":
		return "", &SettingError{Name: name, Reason: "set together with " + name + "_FILE; keep one of them"}
	}
	return readSecretFile(name+"_FILE", path)
}

func readSecretFile(name, path string) (string, error) {
	file, err := os.Open(path) //nolint:gosec // The operator names the file.
	if err != nil {
		return "", &SettingError{Name: name, Value: path, Reason: cause(err)}
	}
	defer func() { _ = file.Close() }() // It was only read.
	data, err := io.ReadAll(io.LimitReader(file, maxSecretFile+1))
	switch {
	case err != nil:
		return "", &SettingError{Name: name, Value: path, Reason: cause(err)}
	case len(data) > maxSecretFile:
		return "", &SettingError{Name: name, Value: path, Reason: "larger than 64 KiB"}
	}
	text := strings.TrimSpace(string(data))
	if text == "" {
		return "", &SettingError{Name: name, Value: path, Reason: "the file is empty"}
	}
	return text, nil
}

// cause strips the path, which the caller shows already.
func cause(err error) string {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err.Error()
	}
	return err.Error()
}

// unreadable says why text doesn't fit the flag, or "" when it does.
func unreadable(flag *kong.Flag, text string) string {
	scratch := reflect.New(flag.Target.Type()).Elem()
	token := kong.Token{Type: kong.FlagValueToken, Value: text}
	err := flag.Parse(kong.ScanFromTokens(token), scratch)
	if err == nil {
		return ""
	}
	switch flag.Target.Interface().(type) {
	case time.Duration:
		return "must be a duration such as 30s, 10m or 72h"
	case int:
		return "must be a whole number"
	case float64:
		return "must be a number"
	}
	return strings.TrimPrefix(err.Error(), flag.ShortSummary()+": ")
}
