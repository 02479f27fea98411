package pipeline

import (
	"context"
	"errors"
	"net/http"

	"rollcall/internal/geonode"
)

// extract settles a job of one URL.
func (s *settling) extract(ctx context.Context) error {
	got, err := s.vendor.GetExtract(ctx, s.job.VendorID())
	if errors.Is(err, geonode.ErrTooLarge) {
		return s.tooLarge(ctx)
	}
	if err != nil {
		return s.callFailed(ctx, err)
	}
	if err := s.answered(ctx, got.Reply); err != nil {
		return err
	}
	if !got.Status.Terminal() {
		return s.notYet(ctx, got.Status, nil)
	}
	s.vendorEnd = got.CompletedAt.Time
	carried, err := s.store.Carried(ctx, s.job.ID)
	if err != nil {
		return err
	}
	page := &readPage{status: got.Status, next: 1, size: s.job.PageSize}
	if got.Problem != "" && got.Status == geonode.StatusCompleted {
		carried = nil // Content that could not be read whole is none: it is missing.
	}
	for i := range carried {
		charged := got.TokensCharged
		if !charged.Known {
			charged = got.Metadata.TokensCharged
		}
		page.add(s, &carried[i], got.Status, got.Data, got.Err, got.Metadata, charged)
	}
	if len(carried) == 1 && len(page.results) == 1 {
		// What is large is written by itself, beside the groups.
		if c := (&completing{look: s, page: page, carried: carried[0]}); c.size() < groupBytes {
			s.leave()
			return s.completions.commit(ctx, c)
		}
	}
	return s.endWith(ctx, page, ended{status: got.Status})
}

// tooLarge fails the one item of an extract job whose answer is over the
// bound. Asking again would bring the same.
func (s *settling) tooLarge(ctx context.Context) error {
	carried, err := s.store.Carried(ctx, s.job.ID)
	if err != nil {
		return err
	}
	page := &readPage{status: geonode.StatusCompleted, next: 1, size: s.job.PageSize}
	for i := range carried {
		page.fail(s, &carried[i], tooLargeCode, "the page is larger than Rollcall reads", false)
	}
	return s.endWith(ctx, page, ended{status: geonode.StatusCompleted})
}

const tooLargeCode = "TOO_LARGE"

// httpStatus is a count as a status, when it can be one.
func httpStatus(c geonode.Count) *int {
	if !c.Known || c.N < 100 || c.N > http.StatusNetworkAuthenticationRequired+88 {
		return nil
	}
	n := int(c.N)
	return &n
}
