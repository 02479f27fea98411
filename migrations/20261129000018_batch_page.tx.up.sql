-- What a failure says, without what differs between two of the same kind:
-- addresses, identifiers and numbers, except a status such as "HTTP 404".
CREATE FUNCTION failure_message(message text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT left(regexp_replace(regexp_replace(regexp_replace(left(message, 1000),
        '[a-z][a-z0-9+.-]*://[^\s"''<>]+', '<url>', 'gi'),
        '\m(?=[a-z0-9_-]*[0-9])(?=[a-z0-9_-]*[a-z])[a-z0-9_-]{6,}\M', '#', 'gi'),
        '(?<!(http|status|code)(/[0-9.]+)?[ /:=]{1,2})\m[0-9]+(\.[0-9]+)*', '#', 'gi'), 200)
$$;

-- Failures with the same code, host and kind of message. Computed, so that it
-- is always right; NULL and no room for whatever hasn't failed. The host is
-- spelled out, as a computed column can't be made of another one.
ALTER TABLE items ADD COLUMN failure_group uuid GENERATED ALWAYS AS (CASE WHEN state = 'failed' THEN
    md5(error_code || ' ' || coalesce(lower(substring(url FROM '^[A-Za-z]+://(\[[^]/?#]*\]|[^/?#:]+)')), '') || ' '
        || failure_message(error_message))::uuid END) STORED;

-- Failures that wait for a person, those that were put aside, and those of a group.
CREATE INDEX items_waiting_idx ON items (ended_at DESC, id DESC) WHERE state = 'failed' AND resolved_at IS NULL;
CREATE INDEX items_waiting_batch_idx ON items (batch_id, ended_at DESC, id DESC) WHERE state = 'failed' AND resolved_at IS NULL;
CREATE INDEX items_resolved_idx ON items (ended_at DESC, id DESC) WHERE state = 'failed' AND resolved_at IS NOT NULL;
CREATE INDEX items_failed_group_idx ON items (failure_group, ended_at DESC, id DESC) WHERE state = 'failed';
CREATE INDEX items_failed_batch_group_idx ON items (batch_id, failure_group, ended_at DESC, id DESC) WHERE state = 'failed';

-- How fast a batch's answers come home: a ring of its last quarter of an hour,
-- so that every replica knows the same and nothing needs to be cleared.
CREATE TABLE batch_pace (
    batch_id bigint NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
    slot smallint NOT NULL,
    began timestamptz NOT NULL,
    ended integer NOT NULL,
    last_at timestamptz NOT NULL,
    PRIMARY KEY (batch_id, slot)
) WITH (fillfactor = 70);

-- Where a batch's oldest open jobs are, however many have ended.
CREATE INDEX jobs_batch_open_idx ON jobs (batch_id, accepted_at, id) WHERE state = 'accepted';
