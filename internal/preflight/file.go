package preflight

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
)

// file is a file being read: unpacked, decoded and bounded.
type file struct {
	text io.Reader // UTF-8, or what claims to be; without a byte order mark.
	head []byte    // The beginning of text, to find out by.
	all  bool      // head is all there is.
}

// headSize is how much of a file is looked at to find out what it is.
const headSize = 256 << 10

// openFile unpacks and decodes a file, and finds out its format.
func (s *reading) openFile(r io.Reader, name string) (*file, error) {
	raw, gzipped, err := s.unpacked(r)
	if err != nil {
		return nil, err
	}
	s.detected.Gzipped = gzipped
	head, raw, err := peek(raw)
	if err != nil {
		return nil, err
	}
	charset, err := charsetOf(s.choices, head)
	if err != nil {
		return nil, err
	}
	s.detected.Charset = charset.name
	in := &file{}
	if in.head, in.text, err = peek(charset.decode(raw)); err != nil {
		return nil, err
	}
	in.all = len(in.head) < headSize
	s.detected.Format = formatOf(s.choices, name, in)
	return in, nil
}

// unpacked bounds what is read, and unpacks it when it is gzipped.
func (s *reading) unpacked(r io.Reader) (io.Reader, bool, error) {
	r = &stoppable{ctx: s.ctx, in: r}
	magic := make([]byte, 2)
	n, err := io.ReadFull(r, magic)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, false, err
	}
	r = io.MultiReader(bytes.NewReader(magic[:n]), r)
	if string(magic[:n]) != "\x1f\x8b" {
		return &bounded{in: r, left: &s.left}, false, nil
	}
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, true, packed(err)
	}
	return &bounded{in: unpacker{z}, left: &s.left}, true, nil
}

// peek reads the beginning, and returns it and a reader of all.
func peek(r io.Reader) ([]byte, io.Reader, error) {
	head, err := io.ReadAll(io.LimitReader(r, headSize))
	if err != nil && len(head) == 0 {
		return nil, nil, err
	}
	// An error after some lines comes again where it belongs: behind them.
	return head, io.MultiReader(bytes.NewReader(head), broken{err}, r), nil
}

// broken is a reader that fails, or one of nothing.
type broken struct{ err error }

// Read implements io.Reader.
func (b broken) Read([]byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	return 0, io.EOF
}

// stoppable is a reader that ends with its context.
type stoppable struct {
	ctx context.Context //nolint:containedctx // It lives as long as the call it came with.
	in  io.Reader
}

// Read implements io.Reader.
func (s *stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.in.Read(p)
}

// bounded is a reader of at most so many bytes, which other readers may share.
type bounded struct {
	in   io.Reader
	left *int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if *b.left <= 0 {
		return 0, &FileError{Reason: fmt.Sprintf("the file has over %d MB, unpacked; submit it in several parts", MaxBytes>>20)}
	}
	n, err := b.in.Read(p[:min(int64(len(p)), *b.left)])
	*b.left -= int64(n)
	return n, err
}

// unpacker says in plain words what is wrong with a gzipped file.
type unpacker struct{ in io.Reader }

// Read implements io.Reader.
func (u unpacker) Read(p []byte) (int, error) {
	n, err := u.in.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // As io.Reader returns it.
		err = packed(err)
	}
	return n, err
}

func packed(err error) error {
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	for _, e := range []error{gzip.ErrHeader, gzip.ErrChecksum, io.ErrUnexpectedEOF, io.EOF} {
		corrupt = corrupt || errors.Is(err, e)
	}
	if corrupt {
		return &FileError{Reason: "the gzipped file is damaged or cut short"}
	}
	return err
}
