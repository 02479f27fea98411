package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// preflightText is a table with a line of each verdict.
const preflightText = "id;url;name\n1;https://a.test/1;\"A, b\"\n2;<a.test/2>,;x\n\n3;https://A.test:443/1;\"two\nlines\"\n4;nonsense\x1b[2J\n6;https://a.test;y;z\n"

// preflight runs the command on a text; without a name it is standard input.
func preflightOf(t *testing.T, name, text string, args ...string) output {
	t.Helper()
	file := "-"
	if name != "" {
		file = filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, errOut bytes.Buffer
	code := run(t.Context(), slices.Concat([]string{"preflight", file}, args), strings.NewReader(text), &out, &errOut, emptyEnv)
	return output{code, out.String(), errOut.String()}
}

// TestPreflightForPrograms: one JSON object a line with the six keys, then one of totals; 1 for an invalid line.
func TestPreflightForPrograms(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"urls.csv", ""} {
		got := preflightOf(t, name, preflightText, "--json")
		if got.code != 1 || got.errOut != "" {
			t.Fatalf("got %+v, want exit 1", got)
		}
		var lines []map[string]any
		for text := range strings.Lines(got.out) {
			var one map[string]any
			if err := json.Unmarshal([]byte(text), &one); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			lines = append(lines, one)
		}
		want := []map[string]any{
			{"line": 2., "verdict": "accepted", "original": "https://a.test/1", "url": "https://a.test/1", "reason": nil, "duplicate_of": nil},
			{
				"line": 3., "verdict": "fixed", "original": "<a.test/2>,", "url": "https://a.test/2", "duplicate_of": nil,
				"reason": "quotes or brackets around it removed, comma or semicolon after it removed, https:// put in front",
			},
			{"line": 5., "verdict": "duplicate", "original": "https://A.test:443/1", "url": "https://A.test:443/1", "reason": "is the same as line 2", "duplicate_of": 2.},
			{"line": 7., "verdict": "invalid", "original": "nonsense\x1b[2J", "url": nil, "reason": "holds a control character", "duplicate_of": nil},
			{"line": 8., "verdict": "invalid", "original": "https://a.test", "url": nil, "reason": "has 4 columns, not 3", "duplicate_of": nil},
			{
				"lines": 6., "submitted": 5., "accepted": 1., "fixed": 1., "duplicate": 1., "invalid": 2., "other_hosts": 0., "other_urls": 0., "private_urls": 0.,
				"hosts": []any{map[string]any{"host": "a.test", "count": 2.}},
				"read_as": map[string]any{
					"format": "csv", "charset": "utf-8", "gzipped": false, "delimiter": ";", "header": true, "url_column": "url",
					"columns": []any{"id", "name"}, "all_columns": []any{"id", "url", "name"},
				},
			},
		}
		if diff := cmp.Diff(want, lines); diff != "" {
			t.Errorf("%q: %s", name, diff)
		}
	}
}

// TestPreflightForPeople: counts, hosts and the first of each fault, and nothing of the file reaches the terminal raw.
func TestPreflightForPeople(t *testing.T) {
	t.Parallel()
	got := preflightOf(t, "urls.csv", preflightText)
	for _, want := range []string{
		`urls.csv: csv, utf-8, semicolon, with a header, URLs in "url", beside ["id" "name"]`, "1  accepted", "2  invalid", "5  in all", "1  blank", "2  a.test",
		`line 7  "nonsense\x1b[2J"  holds a control character`, `line 5  "https://A.test:443/1"  is the same as line 2`, `: "https://a.test/2"`,
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is missing in\n%s", want, got.out)
		}
	}
	if got.code != 1 || strings.Contains(got.out, "\x1b") {
		t.Errorf("got %d, %q", got.code, got.out)
	}
	many := preflightOf(t, "", strings.Repeat("x\n", 30)+"https://a.test/"+strings.Repeat("\n\"\u00e4.test/\"", 8))
	if many.code != 1 || !strings.Contains(many.out, "and 10 more") || !strings.Contains(many.out, "7  duplicate") || !strings.Contains(many.out, "and 2 more") {
		t.Errorf("got %d\n%s", many.code, many.out)
	}
	if good := preflightOf(t, "", "https://a.test\na.test/2\nhttps://a.test/\n"); good.code != 0 {
		t.Errorf("got %+v, want 0 with no line invalid", good)
	}
}

