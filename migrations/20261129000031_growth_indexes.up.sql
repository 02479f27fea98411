-- What migrations 26 and 27 left for later, since it goes through large tables.
-- Not one transaction: nobody waits for more than a moment, to read or to write.
-- The check reads processed_events once, each index its table twice, and waits
-- for transactions that are older than it, such as a dump: minutes for tens of
-- millions of items and events. Whoever migrates waits for it; other processes
-- run on meanwhile. Where it was broken off it begins anew, so what is half
-- built goes first.
DO $$
DECLARE
    half regclass;
BEGIN
    -- It asks for the table, with everybody who comes later waiting behind it.
    PERFORM set_config('lock_timeout', '2s', true);
    FOR half IN SELECT i.indexrelid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        WHERE NOT i.indisvalid AND c.relname IN ('result_versions_job_idx', 'processed_events_pruned_idx', 'items_waiting_code_idx', 'items_resolved_code_idx')
    LOOP
        EXECUTE format('DROP INDEX %s', half);
    END LOOP;
END $$;
--bun:split
ALTER TABLE processed_events VALIDATE CONSTRAINT processed_events_state_check;
--bun:split
CREATE INDEX CONCURRENTLY IF NOT EXISTS processed_events_pruned_idx ON processed_events (received_at, vendor_job_id) WHERE state = 'pruned';
--bun:split
-- A deletion of a job looks for versions of results that are its.
CREATE INDEX CONCURRENTLY IF NOT EXISTS result_versions_job_idx ON result_versions (job_id) WHERE job_id IS NOT NULL;
--bun:split
-- The codes to choose from, of the failures that wait and of those that a
-- person put aside: read from one code to the next.
CREATE INDEX CONCURRENTLY IF NOT EXISTS items_waiting_code_idx ON items (error_code) WHERE state = 'failed' AND resolved_at IS NULL;
--bun:split
CREATE INDEX CONCURRENTLY IF NOT EXISTS items_resolved_code_idx ON items (error_code) WHERE state = 'failed' AND resolved_at IS NOT NULL;
