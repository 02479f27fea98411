package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/riverqueue/river"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// pager reads a job of many results, whichever kind it is.
type pager struct {
	fetch func(ctx context.Context, page, size int) (*resultPage, error)
	// skip passes over the one row at the offset, which is too large to read, and
	// reports whether it was the last.
	skip func(ctx context.Context, offset int) (bool, error)
}

// resultPage is one page of results, before it is written.
type resultPage struct {
	reply   geonode.Reply
	status  geonode.Status
	reports json.RawMessage
	last    bool
	// total is how many rows the job has of which nobody knows before; a batch's
	// are known by what was sent.
	total   geonode.Count
	invalid []geonode.InvalidURL
	// carry writes the page in a transaction of its own.
	carry func(ctx context.Context) error
}

// pages settles a job of many URLs, a slice of result pages a run. Each page
// is a transaction of its own and settle_page remembers how far it came.
func (s *settling) pages(ctx context.Context, read *pager) error {
	page, size, began := s.job.SettlePage, s.job.PageSize, s.now()
	for n := range mostPages {
		if err := s.mayGoOn(ctx, n); err != nil {
			return err
		}
		got, err := read.fetch(ctx, page, size)
		if errors.Is(err, geonode.ErrTooLarge) {
			return s.smaller(ctx, read, page, size)
		}
		if err != nil {
			return s.callFailed(ctx, err)
		}
		if err := s.answered(ctx, got.reply); err != nil {
			return err
		}
		if !got.status.Terminal() {
			return s.notYet(ctx, got.status, got.reports)
		}
		if err := got.carry(ctx); err != nil {
			return err
		}
		if got.last {
			return s.endPass(ctx, ended{status: got.status, invalid: got.invalid, total: got.total})
		}
		page, size = turn(page*size, size)
		if s.sliced(n+1, began) {
			break
		}
	}
	return again()
}

// sliced tells that a run has read enough pages for now.
func (s *settling) sliced(read int, began time.Time) bool {
	return s.now().Sub(began) > sliceTime || read >= slicePages && s.looks.crowded()
}

// mayGoOn looks, from the second page of a run on, whether the gate that the
// first passed has closed meanwhile.
func (s *settling) mayGoOn(ctx context.Context, read int) error {
	if read == 0 {
		return nil
	}
	wait, err := s.gates.shut(ctx, store.GateRead)
	if err != nil || wait <= 0 {
		return err
	}
	return river.JobSnooze(wait)
}

// batchPages reads a batch's results, whose items are known by what was sent.
func (s *settling) batchPages(ctx context.Context) (*pager, error) {
	carried, err := s.store.Carried(ctx, s.job.ID)
	if err != nil {
		return nil, err
	}
	return &pager{
		fetch: func(ctx context.Context, page, size int) (*resultPage, error) {
			got, err := s.vendor.GetBatch(ctx, s.job.VendorID(), geonode.Page{Number: page, Size: size})
			if err != nil {
				return nil, err
			}
			s.vendorEnd = got.CompletedAt.Time
			return &resultPage{
				reply: got.Reply, status: got.Status, reports: batchReports(got), invalid: got.InvalidURLs.List,
				last:  lastOfBatch(got, carried, page, size),
				carry: func(ctx context.Context) error { return s.carry(ctx, s.readBatch(carried, got, page, size)) },
			}, nil
		},
		skip: func(ctx context.Context, offset int) (bool, error) { return s.skipItem(ctx, carried, offset) },
	}, nil
}

// lastOfBatch reports that no page of results follows: this one is empty, or ends
// what was sent and what the vendor counts. A count is not believed beyond twice
// what was sent: rows may shift and show twice, but not without end.
func lastOfBatch(got *geonode.BatchJob, carried []store.CarriedItem, page, size int) bool {
	sent := int64(len(carried))
	rows := min(max(got.Total.Or(0), sent), 2*sent+geonode.MaxResultPage)
	return len(got.Results) == 0 || int64(page*size) >= rows
}

// readBatch sorts a page of results by item.
func (s *settling) readBatch(carried []store.CarriedItem, got *geonode.BatchJob, page, size int) *readPage {
	next, nextSize := turn(page*size, size)
	read := &readPage{status: got.Status, reports: batchReports(got), next: next, size: nextSize}
	number := numberItems(carried, s.invalidURLs(got.InvalidURLs.List))
	seen := map[int64]bool{}
	for i := range got.Results {
		r := &got.Results[i]
		item := number.find(r)
		if item == nil {
			read.misnumbered = true
			continue
		}
		if seen[item.ItemID] {
			continue // Pages that shift may show a row twice.
		}
		seen[item.ItemID] = true
		if r.Problem != "" && r.Status == geonode.StatusCompleted {
			continue // Content that could not be read whole is none: it is missing.
		}
		read.add(s, item, r.Status, r.Data, r.Err, r.Metadata, r.Metadata.TokensCharged)
	}
	return read
}

