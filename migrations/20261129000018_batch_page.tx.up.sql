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
