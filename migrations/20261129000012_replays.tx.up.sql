-- A replay is a plan that is frozen before it runs: an exact set of jobs, and
-- of refused deliveries, each with one outcome. Its counters move in the
-- transaction that writes the outcomes, so a page needs to count nothing.
CREATE TABLE replays (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state text NOT NULL CHECK (state IN ('planned', 'running', 'paused', 'done', 'cancelled')),
    -- What was picked: the words for a reader, and the address that shows the
    -- same list again, if it was a list.
    picked text NOT NULL,
    address text NOT NULL DEFAULT '',
    -- Of the form it came by, so that sending it twice makes one plan.
    submit_token text CHECK (char_length(submit_token) BETWEEN 1 AND 64),
    planned_by text NOT NULL,
    planned_at timestamptz NOT NULL,
    run_by text NOT NULL DEFAULT '',
    started_at timestamptz,
    ended_at timestamptz,
    -- The frozen set. lines: what the filter matched; unnamed: of them, those
    -- that name no job; foreign_jobs: jobs that are not ours.
    lines integer NOT NULL DEFAULT 0,
    unnamed integer NOT NULL DEFAULT 0,
    foreign_jobs integer NOT NULL DEFAULT 0,
    jobs integer NOT NULL DEFAULT 0,
    settled_before integer NOT NULL DEFAULT 0,
    calls bigint NOT NULL DEFAULT 0,
    refetch_calls bigint NOT NULL DEFAULT 0,
    deliveries integer NOT NULL DEFAULT 0,
    -- Fetch what is settled once more, and compare.
    refetch boolean NOT NULL DEFAULT false,
    -- The outcomes so far.
    already_settled integer NOT NULL DEFAULT 0,
    settled_now integer NOT NULL DEFAULT 0,
    still_running integer NOT NULL DEFAULT 0,
    failed integer NOT NULL DEFAULT 0,
    unknown_to_vendor integer NOT NULL DEFAULT 0,
    errors integer NOT NULL DEFAULT 0,
    recovered integer NOT NULL DEFAULT 0,
    refused integer NOT NULL DEFAULT 0,
    refetched integer NOT NULL DEFAULT 0,
    differing integer NOT NULL DEFAULT 0,
    kept_bytes bigint NOT NULL DEFAULT 0,
    -- The runner: when it last looked, until when its share of calls is spent,
    -- and when it last could not ask since a gate was closed.
    beat_at timestamptz,
    spent_at timestamptz,
    shut_at timestamptz
);
CREATE UNIQUE INDEX replays_submit_token_key ON replays (submit_token) WHERE submit_token IS NOT NULL;
CREATE INDEX replays_running_idx ON replays (beat_at) WHERE state = 'running';

CREATE TABLE replay_jobs (
    replay_id bigint NOT NULL REFERENCES replays (id) ON DELETE CASCADE,
    job_id bigint NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    -- About how many vendor calls the job takes.
    calls integer NOT NULL,
    state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'woken', 'refetching', 'ended')),
    woken_at timestamptz,
    ended_at timestamptz,
    outcome text CHECK (outcome IN ('already_settled', 'settled_now', 'still_running', 'failed', 'unknown_to_vendor', 'error')),
    detail text NOT NULL DEFAULT '',
    -- The next page to fetch again, and what came of fetching.
    refetch_page integer NOT NULL DEFAULT 1,
    refetched text CHECK (refetched IN ('same', 'differs', 'unknown_to_vendor', 'error')),
    PRIMARY KEY (replay_id, job_id),
    CONSTRAINT replay_jobs_ended CHECK ((state = 'ended') = (outcome IS NOT NULL))
) WITH (fillfactor = 80);
CREATE INDEX replay_jobs_open_idx ON replay_jobs (replay_id, state, job_id) WHERE state <> 'ended';
CREATE INDEX replay_jobs_outcome_idx ON replay_jobs (replay_id, outcome, job_id) WHERE state = 'ended';
CREATE INDEX replay_jobs_job_idx ON replay_jobs (job_id);

-- Refused deliveries of our own archive that are to be verified again.
CREATE TABLE replay_deliveries (
    replay_id bigint NOT NULL REFERENCES replays (id) ON DELETE CASCADE,
    delivery_id bigint NOT NULL REFERENCES deliveries (id) ON DELETE CASCADE,
    outcome text CHECK (outcome IN ('already', 'recovered', 'refused', 'cut')),
    PRIMARY KEY (replay_id, delivery_id)
);
CREATE INDEX replay_deliveries_open_idx ON replay_deliveries (replay_id, delivery_id) WHERE outcome IS NULL;
CREATE INDEX replay_deliveries_delivery_idx ON replay_deliveries (delivery_id);

-- What was fetched again and is not what is stored. Both are kept until a
-- person decides.
CREATE TABLE replay_differences (
    replay_id bigint NOT NULL REFERENCES replays (id) ON DELETE CASCADE,
    item_id bigint NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    job_id bigint NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    found_at timestamptz NOT NULL,
    -- The version of the result that it differs from.
    version integer NOT NULL,
    -- The content is here; what a replay keeps is bounded.
    kept boolean NOT NULL,
    title text NOT NULL DEFAULT '',
    markdown bytea,
    html bytea,
    links bytea,
    metadata bytea,
    http_status integer,
    replaced_at timestamptz,
    replaced_by text NOT NULL DEFAULT '',
    PRIMARY KEY (replay_id, item_id)
);
CREATE INDEX replay_differences_item_idx ON replay_differences (item_id);
CREATE INDEX replay_differences_job_idx ON replay_differences (job_id);

-- What the last look at an open job found: a replay's one outcome for a job
-- that did not settle rests on it.
ALTER TABLE jobs ADD COLUMN look text NOT NULL DEFAULT ''
    CHECK (look IN ('', 'running', 'not_found', 'no_answer', 'incomplete'));
