package web

import (
	"mime"
	"net/http"
)

// maxUploads bounds the bytes of the uploads that are taken at the same time:
// they lie on the disk of this process, and each is packed while it is read.
const maxUploads = 2 * uploadLimit

// smallForm is what needs no place among the uploads.
const smallForm = 1 << 20

// uploads keeps the uploads of this process within bounds.
type uploads struct{ budget *byteBudget }

func newUploads() *uploads { return &uploads{newByteBudget(maxUploads)} }

// admit takes a place for the body of a request that may bring a file; the
// function it returns gives it back. Nothing of the body is read before.
func (u *uploads) admit(r *http.Request, to route) (func(), error) {
	size := r.ContentLength
	if size < 0 {
		size = to.limitOf(r)
	}
	if to.limit != uploadLimit || size <= smallForm {
		return func() {}, nil
	}
	place := u.budget.hold()
	if !place.take(min(size, to.limitOf(r))) {
		return nil, &problem{
			status: http.StatusServiceUnavailable, title: "Too many uploads at once",
			text:       "Others are uploading large files just now, so this one was not taken. Go back and send it again in a moment.",
			retryAfter: busyFor,
		}
	}
	return place.release, nil
}

// limitOf is the route's limit for a request: only a form of parts brings files,
// the other kind is held in memory whole.
func (r route) limitOf(req *http.Request) int64 {
	if kind, _, err := mime.ParseMediaType(req.Header.Get("Content-Type")); err == nil && kind == "multipart/form-data" {
		return r.limit
	}
	return min(r.limit, pasteLimit)
}
