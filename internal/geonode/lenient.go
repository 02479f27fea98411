package geonode

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Count is a whole number the vendor may have left out. Unknown is not zero.
type Count struct {
	// N is the number; it means something only when Known.
	N int64
	// Known tells a count that was sent from one that was not.
	Known bool
}

// KnownCount is a count of n.
func KnownCount(n int64) Count { return Count{N: n, Known: true} }

// Or gives the number, or fallback when it is unknown.
func (c Count) Or(fallback int64) int64 {
	if !c.Known {
		return fallback
	}
	return c.N
}

// String shows an unknown count as a dash.
func (c Count) String() string {
	if !c.Known {
		return "-"
	}
	return strconv.FormatInt(c.N, 10)
}

// MarshalJSON writes the number, or null when unknown.
func (c Count) MarshalJSON() ([]byte, error) {
	if !c.Known {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, c.N, 10), nil
}

// UnmarshalJSON takes a whole number, also one written as a string or with an empty
// fraction. Anything else, and anything negative, leaves the count unknown.
func (c *Count) UnmarshalJSON(b []byte) error {
	*c = Count{}
	text := numberText(b)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		if n >= 0 {
			*c = KnownCount(n)
		}
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err == nil && f >= 0 && f < 1<<53 && f == math.Trunc(f) {
		*c = KnownCount(int64(f))
	}
	return nil
}

// Measure is a number, perhaps fractional, that the vendor may have left out.
type Measure struct {
	// V is the number; it means something only when Known.
	V float64
	// Known tells a number that was sent from one that was not.
	Known bool
}

// MarshalJSON writes the number, or null when unknown.
func (m Measure) MarshalJSON() ([]byte, error) {
	if !m.Known {
		return []byte("null"), nil
	}
	return json.Marshal(m.V)
}

// UnmarshalJSON takes a number, also one written as a string; anything else is unknown.
func (m *Measure) UnmarshalJSON(b []byte) error {
	*m = Measure{}
	f, err := strconv.ParseFloat(numberText(b), 64)
	if err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
		*m = Measure{V: f, Known: true}
	}
	return nil
}

// numberText takes the quotes off a number that was sent as a string.
func numberText(b []byte) string {
	return strings.TrimSpace(strings.Trim(string(b), `"`))
}

// Timestamp is a moment as the vendor wrote it, in UTC; the zero time is one that was
// null, missing or unreadable.
type Timestamp struct{ time.Time }

// timeLayouts are tried in order. Fractions of any length pass in each of them; a
// time without a zone is UTC, as all the vendor's times are.
var timeLayouts = []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05"}

// UnmarshalJSON never fails: a time that can't be read is the zero time.
func (t *Timestamp) UnmarshalJSON(b []byte) error {
	*t = Timestamp{}
	var text string
	if json.Unmarshal(b, &text) != nil {
		return nil //nolint:nilerr // Not a string: the time is unknown, which is what zero says.
	}
	for _, layout := range timeLayouts {
		if at, err := time.Parse(layout, strings.TrimSpace(text)); err == nil {
			// A zone can take a year of four digits to one that no database or JSON can hold.
			if at = at.UTC(); at.Year() >= 1 && at.Year() <= 9999 {
				t.Time = at
			}
			return nil
		}
	}
	return nil
}

// MarshalJSON writes an unknown time as null.
func (t Timestamp) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return t.Time.MarshalJSON()
}

// Text is content as bytes: the JSON string's characters in UTF-8, NUL and all. Nil
// means null or missing, which differs from an empty page.
type Text []byte

// MarshalJSON writes a string, or null.
func (t Text) MarshalJSON() ([]byte, error) {
	if t == nil {
		return []byte("null"), nil
	}
	return json.Marshal(string(t))
}

// UnmarshalJSON takes a string or null; another type is an error, so that content is
// never lost silently.
func (t *Text) UnmarshalJSON(b []byte) error {
	*t = nil
	if string(b) == "null" {
		return nil
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return &json.UnmarshalTypeError{Value: kindOf(b), Type: reflect.TypeFor[string](), Field: "content"}
	}
	*t = Text(text)
	return nil
}

// Links are the addresses found on a page.
type Links []string

// UnmarshalJSON takes strings, and objects with a url or href member; it skips the rest.
func (l *Links) UnmarshalJSON(b []byte) error {
	*l = nil
	var elements []json.RawMessage
	if json.Unmarshal(b, &elements) != nil {
		return nil //nolint:nilerr // Links are a convenience: a page is kept without them.
	}
	for _, element := range elements {
		if link := urlIn(element); link != "" {
			*l = append(*l, link)
		}
	}
	return nil
}

// urlIn finds the address in a string or in an object that names one.
func urlIn(element json.RawMessage) string {
	var text string
	if json.Unmarshal(element, &text) == nil {
		return text
	}
	var object struct {
		URL  string `json:"url"`
		Href string `json:"href"`
	}
	if json.Unmarshal(element, &object) != nil {
		return ""
	}
	if object.URL != "" {
		return object.URL
	}
	return object.Href
}

// kindOf names the JSON type of b by its first byte; "no JSON" is a page of
// HTML, most often.
func kindOf(b []byte) string {
	b = bytes.TrimSpace(b)
	if len(b) == 0 {
		return "nothing"
	}
	switch b[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "bool"
	case 'n':
		return "null"
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return "number"
	}
	return "no JSON"
}
