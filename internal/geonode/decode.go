package geonode

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Rows is an array of the contract. It remembers whether the member was there at all:
// a list that was sent empty and a body that is no list must not look the same.
type Rows[T any] struct {
	// List holds the elements; null is an empty list.
	List []T
	// Sent is true when the member was an array or null.
	Sent bool
	// wrong is true when the member was something else.
	wrong bool
}

// UnmarshalJSON takes an array or null and remembers anything else as wrong.
func (r *Rows[T]) UnmarshalJSON(b []byte) error {
	*r = Rows[T]{}
	switch kindOf(b) {
	case "null":
		r.Sent = true
		return nil
	case "array":
		r.Sent = true
		return json.Unmarshal(b, &r.List)
	}
	r.wrong = true
	return nil
}

// MarshalJSON writes the elements.
func (r Rows[T]) MarshalJSON() ([]byte, error) { return json.Marshal(r.List) }

// decodeObject reads b, which must be one JSON object, into v. A member of the wrong
// type doesn't stop it: the rest is read, and the first return value says what was
// wrong. The error is for bodies that are no JSON object.
func decodeObject(b []byte, v any) (string, error) {
	if kind := kindOf(b); kind != "object" {
		return "", fmt.Errorf("%w: the body is %s, not an object", ErrMalformed, kind)
	}
	err := json.Unmarshal(b, v)
	if err == nil {
		return "", nil
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("member %q is a %s", wrong.Field, wrong.Value), nil
	}
	// The text of a syntax error names an offset and a character, no content.
	return "", fmt.Errorf("%w: %w", ErrMalformed, err)
}

// malformed is ErrMalformed with a reason.
func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
}

// needRows refuses a list whose rows are missing or no array.
func needRows[T any](name string, rows Rows[T]) error {
	if rows.wrong || !rows.Sent {
		return malformed("%s is missing or no array", name)
	}
	return nil
}

// okRows refuses rows that are there but no array.
func okRows[T any](name string, rows Rows[T]) error {
	if rows.wrong {
		return malformed("%s is no array", name)
	}
	return nil
}
