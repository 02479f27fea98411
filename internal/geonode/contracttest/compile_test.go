package contracttest

import "testing"

// TestExamplesHold without kin-openapi's help, which would hide that nothing is
// ever compiled once.
func TestExamplesHold(t *testing.T) {
	t.Parallel()
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	examples, err := Examples()
	if err != nil {
		t.Fatal(err)
	}
	for name, schema := range examples {
		body, err := Example(name)
		if err != nil {
			t.Fatal(err)
		}
		if schema != "" && !c.holds(schemaPrefix+schema, body) {
			t.Errorf("%s is no %s", name, schema)
		}
	}
	content := c.doc.Paths.Value("/v1/batch/{job_id}").Get.Responses.Status(200).Value.Content
	if queued := `{"job_id":"1f6d2a90-7c54-4e1b-a3d8-90b7c5e2f611","status":"queued"}`; !c.bodyHolds(content, "application/json", []byte(queued)) {
		t.Errorf("%s is no answer about a batch", queued)
	}
	if c.bodyHolds(content, "text/html", []byte(`{}`)) || c.bodyHolds(content, "application/json", []byte(`{}`)) {
		t.Error("a page, or a job without an id, is an answer about a batch")
	}
}
