-- People: links that are good once, sessions that a page can name, and the
-- ways in which the audit log is asked.

-- The link holds a random token; only its SHA-256 is kept. A row goes when its
-- link is used, revoked or replaced, so a used link and one that never was are
-- the same to whoever asks.
CREATE TABLE invites (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    token_hash bytea NOT NULL UNIQUE,
    -- Whose password it sets; null for somebody who has no account yet.
    user_id bigint UNIQUE REFERENCES users (id) ON DELETE CASCADE,
    name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 80),
    role text NOT NULL CHECK (role IN ('analyst', 'operator', 'admin')),
    made_by text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
-- One open link for a name: a second replaces the first.
CREATE UNIQUE INDEX invites_name_key ON invites (lower(name));
CREATE INDEX invites_expires_idx ON invites (expires_at);

-- What a page calls a session by: its key is a hash of the token.
ALTER TABLE sessions ADD COLUMN id bigint GENERATED ALWAYS AS IDENTITY;
CREATE UNIQUE INDEX sessions_id_key ON sessions (id);

CREATE INDEX audit_log_kind_idx ON audit_log (kind, at DESC, id DESC);
CREATE INDEX audit_log_on_idx ON audit_log (kind, on_id, at DESC, id DESC);

-- Nor may it be emptied.
CREATE TRIGGER audit_log_is_not_emptied BEFORE TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION audit_log_is_written_once();
