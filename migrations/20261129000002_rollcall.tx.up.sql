-- The roll call: batches, their items, the vendor jobs that carry them, and
-- the results. States and guards are those of DESIGN.md section 3.

CREATE TABLE batches (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('extract', 'batch', 'mixed', 'crawl', 'sync')),
    -- Everything the vendor is told, except the values of custom headers,
    -- which are sealed: they may carry a site's credentials.
    options jsonb NOT NULL,
    headers_sealed bytea,
    created_by bigint REFERENCES users (id),
    created_at timestamptz NOT NULL,
    ended_at timestamptz,
    cancel_requested_at timestamptz,
    submitted integer NOT NULL DEFAULT 0,
    invalid integer NOT NULL DEFAULT 0,
    duplicate integer NOT NULL DEFAULT 0,
    accepted integer NOT NULL DEFAULT 0,
    stored_webhook integer NOT NULL DEFAULT 0,
    stored_poll integer NOT NULL DEFAULT 0,
    stored_reconcile integer NOT NULL DEFAULT 0,
    stored_replay integer NOT NULL DEFAULT 0,
    stored_sync integer NOT NULL DEFAULT 0,
    failed integer NOT NULL DEFAULT 0,
    cancelled integer NOT NULL DEFAULT 0,
    -- What is left. It is computed, so the sum on the page cannot be off.
    outstanding integer NOT NULL GENERATED ALWAYS AS (accepted - stored_webhook - stored_poll
        - stored_reconcile - stored_replay - stored_sync - failed - cancelled) STORED,
    charged integer NOT NULL DEFAULT 0,
    charged_twice integer NOT NULL DEFAULT 0,
    CONSTRAINT batches_submitted_sum CHECK (submitted = invalid + duplicate + accepted),
    CONSTRAINT batches_outstanding_positive CHECK (accepted - stored_webhook - stored_poll
        - stored_reconcile - stored_replay - stored_sync - failed - cancelled >= 0),
    CONSTRAINT batches_counts_positive CHECK (least(invalid, duplicate, accepted, stored_webhook,
        stored_poll, stored_reconcile, stored_replay, stored_sync, failed, cancelled) >= 0)
);
CREATE INDEX batches_created_idx ON batches (created_at DESC, id DESC);
CREATE INDEX batches_open_idx ON batches (created_at DESC, id DESC) WHERE ended_at IS NULL;

-- Lines of a submission that became no item, so that the sum can be read.
CREATE TABLE rejected_lines (
    batch_id bigint NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
    line integer NOT NULL,
    kind text NOT NULL CHECK (kind IN ('invalid', 'duplicate')),
    text text NOT NULL,
    reason text NOT NULL,
    PRIMARY KEY (batch_id, line)
);

CREATE TABLE jobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    batch_id bigint NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
    kind text NOT NULL CHECK (kind IN ('extract', 'batch', 'crawl')),
    state text NOT NULL CHECK (state IN ('intended', 'calling', 'uncertain', 'accepted', 'settled',
        'given_up', 'refused', 'withdrawn', 'split')),
    -- Where the job came from: a submission, a split, or a resubmission of
    -- what failed in an earlier job.
    origin text NOT NULL CHECK (origin IN ('submit', 'split', 'retry', 'resubmit')),
    parent_job_id bigint REFERENCES jobs (id),
    depth smallint NOT NULL DEFAULT 0,
    request_hash bytea NOT NULL,
    url_count integer NOT NULL,
    created_at timestamptz NOT NULL,
    -- The call.
    call_no integer NOT NULL DEFAULT 0,
    called_at timestamptz,
    lease_until timestamptz,
    adopt_passes smallint NOT NULL DEFAULT 0,
    adopt_pass_at timestamptz,
    vendor_job_id text CHECK (char_length(vendor_job_id) BETWEEN 1 AND 200),
    account text NOT NULL DEFAULT '',
    accepted_at timestamptz,
    adopted boolean NOT NULL DEFAULT false,
    vendor_status text NOT NULL DEFAULT '',
    vendor_reports jsonb,
    vendor_invalid_urls jsonb,
    -- Waking and settling.
    wake_seq bigint NOT NULL DEFAULT 0,
    wake_net text CHECK (wake_net IN ('webhook', 'poll', 'reconcile', 'replay')),
    next_poll_at timestamptz,
    polls integer NOT NULL DEFAULT 0,
    overdue boolean NOT NULL DEFAULT false,
    webhook_at timestamptz,
    settle_page integer NOT NULL DEFAULT 1,
    settle_passes smallint NOT NULL DEFAULT 0,
    settle_pass_at timestamptz,
    page_size smallint NOT NULL DEFAULT 50 CHECK (page_size BETWEEN 1 AND 50),
    not_found integer NOT NULL DEFAULT 0,
    not_found_at timestamptz,
    -- The end.
    ended_at timestamptz,
    settle_net text CHECK (settle_net IN ('webhook', 'poll', 'reconcile', 'replay')),
    error_code text NOT NULL DEFAULT '',
    error_message text NOT NULL DEFAULT '',
    superseded boolean NOT NULL DEFAULT false,
    misnumbered boolean NOT NULL DEFAULT false,
    charged integer NOT NULL DEFAULT 0,
    cancel_requested_at timestamptz
