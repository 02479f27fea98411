package main

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"rollcall/store"
)

// examine runs doctor --json with these settings over those of the desk.
func examine(t *testing.T, d *desk, code int, over map[string]string) map[string]finding {
	t.Helper()
	vars := maps.Clone(d.vars)
	maps.Copy(vars, over)
	got := rollcall(t, envOf(vars), "doctor", "--json", "--log-level", "error")
	if got.code != code {
		t.Fatalf("exit %d, want %d: %s%s", got.code, code, got.out, got.errOut)
	}
	var result diagnosis
	if err := json.Unmarshal([]byte(got.out), &result); err != nil {
		t.Fatalf("%q: %v", got.out, err)
	}
	if result.OK != (code == 0) {
		t.Errorf("ok is %t with exit %d", result.OK, code)
	}
	findings := map[string]finding{}
	for _, f := range result.Checks {
		findings[f.Check] = f
	}
	return findings
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	run := start(t, d.vars, "serve")
	run.address()
	hooks := examine(t, d, 1, nil)["webhooks"]
	if len(hooks.Problem) != 3 || !strings.Contains(hooks.Problem[0], "rollcall webhook register") {
		t.Errorf("before registering: got %+v, want three problems", hooks)
	}
	mustRun(t, d.vars, "webhook", "register")
	if got := mustRun(t, d.vars, "webhook", "list"); strings.Count(got, " live ") != 3 {
		t.Errorf("got %s, want three live webhooks", got)
	}
	d.home(d.submit(store.KindExtract, 3), patience)
	if _, err := d.store.SQL().ExecContext(t.Context(), `INSERT INTO webhooks (endpoint, event_type, url, state, created_at, state_at)
		VALUES ('replacedreplacedreplaced', 'batch_completed', 'https://desk.example/webhooks/geonode/replacedreplacedreplaced', 'gone', now(), now())`); err != nil {
		t.Fatal(err)
	}
	if _, err := d.store.SQL().ExecContext(t.Context(), `INSERT INTO bun_migrations (name, group_id) VALUES ('20991231000001', 99)`); err != nil {
		t.Fatal(err)
	}
	for check, f := range examine(t, d, 0, nil) {
		if f.Status != statusOK || strings.HasPrefix(f.Detail, "warning: a newer release") != (check == "schema") {
			t.Errorf("%s: got %+v, want ok, and a warning of the schema", check, f)
		}
	}
	d.findProblems(t)
}

// findProblems breaks one thing after the other and expects doctor to name it.
func (d *desk) findProblems(t *testing.T) {
	t.Helper()
	if _, err := d.store.SQL().ExecContext(t.Context(), "UPDATE batches SET stored_webhook = stored_webhook + 1, accepted = accepted + 1, submitted = submitted + 1"); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ check, name, value, want string }{
		{"roll call", "", "", "counts stored"},
		{"settings", "ROLLCALL_POLL_CAP", "1ms", "ROLLCALL_POLL_CAP"},
		{"vendor", "GEONODE_SCRAPER_API_KEY", "another", "401"},
		{"vendor", "SCRAPER_API_BASE_URL", "http://127.0.0.1:1", "refused"},
		{"secret key", "ROLLCALL_SECRET_KEY", strings.Repeat("cd", 32), "not the key that this database was begun with"},
		{"public URL", "ROLLCALL_PUBLIC_URL", "http://127.0.0.1:1", "refused"},
		{"database", "DATABASE_URL", "postgres://nobody@127.0.0.1:1/none", "refused"},
	}
	for _, tt := range tests {
		got := examine(t, d, 1, map[string]string{tt.name: tt.value})[tt.check]
		if got.Status != statusProblem || !strings.Contains(strings.Join(got.Problem, "\n"), tt.want) {
			t.Errorf("%s with %s=%q: got %+v, want %q", tt.check, tt.name, tt.value, got, tt.want)
		}
	}
}

func TestDoctorWithoutAnything(t *testing.T) {
	t.Parallel()
	got := rollcall(t, envOf(map[string]string{"ROLLCALL_DATA_DIR": t.TempDir()}), "doctor")
	for _, want := range []string{"problem  settings", "problem  database", "skipped  webhooks"} {
		if got.code != 1 || !strings.Contains(got.out, want) {
			t.Errorf("got %d, %s, want %q", got.code, got.out, want)
		}
	}
}

func TestDoctorFindsAClockThatIsOff(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for offset, want := range map[time.Duration]string{5 * time.Second: statusOK, -time.Hour: statusProblem} {
		d := &doctor{stack: newStack(new(Config), nil, func() time.Time { return now })}
		d.examineClock(now.Add(offset))
		if got := d.findings[0]; got.Status != want {
			t.Errorf("%s: got %+v, want %s", offset, got, want)
		}
	}
}
