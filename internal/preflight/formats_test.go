package preflight_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rollcall/internal/preflight"
)

// shown is a line in short: number, verdict, URL or what is wrong, and the other cells.
func shown(l preflight.Line) string {
	what := l.URL
	if l.Verdict == preflight.Invalid {
		what = fmt.Sprintf("%q: %s", l.Original, l.Reason)
	}
	if len(l.Extra) > 0 {
		return fmt.Sprintf("%d %s %s %q", l.Number, l.Verdict, what, l.Extra)
	}
	return fmt.Sprintf("%d %s %s", l.Number, l.Verdict, what)
}

// formatCase is a file, how it is read, and what comes of it.
type formatCase struct {
	file, text string
	choices    preflight.Choices
	as         string // Format, delimiter, header, URL column, the others.
	want       []string
}

func (c formatCase) check(t *testing.T, name string) {
	t.Helper()
	lines, d, _, err := readAll(t, c.text, c.file, c.choices)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	var got []string
	for _, l := range lines {
		got = append(got, shown(l))
	}
	if diff := cmp.Diff(c.want, got); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
	if as := fmt.Sprintf("%s %q %v %s %q", d.Format, d.Delimiter, d.Header, d.URLColumn, d.Columns); c.as != "" && as != c.as {
		t.Errorf("%s: read as %s, want %s", name, as, c.as)
	}
}

