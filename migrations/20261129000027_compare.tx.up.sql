-- A comparison counts every page of both batches, also those without a result
-- in one of them or in either: the counts sum to the whole. Those that were
-- worked out before are forgotten; who wants one asks again.
-- Comparisons and submissions wait for this, for a moment.
TRUNCATE comparisons, comparison_pages;

ALTER TABLE comparisons
    -- Stored in both batches: unchanged and changed. In both, and stored in one:
    ADD COLUMN recovered bigint NOT NULL DEFAULT 0,
    ADD COLUMN lost bigint NOT NULL DEFAULT 0,
    -- Failed in both, and all others that are stored in neither.
    ADD COLUMN failed_both bigint NOT NULL DEFAULT 0,
    ADD COLUMN missing bigint NOT NULL DEFAULT 0,
    -- Pages of each batch.
    ADD COLUMN a_pages bigint NOT NULL DEFAULT 0,
    ADD COLUMN b_pages bigint NOT NULL DEFAULT 0,
    -- Items without a result when it was worked out: it is out of date when they differ.
    ADD COLUMN a_without bigint NOT NULL DEFAULT 0,
    ADD COLUMN b_without bigint NOT NULL DEFAULT 0;

-- How the page stood in each batch; '': it wasn't in it.
ALTER TABLE comparison_pages
    DROP COLUMN other_state,
    ADD COLUMN a_state text NOT NULL DEFAULT '',
    ADD COLUMN b_state text NOT NULL DEFAULT '',
    DROP CONSTRAINT comparison_pages_kind_check,
    ADD CONSTRAINT comparison_pages_kind_check
        CHECK (kind IN ('unchanged', 'changed', 'recovered', 'lost', 'new', 'gone', 'failed', 'missing'));

-- The item whose result a rejected line would have fetched again.
ALTER TABLE rejected_lines ADD COLUMN stored_item bigint;
