package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"rollcall/internal/export"
	"rollcall/store"
)

// TestExportsOfABatch goes from the form to files: one that is sent at once, one
// that another process has made; and who may see and take which.
func TestExportsOfABatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.seed(t, "nightly <b>", 8)
	b.exec(t, `UPDATE batches SET columns = '{sku,=price}' WHERE id = $1`, s.batch)
	b.exec(t, `UPDATE items SET extra = ARRAY['s' || position, '=1+1'], line = position + 1, original = '=' || position WHERE batch_id = $1`, s.batch)
	alice, bob, admin := b.as(t, store.RoleAnalyst), b.as(t, store.RoleAnalyst), b.as(t, store.RoleAdmin)
	form := alice.get(fmt.Sprintf("/exports/new?batch=%d&state=stored", s.batch))
	if form.status != http.StatusOK || !strings.Contains(form.text("[data-testid=picked]"), "4 items") || !strings.Contains(form.text("[data-testid=picked]"), "state stored") {
		t.Fatalf("form: got %d and %q", form.status, form.text("[data-testid=picked]"))
	}
	values := typed(form, "[data-testid=export-form]")
	sent := alice.submit("/exports", values)
	if where := sent.header.Get("Location"); sent.status != http.StatusSeeOther || !strings.HasPrefix(where, fmt.Sprintf("/batches/%d/export?", s.batch)) {
		t.Fatalf("a small one: got %d to %q", sent.status, where)
	}
	file := alice.get(sent.header.Get("Location"))
	if file.status != http.StatusOK || file.header.Get("Content-Type") != export.CSV.MediaType() {
		t.Fatalf("file: got %d, %v", file.status, file.header)
	}
	b.readByPostgres(t, file.body)
	manifest := alice.get(strings.Trim(strings.Split(file.header.Get("Link"), ";")[0], "<>"))
	var m export.Manifest
	if err := json.Unmarshal([]byte(manifest.body), &m); err != nil || !m.Complete || m.Rows != 4 || m.SHA256 != fmt.Sprintf("%x", sha256.Sum256([]byte(file.body))) {
		t.Errorf("manifest: got %s, %v", manifest.body, err)
	}
	b.largeInTheBackground(t, alice, s.batch)
	values.Set("behind", "on")
	values.Set("format", "jsonl")
	made := alice.submit("/exports", values)
	if again := alice.submit("/exports", values); made.status != http.StatusSeeOther || again.header.Get("Location") != made.header.Get("Location") {
		t.Errorf("the same form twice: got %q and %q", made.header.Get("Location"), again.header.Get("Location"))
	}
	b.takenBy(t, made.header.Get("Location"), alice, bob, admin)
	if n := b.id(t, `SELECT count(*) FROM audit_log WHERE what IN ('export.items', 'export.download') AND user_id IS NOT NULL`); n != 4 {
		t.Errorf("%d lines of the audit log tell who took data, want 4", n)
	}
}

// largeInTheBackground: what is too large, or nobody knows how large, to be sent
// at once is said to be, on the form and by whoever asks for it directly; the form
// then needs no second look.
func (b *bench) largeInTheBackground(t *testing.T, v *visitor, batch int64) {
	t.Helper()
	b.exec(t, `UPDATE batches SET accepted = accepted + 100000, submitted = submitted + 100000 WHERE id = $1`, batch)
	path := fmt.Sprintf("/exports/new?batch=%d", batch)
	form := v.get(path)
	if got := form.text("[data-testid=picked]"); form.doc.Find("[data-testid=too-large]").Length() != 1 || !strings.Contains(got, "100,0") {
		t.Errorf("a large one: got %q", got)
	}
	values := typed(form, "[data-testid=export-form]")
	if where := v.submit("/exports", values).header.Get("Location"); strings.Contains(where, "/export?") || !strings.HasPrefix(where, "/exports/") {
		t.Errorf("a large one leads to %q, want it made in the background", where)
	}
	values.Del("large")
	if where := v.get(v.submit("/exports", values).header.Get("Location")); where.status != http.StatusSeeOther || !strings.HasPrefix(where.header.Get("Location"), "/exports/new?") {
		t.Errorf("asked for at once: got %d to %q, want the form", where.status, where.header.Get("Location"))
	}
	b.exec(t, `UPDATE batches SET accepted = accepted - 100000, submitted = submitted - 100000 WHERE id = $1`, batch)
}

