package contracttest

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed testdata/openapi.yaml testdata/examples/*.json
var files embed.FS

// contract is the loaded description with its routes.
type contract struct {
	doc     *openapi3.T
	routes  []route
	schemas map[string]*jsonschema.Schema // Compiled, by reference.
}

// load reads the description once per process; nothing changes it afterwards.
var load = sync.OnceValues(func() (*contract, error) {
	data, err := files.ReadFile("testdata/openapi.yaml")
	if err != nil {
		return nil, fmt.Errorf("read the contract: %w", err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(data)
	if err != nil {
		return nil, fmt.Errorf("load the contract: %w", err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, fmt.Errorf("validate the contract: %w", err)
	}
	schemas, err := compile(doc)
	if err != nil {
		return nil, fmt.Errorf("compile the contract: %w", err)
	}
	return &contract{doc: doc, routes: routesOf(doc), schemas: schemas}, nil
})

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// schemaOptions turn on what openapi.yaml relies on: JSON Schema 2020-12, as OpenAPI
// 3.1 has it, and the formats that kin-openapi leaves unchecked by default.
func schemaOptions() []openapi3.SchemaValidationOption {
	validators := map[string]openapi3.StringFormatValidator{}
	for name, check := range formats() {
		validators[name] = openapi3.NewCallbackValidator(check)
	}
	return []openapi3.SchemaValidationOption{openapi3.EnableJSONSchema2020(), openapi3.WithStringFormatValidators(validators)}
}

// formats are those of ours.
func formats() map[string]func(string) error {
	return map[string]func(string) error{
		"uuid": func(s string) error {
			if !uuidForm.MatchString(s) {
				return errors.New("not a UUID")
			}
			return nil
		},
		"uri": func(s string) error {
			if u, err := url.Parse(s); err != nil || u.Scheme == "" {
				return errors.New("not an absolute URI")
			}
			return nil
		},
	}
}

// ValidateBody checks a JSON body against a schema of components.schemas.
func ValidateBody(schema string, body []byte) error {
	c, err := load()
	if err != nil {
		return err
	}
	ref, ok := c.doc.Components.Schemas[schema]
	if !ok {
		return fmt.Errorf("the contract has no schema %q", schema)
	}
	if c.holds(schemaPrefix+schema, body) {
		return nil
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return fmt.Errorf("%s: not JSON: %w", schema, err)
	}
	if err := ref.Value.VisitJSON(value, schemaOptions()...); err != nil {
		return fmt.Errorf("%s: %s", schema, describe(err))
	}
	return nil
}

// Examples gives the contract's example files and the schema of each, empty for files
// of headers.
func Examples() (map[string]string, error) {
	data, err := files.ReadFile("testdata/examples/index.json")
	if err != nil {
		return nil, fmt.Errorf("read the index of examples: %w", err)
	}
	var index struct {
		Files map[string]struct {
			Schema string `json:"schema"`
		} `json:"files"`
	}
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("read the index of examples: %w", err)
	}
	schemas := make(map[string]string, len(index.Files))
	for name, file := range index.Files {
		schemas[name] = file.Schema
	}
	return schemas, nil
}

// Example reads one of the contract's example files.
func Example(name string) ([]byte, error) {
	data, err := files.ReadFile("testdata/examples/" + name)
	if err != nil {
		return nil, fmt.Errorf("read the example: %w", err)
	}
	return data, nil
}

// describe shortens kin-openapi's errors, which repeat the whole schema and value.
func describe(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\nSchema:")
	const most = 600
	if len(text) > most {
		text = text[:most] + "..."
	}
	return text
}
