-- What analysts look for by: the host of a URL, the page it names however it is
-- spelled, and the columns that came beside it in a file; which batch a batch
-- came from; and failures that a person put aside.

-- What a failure says, without what differs between two of the same kind:
-- addresses, identifiers and numbers, except a status such as "HTTP 404".
CREATE FUNCTION failure_message(message text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT left(regexp_replace(regexp_replace(regexp_replace(left(message, 1000),
        '[a-z][a-z0-9+.-]*://[^\s"''<>]+', '<url>', 'gi'),
        '\m(?=[a-z0-9_-]*[0-9])(?=[a-z0-9_-]*[a-z])[a-z0-9_-]{6,}\M', '#', 'gi'),
        '(?<!(http|status|code)(/[0-9.]+)?[ /:=]{1,2})\m[0-9]+(\.[0-9]+)*', '#', 'gi'), 200)
$$;

-- Everything that items get is in one statement: computed columns have the table
-- written anew, and once is enough.
ALTER TABLE items
    -- The host, in lower case, without a port. Computed, so that it is always right.
    ADD COLUMN host text NOT NULL
        GENERATED ALWAYS AS (coalesce(lower(substring(url FROM '^[A-Za-z]+://(\[[^]/?#]*\]|[^/?#:]+)')), '')) STORED,
    -- Failures with the same code, host and kind of message; NULL and no room for
    -- whatever hasn't failed. The host is spelled out, as a computed column can't be
    -- made of another one.
    ADD COLUMN failure_group uuid GENERATED ALWAYS AS (CASE WHEN state = 'failed' THEN
        md5(error_code || ' ' || coalesce(lower(substring(url FROM '^[A-Za-z]+://(\[[^]/?#]*\]|[^/?#:]+)')), '') || ' '
            || failure_message(error_message))::uuid END) STORED,
    -- The values of batches.columns, in that order. NULL: there were none.
    ADD COLUMN extra text[],
    -- A person put the failure aside. No check ties this to the state: a process of
    -- the release before, which knows none of it, must still be able to store what
    -- came late.
    ADD COLUMN resolved_at timestamptz,
    ADD COLUMN resolved_by bigint REFERENCES users (id),
    ADD COLUMN resolved_note text NOT NULL DEFAULT '';

DROP INDEX items_failed_host_idx;
CREATE INDEX items_failed_host_idx ON items (host, ended_at DESC, id DESC) WHERE state = 'failed';

-- The first 16 bytes of the SHA-256 of the URL's one spelling (no fragment):
-- results with the same key are of the same page. NULL: from before this was kept.
ALTER TABLE results ADD COLUMN page_key bytea CHECK (octet_length(page_key) = 16);
CREATE INDEX results_page_idx ON results (page_key, stored_at DESC, item_id DESC) WHERE page_key IS NOT NULL;
CREATE INDEX results_stored_idx ON results (stored_at DESC, item_id DESC);

-- Names of the columns that stood beside the URL in the file, and its own.
ALTER TABLE batches ADD COLUMN columns text[];
ALTER TABLE batches ADD COLUMN url_column text NOT NULL DEFAULT '';
-- The batch that this one runs again, whole or its failures only.
ALTER TABLE batches ADD COLUMN parent_batch_id bigint REFERENCES batches (id);
ALTER TABLE batches ADD COLUMN rerun text CHECK (rerun IN ('all', 'failures', 'schedule'));
ALTER TABLE batches ADD CONSTRAINT batches_rerun_of CHECK ((rerun IS NULL) = (parent_batch_id IS NULL));
CREATE INDEX batches_parent_idx ON batches (parent_batch_id, id) WHERE parent_batch_id IS NOT NULL;

-- The other columns of a line that became no item.
ALTER TABLE rejected_lines ADD COLUMN extra text[];
ALTER TABLE rejected_lines ADD COLUMN duplicate_of bigint;
