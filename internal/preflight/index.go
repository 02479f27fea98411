package preflight

import (
	"context"
	"errors"
	"io"
)

// errEnough ends a reading that has shown what was wanted.
var errEnough = errors.New("enough was read")

// Named are the addresses of the sitemaps that an index of sitemaps names, in its order; none when the file is no such
// index. It opens none of them. An error is one of ctx or of the reader.
func Named(ctx context.Context, r io.Reader, name string, c Choices) ([]string, error) {
	var named []string
	open := func(address string) (io.ReadCloser, error) {
		named = append(named, address)
		return nil, errEnough
	}
	_, _, err := Read(ctx, r, name, c, open, func(l Line) error {
		if l.Verdict != Invalid {
			return errEnough // An index has no URLs of its own.
		}
		return nil
	})
	if _, wrong := errors.AsType[*FileError](err); wrong || errors.Is(err, errEnough) {
		err = nil
	}
	return named, err
}
