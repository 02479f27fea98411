package contracttest

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemaPrefix is how the description refers to a schema of its own.
const schemaPrefix = "#/components/schemas/"

// compile makes validators of the description's schemas, once: kin-openapi compiles
// one anew for each body, which costs more than all else that a test's call does.
func compile(doc *openapi3.T) (map[string]*jsonschema.Schema, error) {
	data, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("write the description: %w", err)
	}
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("read the description: %w", err)
	}
	const address = "https://contract.invalid/openapi.json"
	compiler := newCompiler()
	if err := compiler.AddResource(address, tree); err != nil {
		return nil, fmt.Errorf("take the description: %w", err)
	}
	schemas := map[string]*jsonschema.Schema{}
	for name := range doc.Components.Schemas {
		if schemas[schemaPrefix+name], err = compiler.Compile(address + schemaPrefix + name); err != nil {
			return nil, fmt.Errorf("schema %s: %w", name, err)
		}
	}
	return schemas, nil
}

func newCompiler() *jsonschema.Compiler {
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	for name, check := range formats() {
		compiler.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(value any) error {
			if s, ok := value.(string); ok {
				return check(s)
			}
			return nil
		}})
	}
	return compiler
}

// holds says that the body is JSON as the schema referred to wants it. Where it says
// no, kin-openapi has the last word and the reason.
func (c *contract) holds(ref string, body []byte) bool {
	schema, ok := c.schemas[ref]
	if !ok {
		return false
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	return err == nil && schema.Validate(value) == nil
}

// bodyHolds is holds for a body of one of the kinds listed.
func (c *contract) bodyHolds(content openapi3.Content, kind string, body []byte) bool {
	media := content.Get(kind)
	return kind == "application/json" && media != nil && media.Schema != nil && c.holds(media.Schema.Ref, body)
}
