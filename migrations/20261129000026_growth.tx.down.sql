ALTER TABLE search_words RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold);
ALTER TABLE processed_events RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold,
    autovacuum_vacuum_insert_scale_factor, autovacuum_analyze_scale_factor);
ALTER TABLE delivery_log RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold,
    autovacuum_vacuum_insert_scale_factor, autovacuum_analyze_scale_factor);
ALTER TABLE deliveries RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold,
    autovacuum_vacuum_insert_scale_factor, autovacuum_analyze_scale_factor, toast.autovacuum_vacuum_scale_factor);
ALTER TABLE results RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold,
    autovacuum_vacuum_insert_scale_factor, autovacuum_analyze_scale_factor, toast.autovacuum_vacuum_scale_factor);
ALTER TABLE job_events RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold,
    autovacuum_vacuum_insert_scale_factor, autovacuum_analyze_scale_factor);
ALTER TABLE job_items RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold,
    autovacuum_vacuum_insert_scale_factor, autovacuum_analyze_scale_factor, fillfactor);
ALTER TABLE jobs RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold,
    autovacuum_vacuum_insert_scale_factor, autovacuum_analyze_scale_factor);
ALTER TABLE items RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold,
    autovacuum_vacuum_insert_scale_factor, autovacuum_analyze_scale_factor);
ALTER TABLE batches RESET (fillfactor, autovacuum_vacuum_scale_factor);

DROP TABLE disk_samples;

CREATE OR REPLACE FUNCTION audit_log_is_written_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is written once';
END $$;

DROP INDEX IF EXISTS processed_events_pruned_idx;
-- An earlier release knows no such state; it forgets the ids.
DELETE FROM processed_events WHERE state = 'pruned';
ALTER TABLE processed_events DROP CONSTRAINT processed_events_state_check,
    ADD CONSTRAINT processed_events_state_check CHECK (state IN ('held', 'claimed', 'foreign'));

DROP INDEX IF EXISTS result_versions_job_idx;
DROP INDEX batches_pruning_idx;
DROP INDEX batches_prunable_idx;
ALTER TABLE batches DROP CONSTRAINT batches_pruned_in_order, DROP CONSTRAINT batches_pruned_is_over,
    DROP COLUMN prune_ended_at, DROP COLUMN pruned_at;
