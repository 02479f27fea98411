package pipeline

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"rollcall/internal/preflight"
	"rollcall/store"
)

const (
	// MaxPreflight bounds the files of one preflight together, in bytes.
	MaxPreflight = 64 << 20
	// MaxPasted bounds what is pasted.
	MaxPasted = 16 << 20
	// maxPacked bounds the files as they are kept: lists of URLs pack well.
	maxPacked = 32 << 20
	// maxFiles bounds how many files are taken together.
	maxFiles = 1000
)

// File is one file of a submission. It may be opened more than once.
type File struct {
	Name string
	Open func() (io.ReadCloser, error)
}

// FileOf is a file that is in memory.
func FileOf(name string, content []byte) File {
	return File{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }}
}

// pack packs files as they are kept, and returns how large they were. It holds no
// file in memory.
func pack(ctx context.Context, files []File) ([]byte, int64, error) {
	var out bytes.Buffer
	z, left := zip.NewWriter(&out), int64(MaxPreflight)
	for _, f := range files {
		if err := packOne(ctx, z, f, &left); err != nil {
			return nil, 0, err
		}
		if out.Len() > maxPacked {
			return nil, 0, invalidField("file", fmt.Sprintf("over %d MB even when it is packed; submit it in several batches", maxPacked>>20))
		}
	}
	if err := z.Close(); err != nil {
		return nil, 0, fmt.Errorf("pack the upload: %w", err)
	}
	return out.Bytes(), MaxPreflight - left, nil
}

func packOne(ctx context.Context, z *zip.Writer, f File, left *int64) error {
	in, err := f.Open()
	if err != nil {
		return fmt.Errorf("open %q: %w", f.Name, err)
	}
	defer in.Close()
	to, err := z.CreateHeader(&zip.FileHeader{Name: fileName(f.Name), Method: zip.Deflate})
	if err != nil {
		return fmt.Errorf("pack %q: %w", f.Name, err)
	}
	n, err := io.Copy(to, io.LimitReader(readerIn(ctx, in), *left+1))
	if err != nil {
		return fmt.Errorf("pack %q: %w", f.Name, err)
	}
	if *left -= n; *left < 0 {
		return invalidField("file", fmt.Sprintf("over %d MB; submit it in several batches, or gzipped", MaxPreflight>>20))
	}
	return nil
}

// inContext is a reader that ends with its context.
type inContext struct {
	ctx context.Context //nolint:containedctx // It lives as long as the call it came with.
	in  io.Reader
}

func readerIn(ctx context.Context, in io.Reader) io.Reader { return inContext{ctx, in} }

// Read implements io.Reader.
func (r inContext) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.in.Read(p)
}

// keptFiles are the files of an upload as the database has it.
func keptFiles(f *store.Preflight) ([]File, error) {
	if !f.Packed {
		if len(f.Upload) == 0 {
			return nil, nil
		}
		return []File{FileOf(f.UploadName, f.Upload)}, nil
	}
	z, err := zip.NewReader(bytes.NewReader(f.Upload), int64(len(f.Upload)))
	if err != nil {
		return nil, fmt.Errorf("upload of preflight %d: %w", f.ID, err)
	}
	var files []File
	for _, entry := range z.File {
		files = append(files, File{Name: entry.Name, Open: entry.Open})
	}
	return files, nil
}

// named are the sitemaps that a file names, if it is an index.
func named(ctx context.Context, f File) ([]string, error) {
	in, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", f.Name, err)
	}
	defer in.Close()
	return preflight.Named(ctx, in, f.Name, Choices{})
}

// indexFirst puts an index of sitemaps before the others.
func indexFirst(ctx context.Context, files []File) ([]File, error) {
	switch {
	case len(files) < 2:
		return files, nil
	case len(files) > maxFiles:
		return nil, invalidField("file", fmt.Sprintf("over %d files; submit them in several batches", maxFiles))
	}
	for i, f := range files {
		names, err := named(ctx, f)
		if err != nil {
			return nil, err
		}
		if len(names) > 0 {
			return slices.Concat(files[i:i+1], files[:i], files[i+1:]), nil
		}
	}
	return files, nil
}

// checkFiles says why files can't be taken together; "" when they can. No file
// may be left unread without a word.
func checkFiles(ctx context.Context, files []File) (string, error) {
	if len(files) < 2 {
		return "", nil
	}
	addresses, err := named(ctx, files[0])
	if err != nil {
		return "", err
	}
	if len(addresses) == 0 {
		return "several files are taken only when one is an index of sitemaps and the others are those it names", nil
	}
	wanted := map[string]bool{}
	for _, address := range addresses {
		if name, err := sitemapName(address); err == nil {
			wanted[name] = true
		}
	}
	seen := map[string]bool{files[0].Name: true}
	for _, f := range files[1:] {
		switch {
		case seen[f.Name]:
			return fmt.Sprintf("two files have the name %q", f.Name), nil
		case !wanted[f.Name]:
			return fmt.Sprintf("the index %q does not name %q: leave it out, or submit it by itself", files[0].Name, f.Name), nil
		}
		seen[f.Name] = true
	}
	return "", nil
}

// sitemapName is the name of the file that a sitemap's address means.
func sitemapName(address string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil {
		return "", errors.New("its address is no URL")
	}
	return fileName(path.Base(u.Path)), nil
}

// beside opens the sitemaps that an index names among the files it came with.
func beside(files []File) preflight.Opener {
	return func(address string) (io.ReadCloser, error) {
		name, err := sitemapName(address)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(files, func(f File) bool { return f.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("it is not fetched, and no file %q was uploaded with the index", name)
		}
		return files[i].Open()
	}
}

// namesOf is how an upload is called.
func namesOf(files []File) string {
	switch len(files) {
	case 0:
		return ""
	case 1:
		return fileName(files[0].Name)
	case 2:
		return fileName(files[0].Name) + " and 1 more file"
	}
	return fmt.Sprintf("%s and %d more files", fileName(files[0].Name), len(files)-1)
}

// plainLines reports a file whose lines can follow pasted ones: one URL a line,
// in the same character set.
func plainLines(ctx context.Context, f File) (bool, error) {
	if whole, err := isUTF8(f); err != nil || !whole {
		return false, err
	}
	in, err := f.Open()
	if err != nil {
		return false, fmt.Errorf("open %q: %w", f.Name, err)
	}
	defer in.Close()
	found, _, err := preflight.Read(ctx, in, f.Name, Choices{}, nil, func(preflight.Line) error { return errEnough })
	return (err == nil || errors.Is(err, errEnough)) && found.Format == preflight.FormatTXT, nil
}

func isUTF8(f File) (bool, error) {
	in, err := f.Open()
	if err != nil {
		return false, fmt.Errorf("open %q: %w", f.Name, err)
	}
	defer in.Close()
	for text := bufio.NewReader(in); ; {
		r, size, err := text.ReadRune()
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("read %q: %w", f.Name, err)
		}
		if r == utf8.RuneError && size == 1 {
			return false, nil
		}
	}
}
