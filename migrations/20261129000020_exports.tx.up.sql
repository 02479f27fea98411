-- Files that people had made of items, and comparisons of two batches.

CREATE TABLE exports (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The form that asked; no two exports have one.
    submit_token text UNIQUE CHECK (char_length(submit_token) BETWEEN 1 AND 64),
    owner_id bigint REFERENCES users (id),
    made_by text NOT NULL,
    created_at timestamptz NOT NULL,
    -- Sent straight to whoever asked: there is a row, and no file.
    direct boolean NOT NULL DEFAULT false,
    state text NOT NULL CHECK (state IN ('waiting', 'running', 'done', 'failed', 'cancelled', 'expired')),
    name text NOT NULL,
    picked text NOT NULL,
    filter jsonb NOT NULL,
    choices jsonb NOT NULL,
    columns text[],
    -- About how many rows it will have; NULL: not counted.
    expected bigint,
    rows bigint NOT NULL DEFAULT 0,
    pages bigint NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0,
    sha256 bytea,
    manifest jsonb,
    reason text NOT NULL DEFAULT '',
    -- Who writes it: each claim is one more, and only the last one may write.
    claim integer NOT NULL DEFAULT 0,
    started_at timestamptz,
    beat_at timestamptz,
    ended_at timestamptz,
    expires_at timestamptz NOT NULL,
    downloads integer NOT NULL DEFAULT 0,
    -- There may be pieces of the file; they go in small steps once nobody may have it.
    held boolean NOT NULL,
    CONSTRAINT exports_ended CHECK ((state IN ('waiting', 'running')) = (ended_at IS NULL)),
    CONSTRAINT exports_done CHECK (state <> 'done' OR sha256 IS NOT NULL)
);
CREATE INDEX exports_owner_idx ON exports (owner_id, created_at DESC, id DESC);
CREATE INDEX exports_created_idx ON exports (created_at DESC, id DESC);
CREATE INDEX exports_open_idx ON exports (beat_at) WHERE state IN ('waiting', 'running');
CREATE INDEX exports_held_idx ON exports (id) WHERE held;

-- The file, in pieces of the same size except for the last, so that any process
-- can serve any part of it.
CREATE TABLE export_chunks (
    export_id bigint NOT NULL REFERENCES exports (id) ON DELETE CASCADE,
    n integer NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (export_id, n)
);
-- It is compressed already, or would be for nothing.
ALTER TABLE export_chunks ALTER COLUMN body SET STORAGE EXTERNAL;

-- What became of the pages of one batch in another, worked out once.
CREATE TABLE comparisons (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    a_batch_id bigint NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
    b_batch_id bigint NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
    state text NOT NULL CHECK (state IN ('waiting', 'done', 'failed')),
    asked_at timestamptz NOT NULL,
    ended_at timestamptz,
    -- Results of both when it was worked out: it is out of date when they differ.
    a_stored bigint NOT NULL DEFAULT 0,
    b_stored bigint NOT NULL DEFAULT 0,
    unchanged bigint NOT NULL DEFAULT 0,
    changed bigint NOT NULL DEFAULT 0,
    added bigint NOT NULL DEFAULT 0,
    gone bigint NOT NULL DEFAULT 0,
    reason text NOT NULL DEFAULT '',
    UNIQUE (a_batch_id, b_batch_id)
);
CREATE INDEX comparisons_b_idx ON comparisons (b_batch_id);
CREATE INDEX comparisons_asked_idx ON comparisons (asked_at, id);

CREATE TABLE comparison_pages (
    comparison_id bigint NOT NULL REFERENCES comparisons (id) ON DELETE CASCADE,
    kind text NOT NULL CHECK (kind IN ('unchanged', 'changed', 'new', 'gone')),
    n integer NOT NULL,
    a_item_id bigint,
    b_item_id bigint,
    -- What became of the page in the batch that has no result of it; '': it isn't in it.
    other_state text NOT NULL DEFAULT '',
    PRIMARY KEY (comparison_id, kind, n)
);
