package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// readPage is what one page of a job's results says, sorted by outcome.
type readPage struct {
	status      geonode.Status
	reports     json.RawMessage
	next, size  int
	results     []*store.Result
	fails       []store.Ending
	cancels     []store.Ending
	reported    []store.Report
	charges     map[int64]int64 // What each completed item cost.
	retries     int
	found       int64 // Pages of a crawl that became items just now.
	misnumbered bool
}

// maxCharge is the most tokens that one page is believed to have cost; a token
// is one request. With it no batch can count past its columns, which would
// keep its pages from being stored.
const maxCharge = 10_000

// add sorts one reported item. States other than the three ends are no report:
// the item counts as missing until it is.
func (r *readPage) add(s *settling, item *store.CarriedItem, status geonode.Status, data *geonode.Content, failure *geonode.ItemError, meta geonode.Metadata, charged geonode.Count) {
	if charged.N > maxCharge {
		charged = geonode.Count{}
	}
	switch status {
	case geonode.StatusCompleted:
		if data.Empty() {
			return // Completed without content: missing, until two reads agree.
		}
		if r.charges == nil {
			r.charges = map[int64]int64{}
		}
		r.charges[item.ItemID] = charged.Or(1)
		r.results = append(r.results, s.result(item, data, meta, charged))
	case geonode.StatusFailed:
		code, message, retryable := explain(failure)
		r.fail(s, item, code, message, retryable)
	case geonode.StatusCancelled:
		r.cancels = append(r.cancels, store.Ending{ItemID: item.ItemID, Code: "VENDOR_CANCELLED", Message: "cancelled at the vendor"})
		r.reported = append(r.reported, store.Report{ItemID: item.ItemID, Outcome: store.OutcomeCancelled})
	case geonode.StatusQueued, geonode.StatusProcessing:
	}
}

// fail parks the item, or leaves it open for the retry that the job's close
// makes, when the failure is worth one and the item has tries left.
func (r *readPage) fail(s *settling, item *store.CarriedItem, code, message string, retryable bool) {
	report := store.Report{ItemID: item.ItemID, Outcome: store.OutcomeFailed, Code: code, Message: message}
	if retryable && s.job.State == store.JobAccepted && s.job.CancelRequestedAt == nil && item.Current && item.State == store.ItemOutstanding && item.Retries < len(s.cfg.RetryGaps) {
		report.Outcome = store.OutcomeRetry
		r.retries++
	} else {
		r.fails = append(r.fails, store.Ending{ItemID: item.ItemID, Code: code, Message: message, Retryable: retryable})
	}
	r.reported = append(r.reported, report)
}

// explain is why an item failed. The vendor's flag decides whether it may be
// retried; items carry none, and then the code does.
func explain(e *geonode.ItemError) (string, string, bool) {
	if e == nil {
		return "VENDOR_FAILED", "the vendor gave no reason", false
	}
	code := clip(e.Code, 100)
	if code == "" {
		code = "VENDOR_FAILED"
	}
	if e.RetryableSent != nil {
		return code, clip(e.Message, 500), *e.RetryableSent
	}
	return code, clip(e.Message, 500), retryableCode(code)
}

// retryableCode is the local policy for item errors, which carry no flag. Only
// RATE_LIMITED is published; the others are words for passing troubles. An
// unknown code is not retried by itself: a person can.
func retryableCode(code string) bool {
	return regexp.MustCompile(`(?i)^(RATE_LIMITED|THROTTLED|(.*_)?TIMED?_?OUT|(.*_)?TEMPORARY(_.*)?|(.*_)?UNAVAILABLE|CONNECTION_(RESET|FAILED|REFUSED)|(TARGET_)?HTTP_(429|500|502|503|504))$`).MatchString(code)
}

// result is the row to store.
func (s *settling) result(item *store.CarriedItem, data *geonode.Content, meta geonode.Metadata, charged geonode.Count) *store.Result {
	return newResult(item.ItemID, item.URL, &s.job.ID, s.net, s.now(), data, meta, charged)
}

// newResult is the row of an answer; a sync call's has no job.
func newResult(itemID int64, url string, jobID *int64, net store.Net, now time.Time, data *geonode.Content, meta geonode.Metadata, charged geonode.Count) *store.Result {
	r := &store.Result{
		ItemID: itemID, JobID: jobID, Net: net, StoredAt: now, Title: title(data),
		Markdown: data.Markdown, HTML: data.HTML, Metadata: meta.Raw, HTTPStatus: httpStatus(meta.HTTPStatus),
		DurationMS: number(meta.DurationMS), Charged: number(charged), PageKey: pageKey(url),
	}
	if n := number(meta.RetryCount); n != nil && *n >= 0 && *n < 1<<31 {
		count := int(*n)
		r.RetryCount = &count
	}
	if len(data.Links) > 0 {
		if links, err := json.Marshal([]string(data.Links)); err == nil {
			r.Links = links
		}
	}
	markResult(r)
	return r
}

