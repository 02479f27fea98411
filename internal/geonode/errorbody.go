package geonode

import (
	"encoding/json"
	"strings"
)

const (
	maxErrorBody   = 256 << 10
	maxExcerpt     = 2 << 10
	maxFieldErrors = 50
)

// wireError is the union of the error shapes.
type wireError struct {
	Code          json.RawMessage `json:"code"`
	Message       json.RawMessage `json:"message"`
	CorrelationID json.RawMessage `json:"correlation_id"`
	Retryable     json.RawMessage `json:"retryable"`
	Details       json.RawMessage `json:"details"`
	Detail        json.RawMessage `json:"detail"`
}

type wireField struct {
	Loc  []json.RawMessage `json:"loc"`
	Msg  json.RawMessage   `json:"msg"`
	Type json.RawMessage   `json:"type"`
}

// readBody fills e from an error body of any form; a body that can't be read leaves
// only the excerpt, so the status decides.
func (e *Error) readBody(body []byte) {
	e.Body = excerpt(body)
	var w wireError
	if kindOf(body) != "object" || json.Unmarshal(body, &w) != nil {
		return
	}
	e.Code, e.Message = looseText(w.Code), looseText(w.Message)
	e.CorrelationID, e.RetryableSent = looseText(w.CorrelationID), strictBool(w.Retryable)
	e.Fields = readFields(w.Detail)
	switch {
	case len(e.Fields) > 0:
		e.Shape = ShapeDetail
	case e.Code != "" && kindOf(w.Details) == "object":
		e.Shape = ShapeExtraction
	case e.Code != "" && kindOf(w.Message) == "string":
		e.Shape = ShapeStandard
	case e.Message == "":
		e.Message = looseText(w.Detail)
	}
}

// excerpt is the start of a body as text.
func excerpt(body []byte) string {
	return clip(strings.ToValidUTF8(string(body[:min(len(body), maxExcerpt)]), "\uFFFD"), maxExcerpt)
}

// readFields reads a detail array; anything else gives none.
func readFields(detail json.RawMessage) []FieldError {
	var wires []json.RawMessage
	if json.Unmarshal(detail, &wires) != nil {
		return nil
	}
	var fields []FieldError
	for _, raw := range wires[:min(len(wires), maxFieldErrors)] {
		var w wireField
		if kindOf(raw) != "object" {
			continue
		}
		// A member of the wrong type is left empty.
		_ = json.Unmarshal(raw, &w)
		f := FieldError{Msg: looseText(w.Msg), Type: looseText(w.Type)}
		for _, part := range w.Loc {
			f.Loc = append(f.Loc, looseText(part))
		}
		fields = append(fields, f)
	}
	return fields
}

// looseText reads a string, or a number as its digits; anything else is empty.
func looseText(b json.RawMessage) string {
	var text string
	if json.Unmarshal(b, &text) == nil {
		return text
	}
	if kindOf(b) == "number" {
		return string(b)
	}
	return ""
}

// strictBool reads a boolean; anything else is nil.
func strictBool(b json.RawMessage) *bool {
	var flag bool
	if kindOf(b) != "bool" || json.Unmarshal(b, &flag) != nil {
		return nil
	}
	return &flag
}

// UnmarshalJSON reads the error object of an extraction; a bare string is its message.
func (e *ItemError) UnmarshalJSON(b []byte) error {
	*e = ItemError{Message: looseText(b)}
	var w wireError
	if json.Unmarshal(b, &w) != nil {
		return nil //nolint:nilerr // An error of another form is still an error, with what text it has.
	}
	*e = ItemError{Code: looseText(w.Code), Message: looseText(w.Message), RetryableSent: strictBool(w.Retryable)}
	if kindOf(w.Details) == "object" {
		e.Details = w.Details
	}
	return nil
}
