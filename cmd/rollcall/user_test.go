package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rollcall/store"
	"rollcall/store/storetest"
)

// withInput is rollcall with a standard input.
func withInput(t *testing.T, vars map[string]string, input string, args ...string) output {
	t.Helper()
	var out, errOut bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(input), &out, &errOut, envOf(vars))
	return output{code, out.String(), errOut.String()}
}

func TestUsers(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"DATABASE_URL": storetest.EmptyDSN(t), "ROLLCALL_DATA_DIR": t.TempDir()}
	tests := []struct {
		name, input string
		args        []string
		code        int
		want        string
	}{
		{"made password", "", []string{"add", "ada", "--role", "admin"}, 0, "added admin ada; password (not shown again): "},
		{"typed password", "correct horse\n", []string{"add", "Bob", "--password-stdin"}, 0, "added analyst Bob\n"},
		{"name in use", "", []string{"add", "bob"}, 1, "already"},
		{"no name", "", []string{"add", " "}, 1, "name"},
		{"short password", "short", []string{"add", "eve", "--password-stdin"}, 1, "at least"},
		{"unknown role", "", []string{"add", "eve", "--role", "king"}, 2, "role"},
		{"new password", "", []string{"passwd", "BOB"}, 0, "new password for BOB"},
		{"new password of nobody", "", []string{"passwd", "eve"}, 1, `no user "eve"`},
		{"typed password for Bob", "correct horse\n", []string{"password", "bob", "--password-stdin"}, 0, "new password for bob\n"},
		{"link for a password", "", []string{"password", "bob", "--link"}, 0, "the password of Bob is reset; link (works once, until "},
		{"two ways at once", "", []string{"password", "bob", "--link", "--password-stdin"}, 2, "together"},
		{"invite", "", []string{"invite", "eve", "--role", "operator"}, 0, "put the address that people open Rollcall at before it"},
		{"invite who is there", "", []string{"invite", "BOB"}, 1, "already"},
		{"invite nobody", "", []string{"invite", " "}, 1, "name"},
		{"role", "", []string{"role", "bob", "operator"}, 0, "Bob is now: operator"},
		{"no such role", "", []string{"role", "bob", "king"}, 2, "role"},
		{"role of nobody", "", []string{"role", "eve", "admin"}, 1, `no user "eve"`},
		{"last admin", "", []string{"role", "ada", "analyst"}, 1, "ada is the last active admin"},
		{"disable the last admin", "", []string{"disable", "ada"}, 1, "ada is the last active admin"},
		{"disable", "", []string{"disable", "bob"}, 0, "disabled Bob"},
		{"link while disabled", "", []string{"password", "bob", "--link"}, 1, "the account is disabled"},
		{"disabled in the list", "", []string{"list"}, 0, "true"},
		{"enable", "", []string{"enable", "bob"}, 0, "enabled Bob"},
		{"back", "", []string{"role", "bob", "analyst"}, 0, "Bob is now: analyst"},
		{"end sessions", "", []string{"sessions", "end", "bob"}, 0, "sessions ended: 0"},
		{"list", "", []string{"list"}, 0, "never"},
	}
	for _, tt := range tests {
		got := withInput(t, vars, tt.input, append([]string{"user"}, tt.args...)...)
		if got.code != tt.code || !strings.Contains(got.out+got.errOut, tt.want) {
			t.Errorf("%s: got %+v, want %d and %q", tt.name, got, tt.code, tt.want)
		}
	}
	var list []listedUser
	if err := json.Unmarshal([]byte(mustRun(t, vars, "user", "list", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, u := range list {
		names = append(names, u.Name+" "+string(u.Role))
	}
	if diff := cmp.Diff([]string{"ada admin", "Bob analyst"}, names); diff != "" {
		t.Error(diff)
	}
}

// TestNewPasswordSignsOut ends the sessions of that person, and of nobody else.
func TestNewPasswordSignsOut(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"DATABASE_URL": storetest.DSN(t), "ROLLCALL_DATA_DIR": t.TempDir()}
	st := storetest.Open(t, vars["DATABASE_URL"])
	hashes := map[string][]byte{}
	for _, name := range []string{"ada", "bob"} {
		mustRun(t, vars, "user", "add", name)
		user, err := st.UserByName(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		hashes[name] = []byte(name)
		session := &store.Session{
			TokenHash: hashes[name], UserID: &user.ID, Data: []byte("{}"), CreatedAt: time.Now(), LastSeenAt: time.Now(),
			ExpiresAt: time.Now().Add(time.Hour),
		}
		if err := st.AddSession(t.Context(), session); err != nil {
			t.Fatal(err)
		}
	}
	mustRun(t, vars, "user", "passwd", "ada")
	lives := func(name string) bool {
		_, err := st.LiveSession(t.Context(), hashes[name], time.Now(), time.Now().Add(-time.Minute))
		return err == nil
	}
	if lives("ada") || !lives("bob") {
		t.Errorf("got ada signed in: %t, bob: %t; want bob alone", lives("ada"), lives("bob"))
	}
}

// TestUserCommandsAreAudited: each change is in the log, under the system's
// user, without any password or link.
func TestUserCommandsAreAudited(t *testing.T) {
	t.Parallel()
	vars := map[string]string{
		"DATABASE_URL": storetest.DSN(t), "ROLLCALL_DATA_DIR": t.TempDir(), "ROLLCALL_PUBLIC_URL": "https://desk.example",
	}
	var out strings.Builder
	out.WriteString(mustRun(t, vars, "user", "add", "ada", "--role", "admin"))
	for _, args := range [][]string{
		{"invite", "eve"},
		{"add", "bob"},
		{"role", "bob", "operator"},
		{"role", "bob", "operator"},
		{"passwd", "bob"},
		{"password", "bob", "--link"},
		{"sessions", "end", "bob"},
		{"disable", "bob"},
		{"enable", "bob"},
	} {
		out.WriteString(mustRun(t, vars, append([]string{"user"}, args...)...))
	}
	said := out.String()
	if !strings.Contains(said, "https://desk.example/invite/") {
		t.Errorf("no whole link: %s", said)
	}
	rows, _, err := storetest.Open(t, vars["DATABASE_URL"]).PageAudit(t.Context(), store.AuditFilter{}, store.Key{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range rows {
		row := &rows[len(rows)-1-i]
		got = append(got, row.What+" "+row.OnID)
		if row.Source != "command line" || row.Who == "" || row.UserID != nil {
			t.Errorf("%s: got by %q from %q", row.What, row.Who, row.Source)
		}
		for word := range strings.FieldsSeq(said) {
			if _, token, ok := strings.Cut(word, "/invite/"); ok && strings.Contains(string(row.After), token) {
				t.Errorf("%s: the log holds a link", row.What)
			}
		}
	}
	want := []string{
		"user.add ada", "user.invite eve", "user.add bob", "user.role bob", "user.password bob", "user.reset_password bob",
		"user.end_sessions bob", "user.disable bob", "user.enable bob",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("audit log (-got +want):\n%s", diff)
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"DATABASE_URL": storetest.EmptyDSN(t), "ROLLCALL_DATA_DIR": t.TempDir()}
	if got := rollcall(t, envOf(vars), "migrate", "status"); got.code != 1 || !strings.Contains(got.out, "missing") {
		t.Errorf("empty: got %+v", got)
	}
	mustRun(t, vars, "migrate", "up")
	var status migrateStatus
	if err := json.Unmarshal([]byte(mustRun(t, vars, "migrate", "status", "--json")), &status); err != nil {
		t.Fatal(err)
	}
	if !status.Compatible || len(status.Migrations) == 0 || !status.Migrations[0].Applied {
		t.Errorf("got %+v", status)
	}
	if got := rollcall(t, envOf(vars), "migrate", "down"); got.code != 1 || !strings.Contains(got.errOut, "--yes") {
		t.Errorf("down without yes: got %+v", got)
	}
	mustRun(t, vars, "migrate", "down", "--yes")
	if got := rollcall(t, envOf(vars), "migrate", "status"); got.code != 1 || strings.Contains(got.out, "applied") {
		t.Errorf("after down: got %+v", got)
	}
}

func TestSchemaIsFresh(t *testing.T) {
	t.Parallel()
	got, err := os.ReadFile("../../migrations/schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(mustRun(t, nil, "migrate", "schema"), string(got)); diff != "" {
		t.Errorf("migrations/schema.sql is stale; make schema writes it:\n%s", diff)
	}
}

func TestTidyDump(t *testing.T) {
	t.Parallel()
	dump := "--\n-- PostgreSQL database dump\n--\n\n\\restrict x\n\nSET x = 1;\nSELECT pg_catalog.set_config('search_path', '', false);\n\n\nCREATE TABLE a (\n    b text\n);\n\n\n-- Name: x\n\n\\unrestrict x\n\n"
	got := tidyDump(dump)
	if want := "CREATE TABLE a (\n    b text\n);\n"; !strings.HasSuffix(got, "\n\n"+want) || strings.Contains(got, "restrict") {
		t.Errorf("got %q, want it to end with %q", got, want)
	}
}
