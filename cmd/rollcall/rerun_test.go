package main

import (
	"encoding/json"
	"strings"
	"testing"

	"rollcall/store"
)

// runsAgain holds what the command says and does to a batch of two URLs, of which none has failed, while a server runs.
func (d *desk) runsAgain(t *testing.T, batch string) {
	t.Helper()
	run := func(code int, in string, args ...string) output {
		t.Helper()
		got := rollcall(t, envOf(d.vars), append([]string{"rerun"}, args...)...)
		if got.code != code || !strings.Contains(got.out+got.errOut, in) {
			t.Errorf("rerun %v: exit %d, said %q %q, want exit %d and %q", args, got.code, got.out, got.errOut, code, in)
		}
		return got
	}
	run(0, `"pages (again)", would run batch `+batch+` again. URLs: 2. Jobs: 1. Requests at most: 2.`, batch, "--dry-run")
	run(1, "nothing of this batch is left to run again", batch, "--failures")
	run(1, "there is no batch 999", "999")
	got := run(0, "", batch, "--json", "--name", "once more")
	var said rerunSaid
	if err := json.Unmarshal([]byte(got.out), &said); err != nil {
		t.Fatal(err)
	}
	b := d.home(said.BatchID, patience)
	if b.Stored() != 2 || b.Name != "once more" || b.ParentBatchID == nil || *b.Rerun != store.RerunAll || said.URLs != 2 {
		t.Errorf("said %+v, made %+v", said, b)
	}
}
