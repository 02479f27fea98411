-- A batch whose time is over stays as its row, whose counters still sum: when
-- its items, jobs and results began to go, and when the last of them had gone.
-- What has begun to go is over: nothing of it becomes outstanding again.
ALTER TABLE batches
    ADD COLUMN pruned_at timestamptz,
    ADD COLUMN prune_ended_at timestamptz,
    ADD CONSTRAINT batches_pruned_is_over CHECK (pruned_at IS NULL OR outstanding = 0),
    ADD CONSTRAINT batches_pruned_in_order CHECK (prune_ended_at IS NULL OR pruned_at IS NOT NULL);
CREATE INDEX batches_prunable_idx ON batches (ended_at, id) WHERE ended_at IS NOT NULL AND pruned_at IS NULL;
CREATE INDEX batches_pruning_idx ON batches (pruned_at, id) WHERE pruned_at IS NOT NULL AND prune_ended_at IS NULL;

-- A deletion of a job looks for versions of results that are its.
CREATE INDEX result_versions_job_idx ON result_versions (job_id) WHERE job_id IS NOT NULL;

-- The vendor's ids of jobs that are gone are remembered for some time: what is
-- heard of one late is a duplicate and nobody else's job.
ALTER TABLE processed_events DROP CONSTRAINT processed_events_state_check,
    ADD CONSTRAINT processed_events_state_check CHECK (state IN ('held', 'claimed', 'foreign', 'pruned'));
CREATE INDEX processed_events_pruned_idx ON processed_events (received_at, vendor_job_id) WHERE state = 'pruned';

-- The audit log is still written once: only the task that removes what is older
-- than the setting says may delete, and says so in its transaction.
CREATE OR REPLACE FUNCTION audit_log_is_written_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('rollcall.audit_time_is_over', true) = 'yes' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the audit log is written once';
END $$;

-- What the database takes up, by part, as the task that looks sampled it.
CREATE TABLE disk_samples (
    at timestamptz NOT NULL,
    part text NOT NULL CHECK (part IN ('results', 'search', 'items', 'deliveries', 'exports', 'other')),
    bytes bigint NOT NULL CHECK (bytes >= 0),
    PRIMARY KEY (at, part)
);

-- Room on each page for what is changed without its indexes: a batch's counters
-- once a page of results, an item's outcome once.
ALTER TABLE batches SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE job_items SET (fillfactor = 75);

-- A fifth of a year's rows is too long to wait for: a night's are swept within a
-- few days, and the planner knows of them the next morning.
ALTER TABLE items SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE jobs SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE job_items SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE job_events SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE results SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02,
    toast.autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE deliveries SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02,
    toast.autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE delivery_log SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE processed_events SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE search_words SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
