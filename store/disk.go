package store

import (
	"context"
	"time"
)

// DiskPart is what a part of the database takes up, indexes and all.
type DiskPart string

// The parts. Items are all that is kept of batches, jobs and items but their
// results; other is the rest, the database's own tables too.
const (
	DiskResults    DiskPart = "results"
	DiskSearch     DiskPart = "search"
	DiskItems      DiskPart = "items"
	DiskDeliveries DiskPart = "deliveries"
	DiskExports    DiskPart = "exports"
	DiskOther      DiskPart = "other"
)

// DiskSample is what each part took up at a time, in bytes.
type DiskSample struct {
	At    time.Time
	Bytes map[DiskPart]int64
}

// Total is what all parts take up.
func (s *DiskSample) Total() int64 {
	total := int64(0)
	for _, bytes := range s.Bytes {
		total += bytes
	}
	return total
}

// SampleDisk notes what the parts of the database take up now, in place of what
// was noted since the hour began: of each hour its last look stays, so that the
// newest can be a minute old and a year has few rows. It asks the file system
// for the size of every table, in some 10 ms, and so it is for a task and for no
// page.
func (q Queries) SampleDisk(ctx context.Context, now time.Time) error {
	_, err := q.db.NewRaw(`WITH tables AS (
			SELECT CASE WHEN relname IN ('results', 'result_versions') THEN 'results'
				WHEN relname IN ('search_words', 'search_todo', 'search_buckets', 'search_backfill') THEN 'search'
				WHEN relname IN ('items', 'job_items', 'jobs', 'job_events', 'crawl_pages', 'batches', 'batch_pace', 'rejected_lines', 'sync_calls') THEN 'items'
				WHEN relname IN ('deliveries', 'delivery_log', 'processed_events') THEN 'deliveries'
				WHEN relname IN ('exports', 'export_chunks') THEN 'exports' END AS part, pg_total_relation_size(oid) AS bytes
			FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace),
		parts AS (SELECT part, sum(bytes)::bigint AS bytes FROM tables WHERE part IS NOT NULL GROUP BY part),
		older AS (DELETE FROM disk_samples WHERE at >= ?hour AND at <> ?now)
		INSERT INTO disk_samples (at, part, bytes)
		SELECT ?now::timestamptz, part, bytes FROM parts
		UNION ALL SELECT ?now::timestamptz, 'other', greatest(0, pg_database_size(current_database()) - sum(bytes))::bigint FROM parts
		ON CONFLICT DO NOTHING`, named{"now": now, "hour": now.UTC().Truncate(time.Hour)}).Exec(ctx)
	return translate(err)
}

// LastDiskSample is when the disk was last looked at; zero before the first.
func (q Queries) LastDiskSample(ctx context.Context) (time.Time, error) {
	var at []time.Time
	err := q.db.NewRaw(`SELECT at FROM disk_samples ORDER BY at DESC LIMIT 1`).Scan(ctx, &at)
	if err != nil || len(at) == 0 {
		return time.Time{}, translate(err)
	}
	return at[0], nil
}

// DiskSamples returns the newest sample and the oldest one that was taken since
// a time, which may be the same; nil when there is none at all.
func (q Queries) DiskSamples(ctx context.Context, since time.Time) (*DiskSample, *DiskSample, error) {
	var rows []struct {
		At    time.Time
		Part  DiskPart
		Bytes int64
	}
	err := q.db.NewRaw(`WITH bounds AS (SELECT (SELECT at FROM disk_samples ORDER BY at DESC LIMIT 1) AS last,
			(SELECT at FROM disk_samples WHERE at >= ? ORDER BY at LIMIT 1) AS first)
		SELECT s.at, s.part, s.bytes FROM bounds JOIN disk_samples s ON s.at IN (bounds.last, bounds.first) ORDER BY s.at`, since).Scan(ctx, &rows)
	if err != nil || len(rows) == 0 {
		return nil, nil, translate(err)
	}
	var newest, oldest *DiskSample
	for _, row := range rows {
		if newest == nil || !newest.At.Equal(row.At) {
			newest = &DiskSample{At: row.At, Bytes: map[DiskPart]int64{}}
			if oldest == nil {
				oldest = newest
			}
		}
		newest.Bytes[row.Part] = row.Bytes
	}
	return newest, oldest, nil
}
