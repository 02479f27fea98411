package contracttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/getkin/kin-openapi/openapi3filter"
)

// exchange is one call under validation.
type exchange struct {
	contract *contract
	input    *openapi3filter.RequestValidationInput
}

// checkRequest validates a request whose body is given apart. The exchange is nil when
// the contract has no such call.
func checkRequest(ctx context.Context, r *http.Request, body []byte) (*exchange, error) {
	c, err := load()
	if err != nil {
		return nil, err
	}
	found, params := c.find(r.Method, r.URL)
	if found == nil {
		return nil, fmt.Errorf("the contract has no %s %s", r.Method, r.URL.Path)
	}
	clone := r.Clone(ctx)
	clone.Body = io.NopCloser(bytes.NewReader(body))
	clone.ContentLength = int64(len(body))
	x := &exchange{contract: c, input: &openapi3filter.RequestValidationInput{
		Request: clone, PathParams: params, Route: found, Options: options(),
	}}
	if err := x.checkQuery(); err != nil {
		return x, err
	}
	if wanted := found.Operation.RequestBody; wanted != nil && wanted.Value != nil {
		x.input.Options.ExcludeRequestBody = c.bodyHolds(wanted.Value.Content, r.Header.Get("Content-Type"), body)
	}
	if err := openapi3filter.ValidateRequest(ctx, x.input); err != nil {
		return x, fmt.Errorf("request: %s", describe(err))
	}
	return x, nil
}

func options() *openapi3filter.Options {
	return &openapi3filter.Options{
		RejectWhenRequestBodyNotSpecified: true,
		SkipSettingDefaults:               true,
		IncludeResponseStatus:             true,
		AuthenticationFunc:                checkKey,
		SchemaValidationOptions:           schemaOptions(),
	}
}

// checkKey wants the API key where the contract puts it.
func checkKey(_ context.Context, in *openapi3filter.AuthenticationInput) error {
	if in.RequestValidationInput.Request.Header.Get(in.SecurityScheme.Name) == "" {
		return fmt.Errorf("no %s header", in.SecurityScheme.Name)
	}
	return nil
}

// checkQuery refuses parameters that the contract doesn't name.
func (x *exchange) checkQuery() error {
	route := x.input.Route
	for name := range x.input.GetQueryParams() {
		known := route.Operation.Parameters.GetByInAndName("query", name) != nil ||
			route.PathItem.Parameters.GetByInAndName("query", name) != nil
		if !known {
			return fmt.Errorf("request: the contract has no query parameter %q here", name)
		}
	}
	return nil
}

// mayBeEmpty are the error answers that older pages of the vendor show without a body.
var mayBeEmpty = []int{http.StatusUnauthorized, http.StatusNotFound, http.StatusConflict}

// checkResponse validates the answer to a request.
func (x *exchange) checkResponse(ctx context.Context, status int, header http.Header, body []byte) error {
	switch {
	case status >= 300 && status < 400:
		return fmt.Errorf("answer %d: the contract has no redirect", status)
	case len(body) == 0 && slices.Contains(mayBeEmpty, status):
		return nil
	case status == http.StatusNoContent && len(body) > 0:
		return errors.New("answer 204 with a body")
	}
	in := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: x.input, Status: status, Header: header, Options: options(),
	}
	in.Options.ExcludeResponseBody = x.answerHolds(status, header, body)
	in.SetBodyBytes(body)
	if err := openapi3filter.ValidateResponse(ctx, in); err != nil {
		return fmt.Errorf("answer %d: %s", status, describe(err))
	}
	return nil
}

// answerHolds says that the body is what the contract wants of this status.
func (x *exchange) answerHolds(status int, header http.Header, body []byte) bool {
	answers := x.input.Route.Operation.Responses
	if answers == nil {
		return false
	}
	wanted := answers.Status(status)
	return wanted != nil && wanted.Value != nil && x.contract.bodyHolds(wanted.Value.Content, header.Get("Content-Type"), body)
}