// sizes are the page sizes from the vendor's largest down. Each divides the
// one before, so that a place between pages is one in every smaller size.
func sizes() []int { return []int{50, 25, 5, 1} }

// turn is the page that begins after offset items, in the largest size that
// may begin there: after a big item was passed singly, pages grow again.
func turn(offset, size int) (int, int) {
	at := max(0, slices.Index(sizes(), size))
	if bigger := at - 1; bigger >= 0 && offset%sizes()[bigger] == 0 {
		size = sizes()[bigger]
	}
	return offset/size + 1, size
}

// smaller reads a page that was over the bound in smaller pages, down to the
// one row that is too large, which is passed over so that the others don't
// wait.
func (s *settling) smaller(ctx context.Context, read *pager, page, size int) error {
	offset := (page - 1) * size
	if size > 1 {
		less := sizes()[slices.Index(sizes(), size)+1]
		err := s.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
			return tx.TurnPage(ctx, store.PageTurn{JobID: s.job.ID, Next: offset/less + 1, Size: less, VendorStatus: s.job.VendorStatus})
		})
		if err != nil {
			return err
		}
		return again()
	}
	last, err := read.skip(ctx, offset)
	if err != nil {
		return err
	}
	if last {
		return s.endPass(ctx, ended{status: geonode.StatusCompleted})
	}
	return again()
}

// skipItem fails the one item of a batch that is too large. Which it is, its
// place among the accepted tells.
func (s *settling) skipItem(ctx context.Context, carried []store.CarriedItem, offset int) (bool, error) {
	next, nextSize := turn(offset+1, 1)
	read := &readPage{status: geonode.Status(s.job.VendorStatus), next: next, size: nextSize}
	if accepted := numberItems(carried, s.invalidURLs(nil)).accepted; offset < len(accepted) {
		read.fail(s, accepted[offset], tooLargeCode, "the page is larger than Rollcall reads", false)
	}
	return offset+1 >= len(carried), s.carry(ctx, read)
}

// numbering finds the item a result is about. Whether the vendor counts the
// URLs it set aside is not published, so both ways are tried; index and URL
// must both match what was sent, or nothing is written.
type numbering struct {
	all, accepted []*store.CarriedItem
}

func numberItems(carried []store.CarriedItem, invalid []string) numbering {
	var n numbering
	aside := map[string]bool{}
	for _, u := range invalid {
		aside[u] = true
	}
	for i := range carried {
		n.all = append(n.all, &carried[i])
		if !aside[carried[i].URL] {
			n.accepted = append(n.accepted, &carried[i])
		}
	}
	return n
}

func (n numbering) find(r *geonode.BatchItem) *store.CarriedItem {
	if !r.InputIndex.Known || r.InputIndex.N < 0 {
		return nil
	}
	exact := func(a, b string) bool { return a == b }
	// What was sent to the letter comes first: two URLs of a job may be equal
	// but for their spelling, and neighbors.
	for _, same := range []func(string, string) bool{exact, sameURL} {
		for _, list := range [][]*store.CarriedItem{n.all, n.accepted} {
			if i := r.InputIndex.N; i < int64(len(list)) && same(list[i].URL, r.URL) {
				return list[i]
			}
		}
	}
	return nil
}

// invalidURLs are the URLs the vendor set aside, as told with the 202 or now.
func (s *settling) invalidURLs(now []geonode.InvalidURL) []string {
	var urls []string
	if len(s.job.VendorInvalidURLs) > 0 {
		if err := json.Unmarshal(s.job.VendorInvalidURLs, &urls); err != nil {
			return nil // Not a list of ours: nothing is known to be set aside.
		}
	}
	for _, u := range now {
		urls = append(urls, u.URL)
	}
	return urls
}

// batchReports are the vendor's own counters, shown and never summed.
func batchReports(got *geonode.BatchJob) json.RawMessage {
	return reports(map[string]geonode.Count{
		"total": got.Total, "completed": got.Completed, "failed": got.Failed, "cancelled": got.Cancelled,
		"pending": got.Pending, "charged": got.Tokens.Charged, "reserved": got.Tokens.Reserved,
	})
}

// reports keeps the counters that were sent.
func reports(counters map[string]geonode.Count) json.RawMessage {
	out := map[string]int64{}
	for name, c := range counters {
		if c.Known {
			out[name] = c.N
		}
	}
	encoded, err := json.Marshal(out)
	if err != nil {
		return nil // Cannot happen: a map of numbers always encodes.
	}
	return encoded
}
