-- What the pages ask of failures besides their codes: those of one batch, and
-- those of one host, spelled as the query spells it.
CREATE INDEX items_failed_batch_idx ON items (batch_id, ended_at DESC, id DESC) WHERE state = 'failed';
CREATE INDEX items_failed_host_idx ON items (lower(substring(url FROM '^[A-Za-z]+://([^/?#:]+)')), ended_at DESC, id DESC)
    WHERE state = 'failed';
