-- "Try one URL now": the one call that a sync item makes. It has no vendor
-- job, so the claim that a job would hold is kept here: called_at is written
-- before the call, and who finds it written never calls again.
CREATE TABLE sync_calls (
    item_id bigint PRIMARY KEY REFERENCES items (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL,
    called_at timestamptz,
    lease_until timestamptz,
    ended_at timestamptz,
    note text NOT NULL DEFAULT ''
);
CREATE INDEX sync_calls_open_idx ON sync_calls (created_at) WHERE ended_at IS NULL;

-- The pages of a crawl under one parent, and how many each has under it.
CREATE INDEX crawl_pages_parent_idx ON crawl_pages (job_id, md5(parent_url));

-- When a gate was paused: that time is not a job's, whose deadline it puts off.
CREATE TABLE gate_pauses (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL REFERENCES gates (name),
    paused_at timestamptz NOT NULL,
    resumed_at timestamptz NOT NULL
);
CREATE INDEX gate_pauses_resumed_idx ON gate_pauses (name, resumed_at);
