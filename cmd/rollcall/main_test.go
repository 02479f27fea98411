package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"rollcall/store/storetest"
)

// asProgram makes the test binary be rollcall itself, so that tests can start and kill real processes.
const asProgram = "ROLLCALL_TEST_AS_PROGRAM"

// patience is how long a test waits for what must happen. How long it takes is for the drill and the benches to tell.
const patience = 5 * time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	// Most tests here wait for processes; more of them than there are cores may wait at a time, but a browser or three
	// processes each make every wait longer. -parallel still wins.
	if err := flag.Set("test.parallel", "3"); err != nil {
		panic(err)
	}
	storetest.Main(m)
}

// emptyEnv is an environment with a home folder and nothing else.
func emptyEnv(name string) (string, bool) {
	if name == "HOME" {
		return "/home/alice", true
	}
	return "", false
}

// envOf adds variables to emptyEnv.
func envOf(vars map[string]string) lookup {
	return func(name string) (string, bool) {
		if value, ok := vars[name]; ok {
			return value, true
		}
		return emptyEnv(name)
	}
}

// output is what one command line did.
type output struct {
	code        int
	out, errOut string
}

// rollcall runs a command line in this process.
func rollcall(t *testing.T, env lookup, args ...string) output {
	t.Helper()
	var out, errOut bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(""), &out, &errOut, env)
	return output{code, out.String(), errOut.String()}
}

func TestRun(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		args        []string
		code        int
		out, errOut string
	}{
		{"no arguments print the commands", nil, 0, "Commands:", ""},
		{"help", []string{"--help"}, 0, "rollcall settings lists them", ""},
		{"help of a command", []string{"health", "--help"}, 0, "--timeout", ""},
		{"help of the demo", []string{"demo", "--help"}, 0, "rollcall demo --listen 127.0.0.1:", ""},
		{"version", []string{"version"}, 0, "rollcall ", ""},
		{"unknown command", []string{"bogus"}, 2, "", "unexpected argument bogus"},
		{"unknown flag", []string{"version", "--bogus"}, 2, "", "unknown flag --bogus"},
		{"flag that can't be read", []string{"version", "--poll-first=soon"}, 2, "", "--poll-first"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := rollcall(t, emptyEnv, tt.args...)
			if got.code != tt.code || !strings.Contains(got.out, tt.out) || !strings.Contains(got.errOut, tt.errOut) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestHelpLeavesSettingsOut(t *testing.T) {
	t.Parallel()
	if got := rollcall(t, emptyEnv, "--help"); strings.Contains(got.out, "--poll-first") {
		t.Errorf("settings bury the commands:\n%s", got.out)
	}
}

func TestVersionJSON(t *testing.T) {
	t.Parallel()
	var got release
	if err := json.Unmarshal([]byte(rollcall(t, emptyEnv, "version", "--json").out), &got); err != nil {
		t.Fatal(err)
	}
	if got.Version == "" || !strings.HasPrefix(got.Go, "go1.") {
		t.Errorf("got %+v", got)
	}
}

func TestVersionWorksWithWrongSettings(t *testing.T) {
	t.Parallel()
	env := envOf(map[string]string{"ROLLCALL_POLL_FIRST": "soon", "ROLLCALL_MODE": "carrier pigeon"})
	if got := rollcall(t, env, "version"); got.code != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestAppCheck(t *testing.T) {
	t.Parallel()
	if err := (&app{config: readConfig(t, nil)}).check(); err != nil {
		t.Error(err)
	}
	wrong := &app{config: readConfig(t, map[string]string{"ROLLCALL_MODE": "pigeon"})}
	if err := wrong.check(); err == nil || !strings.Contains(err.Error(), "ROLLCALL_MODE") {
		t.Errorf("got %v", err)
	}
}

func TestExitOf(t *testing.T) {
	t.Parallel()
	tests := []struct {
		err    error
		code   int
		errOut string
	}{
		{nil, 0, ""},
		{exitError(3), 3, ""},
		{errors.New("no luck"), 1, "rollcall: no luck\n"},
	}
	for _, tt := range tests {
		var errOut bytes.Buffer
		if code := exitOf(tt.err, &errOut); code != tt.code || errOut.String() != tt.errOut {
			t.Errorf("%v: got %d, %q", tt.err, code, errOut.String())
		}
	}
}
