package geonode

import "log/slog"

// Secret is text that must not be shown: it prints, marshals and logs as a mark.
type Secret string

const (
	secretSet   = "[secret]"
	secretUnset = "[none]"
)

// Reveal gives the text itself.
func (s Secret) Reveal() string { return string(s) }

// String says only whether there is a secret.
func (s Secret) String() string {
	if s == "" {
		return secretUnset
	}
	return secretSet
}

// GoString is String.
func (s Secret) GoString() string { return s.String() }

// MarshalText is String, so that JSON made of a Secret doesn't hold it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue is String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Headers are request headers as the vendor is sent or echoes them. They may carry
// cookies or tokens, so they print and log as a mark; JSON holds them whole.
type Headers map[string]string

// String says only whether there are headers.
func (h Headers) String() string {
	if len(h) == 0 {
		return secretUnset
	}
	return secretSet
}

// GoString is String.
func (h Headers) GoString() string { return h.String() }

// LogValue is String.
func (h Headers) LogValue() slog.Value { return slog.StringValue(h.String()) }