-- A job's row changes often, mostly in columns without an index: room in its
-- page keeps those changes from touching the indexes.
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX jobs_vendor_job_id_key ON jobs (vendor_job_id) WHERE vendor_job_id IS NOT NULL;
CREATE INDEX jobs_batch_idx ON jobs (batch_id, id);
CREATE INDEX jobs_parent_idx ON jobs (parent_job_id) WHERE parent_job_id IS NOT NULL;
CREATE INDEX jobs_due_idx ON jobs (next_poll_at, id) WHERE state = 'accepted';
CREATE INDEX jobs_open_idx ON jobs (accepted_at, id) WHERE state = 'accepted';
CREATE INDEX jobs_intended_idx ON jobs (id) WHERE state = 'intended';
CREATE INDEX jobs_calling_idx ON jobs (request_hash) WHERE state IN ('calling', 'uncertain');
CREATE INDEX jobs_lease_idx ON jobs (lease_until) WHERE state IN ('calling', 'uncertain');
CREATE INDEX jobs_ended_idx ON jobs (ended_at DESC, id DESC) WHERE state = 'settled';

CREATE TABLE items (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    batch_id bigint NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
    position integer NOT NULL,
    url text NOT NULL,
    url_hash bytea NOT NULL,
    state text NOT NULL DEFAULT 'outstanding'
        CHECK (state IN ('outstanding', 'stored', 'failed', 'cancelled')),
    net text CHECK (net IN ('webhook', 'poll', 'reconcile', 'replay', 'sync')),
    current_job_id bigint REFERENCES jobs (id),
    retries smallint NOT NULL DEFAULT 0,
    error_code text NOT NULL DEFAULT '',
    error_message text NOT NULL DEFAULT '',
    error_retryable boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    ended_at timestamptz,
    UNIQUE (batch_id, position),
    CONSTRAINT items_stored_has_net CHECK ((state = 'stored') = (net IS NOT NULL)),
    CONSTRAINT items_ended CHECK ((state = 'outstanding') = (ended_at IS NULL)),
    CONSTRAINT items_failed_has_code CHECK (state <> 'failed' OR error_code <> '')
);
CREATE INDEX items_state_idx ON items (batch_id, state, position);
CREATE INDEX items_url_idx ON items (url_hash);
CREATE INDEX items_current_job_idx ON items (current_job_id);
CREATE INDEX items_failed_idx ON items (ended_at DESC, id DESC) WHERE state = 'failed';
CREATE INDEX items_failed_code_idx ON items (error_code, ended_at DESC, id DESC) WHERE state = 'failed';

-- The lineage: every job that ever carried an item, and what it said of it.
CREATE TABLE job_items (
    job_id bigint NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    input_index integer NOT NULL,
    item_id bigint NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    outcome text CHECK (outcome IN ('stored', 'failed', 'cancelled', 'retry', 'superseded')),
    error_code text NOT NULL DEFAULT '',
    error_message text NOT NULL DEFAULT '',
    reported_at timestamptz,
    PRIMARY KEY (job_id, input_index),
    UNIQUE (job_id, item_id)
);
CREATE INDEX job_items_item_idx ON job_items (item_id, job_id);

-- Pages a crawl reported, keyed by their address and never by their parent.
CREATE TABLE crawl_pages (
    job_id bigint NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    url_hash bytea NOT NULL,
    item_id bigint NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    parent_url text NOT NULL DEFAULT '',
    depth integer NOT NULL DEFAULT 1,
    PRIMARY KEY (job_id, url_hash)
);
CREATE INDEX crawl_pages_item_idx ON crawl_pages (item_id);

-- What happened to a job, a line each: the timeline of its page.
CREATE TABLE job_events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id bigint NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    at timestamptz NOT NULL,
    kind text NOT NULL,
    net text NOT NULL DEFAULT '',
    detail text NOT NULL DEFAULT ''
);
CREATE INDEX job_events_job_idx ON job_events (job_id, at, id);

-- Content is bytes: a page may hold NUL or anything else and is kept as it came.
CREATE TABLE results (
    item_id bigint PRIMARY KEY REFERENCES items (id) ON DELETE CASCADE,
    job_id bigint REFERENCES jobs (id),
    net text NOT NULL CHECK (net IN ('webhook', 'poll', 'reconcile', 'replay', 'sync')),
    stored_at timestamptz NOT NULL,
    title text NOT NULL DEFAULT '',
    markdown bytea,
    html bytea,
    links bytea,
    metadata bytea,
    http_status integer,
    duration_ms bigint,
    retry_count integer,
    charged integer,
    markdown_sha256 bytea,
    html_sha256 bytea,
    version integer NOT NULL DEFAULT 1
);
CREATE INDEX results_job_idx ON results (job_id);

-- Earlier content of a result that was replaced on purpose.
CREATE TABLE result_versions (
    item_id bigint NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    version integer NOT NULL,
    job_id bigint REFERENCES jobs (id),
    net text NOT NULL,
    stored_at timestamptz NOT NULL,
    replaced_at timestamptz NOT NULL,
    title text NOT NULL DEFAULT '',
    markdown bytea,
    html bytea,
    links bytea,
    metadata bytea,
    markdown_sha256 bytea,
    html_sha256 bytea,
    PRIMARY KEY (item_id, version)
);
