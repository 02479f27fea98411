package geonode

import (
	"net/url"
	"strconv"
	"time"
)

// ListParams pick a page of a job list. The times bound a job's creation, inclusive.
type ListParams struct {
	// Page counts from 1; zero is 1.
	Page int
	// PageSize is 1 to MaxListPage; zero is MaxListPage.
	PageSize int
	// Status keeps jobs of one state; empty keeps all.
	Status Status
	// Start and End are left out when zero. They are sent in UTC to the millisecond,
	// rounded outwards, so that no job of the window is missed.
	Start, End time.Time
}

// ListPage is what the vendor says about a page of a list. The sort order isn't
// published; pages shift while jobs are added.
type ListPage struct {
	Page      Count `json:"page"`
	PageSize  Count `json:"page_size"`
	PageCount Count `json:"page_count"`
	// Unreadable counts rows left out because they were no object with a usable id.
	Unreadable int `json:"-"`
}

// query gives the parameters of a list, or an error for a page out of range.
func (p ListParams) query() (url.Values, error) {
	q, err := pageQuery(p.Page, p.PageSize, MaxListPage)
	if err != nil {
		return nil, err
	}
	if p.Status != "" {
		q.Set("status", string(p.Status))
	}
	windowQuery(q, p.Start, p.End)
	return q, nil
}

// query gives the parameters of a result page.
func (p Page) query() (url.Values, error) { return pageQuery(p.Number, p.Size, MaxResultPage) }

func pageQuery(page, size, most int) (url.Values, error) {
	if page == 0 {
		page = 1
	}
	if size == 0 {
		size = most
	}
	if page < 0 || size < 0 || size > most {
		return nil, wrongParam("page %d of size %d: the size is 1 to %d", page, size, most)
	}
	return url.Values{"page": {strconv.Itoa(page)}, "page_size": {strconv.Itoa(size)}}, nil
}

// windowQuery adds the bounds that are set.
func windowQuery(q url.Values, start, end time.Time) {
	if !start.IsZero() {
		q.Set("start_date", wireTime(start.Truncate(time.Millisecond)))
	}
	if !end.IsZero() {
		up := end.Truncate(time.Millisecond)
		if up.Before(end) {
			up = up.Add(time.Millisecond)
		}
		q.Set("end_date", wireTime(up))
	}
}

func wireTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// row is one element of a list, read by itself so that a bad one costs no other.
type row[T any] struct{ value *T }

// UnmarshalJSON leaves the value nil when the row can't be read.
func (r *row[T]) UnmarshalJSON(b []byte) error {
	r.value = nil
	value := new(T)
	if _, err := decodeObject(b, value); err == nil {
		r.value = value
	}
	return nil
}

// keepRows gives the rows that were read and have a usable id, and counts the others.
func keepRows[T any](rows Rows[row[T]], id func(T) string) ([]T, int) {
	kept := make([]T, 0, len(rows.List))
	for _, r := range rows.List {
		if r.value != nil && ValidJobID(id(*r.value)) == nil {
			kept = append(kept, *r.value)
		}
	}
	return kept, len(rows.List) - len(kept)
}
