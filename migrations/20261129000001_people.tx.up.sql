-- People: who may sign in, their sessions, and the settings kept in the database.

CREATE TABLE users (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 80),
    role text NOT NULL CHECK (role IN ('analyst', 'operator', 'admin')),
    password_hash text NOT NULL,
    time_zone text NOT NULL DEFAULT '',
    theme text NOT NULL DEFAULT '' CHECK (theme IN ('', 'light', 'dark')),
    created_at timestamptz NOT NULL,
    password_changed_at timestamptz NOT NULL,
    last_sign_in_at timestamptz,
    disabled_at timestamptz
);
-- Names are told apart without regard to case.
CREATE UNIQUE INDEX users_name_key ON users (lower(name));

-- The cookie holds a random token; only its SHA-256 is kept, so a copy of the
-- table opens no session.
CREATE TABLE sessions (
    token_hash bytea PRIMARY KEY,
    user_id bigint REFERENCES users (id) ON DELETE CASCADE,
    data bytea NOT NULL,
    created_at timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    source text NOT NULL DEFAULT '',
    user_agent text NOT NULL DEFAULT ''
);
CREATE INDEX sessions_user_idx ON sessions (user_id);
CREATE INDEX sessions_expires_idx ON sessions (expires_at);

-- Failed sign-ins per name and per source: they delay the next try, never lock.
CREATE TABLE sign_in_delays (
    key text PRIMARY KEY,
    failures integer NOT NULL,
    last_failed_at timestamptz NOT NULL,
    next_try_at timestamptz NOT NULL
);

-- Small facts the whole installation shares: the set-up token's hash, the
-- fingerprint of the API key, the vendor's clock offset.
CREATE TABLE settings (
    key text PRIMARY KEY,
    value text NOT NULL,
    updated_at timestamptz NOT NULL
);

-- The oldest release of Rollcall that may run on this schema. A migration that
-- older releases cannot live with raises it; serve refuses when it is above
-- its own release number.
CREATE TABLE schema_release (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    requires integer NOT NULL
);
INSERT INTO schema_release (requires) VALUES (1);
