DROP INDEX IF EXISTS items_resolved_code_idx, items_waiting_code_idx;
ALTER TABLE rejected_lines DROP COLUMN stored_item;

DELETE FROM comparisons;
ALTER TABLE comparison_pages
    DROP CONSTRAINT comparison_pages_kind_check,
    ADD CONSTRAINT comparison_pages_kind_check CHECK (kind IN ('unchanged', 'changed', 'new', 'gone')),
    DROP COLUMN a_state,
    DROP COLUMN b_state,
    ADD COLUMN other_state text NOT NULL DEFAULT '';
ALTER TABLE comparisons
    DROP COLUMN recovered,
    DROP COLUMN lost,
    DROP COLUMN failed_both,
    DROP COLUMN missing,
    DROP COLUMN a_pages,
    DROP COLUMN b_pages,
    DROP COLUMN a_without,
    DROP COLUMN b_without;
