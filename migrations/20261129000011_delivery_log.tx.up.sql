-- The vendor's own list of attempts to deliver, mirrored for each webhook, and
-- what the lists of deliveries need so that no filter reads more than it shows.

-- One attempt, as the vendor's log shows it. id only orders attempts of one
-- time; who an attempt is the primary key says.
CREATE TABLE delivery_log (
    id bigint GENERATED ALWAYS AS IDENTITY,
    webhook_id bigint NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    vendor_id text NOT NULL,
    -- Zero when the vendor doesn't number it.
    attempt integer NOT NULL,
    event_type text NOT NULL DEFAULT '',
    -- Empty when the vendor names no job.
    vendor_job_id text NOT NULL DEFAULT '',
    -- The vendor's word, whatever it is.
    status text NOT NULL,
    http_status integer,
    delivered_at timestamptz,
    -- By the vendor's clock; when it gives none, when we first saw the row.
    created_at timestamptz NOT NULL,
    -- When the reading began that last changed the row: an older one must not
    -- write over it.
    seen_at timestamptz NOT NULL,
    -- The delivery it is here. Kept when the delivery itself has gone.
    delivery_id bigint,
    PRIMARY KEY (webhook_id, vendor_id, attempt)
);
CREATE UNIQUE INDEX delivery_log_newest_idx ON delivery_log (created_at DESC, id DESC);
CREATE INDEX delivery_log_webhook_idx ON delivery_log (webhook_id, created_at DESC, id DESC);
CREATE INDEX delivery_log_event_idx ON delivery_log (event_type, created_at DESC, id DESC);
CREATE INDEX delivery_log_status_idx ON delivery_log (status, created_at DESC, id DESC);
CREATE INDEX delivery_log_http_idx ON delivery_log (http_status, created_at DESC, id DESC) WHERE http_status IS NOT NULL;
CREATE INDEX delivery_log_class_idx ON delivery_log ((http_status / 100), created_at DESC, id DESC) WHERE http_status IS NOT NULL;
CREATE INDEX delivery_log_attempt_idx ON delivery_log (attempt, created_at DESC, id DESC) WHERE attempt <> 1;
CREATE INDEX delivery_log_job_idx ON delivery_log (vendor_job_id, created_at DESC, id DESC) WHERE vendor_job_id <> '';
-- What a reconcile run goes through, for jobs whose event did not arrive.
CREATE INDEX delivery_log_missed_idx ON delivery_log (created_at, id) WHERE status <> 'success';
-- By the id that deliveries carry, whatever webhook they came to.
CREATE INDEX delivery_log_vendor_idx ON delivery_log (vendor_id);
-- What is here as a delivery, and what isn't.
CREATE INDEX delivery_log_delivery_idx ON delivery_log (delivery_id) WHERE delivery_id IS NOT NULL;
CREATE INDEX delivery_log_here_idx ON delivery_log (created_at DESC, id DESC) WHERE delivery_id IS NOT NULL;
-- Any other status is one of an attempt that failed; the query says it in the
-- same words.
CREATE INDEX delivery_log_absent_idx ON delivery_log (
    (CASE WHEN status IN ('success', 'abandoned', 'pending') THEN status ELSE 'failed' END), created_at DESC, id DESC)
    WHERE delivery_id IS NULL;

-- How far each webhook's log was read.
CREATE TABLE delivery_log_reads (
    webhook_id bigint PRIMARY KEY REFERENCES webhooks (id) ON DELETE CASCADE,
    -- Where a reading that was cut short goes on; zero when none was.
    next_page integer NOT NULL DEFAULT 0,
    -- That reading goes to the log's end, whatever it finds unchanged.
    whole boolean NOT NULL DEFAULT false,
    started_at timestamptz,
    -- The last reading that came to its end, and the last that read all.
    read_at timestamptz,
    whole_at timestamptz,
    -- Whether the last reading saw the newest rows come first.
    newest_first boolean NOT NULL DEFAULT false,
    pages integer NOT NULL DEFAULT 0,
    added integer NOT NULL DEFAULT 0,
    changed integer NOT NULL DEFAULT 0,
    note text NOT NULL DEFAULT '',
    -- Somebody asked for a reading, which has not ended.
    asked_at timestamptz
);

CREATE INDEX deliveries_webhook_idx ON deliveries (webhook_id, received_at DESC, id DESC);
CREATE INDEX deliveries_event_idx ON deliveries (event_type, received_at DESC, id DESC);
-- Nearly all are answered 200: those are found by their time.
CREATE INDEX deliveries_status_idx ON deliveries (status, received_at DESC, id DESC) WHERE status <> 200;
CREATE INDEX deliveries_vendor_delivery_idx ON deliveries (vendor_delivery_id) WHERE vendor_delivery_id <> '';