func number(c geonode.Count) *int64 {
	if !c.Known {
		return nil
	}
	return &c.N
}

const maxTitle = 200

// title is the page's first heading, or the HTML's title.
func title(data *geonode.Content) string {
	head := data.Markdown
	if len(head) > 4096 {
		head = head[:4096]
	}
	for line := range strings.Lines(string(head)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "# "); ok {
			return store.CleanText(clip(strings.TrimSpace(rest), maxTitle))
		}
	}
	start := data.HTML
	if len(start) > 16384 {
		start = start[:16384]
	}
	if m := regexp.MustCompile(`(?is)<title[^>]*>([^<]*)</title>`).FindSubmatch(start); m != nil {
		return store.CleanText(clip(strings.TrimSpace(string(m[1])), maxTitle))
	}
	return ""
}

// carry is carryOver for a page that was read without the database.
func (s *settling) carry(ctx context.Context, r *readPage) error {
	return s.carryOver(ctx, func(context.Context, store.Tx) (*readPage, error) { return r, nil })
}

// carryOver writes one page in a transaction of its own, the counters last. A
// crawl's page becomes items in the same transaction.
func (s *settling) carryOver(ctx context.Context, read func(context.Context, store.Tx) (*readPage, error)) error {
	now := s.now()
	err := s.inTx(ctx, func(ctx context.Context, tx store.Tx) error {
		r, err := read(ctx, tx)
		if err != nil {
			return err
		}
		counts, err := s.write(ctx, tx, r, now)
		if err != nil {
			return err
		}
		return tx.AddCounts(ctx, s.job.BatchID, counts, now)
	})
	if err != nil {
		return fmt.Errorf("carry over page: %w", err)
	}
	return nil
}

// write writes one page: results, ends, lineage and the place reached. It
// returns what the caller adds to the counters.
func (s *settling) write(ctx context.Context, tx store.Tx, r *readPage, now time.Time) (store.Counts, error) {
	none := store.Counts{}
	counts, stored, err := tx.StoreItems(ctx, s.job.ID, s.net, r.results, now)
	if err != nil {
		return none, err
	}
	counts.Accepted = r.found
	fresh, err := tx.FreshItems(ctx, s.job.ID, slices.Collect(maps.Keys(r.charges)))
	if err != nil {
		return none, err
	}
	superseded := r.countCharges(&counts, stored, fresh)
	failed, err := tx.FailItems(ctx, s.job.ID, r.fails, now)
	if err != nil {
		return none, err
	}
	cancelled, err := tx.CancelItems(ctx, s.job.ID, r.cancels, now)
	if err != nil {
		return none, err
	}
	counts.Failed += int64(len(failed))
	counts.Cancelled += int64(len(cancelled))
	return counts, s.note(ctx, tx, r, superseded, counts, now)
}

// countCharges counts what was newly charged, and what was charged for items
// that another job had stored already. It reports whether there were such.
func (r *readPage) countCharges(counts *store.Counts, stored map[int64]bool, fresh []int64) bool {
	late := false
	for _, res := range r.results {
		charge, isNew := r.charges[res.ItemID], slices.Contains(fresh, res.ItemID)
		report := store.Report{ItemID: res.ItemID, Outcome: store.OutcomeStored}
		if !stored[res.ItemID] && isNew {
			late = true
			counts.ChargedTwice += charge
			report.Outcome = store.OutcomeSuperseded
		}
		if isNew {
			counts.Charged += charge
			r.reported = append(r.reported, report)
		}
	}
	return late
}

// note writes down what the job said and how far it was read.
func (s *settling) note(ctx context.Context, tx store.Tx, r *readPage, superseded bool, counts store.Counts, now time.Time) error {
	if err := tx.ReportItems(ctx, s.job.ID, r.reported, now); err != nil {
		return err
	}
	if err := tx.FlagJob(ctx, s.job.ID, r.misnumbered, superseded); err != nil {
		return err
	}
	turned := store.PageTurn{
		JobID: s.job.ID, Next: r.next, Size: r.size, VendorStatus: string(r.status), Reports: r.reports, Charged: counts.Charged,
	}
	return tx.TurnPage(ctx, turned)
}