// TestPreflightWritesWhatIsRejected: with all the columns, so that it can be mended and read again.
func TestPreflightWritesWhatIsRejected(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "rejected.csv")
	if got := preflightOf(t, "urls.csv", preflightText, "-o", file); got.code != 1 {
		t.Fatalf("got %+v", got)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	want := [][]string{
		{"url", "id", "name", "line", "verdict", "reason", "duplicate_of", "stored_result", "more_cells"},
		{"https://A.test:443/1", "3", "two\nlines", "5", "duplicate", "is the same as line 2", "2", "", ""},
		{"nonsense\x1b[2J", "4", "", "7", "invalid", "holds a control character", "", "", ""},
		{"https://a.test", "6", "y", "8", "invalid", "has 4 columns, not 3", "", "", "z"},
	}
	if diff := cmp.Diff(want, rows); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".rejected-*")); err != nil || len(left) != 0 {
		t.Errorf("%v are left, %v", left, err)
	}
	again := preflightOf(t, "again.csv", string(text), "--json")
	if !strings.Contains(again.out, `"url_column":"url"`) || again.code != 1 {
		t.Errorf("what was written reads as %+v", again)
	}
	preflightOf(t, "formulas.csv", "id;url\n=1+1;@nonsense\x1b\n", "-o", file)
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "\n'@nonsense\x1b,'=1+1,") {
		t.Errorf("formulas: got %q, %v", text, err)
	}
}

// TestPreflightChoices reach the reading, and a file that can't be read is told from lines that are wrong.
func TestPreflightChoices(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		args []string
		code int
		want string
	}{
		{"https://a.test/#a\nhttps://a.test/#b\n", []string{"--keep-fragment"}, 0, `"accepted":2`},
		{"https://a.test/?a&b\nhttps://a.test/?b&a\n", []string{"--sort-query"}, 0, `"duplicate":1`},
		{"https://a.test/\nhttps://a.test/\n", []string{"--keep-duplicates"}, 0, `"duplicate_of":1`},
		{"a\tb\nhttps://a.test\thttps://b.test\n", []string{"--delimiter=tab", "--header", "--url-column=2"}, 0, `"url":"https://b.test"`},
		{"https://b.test,x\nhttps://a.test,y\n", []string{"--format=csv", "--no-header"}, 0, `"accepted":2`},
		{"https://\xf6.test\n", []string{"--charset=windows-1252"}, 0, `"url":"https://` + "\u00f6" + `.test"`},
		{"https://a.test\nhttps://b.test\n", []string{"--max-lines=1"}, 2, "line 2: over 1 lines"},
		{"x", []string{"--charset=nonsense"}, 2, "--charset: the character set \"nonsense\" is not known"},
		{"a,b\n1,2\n", []string{"--format=csv"}, 2, "--url-column: no column holds URLs"},
		{"x", []string{"--delimiter=::"}, 2, "--delimiter: "},
		{"x", []string{"--format=xls"}, 2, "--format"},
		{"x", []string{"--max-lines=0"}, 2, "--max-lines=0"},
		{"x", []string{"-o", "/nowhere/at/all.csv"}, 2, "/nowhere/at"},
	} {
		got := preflightOf(t, "", c.text, append(c.args, "--json")...)
		if got.code != c.code || !strings.Contains(got.out+got.errOut, c.want) || (c.code == 2) != (got.errOut != "") {
			t.Errorf("%q %v: got %+v, want %d with %s", c.text, c.args, got, c.code, c.want)
		}
	}
	if got := rollcall(t, emptyEnv, "preflight", filepath.Join(t.TempDir(), "none.txt")); got.code != 2 || !strings.Contains(got.errOut, "none.txt") {
		t.Errorf("got %+v for a file that isn't there", got)
	}
}

// TestPreflightReadsSitemapsBesideTheirIndex and nothing else: nothing is fetched, and no other folder is opened.
func TestPreflightReadsSitemapsBesideTheirIndex(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	index := filepath.Join(folder, "in", "index.xml")
	if err := os.Mkdir(filepath.Dir(index), 0o700); err != nil {
		t.Fatal(err)
	}
	entry := func(url string) string { return "<urlset><url><loc>" + url + "</loc></url></urlset>" }
	for name, text := range map[string]string{
		index: `<sitemapindex><sitemap><loc>https://a.test/maps/one.xml?v=2</loc></sitemap><sitemap><loc>https://a.test/../secret.xml</loc></sitemap>
			<sitemap><loc>https://a.test/link.xml</loc></sitemap><sitemap><loc>https://a.test/</loc></sitemap></sitemapindex>`,
		filepath.Join(folder, "in", "one.xml"): entry("https://a.test/1"),
		filepath.Join(folder, "secret.xml"):    entry("https://a.test/secret"),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../secret.xml", filepath.Join(folder, "in", "link.xml")); err != nil {
		t.Fatal(err)
	}
	got := rollcall(t, emptyEnv, "preflight", index, "--json")
	if got.code != 1 || !strings.Contains(got.out, `"accepted":1,"fixed":0,"duplicate":0,"invalid":3`) || strings.Contains(got.out, "a.test/secret") ||
		strings.Count(got.out, "it is not fetched, and there is no file") != 3 {
		t.Errorf("got %d\n%s%s", got.code, got.out, got.errOut)
	}
}
