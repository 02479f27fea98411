package static

import (
	"bytes"
	"net/http"
	"strings"
	"time"
)

// Handler serves the files under the names that URL gives, to be kept by browsers for a year. It answers GET and HEAD,
// 405 to other methods and 404 to any other path, unhashed names included. It compresses for clients that ask for gzip.
func Handler() http.Handler {
	byURL := make(map[string]asset, len(assets()))
	for _, each := range assets() {
		byURL[each.url] = each
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found, ok := byURL[r.URL.Path]
		switch {
		case !ok:
			http.NotFound(w, r)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
		default:
			serve(w, r, found)
		}
	})
}

func serve(w http.ResponseWriter, r *http.Request, file asset) {
	header := w.Header()
	header.Set("Content-Type", file.contentType)
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Add("Vary", "Accept-Encoding")
	body, etag := file.plain, file.etag
	if acceptsGzip(r) {
		header.Set("Content-Encoding", "gzip")
		body, etag = file.gzipped, file.etag+"-gz"
	}
	header.Set("ETag", `"`+etag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// acceptsGzip reads Accept-Encoding; a weight of zero means no. Byte ranges are served from the plain file.
func acceptsGzip(r *http.Request) bool {
	if r.Header.Get("Range") != "" {
		return false
	}
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			return !isZeroWeight(weight)
		}
	}
	return false
}

func isZeroWeight(weight string) bool {
	value, found := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
	return found && strings.Trim(value, "0.") == ""
}
