-- Who keeps whom waiting: deliveries wait for this from its change of
-- processed_events on, and who counts on batches from its end, where they are
-- locked, both until the commit: as long as two indexes on batches take, which is
-- under a second for a hundred thousand of them. The order is that of those who
-- write, events before batches. All else is a setting, which nobody waits for.
--
-- The vendor's ids of jobs that are gone are remembered for some time: what is
-- heard of one late is a duplicate and nobody else's job.
-- Rows that are there fit the narrower check that goes: migration 31 goes through
-- them, and makes the indexes that are large.
ALTER TABLE processed_events DROP CONSTRAINT processed_events_state_check,
    ADD CONSTRAINT processed_events_state_check CHECK (state IN ('held', 'claimed', 'foreign', 'pruned')) NOT VALID;

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

-- Room on each page for what is changed without its indexes: an item's outcome
-- once and, below, a batch's counters once a page of results.
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
ALTER TABLE batches SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
