-- What keeps refused deliveries within their bounds.

-- unsigned: it carried no signature at all. Of those a sample is kept.
ALTER TABLE deliveries ADD COLUMN unsigned boolean NOT NULL DEFAULT false;

-- Refused deliveries that were counted instead of kept, a row for each webhook,
-- day and cause: unsigned beyond the sample, full when the quarantine was, busy
-- when more came at once than could be written.
CREATE TABLE refused_counts (
    webhook_id bigint NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    day date NOT NULL,
    cause text NOT NULL CHECK (cause IN ('unsigned', 'full', 'busy')),
    deliveries bigint NOT NULL,
    last_at timestamptz NOT NULL,
    last_source text NOT NULL DEFAULT '',
    PRIMARY KEY (webhook_id, day, cause)
);
