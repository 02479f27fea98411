DROP INDEX result_versions_first_idx;
DROP INDEX batches_ended_idx;
DROP TABLE call_counts;
DROP TABLE hourly_stats;
ALTER TABLE jobs DROP COLUMN vendor_ended_at;
