-- Batches that are run again by the clock. A schedule names a batch as its
-- template; each time that was due has one row that says what came of it.
CREATE TABLE schedules (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 200),
    template_batch_id bigint NOT NULL REFERENCES batches (id),
    -- Five fields, read in the zone, which is a name of the tz database.
    cron text NOT NULL CHECK (char_length(cron) BETWEEN 9 AND 200),
    zone text NOT NULL CHECK (char_length(zone) BETWEEN 1 AND 64),
    created_by bigint REFERENCES users (id),
    created_at timestamptz NOT NULL,
    -- Of the form it came by, so that sending it twice makes one schedule.
    submit_token text CHECK (char_length(submit_token) BETWEEN 1 AND 64),
    -- Who paused it, or why Rollcall did.
    paused_at timestamptz,
    paused_by text NOT NULL DEFAULT '',
    removed_at timestamptz,
    -- When it is due next; NULL while it is paused and once it is removed. Who
    -- moves it on from a time that was due has that time's run.
    next_at timestamptz,
    -- The last batch it made: while that goes on, nothing is started.
    last_batch_id bigint REFERENCES batches (id),
    CONSTRAINT schedules_at_rest CHECK (next_at IS NULL OR (paused_at IS NULL AND removed_at IS NULL))
);
CREATE UNIQUE INDEX schedules_submit_token_key ON schedules (submit_token) WHERE submit_token IS NOT NULL;
CREATE INDEX schedules_due_idx ON schedules (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX schedules_kept_idx ON schedules (id DESC) WHERE removed_at IS NULL;
CREATE INDEX schedules_template_idx ON schedules (template_batch_id) WHERE removed_at IS NULL;

CREATE TABLE schedule_runs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    schedule_id bigint NOT NULL REFERENCES schedules (id),
    due_at timestamptz NOT NULL,
    -- Of times that were missed together, the last and how many.
    until_at timestamptz,
    times integer NOT NULL DEFAULT 1 CHECK (times > 0),
    at timestamptz NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('started', 'skipped', 'missed')),
    reason text NOT NULL DEFAULT '',
    batch_id bigint REFERENCES batches (id),
    -- Who pressed; empty when the clock did.
    pressed_by text NOT NULL DEFAULT '',
    CONSTRAINT schedule_runs_once UNIQUE (schedule_id, due_at),
    CONSTRAINT schedule_runs_started CHECK ((outcome = 'started') = (batch_id IS NOT NULL))
);
CREATE UNIQUE INDEX schedule_runs_batch_key ON schedule_runs (batch_id) WHERE batch_id IS NOT NULL;
