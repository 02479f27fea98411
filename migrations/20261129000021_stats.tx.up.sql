-- What the overview shows by the hour, kept so that no page counts items: a task
-- counts an hour again until it is closed, and then never more.

-- When the vendor says that the job ended, by our clock. NULL: it did not say,
-- or from before this was kept.
ALTER TABLE jobs ADD COLUMN vendor_ended_at timestamptz;

CREATE TABLE hourly_stats (
    -- The hour's beginning. Hours are UTC's: a day of any zone is a sum of them.
    hour timestamptz PRIMARY KEY CHECK (hour = date_trunc('hour', hour, 'UTC')),
    rolled_at timestamptz NOT NULL,
    took_ms bigint NOT NULL,
    -- Nothing that belongs to the hour can be committed any more.
    closed boolean NOT NULL,

    -- Results by when they were first stored.
    stored_webhook bigint NOT NULL,
    stored_poll bigint NOT NULL,
    stored_reconcile bigint NOT NULL,
    stored_replay bigint NOT NULL,
    stored_sync bigint NOT NULL,
    -- Of those, how many took how long: from their batch's submit, and from the
    -- vendor's end of their job. Element n, from 1, is bucket n - 1 of
    -- store/stats_latency.go; zeros at the end are left out.
    submit_latency bigint[] NOT NULL,
    vendor_latency bigint[] NOT NULL,

    -- Jobs by when they were settled.
    jobs_completed bigint NOT NULL,
    jobs_failed bigint NOT NULL,
    jobs_cancelled bigint NOT NULL,
    -- Completed jobs whose webhook was registered when they were accepted: in
    -- time, or else brought home by the net that is named.
    in_time bigint NOT NULL,
    repaired_poll bigint NOT NULL,
    repaired_reconcile bigint NOT NULL,
    repaired_replay bigint NOT NULL,
    charged bigint NOT NULL,
    -- What asking for each job by itself would have cost, of the jobs accepted
    -- since calls are counted.
    compared_jobs bigint NOT NULL,
    calls_each_second bigint NOT NULL,
    calls_backoff bigint NOT NULL,

    -- Deliveries by when they were received.
    deliveries_accepted bigint NOT NULL,
    deliveries_duplicate bigint NOT NULL,
    deliveries_refused bigint NOT NULL
);

-- Calls made to the vendor, by every process, by the hour they were made in.
CREATE TABLE call_counts (
    hour timestamptz NOT NULL CHECK (hour = date_trunc('hour', hour, 'UTC')),
    kind text NOT NULL,
    n bigint NOT NULL CHECK (n > 0),
    PRIMARY KEY (hour, kind)
);

-- The last batches that ended.
CREATE INDEX batches_ended_idx ON batches (ended_at DESC, id DESC) WHERE ended_at IS NOT NULL;
-- Results that were replaced are still counted where they were first stored.
CREATE INDEX result_versions_first_idx ON result_versions (stored_at) WHERE version = 1;
