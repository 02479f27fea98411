-- Polling by lists, and what auto mode decided: facts that replicas share.

-- Whose turn it is to read a list of the vendor's, and what came of the last
-- turn. Only extract jobs are many enough to be answered by lists.
CREATE TABLE list_sweeps (
    kind text PRIMARY KEY CHECK (kind IN ('extract')),
    -- It counts up with each turn, so that a sweeper whose lease ran out cannot
    -- end another's.
    turn bigint NOT NULL DEFAULT 0,
    next_at timestamptz,
    lease_until timestamptz,
    -- Until then the list is of no use, and jobs are asked about one by one.
    singly_until timestamptz,
    failures integer NOT NULL DEFAULT 0,
    ended_at timestamptz,
    due integer NOT NULL DEFAULT 0,
    pages integer NOT NULL DEFAULT 0,
    woken integer NOT NULL DEFAULT 0,
    note text NOT NULL DEFAULT ''
);
INSERT INTO list_sweeps (kind) VALUES ('extract');

-- What auto mode meant from when on, and why. The id is one more than the last:
-- of replicas that notice the same change only one can write it.
CREATE TABLE mode_changes (
    id bigint PRIMARY KEY,
    at timestamptz NOT NULL,
    mode text NOT NULL CHECK (mode IN ('webhook', 'poll')),
    reason text NOT NULL
);

-- Due extract jobs stay due while a list answers for them; the others are found
-- past them.
CREATE INDEX jobs_due_others_idx ON jobs (next_poll_at, id) WHERE state = 'accepted' AND kind <> 'extract';
