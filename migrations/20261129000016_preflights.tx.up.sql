-- What was pasted or uploaded, looked through before it becomes a batch: a
-- preflight belongs to whoever made it, and goes when its time is over.

CREATE TABLE preflights (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- NULL: the command line.
    created_by bigint REFERENCES users (id),
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    name text NOT NULL,
    -- Empty: by the number of URLs.
    kind text NOT NULL,
    options jsonb NOT NULL,
    headers_sealed bytea,
    -- As they came; NULL once nobody needs them.
    pasted bytea,
    upload bytea,
    upload_name text NOT NULL,
    upload_size bigint NOT NULL,
    -- How the content is to be read.
    choices jsonb NOT NULL,
    -- URLs whose page was stored in the last days are left out; 0: are not.
    stored_days integer NOT NULL CHECK (stored_days BETWEEN 0 AND 3650),
    -- Which reading the lines are of: what was looked at is what is submitted.
    -- 0: nothing was read, the row only keeps an upload for its form.
    reading integer NOT NULL DEFAULT 0,
    detected jsonb NOT NULL DEFAULT '{}',
    totals jsonb NOT NULL DEFAULT '{}',
    -- Why the content could not be read to its end, and by which choice.
    problem text NOT NULL DEFAULT '',
    problem_field text NOT NULL DEFAULT '',
    batch_id bigint REFERENCES batches (id)
);
CREATE INDEX preflights_expires_idx ON preflights (expires_at, id);
CREATE INDEX preflights_owner_idx ON preflights (created_by, id DESC);
-- Only those that still have content or lines are gone through.
CREATE INDEX preflights_submitted_idx ON preflights (id) WHERE batch_id IS NOT NULL AND pasted IS NOT NULL;

-- No foreign key: it would be looked up for each of 100,000 lines that are
-- written at once. Lines are deleted before their preflight.
CREATE TABLE preflight_lines (
    preflight_id bigint NOT NULL,
    number integer NOT NULL,
    verdict text NOT NULL CHECK (verdict IN ('accepted', 'fixed', 'duplicate', 'invalid')),
    original text NOT NULL,
    url text NOT NULL,
    reason text NOT NULL,
    -- The line it repeats, or the item whose result it would fetch again.
    duplicate_of integer,
    stored_item bigint,
    extra text[],
    PRIMARY KEY (preflight_id, number)
);
CREATE INDEX preflight_lines_verdict_idx ON preflight_lines (preflight_id, verdict, number);
