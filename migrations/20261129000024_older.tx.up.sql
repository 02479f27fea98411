-- Results from before there were keys of pages are gone through once more, to
-- be given theirs: without one a page that is stored is sent again.
UPDATE search_backfill SET at = '9999-12-31', item_id = 9223372036854775807, done_at = NULL
    WHERE EXISTS (SELECT FROM results WHERE page_key IS NULL);

-- A batch's jobs that the vendor has not taken, for the page of what is stuck.
CREATE INDEX jobs_batch_untaken_idx ON jobs (batch_id, (state = 'intended'), created_at, id)
    WHERE state IN ('intended', 'calling', 'uncertain');
