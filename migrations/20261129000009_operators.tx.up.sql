-- What operators and admins need: a pause of a webhook that is ours and no
-- fault, rotations with their steps, what became of a refused delivery, and a
-- record of who changed what.

-- paused: by a person here. inactive stays what the vendor did without us.
ALTER TABLE webhooks DROP CONSTRAINT webhooks_state_check;
ALTER TABLE webhooks ADD CONSTRAINT webhooks_state_check CHECK (state IN
    ('registering', 'live', 'rotating', 'secret_unknown', 'paused', 'inactive', 'moved', 'gone', 'removed'));
-- Registered elsewhere, and taken over here with its secret.
ALTER TABLE webhooks ADD COLUMN adopted boolean NOT NULL DEFAULT false;

-- A change of a webhook's secret. One at a time for each webhook: a second
-- press joins the one under way.
CREATE TABLE rotations (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook_id bigint NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    emergency boolean NOT NULL DEFAULT false,
    started_by text NOT NULL DEFAULT '',
    state text NOT NULL CHECK (state IN ('calling', 'secret_unknown', 'stored', 'done', 'failed')),
    -- The state that the webhook goes back to.
    webhook_was text NOT NULL,
    started_at timestamptz NOT NULL,
    attempt integer NOT NULL DEFAULT 0,
    called_at timestamptz,
    lease_until timestamptz,
    -- Calls whose answer nobody saw: each may have made a secret.
    lost integer NOT NULL DEFAULT 0,
    stored_at timestamptz,
    version integer,
    old_until timestamptz,
    verified_at timestamptz,
    log_read_at timestamptz,
    ended_at timestamptz,
    quarantined integer NOT NULL DEFAULT 0,
    recovered integer NOT NULL DEFAULT 0,
    refused integer NOT NULL DEFAULT 0,
    woken integer NOT NULL DEFAULT 0,
    refused_secret_lost integer NOT NULL DEFAULT 0,
    note text NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX rotations_open_key ON rotations (webhook_id) WHERE ended_at IS NULL;
CREATE INDEX rotations_webhook_idx ON rotations (webhook_id, id DESC);

-- recovered_at: taken up later, when the secret that signed it was known.
-- diagnosis: why it was refused, as a task worked it out after the answer.
-- secret_lost: signed with a secret that nobody ever saw.
ALTER TABLE deliveries ADD COLUMN recovered_at timestamptz;
ALTER TABLE deliveries ADD COLUMN diagnosis text NOT NULL DEFAULT '';
ALTER TABLE deliveries ADD COLUMN diagnosed_at timestamptz;
ALTER TABLE deliveries ADD COLUMN secret_lost boolean NOT NULL DEFAULT false;
CREATE INDEX deliveries_undiagnosed_idx ON deliveries (id) WHERE verdict = 'refused' AND diagnosed_at IS NULL;
-- What each version of a secret verified, and when last.
CREATE INDEX deliveries_secret_idx ON deliveries (webhook_id, secret_version, received_at) WHERE secret_version IS NOT NULL;

CREATE TABLE audit_log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL,
    user_id bigint REFERENCES users (id),
    who text NOT NULL,
    source text NOT NULL DEFAULT '',
    what text NOT NULL,
    kind text NOT NULL DEFAULT '',
    on_id text NOT NULL DEFAULT '',
    before jsonb,
    after jsonb
);
CREATE INDEX audit_log_at_idx ON audit_log (at DESC, id DESC);
CREATE INDEX audit_log_what_idx ON audit_log (what, at DESC, id DESC);
CREATE INDEX audit_log_who_idx ON audit_log (lower(who), at DESC, id DESC);

-- Written once: nothing the app does may change a row.
CREATE FUNCTION audit_log_is_written_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is written once';
END $$;
CREATE TRIGGER audit_log_is_written_once BEFORE UPDATE OR DELETE ON audit_log
    FOR EACH ROW EXECUTE FUNCTION audit_log_is_written_once();