// TestCSV: delimiters, headers, quotes, and rows that don't fit.
func TestCSV(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]formatCase{
		"comma": {
			text: "id,URL\n1,https://a.test/1\r\n\r\n2,a.test/2\r3,\n", as: `csv "," true URL ["id"]`,
			want: []string{`2 accepted https://a.test/1 ["1"]`, `4 fixed https://a.test/2 ["2"]`, `5 invalid "": its column "URL" is empty ["3"]`},
		},
		"semicolon with commas in numbers": {
			file: "x.csv", text: "Link;Preis\nhttps://a.test/x;1,50\nhttps://a.test/y;2,50\n", as: `csv ";" true Link ["Preis"]`,
			want: []string{`2 accepted https://a.test/x ["1,50"]`, `3 accepted https://a.test/y ["2,50"]`},
		},
		"tab without a name or header": {
			text: "x\thttps://a.test/1\ny\thttps://a.test/2", as: `csv "\t" false column 2 ["column 1"]`,
			want: []string{`1 accepted https://a.test/1 ["x"]`, `2 accepted https://a.test/2 ["y"]`},
		},
		"bar": {
			text: "a|b\nhttps://a.test/1|x\nhttps://a.test/2|y", as: `csv "|" true a ["b"]`,
			want: []string{`2 accepted https://a.test/1 ["x"]`, `3 accepted https://a.test/2 ["y"]`},
		},
		"separator line": {
			file: "x.csv", text: "sep=;\r\na;url\r\n1;https://a.test\r\n", as: `csv ";" true url ["a"]`, want: []string{`3 accepted https://a.test ["1"]`},
		},
		"one column": {
			file: "x.csv", text: "url\nhttps://a.test/1,2\n\"https://a.test/3\"\n", as: `csv "" true url []`,
			want: []string{"2 accepted https://a.test/1,2", "3 accepted https://a.test/3"},
		},
		"quotes": {
			file: "x.csv", text: "url,note\n\"https://a.test/?q=1,2\",\"say \"\"hi\"\"\nthere\"\n https://a.test/3 , \"x\" \nhttps://a.test/4,5\" wide\n", as: `csv "," true url ["note"]`,
			want: []string{`2 accepted https://a.test/?q=1,2 ["say \"hi\"\nthere"]`, `4 fixed https://a.test/3 ["x"]`, `5 accepted https://a.test/4 ["5\" wide"]`},
		},
		"a quote that is never closed": {
			file: "x.csv", text: "url,note\n\"https://a.test/1,x\nhttps://a.test/2,y\n", as: `csv "," true url ["note"]`,
			want: []string{`2 fixed https://a.test/1 ["x"]`, `3 accepted https://a.test/2 ["y"]`},
		},
		"a quote that is closed lines later": {
			file: "x.csv", text: "url,note\n\"https://a.test/1,x\nhttps://a.test/2,y\n\"https://a.test/3\",\"z\"\n",
			want: []string{`2 fixed https://a.test/1 ["x"]`, `3 accepted https://a.test/2 ["y"]`, `4 accepted https://a.test/3 ["z"]`},
		},
		"a quote of another column that is closed lines later": {
			file: "x.csv", text: "url,note\nhttps://a.test/1,\"x\nhttps://a.test/2,y\nhttps://a.test/3,\"z\"\n",
			want: []string{`2 accepted https://a.test/1 ["\"x"]`, `3 accepted https://a.test/2 ["y"]`, `4 accepted https://a.test/3 ["z"]`},
		},
		"too wide and too narrow": {
			file: "x.csv", text: "a,url,b\n1,https://a.test,2,3\n1,https://b.test\n1\n1,https://c.test,2,,\n,,\n",
			want: []string{
				`2 invalid "https://a.test": has 4 columns, not 3 ["1" "2" "3"]`, `3 accepted https://b.test ["1"]`, `4 invalid "": its column "url" is empty ["1"]`,
				`5 accepted https://c.test ["1" "2"]`,
			},
		},
		"names": {
			file: "x.csv", text: "name,,name,url, long \u202e name ,\nx,y,z,https://a.test,1,2\n", as: `csv "," true url ["name" "column 2" "name (2)" "long name" "column 6"]`,
			want: []string{`2 accepted https://a.test ["x" "y" "z" "1" "2"]`},
		},
		"the column is chosen by name": {
			file: "x.csv", text: "image,url\nhttps://i.test,https://a.test\n", choices: preflight.Choices{URLColumn: " Image"}, as: `csv "," true image ["url"]`,
			want: []string{`2 accepted https://i.test ["https://a.test"]`},
		},
		"the column is chosen by number": {
			text: "https://a.test,https://b.test\n", choices: preflight.Choices{URLColumn: "2", Delimiter: ","}, as: `csv "," false column 2 ["column 1"]`,
			want: []string{`1 accepted https://b.test ["https://a.test"]`},
		},
		"the header is none": {
			file: "x.csv", text: "url,b\nhttps://a.test,c\n", choices: preflight.Choices{Header: new(false)},
			want: []string{`1 invalid "url": has no http:// or https:// in front and does not begin with a host's name ["b"]`, `2 accepted https://a.test ["c"]`},
		},
		"the first row is a header": {
			file: "x.csv", text: "https://a.test,b\nhttps://b.test,c\n", choices: preflight.Choices{Header: new(true)}, as: `csv "," true https://a.test ["b"]`,
			want: []string{`2 accepted https://b.test ["c"]`},
		},
		"URLs with a scheme over a better name": {
			file: "x.csv", text: "site,target\na.test,https://a.test/1\nb.test,https://b.test/1\n", as: `csv "," true target ["site"]`,
			want: []string{`2 accepted https://a.test/1 ["a.test"]`, `3 accepted https://b.test/1 ["b.test"]`},
		},
		"hosts under a title of any name": {
			file: "x.csv", text: "Kunde,Seite\nAnna,a.test\nBert,b.test\n", as: `csv "," true Seite ["Kunde"]`,
			want: []string{`2 fixed https://a.test ["Anna"]`, `3 fixed https://b.test ["Bert"]`},
		},
		"a list with commas is no table": {
			text: "https://a.test/1,\nhttps://a.test/2,3\n", as: `txt "" false  []`, want: []string{"1 fixed https://a.test/1", "2 accepted https://a.test/2,3"},
		},
		"nothing but a header": {file: "x.csv", text: "url,b\n", as: `csv "," true url ["b"]`},
		"nothing":              {file: "x.csv", text: "\n\n"},
	} {
		c.check(t, name)
	}
}

