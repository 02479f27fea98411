package main

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rollcall/internal/sandbox"
	"rollcall/store"
)

// TestSubmitCommand: the good lines of a file become a batch that a server brings home; a dry run and a file that can't
// be read make none, and the exit code says so.
func TestSubmitCommand(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	urls := sandbox.MadeURLs(2, 7)
	file := filepath.Join(t.TempDir(), "pages.csv")
	text := "sku;page\n1;" + urls[0] + "\n2;" + strings.TrimPrefix(urls[1], "https://") + "\n3;" + urls[0] + "\n4;ftp://x/\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(code int, in string, args ...string) output {
		t.Helper()
		got := rollcall(t, envOf(d.vars), append([]string{"submit"}, args...)...)
		if got.code != code || !strings.Contains(got.out+got.errOut, in) {
			t.Errorf("submit %v: exit %d, said %q %q, want exit %d and %q", args, got.code, got.out, got.errOut, code, in)
		}
		return got
	}
	run(1, "1 invalid", file, "--dry-run")
	run(1, "nothing was submitted; it would be 2 requests in 1 job", file, "--strict")
	run(2, "9", file, "--url-column", "9")
	run(2, "no such file", file+"x")
	run(2, "kind", file, "--kind", "crawl")
	run(1, "choose commit, domcontentloaded or load", file, "--wait-until", "never")
	run(1, `there is no user "nobody"`, file, "--user", "nobody")
	if err := d.store.AddUser(t.Context(), &store.User{Name: "ada", Role: store.RoleAnalyst, PasswordHash: "x", CreatedAt: time.Now(), PasswordChangedAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	got := run(0, "", file, "--json", "--user", "ADA", "--name", "pages", "--content", "markdown,html", "--kind", "batch")
	var said submittedFile
	if err := json.Unmarshal([]byte(got.out), &said); err != nil {
		t.Fatal(err)
	}
	if got.errOut != "" {
		t.Errorf("beside what it says, submit logs %q", got.errOut)
	}
	want := submittedFile{Lines: 4, Submitted: 4, Accepted: 1, Fixed: 1, Duplicate: 1, Invalid: 1, Requests: 2, Jobs: 1, BatchID: 1}
	if said != want {
		t.Errorf("got %+v, want %+v", said, want)
	}
	run(1, "not one of the lines is left", file, "--stored-days", "1", "--url-column", "sku")
	var batches int
	if err := d.store.SQL().QueryRowContext(t.Context(), `SELECT count(*) FROM batches`).Scan(&batches); err != nil || batches != 1 {
		t.Errorf("batches: got %d, %v, want 1", batches, err)
	}
	start(t, d.vars, "serve")
	if b := d.home(said.BatchID, patience); b.Stored() != 2 || b.Name != "pages" || b.URLColumn != "page" || b.Kind != store.KindBatch || b.CreatedBy == nil {
		t.Errorf("batch: got %+v", b)
	}
	d.runsAgain(t, "1")
}

// TestSubmitNamesItsBatch: after the file, as the page does; standard input has no name, so after the first host.
func TestSubmitNamesItsBatch(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	urls := sandbox.MadeURLs(1, 7)
	host, err := url.Parse(urls[0])
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "Pages of May.CSV")
	if err := os.WriteFile(file, []byte("page\n"+urls[0]+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		in   string
		want string
	}{
		{[]string{file}, "", "Pages of May"},
		{[]string{file, "--name", " "}, "", "Pages of May"},
		{[]string{file, "--name", "november"}, "", "november"},
		{[]string{"-"}, urls[0], host.Host},
	} {
		var out, errOut bytes.Buffer
		args := append([]string{"submit", "--json"}, tt.args...)
		if code := run(t.Context(), args, strings.NewReader(tt.in), &out, &errOut, envOf(d.vars)); code != 0 {
			t.Fatalf("submit %v: exit %d, said %q", tt.args, code, errOut.String())
		}
		var said submittedFile
		if err := json.Unmarshal(out.Bytes(), &said); err != nil {
			t.Fatal(err)
		}
		b, err := d.store.Batch(t.Context(), said.BatchID)
		if err != nil || !strings.HasPrefix(b.Name, tt.want) {
			t.Errorf("submit %v: the batch is %+v, %v, want the name %q", tt.args, b, err, tt.want)
		}
	}
}
