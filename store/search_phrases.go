package store

import (
	"context"
	"strings"

	"github.com/uptrace/bun"
)

// A search that has phrases goes in two steps. An index tells which results have
// its words, and their signatures which of those have them beside each other,
// but for a few; both without unpacking what a result says. Then these are
// unpacked, the newest first and a few at a time, until there are enough.
const (
	candidatesAtOnce = 2000
	fewestUnpacked   = 32
	mostUnpacked     = 256
)

// phrases is walk.span for a search that has phrases.
func (w *walk) phrases(ctx context.Context, buckets []searchBucket, before int64, most, found int) ([]match, error) {
	var out []match
	atOnce := fewestUnpacked
	for {
		candidates, err := w.candidates(ctx, buckets, before)
		if err != nil {
			return nil, err
		}
		for rest := candidates; len(rest) > 0; {
			next := rest[:min(len(rest), atOnce)]
			rest, atOnce = rest[len(next):], min(2*atOnce, mostUnpacked)
			some, err := w.unpack(ctx, next)
			if err != nil {
				return nil, err
			}
			out = append(out, some[:min(len(some), most-found-len(out))]...)
			last := next[len(next)-1].Seq
			if found+len(out) == most || w.over(found+len(out), bucketOf(buckets, last), last) {
				return out, nil
			}
		}
		if len(candidates) < candidatesAtOnce {
			return out, nil
		}
		before = candidates[len(candidates)-1].Seq
	}
}

// bucketOf is the bucket that a place is in.
func bucketOf(buckets []searchBucket, seq int64) searchBucket {
	for _, b := range buckets {
		if b.Bucket == seq>>bucketBits {
			return b
		}
	}
	return searchBucket{}
}

// candidates are the newest results that may have what is searched for.
func (w *walk) candidates(ctx context.Context, buckets []searchBucket, before int64) ([]match, error) {
	query := w.armIn(w.arms[0], buckets, before)
	for _, a := range w.arms[1:] {
		query = query.Union(w.armIn(a, buckets, before))
	}
	var out []match
	err := w.t.db.NewSelect().TableExpr("(?) AS c", query).Column("item_id", "seq").Order("seq DESC").Limit(candidatesAtOnce).Scan(ctx, &out)
	return out, translate(err)
}

// armIn are the results that may have one arm of the search.
func (w *walk) armIn(a arm, buckets []searchBucket, before int64) *bun.SelectQuery {
	query := w.in(buckets, before).Where("w.words @@ ?::tsquery", strings.Join(a.words, " & "))
	for _, p := range a.pairs {
		halves := p.halves()
		query = query.Where("(w.near IS NULL OR get_bit(w.near, ? % (8 * octet_length(w.near))) = 1 AND get_bit(w.near, ? % (8 * octet_length(w.near))) = 1)",
			halves[0], halves[1])
	}
	return query
}

// unpack are those of the candidates that have what is searched for.
func (w *walk) unpack(ctx context.Context, candidates []match) ([]match, error) {
	ids := make([]int64, len(candidates))
	for i, c := range candidates {
		ids[i] = c.ItemID
	}
	var out []match
	// The OFFSET keeps Postgres from asking the index of words, for the whole table.
	err := w.t.db.NewRaw(`SELECT item_id, seq FROM (SELECT item_id, seq, words FROM search_words WHERE item_id IN (?) OFFSET 0) AS w
		WHERE w.words @@ websearch_to_tsquery('simple', ?) ORDER BY seq DESC`, bun.List(ids), CleanText(w.q.Text)).Scan(ctx, &out)
	return out, translate(err)
}