// typed is what a form would send as it is.
func typed(p page, form string) url.Values {
	values := url.Values{}
	for _, node := range p.doc.Find(form + " input, " + form + " option[selected]").Nodes {
		attr := map[string]string{}
		for _, a := range node.Attr {
			attr[a.Key] = a.Val
		}
		_, checked := attr["checked"]
		if node.Data == "option" {
			values.Set("format", attr["value"])
		} else if attr["type"] == "hidden" || checked {
			values.Set(attr["name"], attr["value"])
		}
	}
	return values
}

// readByPostgres opens a CSV file with a reader that has nothing to do with what
// wrote it.
func (b *bench) readByPostgres(t *testing.T, file string) {
	t.Helper()
	head, _, _ := strings.Cut(file, "\r\n")
	var columns []string
	for name := range strings.SplitSeq(head, ",") {
		columns = append(columns, name+" text")
	}
	b.exec(t, `CREATE TABLE read_back (`+strings.Join(columns, ", ")+`)`)
	conn, err := b.store.Pool().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	_, err = conn.Conn().PgConn().CopyFrom(t.Context(), strings.NewReader(file), `COPY read_back FROM STDIN WITH (FORMAT csv, HEADER true)`)
	if err != nil {
		t.Fatal(err)
	}
	if n := b.id(t, `SELECT count(*) FROM read_back WHERE state = 'stored' AND markdown = '# Page' AND sku = 's' || position AND "'=price" = '''=1+1'
		AND line::int = position::int + 1 AND original = '''=' || position`); n != 4 {
		t.Errorf("Postgres reads %d rows as they should be, want 4 of:\n%s", n, file)
	}
}

// takenBy lets people take a file that a process has made.
func (b *bench) takenBy(t *testing.T, path string, alice, bob, admin *visitor) {
	t.Helper()
	if got := alice.get(path + "/download"); got.status != http.StatusGone {
		t.Errorf("before it is made: got %d, want 410", got.status)
	}
	if got := alice.get(path); !strings.Contains(got.text("main"), "Waiting") {
		t.Errorf("its page: got %q", got.text("main"))
	}
	whole := bytes.Repeat([]byte("0123456789abcde\n"), 3<<16)
	sum := sha256.Sum256(whole)
	id := b.id(t, `UPDATE exports SET state = 'done', rows = 4, bytes = $1, sha256 = $2, ended_at = now(), manifest = '{"complete": true}'
		WHERE id = $3 RETURNING id`, len(whole), sum[:], strings.TrimPrefix(path, "/exports/"))
	for n := 0; n<<20 < len(whole); n++ {
		b.exec(t, `INSERT INTO export_chunks (export_id, n, body) VALUES ($1, $2, $3)`, id, n, whole[n<<20:min(len(whole), (n+1)<<20)])
	}
	for _, v := range []*visitor{alice, admin} {
		if got := v.get(path + "/download"); got.status != http.StatusOK || got.body != string(whole) {
			t.Errorf("got %d and %d bytes, want the whole file", got.status, len(got.body))
		}
	}
	r := alice.request(http.MethodGet, path+"/download", nil)
	r.Header.Set("Range", "bytes=1048570-1048585")
	if got := alice.do(r); got.status != http.StatusPartialContent || got.body != string(whole[1048570:1048586]) {
		t.Errorf("a range over two pieces: got %d and %q", got.status, got.body)
	}
	if n := b.id(t, `SELECT downloads FROM exports WHERE id = $1`, id); n != 2 {
		t.Errorf("%d downloads are counted, want 2: going on with one is none", n)
	}
	second := b.as(t, store.RoleAdmin)
	r = second.request(http.MethodGet, path+"/download", nil)
	r.Header.Set("Range", "bytes=16-")
	if got := second.do(r); got.status != http.StatusPartialContent || b.id(t, `SELECT downloads FROM exports WHERE id = $1`, id) != 3 {
		t.Errorf("whoever begins in the middle: got %d, want it counted", got.status)
	}
	b.exec(t, `UPDATE exports SET expires_at = now() - interval '1 s' WHERE id = $1`, id)
	if got := alice.get(path + "/download"); got.status != http.StatusGone {
		t.Errorf("past its time, and not removed yet: got %d, want 410", got.status)
	}
	if got := alice.get(path); !strings.Contains(got.text("main"), "Expired") || got.doc.Find("[data-testid=download]").Length() != 0 {
		t.Errorf("past its time: its page says %q", got.text("main"))
	}
	b.exec(t, `UPDATE exports SET expires_at = now() + interval '1 h' WHERE id = $1`, id)
	for _, each := range []string{path, path + "/download", path + "/manifest.json", path + "/live"} {
		if got := bob.get(each); got.status != http.StatusNotFound {
			t.Errorf("%s of somebody else: got %d, want 404", each, got.status)
		}
	}
	if got := bob.submit(path+"/delete", nil); got.status != http.StatusNotFound {
		t.Errorf("somebody else deletes it: got %d, want 404", got.status)
	}
	if got := bob.get("/exports"); strings.Contains(got.body, path+`"`) || strings.Contains(got.body, "audit log") {
		t.Error("somebody else sees it in the list, or is sent to the audit log, which only admins open")
	}
	if got := admin.get("/exports"); !strings.Contains(got.body, path+`"`) || !strings.Contains(got.body, "audit log") {
		t.Error("an admin doesn't see it in the list, or isn't sent to the audit log")
	}
	if got := alice.submit(path+"/delete", nil); got.status != http.StatusSeeOther {
		t.Errorf("delete: got %d", got.status)
	}
	if got := alice.get(path + "/download"); got.status != http.StatusGone {
		t.Errorf("after it was deleted: got %d, want 410", got.status)
	}
}