// TestJSONLines: fields in the order they come, and lines that are no objects.
func TestJSONLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]formatCase{
		"fields": {
			text: `{"id":1,"url":"https://a.test/1","tags":["x", {"y":1}],"none":null,"yes":true}` + "\n\n" +
				`{"new":"caf\u00e9","url":"a.test/2","id":12345678901234567890}` + "\r\n",
			as: `jsonl "" false url ["id" "tags" "none" "yes" "new"]`,
			want: []string{
				`1 accepted https://a.test/1 ["1" "[\"x\",{\"y\":1}]" "" "true"]`, `3 fixed https://a.test/2 ["12345678901234567890" "" "" "" "café"]`,
			},
		},
		"by content": {
			file: "x.ndjson", text: `{"a":"x","seite":"https://a.test"}` + "\n", as: `jsonl "" false seite ["a"]`, want: []string{`1 accepted https://a.test ["x"]`},
		},
		"by choice": {
			text: `{"url":"https://a.test","img":"https://i.test"}` + "\n", choices: preflight.Choices{URLColumn: "img"}, want: []string{`1 accepted https://i.test ["https://a.test"]`},
		},
		"strings": {file: "x.jsonl", text: "\"https://a.test\"\n\"\"\n", want: []string{"1 accepted https://a.test", `2 invalid "": holds no URL`}},
		"twice": {
			text: `{"url":"https://a.test","n":1,"url":"https://b.test","n":2}`, want: []string{`1 accepted https://b.test ["2"]`},
		},
		"wrong": {
			text: `{"url":"https://a.test"}` + "\n" + `{"url":5}` + "\n" + `{"link":"https://a.test/2"}` + "\n{\n[1]\n7\n" + `{"url":"https://a.test/3"} x` + "\n" + `{"url":" "}`,
			want: []string{
				"1 accepted https://a.test", `2 invalid "5": its "url" is no text`, `3 invalid "": has no "url" ["https://a.test/2"]`, `4 invalid "{": is not JSON: it ends too early`,
				`5 invalid "[1]": is a JSON array; put one object on each line`, `6 invalid "7": is no JSON object`,
				`7 invalid "{\"url\":\"https://a.test/3\"} x": has something behind its JSON object`, `8 invalid "": has no "url"`,
			},
		},
		"nothing readable": {file: "x.jsonl", text: "x\n", want: []string{`1 invalid "x": is not JSON: invalid character 'x' looking for beginning of value`}},
	} {
		c.check(t, name)
	}
}

// TestFilesThatCannotBeRead: each says why, and which choice would change it.
func TestFilesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	bomb := strings.Repeat("<a>", 60)
	for name, c := range map[string]struct {
		file, text string
		choices    preflight.Choices
		reason     string
		field      string
	}{
		"format":             {text: "x", choices: preflight.Choices{Format: "xls"}, reason: `"xls" is not known`, field: "format"},
		"delimiter":          {text: "x", choices: preflight.Choices{Delimiter: "::"}, reason: "comma", field: "delimiter"},
		"charset":            {text: "x", choices: preflight.Choices{Charset: "ebcdic"}, reason: `"ebcdic" is not known`, field: "charset"},
		"no such column":     {file: "x.csv", text: "a,b\n1,https://a.test", choices: preflight.Choices{URLColumn: "c"}, reason: `there are: "a", "b"`, field: "url_column"},
		"no column of URLs":  {file: "x.csv", text: "a,b\n1,2\n", reason: "no column holds URLs", field: "url_column"},
		"no field of URLs":   {text: `{"a":1,"b":2}`, reason: "no column holds URLs", field: "url_column"},
		"too many columns":   {file: "x.csv", text: strings.Repeat("a,", 200) + "url\n", reason: "201 columns"},
		"array":              {file: "x.json", text: "[\n{\"url\":\"https://a.test\"}\n]", reason: "is a JSON array"},
		"too many lines":     {text: "https://a.test\n\n\nhttps://b.test", choices: preflight.Choices{MaxLines: 3}, reason: "line 4: over 3 lines"},
		"half gzipped":       {text: packed(strings.Repeat("https://a.test/\n", 5000))[:60], reason: "damaged or cut short"},
		"no gzip":            {text: "\x1f\x8bxxxxxxxxxx", reason: "damaged or cut short"},
		"gzip checksum":      {text: packed("x")[:20] + "xxxxxxxx", reason: "damaged or cut short"},
		"web page":           {file: "x.xml", text: "<html></html>", reason: "is no sitemap: its outermost element is <html>"},
		"cut XML":            {text: "<urlset>\n<url>", reason: "line 2: is not well-formed XML"},
		"empty XML":          {file: "x.xml", text: "", reason: "holds no sitemap"},
		"external entity":    {text: `<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><urlset><url><loc>&e;</loc></url></urlset>`, reason: "<!DOCTYPE"},
		"entity of nobody":   {text: `<urlset><url><loc>https://a.test/&e;</loc></url></urlset>`, reason: "is not well-formed XML: invalid character entity &e;"},
		"deep XML":           {text: "<urlset>" + bomb, reason: "too many elements in each other"},
		"a long part of XML": {text: "<urlset><!--" + strings.Repeat("x", 3<<20), reason: "over 1048576 bytes"},
	} {
		_, d, _, err := readAll(t, c.text, c.file, c.choices)
		wrong, ok := err.(*preflight.FileError) //nolint:errorlint // Read promises it as it is.
		if !ok || !strings.Contains(wrong.Error(), c.reason) || wrong.Field != c.field {
			t.Errorf("%s: got %v, want %q about %q", name, err, c.reason, c.field)
		}
		if c.field == "url_column" && len(d.AllColumns) != 2 {
			t.Errorf("%s: got the columns %q to choose from, want both", name, d.AllColumns)
		}
	}
}
