// Package static holds the files that browsers load: our own style sheet and scripts, and the third-party files that
// vendor.sh copies from pinned npm packages. They are embedded, and served under names that carry a hash of their
// content, so a browser may keep them for ever and a new release never meets an old copy.
package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
)

// Prefix is the path under which Handler expects to be mounted and under which URL points.
const Prefix = "/static/"

// hashLength is how many hexadecimal digits of the SHA-256 sum go into a name: 48 bits, plenty to tell releases apart.
const hashLength = 12

//go:embed app.css app.js batch.js keys.js charts.js theme.js favicon.svg vendor/*.js vendor/*.css vendor/*.svg vendor/LICENSES.md
var files embed.FS

// An asset is one file, ready to be sent.
type asset struct {
	url         string // Prefix + name with hash
	contentType string
	etag        string
	plain       []byte
	gzipped     []byte
}

// assets maps each file's base name ("app.css") to its asset.
var assets = sync.OnceValue(func() map[string]asset {
	loaded, err := load(files)
	if err != nil {
		panic(fmt.Sprintf("embedded files: %v", err)) // Only a broken build can cause this.
	}
	return loaded
})

// URL returns the path of the file with the given base name, such as "app.css": "/static/app.3f9a21c07be4.css".
// An unknown name gives a path that answers 404; the tests of package views see to it that no page asks for one.
func URL(name string) string {
	if known, ok := assets()[name]; ok {
		return known.url
	}
	return Prefix + name
}

func load(from fs.FS) (map[string]asset, error) {
	loaded := make(map[string]asset)
	err := fs.WalkDir(from, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := fs.ReadFile(from, name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		made, err := newAsset(path.Base(name), body)
		loaded[path.Base(name)] = made
		return err
	})
	return loaded, err
}

func newAsset(name string, body []byte) (asset, error) {
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])[:hashLength]
	gzipped, err := compress(body)
	if err != nil {
		return asset{}, fmt.Errorf("compress %s: %w", name, err)
	}
	ext := path.Ext(name)
	return asset{
		url:         Prefix + strings.TrimSuffix(name, ext) + "." + hash + ext,
		contentType: contentType(ext),
		etag:        hash,
		plain:       body,
		gzipped:     gzipped,
	}, nil
}

func compress(body []byte) ([]byte, error) {
	var out bytes.Buffer
	writer, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := writer.Write(body); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// contentType is fixed here rather than asked of package mime, which reads files of the machine it runs on.
func contentType(ext string) string {
	switch ext {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		return "text/plain; charset=utf-8"
	}
}