// TestExportBrokenOff: whoever can't be given all notices, whatever the format:
// the connection ends before the answer does.
func TestExportBrokenOff(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.seed(t, "broken", 4)
	// A page that is replaced while it is being read, piece by piece.
	b.exec(t, `UPDATE results SET markdown = convert_to(repeat('x', 3000000), 'UTF8')`)
	b.exec(t, `ALTER TABLE results RENAME TO kept`)
	b.exec(t, `CREATE FUNCTION fleeting() RETURNS integer LANGUAGE plpgsql VOLATILE AS $$ BEGIN
		IF current_query() LIKE 'SELECT substring(%FROM 2097153%' THEN RETURN 2; END IF; RETURN 1; END $$`)
	b.exec(t, `CREATE VIEW results AS SELECT item_id, job_id, net, stored_at, title, markdown, html, links, metadata, http_status, duration_ms,
		retry_count, charged, markdown_sha256, html_sha256, fleeting() AS version, page_key, mark FROM kept`)
	v := b.as(t, store.RoleAnalyst)
	for _, format := range []string{"csv", "jsonl", "zip"} {
		r, err := v.client.Do(v.request(http.MethodGet, fmt.Sprintf("/batches/%d/export?format=%s", s.batch, format), nil))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if r.StatusCode != http.StatusOK || err == nil {
			t.Errorf("%s: got %d, %d bytes and no error", format, r.StatusCode, len(text))
		}
	}
	if n := b.id(t, `SELECT count(*) FROM exports WHERE state = 'failed' AND reason LIKE 'a result was replaced%'`); n != 3 {
		t.Errorf("%d exports are said to be cut short, want 3", n)
	}
	for _, path := range []string{
		"/batches/999/export?format=csv", "/batches/%d/export?format=exe", "/batches/%d/export?format=csv&state=lost", "/exports/999", "/exports/new?batch=999",
	} {
		got := v.get(strings.ReplaceAll(path, "%d", idText(s.batch)))
		if got.status != http.StatusNotFound && got.status != http.StatusBadRequest || got.text("h1") == "" {
			t.Errorf("%s: got %d with the heading %q, want a page that says what is wrong", path, got.status, got.text("h1"))
		}
	}
}
