-- The nets: webhooks with their secrets, what was delivered, what was taken
-- up, the gates towards the vendor, and the reconciler's runs.

CREATE TABLE webhooks (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The last segment of the address the vendor posts to: it names the secret
    -- to check before a byte of the body is read.
    endpoint text NOT NULL UNIQUE CHECK (char_length(endpoint) BETWEEN 16 AND 64),
    event_type text NOT NULL,
    url text NOT NULL,
    description text NOT NULL DEFAULT '',
    state text NOT NULL CHECK (state IN ('registering', 'live', 'rotating', 'secret_unknown',
        'inactive', 'moved', 'gone', 'removed')),
    vendor_webhook_id text UNIQUE CHECK (char_length(vendor_webhook_id) BETWEEN 1 AND 200),
    -- The signature form of the first verified delivery; empty while unpinned.
    signature_form text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL,
    state_at timestamptz NOT NULL,
    checked_at timestamptz,
    last_delivery_at timestamptz
);

CREATE TABLE webhook_secrets (
    webhook_id bigint NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    version integer NOT NULL,
    sealed bytea NOT NULL,
    valid_from timestamptz NOT NULL,
    -- NULL: the current version. A later rotation does not move an earlier end.
    valid_until timestamptz,
    PRIMARY KEY (webhook_id, version)
);

CREATE TABLE deliveries (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook_id bigint REFERENCES webhooks (id) ON DELETE CASCADE,
    received_at timestamptz NOT NULL,
    verdict text NOT NULL CHECK (verdict IN ('accepted', 'duplicate', 'refused', 'unreadable')),
    status smallint NOT NULL,
    reason text NOT NULL DEFAULT '',
    event_type text NOT NULL DEFAULT '',
    vendor_job_id text NOT NULL DEFAULT '',
    vendor_delivery_id text NOT NULL DEFAULT '',
    secret_version integer,
    signature_form text NOT NULL DEFAULT '',
    source text NOT NULL DEFAULT '',
    micros bigint NOT NULL DEFAULT 0,
    headers bytea NOT NULL,
    body bytea NOT NULL,
    body_size bigint NOT NULL
);
CREATE INDEX deliveries_received_idx ON deliveries (received_at DESC, id DESC);
CREATE INDEX deliveries_job_idx ON deliveries (vendor_job_id, received_at) WHERE vendor_job_id <> '';
CREATE INDEX deliveries_verdict_idx ON deliveries (verdict, received_at DESC, id DESC)
    WHERE verdict <> 'accepted';
CREATE INDEX deliveries_quarantine_idx ON deliveries (webhook_id, source, id)
    WHERE verdict IN ('refused', 'unreadable');

-- The idempotency record: a delivery for this vendor job has been taken up.
CREATE TABLE processed_events (
    vendor_job_id text PRIMARY KEY CHECK (char_length(vendor_job_id) BETWEEN 1 AND 200),
    event_type text NOT NULL,
    received_at timestamptz NOT NULL,
    state text NOT NULL CHECK (state IN ('held', 'claimed', 'foreign')),
    job_id bigint REFERENCES jobs (id) ON DELETE CASCADE
);
CREATE INDEX processed_events_held_idx ON processed_events (received_at) WHERE state = 'held';
CREATE INDEX processed_events_foreign_idx ON processed_events (received_at) WHERE state = 'foreign';
CREATE INDEX processed_events_job_idx ON processed_events (job_id) WHERE job_id IS NOT NULL;

-- The two gates all replicas share. A 429 closes one for a time; a 401 or 402
-- pauses submitting until a probe or a person opens it again.
CREATE TABLE gates (
    name text PRIMARY KEY CHECK (name IN ('submit', 'read')),
    closed_until timestamptz,
    closings integer NOT NULL DEFAULT 0,
    paused_at timestamptz,
    paused_status smallint,
    paused_reason text NOT NULL DEFAULT '',
    probe_at timestamptz
);
INSERT INTO gates (name) VALUES ('submit'), ('read');

CREATE TABLE reconcile_runs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    trigger text NOT NULL CHECK (trigger IN ('timer', 'person', 'command')),
    started_at timestamptz NOT NULL,
    finished_at timestamptz,
    window_start timestamptz NOT NULL,
    window_end timestamptz NOT NULL,
    pages integer NOT NULL DEFAULT 0,
    listed integer NOT NULL DEFAULT 0,
    missing integer NOT NULL DEFAULT 0,
    woken integer NOT NULL DEFAULT 0,
    singly integer NOT NULL DEFAULT 0,
    foreign_jobs integer NOT NULL DEFAULT 0,
    errors integer NOT NULL DEFAULT 0,
    note text NOT NULL DEFAULT ''
);
CREATE INDEX reconcile_runs_started_idx ON reconcile_runs (started_at DESC, id DESC);

-- lz4 halves the cost of storing a page against pglz; a server built without
-- it keeps its default and is merely slower.
DO $$
DECLARE target record;
BEGIN
    FOR target IN SELECT * FROM (VALUES
        ('deliveries', 'body'), ('results', 'markdown'), ('results', 'html'),
        ('result_versions', 'markdown'), ('result_versions', 'html')) AS t (tab, col)
    LOOP
        EXECUTE format('ALTER TABLE %I ALTER COLUMN %I SET COMPRESSION lz4', target.tab, target.col);
    END LOOP;
EXCEPTION WHEN feature_not_supported THEN
    RAISE NOTICE 'this server has no lz4; bodies keep its default compression';
END $$;
