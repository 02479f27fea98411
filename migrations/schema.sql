-- The schema that the migrations make, River's tables included. Written by: make schema
-- To read, never to run.

CREATE TYPE public.river_job_state AS ENUM (
    'available',
    'cancelled',
    'completed',
    'discarded',
    'pending',
    'retryable',
    'running',
    'scheduled'
);

CREATE FUNCTION public.audit_log_is_written_once() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('rollcall.audit_time_is_over', true) = 'yes' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the audit log is written once';
END $$;

CREATE FUNCTION public.failure_message(message text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT left(regexp_replace(regexp_replace(regexp_replace(left(message, 1000),
        '[a-z][a-z0-9+.-]*://[^\s"''<>]+', '<url>', 'gi'),
        '\m(?=[a-z0-9_-]*[0-9])(?=[a-z0-9_-]*[a-z])[a-z0-9_-]{6,}\M', '#', 'gi'),
        '(?<!(http|status|code)(/[0-9.]+)?[ /:=]{1,2})\m[0-9]+(\.[0-9]+)*', '#', 'gi'), 200)
$$;

CREATE FUNCTION public.river_job_state_in_bitmask(bitmask bit, state public.river_job_state) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT CASE state
        WHEN 'available' THEN get_bit(bitmask, 7)
        WHEN 'cancelled' THEN get_bit(bitmask, 6)
        WHEN 'completed' THEN get_bit(bitmask, 5)
        WHEN 'discarded' THEN get_bit(bitmask, 4)
        WHEN 'pending'   THEN get_bit(bitmask, 3)
        WHEN 'retryable' THEN get_bit(bitmask, 2)
        WHEN 'running'   THEN get_bit(bitmask, 1)
        WHEN 'scheduled' THEN get_bit(bitmask, 0)
        ELSE 0
    END = 1;
$$;

CREATE FUNCTION public.search_todo_add() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO search_todo (item_id) VALUES (NEW.item_id);
    RETURN NULL;
END
$$;

CREATE TABLE public.audit_log (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    user_id bigint,
    who text NOT NULL,
    source text DEFAULT ''::text NOT NULL,
    what text NOT NULL,
    kind text DEFAULT ''::text NOT NULL,
    on_id text DEFAULT ''::text NOT NULL,
    before jsonb,
    after jsonb
);

ALTER TABLE public.audit_log ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.audit_log_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.batch_pace (
    batch_id bigint NOT NULL,
    slot smallint NOT NULL,
    began timestamp with time zone NOT NULL,
    ended integer NOT NULL,
    last_at timestamp with time zone NOT NULL
)
WITH (fillfactor='70');

CREATE TABLE public.batches (
    id bigint NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    options jsonb NOT NULL,
    headers_sealed bytea,
    created_by bigint,
    created_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    cancel_requested_at timestamp with time zone,
    submitted integer DEFAULT 0 NOT NULL,
    invalid integer DEFAULT 0 NOT NULL,
    duplicate integer DEFAULT 0 NOT NULL,
    accepted integer DEFAULT 0 NOT NULL,
    stored_webhook integer DEFAULT 0 NOT NULL,
    stored_poll integer DEFAULT 0 NOT NULL,
    stored_reconcile integer DEFAULT 0 NOT NULL,
    stored_replay integer DEFAULT 0 NOT NULL,
    stored_sync integer DEFAULT 0 NOT NULL,
    failed integer DEFAULT 0 NOT NULL,
    cancelled integer DEFAULT 0 NOT NULL,
    outstanding integer GENERATED ALWAYS AS ((((((((accepted - stored_webhook) - stored_poll) - stored_reconcile) - stored_replay) - stored_sync) - failed) - cancelled)) STORED NOT NULL,
    charged integer DEFAULT 0 NOT NULL,
    charged_twice integer DEFAULT 0 NOT NULL,
    submit_token text,
    columns text[],
    url_column text DEFAULT ''::text NOT NULL,
    parent_batch_id bigint,
    rerun text,
    pruned_at timestamp with time zone,
    prune_ended_at timestamp with time zone,
    CONSTRAINT batches_counts_positive CHECK ((LEAST(invalid, duplicate, accepted, stored_webhook, stored_poll, stored_reconcile, stored_replay, stored_sync, failed, cancelled) >= 0)),
    CONSTRAINT batches_kind_check CHECK ((kind = ANY (ARRAY['extract'::text, 'batch'::text, 'mixed'::text, 'crawl'::text, 'sync'::text]))),
    CONSTRAINT batches_outstanding_positive CHECK (((((((((accepted - stored_webhook) - stored_poll) - stored_reconcile) - stored_replay) - stored_sync) - failed) - cancelled) >= 0)),
    CONSTRAINT batches_pruned_in_order CHECK (((prune_ended_at IS NULL) OR (pruned_at IS NOT NULL))),
    CONSTRAINT batches_pruned_is_over CHECK (((pruned_at IS NULL) OR (outstanding = 0))),
    CONSTRAINT batches_rerun_check CHECK ((rerun = ANY (ARRAY['all'::text, 'failures'::text, 'schedule'::text]))),
    CONSTRAINT batches_rerun_of CHECK (((rerun IS NULL) = (parent_batch_id IS NULL))),
    CONSTRAINT batches_submit_token_check CHECK (((char_length(submit_token) >= 1) AND (char_length(submit_token) <= 64))),
    CONSTRAINT batches_submitted_sum CHECK ((submitted = ((invalid + duplicate) + accepted)))
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.02');

ALTER TABLE public.batches ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.batches_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.bun_migration_locks (
    id bigint NOT NULL,
    table_name character varying
);

CREATE SEQUENCE public.bun_migration_locks_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.bun_migration_locks_id_seq OWNED BY public.bun_migration_locks.id;

CREATE TABLE public.bun_migrations (
    id bigint NOT NULL,
    name character varying,
    group_id bigint,
    migrated_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL
);

CREATE SEQUENCE public.bun_migrations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.bun_migrations_id_seq OWNED BY public.bun_migrations.id;

CREATE TABLE public.call_counts (
    hour timestamp with time zone NOT NULL,
    kind text NOT NULL,
    n bigint NOT NULL,
    CONSTRAINT call_counts_hour_check CHECK ((hour = date_trunc('hour'::text, hour, 'UTC'::text))),
    CONSTRAINT call_counts_n_check CHECK ((n > 0))
);

CREATE TABLE public.comparison_pages (
    comparison_id bigint NOT NULL,
    kind text NOT NULL,
    n integer NOT NULL,
    a_item_id bigint,
    b_item_id bigint,
    a_state text DEFAULT ''::text NOT NULL,
    b_state text DEFAULT ''::text NOT NULL,
    CONSTRAINT comparison_pages_kind_check CHECK ((kind = ANY (ARRAY['unchanged'::text, 'changed'::text, 'recovered'::text, 'lost'::text, 'new'::text, 'gone'::text, 'failed'::text, 'missing'::text])))
);

CREATE TABLE public.comparisons (
    id bigint NOT NULL,
    a_batch_id bigint NOT NULL,
    b_batch_id bigint NOT NULL,
    state text NOT NULL,
    asked_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    a_stored bigint DEFAULT 0 NOT NULL,
    b_stored bigint DEFAULT 0 NOT NULL,
    unchanged bigint DEFAULT 0 NOT NULL,
    changed bigint DEFAULT 0 NOT NULL,
    added bigint DEFAULT 0 NOT NULL,
    gone bigint DEFAULT 0 NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    recovered bigint DEFAULT 0 NOT NULL,
    lost bigint DEFAULT 0 NOT NULL,
    failed_both bigint DEFAULT 0 NOT NULL,
    missing bigint DEFAULT 0 NOT NULL,
    a_pages bigint DEFAULT 0 NOT NULL,
    b_pages bigint DEFAULT 0 NOT NULL,
    a_without bigint DEFAULT 0 NOT NULL,
    b_without bigint DEFAULT 0 NOT NULL,
    CONSTRAINT comparisons_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'done'::text, 'failed'::text])))
);

ALTER TABLE public.comparisons ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.comparisons_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.crawl_pages (
    job_id bigint NOT NULL,
    url_hash bytea NOT NULL,
    item_id bigint NOT NULL,
    parent_url text DEFAULT ''::text NOT NULL,
    depth integer DEFAULT 1 NOT NULL
);

CREATE TABLE public.deliveries (
    id bigint NOT NULL,
    webhook_id bigint,
    received_at timestamp with time zone NOT NULL,
    verdict text NOT NULL,
    status smallint NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    event_type text DEFAULT ''::text NOT NULL,
    vendor_job_id text DEFAULT ''::text NOT NULL,
    vendor_delivery_id text DEFAULT ''::text NOT NULL,
    secret_version integer,
    signature_form text DEFAULT ''::text NOT NULL,
    source text DEFAULT ''::text NOT NULL,
    micros bigint DEFAULT 0 NOT NULL,
    headers bytea NOT NULL,
    body bytea NOT NULL,
    body_size bigint NOT NULL,
    recovered_at timestamp with time zone,
    diagnosis text DEFAULT ''::text NOT NULL,
    diagnosed_at timestamp with time zone,
    secret_lost boolean DEFAULT false NOT NULL,
    unsigned boolean DEFAULT false NOT NULL,
    CONSTRAINT deliveries_verdict_check CHECK ((verdict = ANY (ARRAY['accepted'::text, 'duplicate'::text, 'refused'::text, 'unreadable'::text])))
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_insert_scale_factor='0.02', autovacuum_analyze_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');
ALTER TABLE ONLY public.deliveries ALTER COLUMN body SET COMPRESSION lz4;

ALTER TABLE public.deliveries ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.deliveries_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.delivery_log (
    id bigint NOT NULL,
    webhook_id bigint NOT NULL,
    vendor_id text NOT NULL,
    attempt integer NOT NULL,
    event_type text DEFAULT ''::text NOT NULL,
    vendor_job_id text DEFAULT ''::text NOT NULL,
    status text NOT NULL,
    http_status integer,
    delivered_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    delivery_id bigint
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_insert_scale_factor='0.02', autovacuum_analyze_scale_factor='0.02');

ALTER TABLE public.delivery_log ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.delivery_log_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.delivery_log_reads (
    webhook_id bigint NOT NULL,
    next_page integer DEFAULT 0 NOT NULL,
    whole boolean DEFAULT false NOT NULL,
    started_at timestamp with time zone,
    read_at timestamp with time zone,
    whole_at timestamp with time zone,
    newest_first boolean DEFAULT false NOT NULL,
    pages integer DEFAULT 0 NOT NULL,
    added integer DEFAULT 0 NOT NULL,
    changed integer DEFAULT 0 NOT NULL,
    note text DEFAULT ''::text NOT NULL,
    asked_at timestamp with time zone
);

CREATE TABLE public.disk_samples (
    at timestamp with time zone NOT NULL,
    part text NOT NULL,
    bytes bigint NOT NULL,
    CONSTRAINT disk_samples_bytes_check CHECK ((bytes >= 0)),
    CONSTRAINT disk_samples_part_check CHECK ((part = ANY (ARRAY['results'::text, 'search'::text, 'items'::text, 'deliveries'::text, 'exports'::text, 'other'::text])))
);

CREATE TABLE public.export_chunks (
    export_id bigint NOT NULL,
    n integer NOT NULL,
    body bytea NOT NULL
);
ALTER TABLE ONLY public.export_chunks ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE public.exports (
    id bigint NOT NULL,
    submit_token text,
    owner_id bigint,
    made_by text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    direct boolean DEFAULT false NOT NULL,
    state text NOT NULL,
    name text NOT NULL,
    picked text NOT NULL,
    filter jsonb NOT NULL,
    choices jsonb NOT NULL,
    columns text[],
    expected bigint,
    rows bigint DEFAULT 0 NOT NULL,
    pages bigint DEFAULT 0 NOT NULL,
    bytes bigint DEFAULT 0 NOT NULL,
    sha256 bytea,
    manifest jsonb,
    reason text DEFAULT ''::text NOT NULL,
    claim integer DEFAULT 0 NOT NULL,
    started_at timestamp with time zone,
    beat_at timestamp with time zone,
    ended_at timestamp with time zone,
    expires_at timestamp with time zone NOT NULL,
    downloads integer DEFAULT 0 NOT NULL,
    held boolean NOT NULL,
    CONSTRAINT exports_done CHECK (((state <> 'done'::text) OR (sha256 IS NOT NULL))),
    CONSTRAINT exports_ended CHECK (((state = ANY (ARRAY['waiting'::text, 'running'::text])) = (ended_at IS NULL))),
    CONSTRAINT exports_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'running'::text, 'done'::text, 'failed'::text, 'cancelled'::text, 'expired'::text]))),
    CONSTRAINT exports_submit_token_check CHECK (((char_length(submit_token) >= 1) AND (char_length(submit_token) <= 64)))
);

ALTER TABLE public.exports ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.exports_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.gate_pauses (
    id bigint NOT NULL,
    name text NOT NULL,
    paused_at timestamp with time zone NOT NULL,
    resumed_at timestamp with time zone NOT NULL
);

ALTER TABLE public.gate_pauses ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.gate_pauses_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.gates (
    name text NOT NULL,
    closed_until timestamp with time zone,
    closings integer DEFAULT 0 NOT NULL,
    paused_at timestamp with time zone,
    paused_status smallint,
    paused_reason text DEFAULT ''::text NOT NULL,
    probe_at timestamp with time zone,
    CONSTRAINT gates_name_check CHECK ((name = ANY (ARRAY['submit'::text, 'read'::text])))
);

CREATE TABLE public.hourly_stats (
    hour timestamp with time zone NOT NULL,
    rolled_at timestamp with time zone NOT NULL,
    took_ms bigint NOT NULL,
    closed boolean NOT NULL,
    stored_webhook bigint NOT NULL,
    stored_poll bigint NOT NULL,
    stored_reconcile bigint NOT NULL,
    stored_replay bigint NOT NULL,
    stored_sync bigint NOT NULL,
    submit_latency bigint[] NOT NULL,
    vendor_latency bigint[] NOT NULL,
    jobs_completed bigint NOT NULL,
    jobs_failed bigint NOT NULL,
    jobs_cancelled bigint NOT NULL,
    in_time bigint NOT NULL,
    repaired_poll bigint NOT NULL,
    repaired_reconcile bigint NOT NULL,
    repaired_replay bigint NOT NULL,
    charged bigint NOT NULL,
    compared_jobs bigint NOT NULL,
    calls_each_second bigint NOT NULL,
    calls_backoff bigint NOT NULL,
    deliveries_accepted bigint NOT NULL,
    deliveries_duplicate bigint NOT NULL,
    deliveries_refused bigint NOT NULL,
    CONSTRAINT hourly_stats_hour_check CHECK ((hour = date_trunc('hour'::text, hour, 'UTC'::text)))
);

CREATE TABLE public.invites (
    id bigint NOT NULL,
    token_hash bytea NOT NULL,
    user_id bigint,
    name text NOT NULL,
    role text NOT NULL,
    made_by text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT invites_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 80))),
    CONSTRAINT invites_role_check CHECK ((role = ANY (ARRAY['analyst'::text, 'operator'::text, 'admin'::text])))
);

ALTER TABLE public.invites ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.invites_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.items (
    id bigint NOT NULL,
    batch_id bigint NOT NULL,
    "position" integer NOT NULL,
    url text NOT NULL,
    url_hash bytea NOT NULL,
    state text DEFAULT 'outstanding'::text NOT NULL,
    net text,
    current_job_id bigint,
    retries smallint DEFAULT 0 NOT NULL,
    error_code text DEFAULT ''::text NOT NULL,
    error_message text DEFAULT ''::text NOT NULL,
    error_retryable boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    host text GENERATED ALWAYS AS (COALESCE(lower("substring"(url, '^[A-Za-z]+://(\[[^]/?#]*\]|[^/?#:]+)'::text)), ''::text)) STORED NOT NULL,
    failure_group uuid GENERATED ALWAYS AS (
CASE
    WHEN (state = 'failed'::text) THEN (md5(((((error_code || ' '::text) || COALESCE(lower("substring"(url, '^[A-Za-z]+://(\[[^]/?#]*\]|[^/?#:]+)'::text)), ''::text)) || ' '::text) || public.failure_message(error_message))))::uuid
    ELSE NULL::uuid
END) STORED,
    extra text[],
    resolved_at timestamp with time zone,
    resolved_by bigint,
    resolved_note text DEFAULT ''::text NOT NULL,
    line integer,
    original text,
    CONSTRAINT items_ended CHECK (((state = 'outstanding'::text) = (ended_at IS NULL))),
    CONSTRAINT items_failed_has_code CHECK (((state <> 'failed'::text) OR (error_code <> ''::text))),
    CONSTRAINT items_net_check CHECK ((net = ANY (ARRAY['webhook'::text, 'poll'::text, 'reconcile'::text, 'replay'::text, 'sync'::text]))),
    CONSTRAINT items_state_check CHECK ((state = ANY (ARRAY['outstanding'::text, 'stored'::text, 'failed'::text, 'cancelled'::text]))),
    CONSTRAINT items_stored_has_net CHECK (((state = 'stored'::text) = (net IS NOT NULL)))
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_insert_scale_factor='0.02', autovacuum_analyze_scale_factor='0.02');

ALTER TABLE public.items ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.items_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.job_events (
    id bigint NOT NULL,
    job_id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    kind text NOT NULL,
    net text DEFAULT ''::text NOT NULL,
    detail text DEFAULT ''::text NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_insert_scale_factor='0.02', autovacuum_analyze_scale_factor='0.02');

ALTER TABLE public.job_events ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.job_events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.job_items (
    job_id bigint NOT NULL,
    input_index integer NOT NULL,
    item_id bigint NOT NULL,
    outcome text,
    error_code text DEFAULT ''::text NOT NULL,
    error_message text DEFAULT ''::text NOT NULL,
    reported_at timestamp with time zone,
    CONSTRAINT job_items_outcome_check CHECK ((outcome = ANY (ARRAY['stored'::text, 'failed'::text, 'cancelled'::text, 'retry'::text, 'superseded'::text])))
)
WITH (fillfactor='75', autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_insert_scale_factor='0.02', autovacuum_analyze_scale_factor='0.02');

CREATE TABLE public.jobs (
    id bigint NOT NULL,
    batch_id bigint NOT NULL,
    kind text NOT NULL,
    state text NOT NULL,
    origin text NOT NULL,
    parent_job_id bigint,
    depth smallint DEFAULT 0 NOT NULL,
    request_hash bytea NOT NULL,
    url_count integer NOT NULL,
    created_at timestamp with time zone NOT NULL,
    call_no integer DEFAULT 0 NOT NULL,
    called_at timestamp with time zone,
    lease_until timestamp with time zone,
    adopt_passes smallint DEFAULT 0 NOT NULL,
    adopt_pass_at timestamp with time zone,
    vendor_job_id text,
    account text DEFAULT ''::text NOT NULL,
    accepted_at timestamp with time zone,
    adopted boolean DEFAULT false NOT NULL,
    vendor_status text DEFAULT ''::text NOT NULL,
    vendor_reports jsonb,
    vendor_invalid_urls jsonb,
    wake_seq bigint DEFAULT 0 NOT NULL,
    wake_net text,
    next_poll_at timestamp with time zone,
    polls integer DEFAULT 0 NOT NULL,
    overdue boolean DEFAULT false NOT NULL,
    webhook_at timestamp with time zone,
    settle_page integer DEFAULT 1 NOT NULL,
    settle_passes smallint DEFAULT 0 NOT NULL,
    settle_pass_at timestamp with time zone,
    page_size smallint DEFAULT 50 NOT NULL,
    not_found integer DEFAULT 0 NOT NULL,
    not_found_at timestamp with time zone,
    ended_at timestamp with time zone,
    settle_net text,
    error_code text DEFAULT ''::text NOT NULL,
    error_message text DEFAULT ''::text NOT NULL,
    superseded boolean DEFAULT false NOT NULL,
    misnumbered boolean DEFAULT false NOT NULL,
    charged integer DEFAULT 0 NOT NULL,
    cancel_requested_at timestamp with time zone,
    look text DEFAULT ''::text NOT NULL,
    vendor_ended_at timestamp with time zone,
    called_vendor_at timestamp with time zone,
    settle_pass_vendor_at timestamp with time zone,
    CONSTRAINT jobs_kind_check CHECK ((kind = ANY (ARRAY['extract'::text, 'batch'::text, 'crawl'::text]))),
    CONSTRAINT jobs_look_check CHECK ((look = ANY (ARRAY[''::text, 'running'::text, 'not_found'::text, 'no_answer'::text, 'incomplete'::text]))),
    CONSTRAINT jobs_origin_check CHECK ((origin = ANY (ARRAY['submit'::text, 'split'::text, 'retry'::text, 'resubmit'::text]))),
    CONSTRAINT jobs_page_size_check CHECK (((page_size >= 1) AND (page_size <= 50))),
    CONSTRAINT jobs_settle_net_check CHECK ((settle_net = ANY (ARRAY['webhook'::text, 'poll'::text, 'reconcile'::text, 'replay'::text]))),
    CONSTRAINT jobs_state_check CHECK ((state = ANY (ARRAY['intended'::text, 'calling'::text, 'uncertain'::text, 'accepted'::text, 'settled'::text, 'given_up'::text, 'refused'::text, 'withdrawn'::text, 'split'::text]))),
    CONSTRAINT jobs_vendor_job_id_check CHECK (((char_length(vendor_job_id) >= 1) AND (char_length(vendor_job_id) <= 200))),
    CONSTRAINT jobs_wake_net_check CHECK ((wake_net = ANY (ARRAY['webhook'::text, 'poll'::text, 'reconcile'::text, 'replay'::text])))
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_insert_scale_factor='0.02', autovacuum_analyze_scale_factor='0.02');

ALTER TABLE public.jobs ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.jobs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.list_sweeps (
    kind text NOT NULL,
    turn bigint DEFAULT 0 NOT NULL,
    next_at timestamp with time zone,
    lease_until timestamp with time zone,
    singly_until timestamp with time zone,
    failures integer DEFAULT 0 NOT NULL,
    ended_at timestamp with time zone,
    due integer DEFAULT 0 NOT NULL,
    pages integer DEFAULT 0 NOT NULL,
    woken integer DEFAULT 0 NOT NULL,
    note text DEFAULT ''::text NOT NULL,
    CONSTRAINT list_sweeps_kind_check CHECK ((kind = 'extract'::text))
);

CREATE TABLE public.mode_changes (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    mode text NOT NULL,
    reason text NOT NULL,
    CONSTRAINT mode_changes_mode_check CHECK ((mode = ANY (ARRAY['webhook'::text, 'poll'::text])))
);

CREATE TABLE public.preflight_lines (
    preflight_id bigint NOT NULL,
    number integer NOT NULL,
    verdict text NOT NULL,
    original text NOT NULL,
    url text NOT NULL,
    reason text NOT NULL,
    duplicate_of integer,
    stored_item bigint,
    extra text[],
    CONSTRAINT preflight_lines_verdict_check CHECK ((verdict = ANY (ARRAY['accepted'::text, 'fixed'::text, 'duplicate'::text, 'invalid'::text])))
);

CREATE TABLE public.preflights (
    id bigint NOT NULL,
    created_by bigint,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    options jsonb NOT NULL,
    headers_sealed bytea,
    pasted bytea,
    upload bytea,
    upload_name text NOT NULL,
    upload_size bigint NOT NULL,
    choices jsonb NOT NULL,
    stored_days integer NOT NULL,
    reading integer DEFAULT 0 NOT NULL,
    detected jsonb DEFAULT '{}'::jsonb NOT NULL,
    totals jsonb DEFAULT '{}'::jsonb NOT NULL,
    problem text DEFAULT ''::text NOT NULL,
    problem_field text DEFAULT ''::text NOT NULL,
    batch_id bigint,
    packed boolean DEFAULT false NOT NULL,
    CONSTRAINT preflights_stored_days_check CHECK (((stored_days >= 0) AND (stored_days <= 3650)))
);

ALTER TABLE public.preflights ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.preflights_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.processed_events (
    vendor_job_id text NOT NULL,
    event_type text NOT NULL,
    received_at timestamp with time zone NOT NULL,
    state text NOT NULL,
    job_id bigint,
    CONSTRAINT processed_events_state_check CHECK ((state = ANY (ARRAY['held'::text, 'claimed'::text, 'foreign'::text, 'pruned'::text]))),
    CONSTRAINT processed_events_vendor_job_id_check CHECK (((char_length(vendor_job_id) >= 1) AND (char_length(vendor_job_id) <= 200)))
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_insert_scale_factor='0.02', autovacuum_analyze_scale_factor='0.02');

CREATE TABLE public.reconcile_runs (
    id bigint NOT NULL,
    trigger text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    window_start timestamp with time zone NOT NULL,
    window_end timestamp with time zone NOT NULL,
    pages integer DEFAULT 0 NOT NULL,
    listed integer DEFAULT 0 NOT NULL,
    missing integer DEFAULT 0 NOT NULL,
    woken integer DEFAULT 0 NOT NULL,
    singly integer DEFAULT 0 NOT NULL,
    foreign_jobs integer DEFAULT 0 NOT NULL,
    errors integer DEFAULT 0 NOT NULL,
    note text DEFAULT ''::text NOT NULL,
    refused integer DEFAULT 0 NOT NULL,
    held integer DEFAULT 0 NOT NULL,
    CONSTRAINT reconcile_runs_trigger_check CHECK ((trigger = ANY (ARRAY['timer'::text, 'person'::text, 'command'::text])))
);

ALTER TABLE public.reconcile_runs ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.reconcile_runs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.refused_counts (
    webhook_id bigint NOT NULL,
    day date NOT NULL,
    cause text NOT NULL,
    deliveries bigint NOT NULL,
    last_at timestamp with time zone NOT NULL,
    last_source text DEFAULT ''::text NOT NULL,
    CONSTRAINT refused_counts_cause_check CHECK ((cause = ANY (ARRAY['unsigned'::text, 'full'::text, 'busy'::text])))
);

CREATE TABLE public.rejected_lines (
    batch_id bigint NOT NULL,
    line integer NOT NULL,
    kind text NOT NULL,
    text text NOT NULL,
    reason text NOT NULL,
    extra text[],
    duplicate_of bigint,
    stored_item bigint,
    CONSTRAINT rejected_lines_kind_check CHECK ((kind = ANY (ARRAY['invalid'::text, 'duplicate'::text])))
);

CREATE TABLE public.replay_deliveries (
    replay_id bigint NOT NULL,
    delivery_id bigint NOT NULL,
    outcome text,
    CONSTRAINT replay_deliveries_outcome_check CHECK ((outcome = ANY (ARRAY['already'::text, 'recovered'::text, 'refused'::text, 'cut'::text])))
);

CREATE TABLE public.replay_differences (
    replay_id bigint NOT NULL,
    item_id bigint NOT NULL,
    job_id bigint NOT NULL,
    found_at timestamp with time zone NOT NULL,
    version integer NOT NULL,
    kept boolean NOT NULL,
    title text DEFAULT ''::text NOT NULL,
    markdown bytea,
    html bytea,
    links bytea,
    metadata bytea,
    http_status integer,
    replaced_at timestamp with time zone,
    replaced_by text DEFAULT ''::text NOT NULL
);

CREATE TABLE public.replay_jobs (
    replay_id bigint NOT NULL,
    job_id bigint NOT NULL,
    calls integer NOT NULL,
    state text DEFAULT 'waiting'::text NOT NULL,
    woken_at timestamp with time zone,
    ended_at timestamp with time zone,
    outcome text,
    detail text DEFAULT ''::text NOT NULL,
    refetch_page integer DEFAULT 1 NOT NULL,
    refetched text,
    refetch_tries integer DEFAULT 0 NOT NULL,
    CONSTRAINT replay_jobs_ended CHECK (((state = 'ended'::text) = (outcome IS NOT NULL))),
    CONSTRAINT replay_jobs_outcome_check CHECK ((outcome = ANY (ARRAY['already_settled'::text, 'settled_now'::text, 'still_running'::text, 'failed'::text, 'unknown_to_vendor'::text, 'error'::text]))),
    CONSTRAINT replay_jobs_refetched_check CHECK ((refetched = ANY (ARRAY['same'::text, 'differs'::text, 'unknown_to_vendor'::text, 'error'::text]))),
    CONSTRAINT replay_jobs_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'woken'::text, 'refetching'::text, 'ended'::text])))
)
WITH (fillfactor='80');

CREATE TABLE public.replays (
    id bigint NOT NULL,
    state text NOT NULL,
    picked text NOT NULL,
    address text DEFAULT ''::text NOT NULL,
    submit_token text,
    planned_by text NOT NULL,
    planned_at timestamp with time zone NOT NULL,
    run_by text DEFAULT ''::text NOT NULL,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    lines integer DEFAULT 0 NOT NULL,
    unnamed integer DEFAULT 0 NOT NULL,
    foreign_jobs integer DEFAULT 0 NOT NULL,
    jobs integer DEFAULT 0 NOT NULL,
    settled_before integer DEFAULT 0 NOT NULL,
    calls bigint DEFAULT 0 NOT NULL,
    refetch_calls bigint DEFAULT 0 NOT NULL,
    deliveries integer DEFAULT 0 NOT NULL,
    refetch boolean DEFAULT false NOT NULL,
    already_settled integer DEFAULT 0 NOT NULL,
    settled_now integer DEFAULT 0 NOT NULL,
    still_running integer DEFAULT 0 NOT NULL,
    failed integer DEFAULT 0 NOT NULL,
    unknown_to_vendor integer DEFAULT 0 NOT NULL,
    errors integer DEFAULT 0 NOT NULL,
    recovered integer DEFAULT 0 NOT NULL,
    refused integer DEFAULT 0 NOT NULL,
    refetched integer DEFAULT 0 NOT NULL,
    differing integer DEFAULT 0 NOT NULL,
    kept_bytes bigint DEFAULT 0 NOT NULL,
    beat_at timestamp with time zone,
    spent_at timestamp with time zone,
    shut_at timestamp with time zone,
    pruned_jobs bigint DEFAULT 0 NOT NULL,
    CONSTRAINT replays_state_check CHECK ((state = ANY (ARRAY['planned'::text, 'running'::text, 'paused'::text, 'done'::text, 'cancelled'::text]))),
    CONSTRAINT replays_submit_token_check CHECK (((char_length(submit_token) >= 1) AND (char_length(submit_token) <= 64)))
);

ALTER TABLE public.replays ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.replays_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.result_versions (
    item_id bigint NOT NULL,
    version integer NOT NULL,
    job_id bigint,
    net text NOT NULL,
    stored_at timestamp with time zone NOT NULL,
    replaced_at timestamp with time zone NOT NULL,
    title text DEFAULT ''::text NOT NULL,
    markdown bytea,
    html bytea,
    links bytea,
    metadata bytea,
    markdown_sha256 bytea,
    html_sha256 bytea
);
ALTER TABLE ONLY public.result_versions ALTER COLUMN markdown SET COMPRESSION lz4;
ALTER TABLE ONLY public.result_versions ALTER COLUMN html SET COMPRESSION lz4;

CREATE TABLE public.results (
    item_id bigint NOT NULL,
    job_id bigint,
    net text NOT NULL,
    stored_at timestamp with time zone NOT NULL,
    title text DEFAULT ''::text NOT NULL,
    markdown bytea,
    html bytea,
    links bytea,
    metadata bytea,
    http_status integer,
    duration_ms bigint,
    retry_count integer,
    charged integer,
    markdown_sha256 bytea,
    html_sha256 bytea,
    version integer DEFAULT 1 NOT NULL,
    page_key bytea,
    mark text DEFAULT ''::text NOT NULL,
    mark_reason text DEFAULT ''::text NOT NULL,
    CONSTRAINT results_mark_check CHECK ((mark = ANY (ARRAY[''::text, 'empty'::text, 'blocked'::text]))),
    CONSTRAINT results_net_check CHECK ((net = ANY (ARRAY['webhook'::text, 'poll'::text, 'reconcile'::text, 'replay'::text, 'sync'::text]))),
    CONSTRAINT results_page_key_check CHECK ((octet_length(page_key) = 16))
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_insert_scale_factor='0.02', autovacuum_analyze_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');
ALTER TABLE ONLY public.results ALTER COLUMN markdown SET COMPRESSION lz4;
ALTER TABLE ONLY public.results ALTER COLUMN html SET COMPRESSION lz4;

CREATE TABLE public.river_job (
    id bigint NOT NULL,
    state public.river_job_state DEFAULT 'available'::public.river_job_state NOT NULL,
    attempt smallint DEFAULT 0 NOT NULL,
    max_attempts smallint DEFAULT 25 NOT NULL,
    attempted_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    finalized_at timestamp with time zone,
    scheduled_at timestamp with time zone DEFAULT now() NOT NULL,
    priority smallint DEFAULT 1 NOT NULL,
    args jsonb NOT NULL,
    attempted_by text[],
    errors jsonb[],
    kind text NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    queue text DEFAULT 'default'::text NOT NULL,
    tags character varying(255)[] DEFAULT '{}'::character varying[] NOT NULL,
    unique_key bytea,
    unique_states bit(8),
    CONSTRAINT finalized_or_finalized_at_null CHECK ((((finalized_at IS NULL) AND (state <> ALL (ARRAY['cancelled'::public.river_job_state, 'completed'::public.river_job_state, 'discarded'::public.river_job_state]))) OR ((finalized_at IS NOT NULL) AND (state = ANY (ARRAY['cancelled'::public.river_job_state, 'completed'::public.river_job_state, 'discarded'::public.river_job_state]))))),
    CONSTRAINT kind_length CHECK (((char_length(kind) > 0) AND (char_length(kind) < 128))),
    CONSTRAINT max_attempts_is_positive CHECK ((max_attempts > 0)),
    CONSTRAINT priority_in_range CHECK (((priority >= 1) AND (priority <= 4))),
    CONSTRAINT queue_length CHECK (((char_length(queue) > 0) AND (char_length(queue) < 128)))
);

CREATE SEQUENCE public.river_job_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.river_job_id_seq OWNED BY public.river_job.id;

CREATE UNLOGGED TABLE public.river_leader (
    elected_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    leader_id text NOT NULL,
    name text DEFAULT 'default'::text NOT NULL,
    CONSTRAINT leader_id_length CHECK (((char_length(leader_id) > 0) AND (char_length(leader_id) < 128))),
    CONSTRAINT name_length CHECK ((name = 'default'::text))
);

CREATE TABLE public.river_migration (
    line text NOT NULL,
    version bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT line_length CHECK (((char_length(line) > 0) AND (char_length(line) < 128))),
    CONSTRAINT version_gte_1 CHECK ((version >= 1))
);

CREATE TABLE public.river_notification (
    id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    payload text NOT NULL,
    topic text NOT NULL,
    CONSTRAINT topic_length CHECK (((length(topic) > 0) AND (length(topic) < 128)))
);

CREATE SEQUENCE public.river_notification_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.river_notification_id_seq OWNED BY public.river_notification.id;

CREATE TABLE public.river_queue (
    name text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    paused_at timestamp with time zone,
    updated_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL
);

CREATE TABLE public.rotations (
    id bigint NOT NULL,
    webhook_id bigint NOT NULL,
    emergency boolean DEFAULT false NOT NULL,
    started_by text DEFAULT ''::text NOT NULL,
    state text NOT NULL,
    webhook_was text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    attempt integer DEFAULT 0 NOT NULL,
    called_at timestamp with time zone,
    lease_until timestamp with time zone,
    lost integer DEFAULT 0 NOT NULL,
    stored_at timestamp with time zone,
    version integer,
    old_until timestamp with time zone,
    verified_at timestamp with time zone,
    log_read_at timestamp with time zone,
    ended_at timestamp with time zone,
    quarantined integer DEFAULT 0 NOT NULL,
    recovered integer DEFAULT 0 NOT NULL,
    refused integer DEFAULT 0 NOT NULL,
    woken integer DEFAULT 0 NOT NULL,
    refused_secret_lost integer DEFAULT 0 NOT NULL,
    note text DEFAULT ''::text NOT NULL,
    same_as integer,
    CONSTRAINT rotations_state_check CHECK ((state = ANY (ARRAY['calling'::text, 'secret_unknown'::text, 'stored'::text, 'done'::text, 'failed'::text])))
);

ALTER TABLE public.rotations ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.rotations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.schedule_runs (
    id bigint NOT NULL,
    schedule_id bigint NOT NULL,
    due_at timestamp with time zone NOT NULL,
    until_at timestamp with time zone,
    times integer DEFAULT 1 NOT NULL,
    at timestamp with time zone NOT NULL,
    outcome text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    batch_id bigint,
    pressed_by text DEFAULT ''::text NOT NULL,
    CONSTRAINT schedule_runs_outcome_check CHECK ((outcome = ANY (ARRAY['started'::text, 'skipped'::text, 'missed'::text]))),
    CONSTRAINT schedule_runs_started CHECK (((outcome = 'started'::text) = (batch_id IS NOT NULL))),
    CONSTRAINT schedule_runs_times_check CHECK ((times > 0))
);

ALTER TABLE public.schedule_runs ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.schedule_runs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.schedules (
    id bigint NOT NULL,
    name text NOT NULL,
    template_batch_id bigint NOT NULL,
    cron text NOT NULL,
    zone text NOT NULL,
    created_by bigint,
    created_at timestamp with time zone NOT NULL,
    submit_token text,
    paused_at timestamp with time zone,
    paused_by text DEFAULT ''::text NOT NULL,
    removed_at timestamp with time zone,
    next_at timestamp with time zone,
    last_batch_id bigint,
    CONSTRAINT schedules_at_rest CHECK (((next_at IS NULL) OR ((paused_at IS NULL) AND (removed_at IS NULL)))),
    CONSTRAINT schedules_cron_check CHECK (((char_length(cron) >= 9) AND (char_length(cron) <= 200))),
    CONSTRAINT schedules_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
    CONSTRAINT schedules_submit_token_check CHECK (((char_length(submit_token) >= 1) AND (char_length(submit_token) <= 64))),
    CONSTRAINT schedules_zone_check CHECK (((char_length(zone) >= 1) AND (char_length(zone) <= 64)))
);

ALTER TABLE public.schedules ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.schedules_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.schema_release (
    only_row boolean DEFAULT true NOT NULL,
    requires integer NOT NULL,
    CONSTRAINT schema_release_only_row_check CHECK (only_row)
);

CREATE TABLE public.search_backfill (
    one boolean DEFAULT true NOT NULL,
    at timestamp with time zone NOT NULL,
    item_id bigint NOT NULL,
    seq bigint NOT NULL,
    done_at timestamp with time zone,
    near_below bigint,
    CONSTRAINT search_backfill_one_check CHECK (one)
);

CREATE TABLE public.search_buckets (
    bucket bigint NOT NULL,
    oldest timestamp with time zone NOT NULL,
    newest timestamp with time zone NOT NULL
);

CREATE TABLE public.search_todo (
    seq bigint NOT NULL,
    item_id bigint NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='2000');

ALTER TABLE public.search_todo ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.search_todo_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.search_words (
    item_id bigint NOT NULL,
    seq bigint NOT NULL,
    version integer NOT NULL,
    stored_at timestamp with time zone NOT NULL,
    tags text[] NOT NULL,
    words tsvector NOT NULL,
    trouble text DEFAULT ''::text NOT NULL,
    near bytea
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='5000');
ALTER TABLE ONLY public.search_words ALTER COLUMN words SET STATISTICS 0;
ALTER TABLE ONLY public.search_words ALTER COLUMN words SET COMPRESSION lz4;
ALTER TABLE ONLY public.search_words ALTER COLUMN near SET STATISTICS 0;
ALTER TABLE ONLY public.search_words ALTER COLUMN near SET STORAGE PLAIN;

CREATE TABLE public.sessions (
    token_hash bytea NOT NULL,
    user_id bigint,
    data bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    source text DEFAULT ''::text NOT NULL,
    user_agent text DEFAULT ''::text NOT NULL,
    id bigint NOT NULL
);

ALTER TABLE public.sessions ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.sessions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.settings (
    key text NOT NULL,
    value text NOT NULL,
    updated_at timestamp with time zone NOT NULL
);

CREATE TABLE public.sign_in_delays (
    key text NOT NULL,
    failures integer NOT NULL,
    last_failed_at timestamp with time zone NOT NULL,
    next_try_at timestamp with time zone NOT NULL
);

CREATE TABLE public.sync_calls (
    item_id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    called_at timestamp with time zone,
    lease_until timestamp with time zone,
    ended_at timestamp with time zone,
    note text DEFAULT ''::text NOT NULL
);

CREATE TABLE public.users (
    id bigint NOT NULL,
    name text NOT NULL,
    role text NOT NULL,
    password_hash text NOT NULL,
    time_zone text DEFAULT ''::text NOT NULL,
    theme text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    password_changed_at timestamp with time zone NOT NULL,
    last_sign_in_at timestamp with time zone,
    disabled_at timestamp with time zone,
    CONSTRAINT users_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 80))),
    CONSTRAINT users_role_check CHECK ((role = ANY (ARRAY['analyst'::text, 'operator'::text, 'admin'::text]))),
    CONSTRAINT users_theme_check CHECK ((theme = ANY (ARRAY[''::text, 'light'::text, 'dark'::text])))
);

ALTER TABLE public.users ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.users_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.vendor_clock (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    ahead_ms bigint NOT NULL
);

ALTER TABLE public.vendor_clock ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.vendor_clock_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.webhook_secrets (
    webhook_id bigint NOT NULL,
    version integer NOT NULL,
    sealed bytea NOT NULL,
    valid_from timestamp with time zone NOT NULL,
    valid_until timestamp with time zone
);

CREATE TABLE public.webhooks (
    id bigint NOT NULL,
    endpoint text NOT NULL,
    event_type text NOT NULL,
    url text NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    state text NOT NULL,
    vendor_webhook_id text,
    signature_form text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    state_at timestamp with time zone NOT NULL,
    checked_at timestamp with time zone,
    last_delivery_at timestamp with time zone,
    adopted boolean DEFAULT false NOT NULL,
    CONSTRAINT webhooks_endpoint_check CHECK (((char_length(endpoint) >= 16) AND (char_length(endpoint) <= 64))),
    CONSTRAINT webhooks_state_check CHECK ((state = ANY (ARRAY['registering'::text, 'live'::text, 'rotating'::text, 'secret_unknown'::text, 'paused'::text, 'inactive'::text, 'moved'::text, 'gone'::text, 'removed'::text]))),
    CONSTRAINT webhooks_vendor_webhook_id_check CHECK (((char_length(vendor_webhook_id) >= 1) AND (char_length(vendor_webhook_id) <= 200)))
);

ALTER TABLE public.webhooks ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.webhooks_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE ONLY public.bun_migration_locks ALTER COLUMN id SET DEFAULT nextval('public.bun_migration_locks_id_seq'::regclass);

ALTER TABLE ONLY public.bun_migrations ALTER COLUMN id SET DEFAULT nextval('public.bun_migrations_id_seq'::regclass);

ALTER TABLE ONLY public.river_job ALTER COLUMN id SET DEFAULT nextval('public.river_job_id_seq'::regclass);

ALTER TABLE ONLY public.river_notification ALTER COLUMN id SET DEFAULT nextval('public.river_notification_id_seq'::regclass);

ALTER TABLE ONLY public.audit_log
    ADD CONSTRAINT audit_log_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.batch_pace
    ADD CONSTRAINT batch_pace_pkey PRIMARY KEY (batch_id, slot);

ALTER TABLE ONLY public.batches
    ADD CONSTRAINT batches_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.bun_migration_locks
    ADD CONSTRAINT bun_migration_locks_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.bun_migration_locks
    ADD CONSTRAINT bun_migration_locks_table_name_key UNIQUE (table_name);

ALTER TABLE ONLY public.bun_migrations
    ADD CONSTRAINT bun_migrations_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.call_counts
    ADD CONSTRAINT call_counts_pkey PRIMARY KEY (hour, kind);

ALTER TABLE ONLY public.comparison_pages
    ADD CONSTRAINT comparison_pages_pkey PRIMARY KEY (comparison_id, kind, n);

ALTER TABLE ONLY public.comparisons
    ADD CONSTRAINT comparisons_a_batch_id_b_batch_id_key UNIQUE (a_batch_id, b_batch_id);

ALTER TABLE ONLY public.comparisons
    ADD CONSTRAINT comparisons_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.crawl_pages
    ADD CONSTRAINT crawl_pages_pkey PRIMARY KEY (job_id, url_hash);

ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT deliveries_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.delivery_log
    ADD CONSTRAINT delivery_log_pkey PRIMARY KEY (webhook_id, vendor_id, attempt);

ALTER TABLE ONLY public.delivery_log_reads
    ADD CONSTRAINT delivery_log_reads_pkey PRIMARY KEY (webhook_id);

ALTER TABLE ONLY public.disk_samples
    ADD CONSTRAINT disk_samples_pkey PRIMARY KEY (at, part);

ALTER TABLE ONLY public.export_chunks
    ADD CONSTRAINT export_chunks_pkey PRIMARY KEY (export_id, n);

ALTER TABLE ONLY public.exports
    ADD CONSTRAINT exports_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.exports
    ADD CONSTRAINT exports_submit_token_key UNIQUE (submit_token);

ALTER TABLE ONLY public.gate_pauses
    ADD CONSTRAINT gate_pauses_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.gates
    ADD CONSTRAINT gates_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.hourly_stats
    ADD CONSTRAINT hourly_stats_pkey PRIMARY KEY (hour);

ALTER TABLE ONLY public.invites
    ADD CONSTRAINT invites_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.invites
    ADD CONSTRAINT invites_token_hash_key UNIQUE (token_hash);

ALTER TABLE ONLY public.invites
    ADD CONSTRAINT invites_user_id_key UNIQUE (user_id);

ALTER TABLE ONLY public.items
    ADD CONSTRAINT items_batch_id_position_key UNIQUE (batch_id, "position");

ALTER TABLE ONLY public.items
    ADD CONSTRAINT items_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.job_events
    ADD CONSTRAINT job_events_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.job_items
    ADD CONSTRAINT job_items_job_id_item_id_key UNIQUE (job_id, item_id);

ALTER TABLE ONLY public.job_items
    ADD CONSTRAINT job_items_pkey PRIMARY KEY (job_id, input_index);

ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.list_sweeps
    ADD CONSTRAINT list_sweeps_pkey PRIMARY KEY (kind);

ALTER TABLE ONLY public.mode_changes
    ADD CONSTRAINT mode_changes_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.preflight_lines
    ADD CONSTRAINT preflight_lines_pkey PRIMARY KEY (preflight_id, number);

ALTER TABLE ONLY public.preflights
    ADD CONSTRAINT preflights_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.processed_events
    ADD CONSTRAINT processed_events_pkey PRIMARY KEY (vendor_job_id);

ALTER TABLE ONLY public.reconcile_runs
    ADD CONSTRAINT reconcile_runs_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.refused_counts
    ADD CONSTRAINT refused_counts_pkey PRIMARY KEY (webhook_id, day, cause);

ALTER TABLE ONLY public.rejected_lines
    ADD CONSTRAINT rejected_lines_pkey PRIMARY KEY (batch_id, line);

ALTER TABLE ONLY public.replay_deliveries
    ADD CONSTRAINT replay_deliveries_pkey PRIMARY KEY (replay_id, delivery_id);

ALTER TABLE ONLY public.replay_differences
    ADD CONSTRAINT replay_differences_pkey PRIMARY KEY (replay_id, item_id);

ALTER TABLE ONLY public.replay_jobs
    ADD CONSTRAINT replay_jobs_pkey PRIMARY KEY (replay_id, job_id);

ALTER TABLE ONLY public.replays
    ADD CONSTRAINT replays_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.result_versions
    ADD CONSTRAINT result_versions_pkey PRIMARY KEY (item_id, version);

ALTER TABLE ONLY public.results
    ADD CONSTRAINT results_pkey PRIMARY KEY (item_id);

ALTER TABLE ONLY public.river_job
    ADD CONSTRAINT river_job_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.river_leader
    ADD CONSTRAINT river_leader_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.river_migration
    ADD CONSTRAINT river_migration_pkey1 PRIMARY KEY (line, version);

ALTER TABLE ONLY public.river_notification
    ADD CONSTRAINT river_notification_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.river_queue
    ADD CONSTRAINT river_queue_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.rotations
    ADD CONSTRAINT rotations_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.schedule_runs
    ADD CONSTRAINT schedule_runs_once UNIQUE (schedule_id, due_at);

ALTER TABLE ONLY public.schedule_runs
    ADD CONSTRAINT schedule_runs_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.schedules
    ADD CONSTRAINT schedules_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.schema_release
    ADD CONSTRAINT schema_release_pkey PRIMARY KEY (only_row);

ALTER TABLE ONLY public.search_backfill
    ADD CONSTRAINT search_backfill_pkey PRIMARY KEY (one);

ALTER TABLE ONLY public.search_buckets
    ADD CONSTRAINT search_buckets_pkey PRIMARY KEY (bucket);

ALTER TABLE ONLY public.search_todo
    ADD CONSTRAINT search_todo_pkey PRIMARY KEY (seq);

ALTER TABLE ONLY public.search_words
    ADD CONSTRAINT search_words_pkey PRIMARY KEY (item_id);

ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (token_hash);

ALTER TABLE ONLY public.settings
    ADD CONSTRAINT settings_pkey PRIMARY KEY (key);

ALTER TABLE ONLY public.sign_in_delays
    ADD CONSTRAINT sign_in_delays_pkey PRIMARY KEY (key);

ALTER TABLE ONLY public.sync_calls
    ADD CONSTRAINT sync_calls_pkey PRIMARY KEY (item_id);

ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.vendor_clock
    ADD CONSTRAINT vendor_clock_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.webhook_secrets
    ADD CONSTRAINT webhook_secrets_pkey PRIMARY KEY (webhook_id, version);

ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_endpoint_key UNIQUE (endpoint);

ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_vendor_webhook_id_key UNIQUE (vendor_webhook_id);

CREATE INDEX audit_log_at_idx ON public.audit_log USING btree (at DESC, id DESC);

CREATE INDEX audit_log_kind_idx ON public.audit_log USING btree (kind, at DESC, id DESC);

CREATE INDEX audit_log_on_idx ON public.audit_log USING btree (kind, on_id, at DESC, id DESC);

CREATE INDEX audit_log_what_idx ON public.audit_log USING btree (what, at DESC, id DESC);

CREATE INDEX audit_log_who_idx ON public.audit_log USING btree (lower(who), at DESC, id DESC);

CREATE INDEX batches_created_idx ON public.batches USING btree (created_at DESC, id DESC);

CREATE INDEX batches_ended_idx ON public.batches USING btree (ended_at DESC, id DESC) WHERE (ended_at IS NOT NULL);

CREATE INDEX batches_open_idx ON public.batches USING btree (created_at DESC, id DESC) WHERE (ended_at IS NULL);

CREATE INDEX batches_parent_idx ON public.batches USING btree (parent_batch_id, id) WHERE (parent_batch_id IS NOT NULL);

CREATE INDEX batches_prunable_idx ON public.batches USING btree (ended_at, id) WHERE ((ended_at IS NOT NULL) AND (pruned_at IS NULL));

CREATE INDEX batches_pruning_idx ON public.batches USING btree (pruned_at, id) WHERE ((pruned_at IS NOT NULL) AND (prune_ended_at IS NULL));

CREATE UNIQUE INDEX batches_submit_token_key ON public.batches USING btree (submit_token) WHERE (submit_token IS NOT NULL);

CREATE UNIQUE INDEX bun_migrations_name_unique ON public.bun_migrations USING btree (name);

CREATE INDEX comparisons_asked_idx ON public.comparisons USING btree (asked_at, id);

CREATE INDEX comparisons_b_idx ON public.comparisons USING btree (b_batch_id);

CREATE INDEX crawl_pages_item_idx ON public.crawl_pages USING btree (item_id);

CREATE INDEX crawl_pages_parent_idx ON public.crawl_pages USING btree (job_id, md5(parent_url));

CREATE INDEX deliveries_event_idx ON public.deliveries USING btree (event_type, received_at DESC, id DESC);

CREATE INDEX deliveries_job_idx ON public.deliveries USING btree (vendor_job_id, received_at) WHERE (vendor_job_id <> ''::text);

CREATE INDEX deliveries_quarantine_idx ON public.deliveries USING btree (webhook_id, source, id) WHERE (verdict = ANY (ARRAY['refused'::text, 'unreadable'::text]));

CREATE INDEX deliveries_received_idx ON public.deliveries USING btree (received_at DESC, id DESC);

CREATE INDEX deliveries_secret_idx ON public.deliveries USING btree (webhook_id, secret_version, received_at) WHERE (secret_version IS NOT NULL);

CREATE INDEX deliveries_status_idx ON public.deliveries USING btree (status, received_at DESC, id DESC) WHERE (status <> 200);

CREATE INDEX deliveries_undiagnosed_idx ON public.deliveries USING btree (id) WHERE ((verdict = 'refused'::text) AND (diagnosed_at IS NULL));

CREATE INDEX deliveries_vendor_delivery_idx ON public.deliveries USING btree (vendor_delivery_id) WHERE (vendor_delivery_id <> ''::text);

CREATE INDEX deliveries_verdict_idx ON public.deliveries USING btree (verdict, received_at DESC, id DESC) WHERE (verdict <> 'accepted'::text);

CREATE INDEX deliveries_webhook_idx ON public.deliveries USING btree (webhook_id, received_at DESC, id DESC);

CREATE INDEX delivery_log_absent_idx ON public.delivery_log USING btree ((
CASE
    WHEN (status = ANY (ARRAY['success'::text, 'abandoned'::text, 'pending'::text])) THEN status
    ELSE 'failed'::text
END), created_at DESC, id DESC) WHERE (delivery_id IS NULL);

CREATE INDEX delivery_log_attempt_idx ON public.delivery_log USING btree (attempt, created_at DESC, id DESC) WHERE (attempt <> 1);

CREATE INDEX delivery_log_class_idx ON public.delivery_log USING btree (((http_status / 100)), created_at DESC, id DESC) WHERE (http_status IS NOT NULL);

CREATE INDEX delivery_log_delivery_idx ON public.delivery_log USING btree (delivery_id) WHERE (delivery_id IS NOT NULL);

CREATE INDEX delivery_log_event_idx ON public.delivery_log USING btree (event_type, created_at DESC, id DESC);

CREATE INDEX delivery_log_here_idx ON public.delivery_log USING btree (created_at DESC, id DESC) WHERE (delivery_id IS NOT NULL);

CREATE INDEX delivery_log_http_idx ON public.delivery_log USING btree (http_status, created_at DESC, id DESC) WHERE (http_status IS NOT NULL);

CREATE INDEX delivery_log_job_idx ON public.delivery_log USING btree (vendor_job_id, created_at DESC, id DESC) WHERE (vendor_job_id <> ''::text);

CREATE INDEX delivery_log_missed_idx ON public.delivery_log USING btree (created_at, id) WHERE (status <> 'success'::text);

CREATE UNIQUE INDEX delivery_log_newest_idx ON public.delivery_log USING btree (created_at DESC, id DESC);

CREATE INDEX delivery_log_status_idx ON public.delivery_log USING btree (status, created_at DESC, id DESC);

CREATE INDEX delivery_log_vendor_idx ON public.delivery_log USING btree (vendor_id);

CREATE INDEX delivery_log_webhook_idx ON public.delivery_log USING btree (webhook_id, created_at DESC, id DESC);

CREATE INDEX exports_created_idx ON public.exports USING btree (created_at DESC, id DESC);

CREATE INDEX exports_held_idx ON public.exports USING btree (id) WHERE held;

CREATE INDEX exports_open_idx ON public.exports USING btree (beat_at) WHERE (state = ANY (ARRAY['waiting'::text, 'running'::text]));

CREATE INDEX exports_owner_idx ON public.exports USING btree (owner_id, created_at DESC, id DESC);

CREATE INDEX gate_pauses_resumed_idx ON public.gate_pauses USING btree (name, resumed_at);

CREATE INDEX invites_expires_idx ON public.invites USING btree (expires_at);

CREATE UNIQUE INDEX invites_name_key ON public.invites USING btree (lower(name));

CREATE INDEX items_current_job_idx ON public.items USING btree (current_job_id);

CREATE INDEX items_failed_batch_group_idx ON public.items USING btree (batch_id, failure_group, ended_at DESC, id DESC) WHERE (state = 'failed'::text);

CREATE INDEX items_failed_batch_idx ON public.items USING btree (batch_id, ended_at DESC, id DESC) WHERE (state = 'failed'::text);

CREATE INDEX items_failed_code_idx ON public.items USING btree (error_code, ended_at DESC, id DESC) INCLUDE (resolved_at) WHERE (state = 'failed'::text);

CREATE INDEX items_failed_group_idx ON public.items USING btree (failure_group, ended_at DESC, id DESC) INCLUDE (resolved_at) WHERE (state = 'failed'::text);

CREATE INDEX items_failed_host_idx ON public.items USING btree (host, ended_at DESC, id DESC) INCLUDE (resolved_at) WHERE (state = 'failed'::text);

CREATE INDEX items_failed_idx ON public.items USING btree (ended_at DESC, id DESC) INCLUDE (failure_group) WHERE (state = 'failed'::text);

CREATE INDEX items_resolved_code_idx ON public.items USING btree (error_code) WHERE ((state = 'failed'::text) AND (resolved_at IS NOT NULL));

CREATE INDEX items_resolved_idx ON public.items USING btree (ended_at DESC, id DESC) WHERE ((state = 'failed'::text) AND (resolved_at IS NOT NULL));

CREATE INDEX items_state_idx ON public.items USING btree (batch_id, state, "position");

CREATE INDEX items_url_idx ON public.items USING btree (url_hash);

CREATE INDEX items_waiting_batch_idx ON public.items USING btree (batch_id, ended_at DESC, id DESC) WHERE ((state = 'failed'::text) AND (resolved_at IS NULL));

CREATE INDEX items_waiting_code_idx ON public.items USING btree (error_code) WHERE ((state = 'failed'::text) AND (resolved_at IS NULL));

CREATE INDEX items_waiting_idx ON public.items USING btree (ended_at DESC, id DESC) INCLUDE (failure_group) WHERE ((state = 'failed'::text) AND (resolved_at IS NULL));

CREATE INDEX job_events_job_idx ON public.job_events USING btree (job_id, at, id);

CREATE INDEX job_items_item_idx ON public.job_items USING btree (item_id, job_id);

CREATE INDEX jobs_batch_idx ON public.jobs USING btree (batch_id, id);

CREATE INDEX jobs_batch_open_idx ON public.jobs USING btree (batch_id, accepted_at, id) WHERE (state = 'accepted'::text);

CREATE INDEX jobs_batch_untaken_idx ON public.jobs USING btree (batch_id, ((state = 'intended'::text)), created_at, id) WHERE (state = ANY (ARRAY['intended'::text, 'calling'::text, 'uncertain'::text]));

CREATE INDEX jobs_calling_idx ON public.jobs USING btree (request_hash) WHERE (state = ANY (ARRAY['calling'::text, 'uncertain'::text]));

CREATE INDEX jobs_due_idx ON public.jobs USING btree (next_poll_at, id) WHERE (state = 'accepted'::text);

CREATE INDEX jobs_due_others_idx ON public.jobs USING btree (next_poll_at, id) WHERE ((state = 'accepted'::text) AND (kind <> 'extract'::text));

CREATE INDEX jobs_ended_idx ON public.jobs USING btree (ended_at DESC, id DESC) WHERE (state = 'settled'::text);

CREATE INDEX jobs_intended_idx ON public.jobs USING btree (id) WHERE (state = 'intended'::text);

CREATE INDEX jobs_lease_idx ON public.jobs USING btree (lease_until) WHERE (state = ANY (ARRAY['calling'::text, 'uncertain'::text]));

CREATE INDEX jobs_open_idx ON public.jobs USING btree (accepted_at, id) WHERE (state = 'accepted'::text);

CREATE INDEX jobs_parent_idx ON public.jobs USING btree (parent_job_id) WHERE (parent_job_id IS NOT NULL);

CREATE UNIQUE INDEX jobs_vendor_job_id_key ON public.jobs USING btree (vendor_job_id) WHERE (vendor_job_id IS NOT NULL);

CREATE INDEX preflight_lines_verdict_idx ON public.preflight_lines USING btree (preflight_id, verdict, number);

CREATE INDEX preflights_expires_idx ON public.preflights USING btree (expires_at, id);

CREATE INDEX preflights_owner_idx ON public.preflights USING btree (created_by, id DESC);

CREATE INDEX preflights_submitted_idx ON public.preflights USING btree (id) WHERE ((batch_id IS NOT NULL) AND (pasted IS NOT NULL));

CREATE INDEX processed_events_foreign_idx ON public.processed_events USING btree (received_at) WHERE (state = 'foreign'::text);

CREATE INDEX processed_events_held_idx ON public.processed_events USING btree (received_at) WHERE (state = 'held'::text);

CREATE INDEX processed_events_job_idx ON public.processed_events USING btree (job_id) WHERE (job_id IS NOT NULL);

CREATE INDEX processed_events_pruned_idx ON public.processed_events USING btree (received_at, vendor_job_id) WHERE (state = 'pruned'::text);

CREATE INDEX reconcile_runs_started_idx ON public.reconcile_runs USING btree (started_at DESC, id DESC);

CREATE INDEX replay_deliveries_delivery_idx ON public.replay_deliveries USING btree (delivery_id);

CREATE INDEX replay_deliveries_open_idx ON public.replay_deliveries USING btree (replay_id, delivery_id) WHERE (outcome IS NULL);

CREATE INDEX replay_differences_item_idx ON public.replay_differences USING btree (item_id);

CREATE INDEX replay_differences_job_idx ON public.replay_differences USING btree (job_id);

CREATE INDEX replay_jobs_job_idx ON public.replay_jobs USING btree (job_id);

CREATE INDEX replay_jobs_open_idx ON public.replay_jobs USING btree (replay_id, state, job_id) WHERE (state <> 'ended'::text);

CREATE INDEX replay_jobs_outcome_idx ON public.replay_jobs USING btree (replay_id, outcome, job_id) WHERE (state = 'ended'::text);

CREATE INDEX replays_running_idx ON public.replays USING btree (beat_at) WHERE (state = 'running'::text);

CREATE UNIQUE INDEX replays_submit_token_key ON public.replays USING btree (submit_token) WHERE (submit_token IS NOT NULL);

CREATE INDEX result_versions_first_idx ON public.result_versions USING btree (stored_at) WHERE (version = 1);

CREATE INDEX result_versions_job_idx ON public.result_versions USING btree (job_id) WHERE (job_id IS NOT NULL);

CREATE INDEX results_job_idx ON public.results USING btree (job_id);

CREATE INDEX results_marked_idx ON public.results USING btree (item_id) WHERE (mark <> ''::text);

CREATE INDEX results_page_idx ON public.results USING btree (page_key, stored_at DESC, item_id DESC) WHERE (page_key IS NOT NULL);

CREATE INDEX results_stored_idx ON public.results USING btree (stored_at DESC, item_id DESC);

CREATE INDEX river_job_about_idx ON public.river_job USING btree ((((args ->> 'job_id'::text))::bigint)) WHERE (finalized_at IS NULL);

CREATE INDEX river_job_kind ON public.river_job USING btree (kind);

CREATE INDEX river_job_prioritized_fetching_index ON public.river_job USING btree (state, queue, priority, scheduled_at, id);

CREATE INDEX river_job_state_and_finalized_at_index ON public.river_job USING btree (state, finalized_at) WHERE (finalized_at IS NOT NULL);

CREATE UNIQUE INDEX river_job_unique_idx ON public.river_job USING btree (unique_key) WHERE ((unique_key IS NOT NULL) AND (unique_states IS NOT NULL) AND public.river_job_state_in_bitmask(unique_states, state));

CREATE INDEX river_notification_created_at_idx ON public.river_notification USING btree (created_at);

CREATE INDEX river_notification_topic_id_idx ON public.river_notification USING btree (topic, id);

CREATE UNIQUE INDEX rotations_open_key ON public.rotations USING btree (webhook_id) WHERE (ended_at IS NULL);

CREATE INDEX rotations_webhook_idx ON public.rotations USING btree (webhook_id, id DESC);

CREATE UNIQUE INDEX schedule_runs_batch_key ON public.schedule_runs USING btree (batch_id) WHERE (batch_id IS NOT NULL);

CREATE INDEX schedules_due_idx ON public.schedules USING btree (next_at) WHERE (next_at IS NOT NULL);

CREATE INDEX schedules_kept_idx ON public.schedules USING btree (id DESC) WHERE (removed_at IS NULL);

CREATE UNIQUE INDEX schedules_submit_token_key ON public.schedules USING btree (submit_token) WHERE (submit_token IS NOT NULL);

CREATE INDEX schedules_template_idx ON public.schedules USING btree (template_batch_id) WHERE (removed_at IS NULL);

CREATE INDEX search_words_idx ON public.search_words USING gin (tags, words) WITH (gin_pending_list_limit='512');

CREATE INDEX sessions_expires_idx ON public.sessions USING btree (expires_at);

CREATE UNIQUE INDEX sessions_id_key ON public.sessions USING btree (id);

CREATE INDEX sessions_user_idx ON public.sessions USING btree (user_id);

CREATE INDEX sync_calls_open_idx ON public.sync_calls USING btree (created_at) WHERE (ended_at IS NULL);

CREATE UNIQUE INDEX users_name_key ON public.users USING btree (lower(name));

CREATE INDEX vendor_clock_at_idx ON public.vendor_clock USING btree (at);

CREATE TRIGGER audit_log_is_not_emptied BEFORE TRUNCATE ON public.audit_log FOR EACH STATEMENT EXECUTE FUNCTION public.audit_log_is_written_once();

CREATE TRIGGER audit_log_is_written_once BEFORE DELETE OR UPDATE ON public.audit_log FOR EACH ROW EXECUTE FUNCTION public.audit_log_is_written_once();

CREATE TRIGGER results_to_search AFTER INSERT OR UPDATE OF version ON public.results FOR EACH ROW EXECUTE FUNCTION public.search_todo_add();

ALTER TABLE ONLY public.audit_log
    ADD CONSTRAINT audit_log_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);

ALTER TABLE ONLY public.batch_pace
    ADD CONSTRAINT batch_pace_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES public.batches(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.batches
    ADD CONSTRAINT batches_created_by_fkey FOREIGN KEY (created_by) REFERENCES public.users(id);

ALTER TABLE ONLY public.batches
    ADD CONSTRAINT batches_parent_batch_id_fkey FOREIGN KEY (parent_batch_id) REFERENCES public.batches(id);

ALTER TABLE ONLY public.comparison_pages
    ADD CONSTRAINT comparison_pages_comparison_id_fkey FOREIGN KEY (comparison_id) REFERENCES public.comparisons(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.comparisons
    ADD CONSTRAINT comparisons_a_batch_id_fkey FOREIGN KEY (a_batch_id) REFERENCES public.batches(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.comparisons
    ADD CONSTRAINT comparisons_b_batch_id_fkey FOREIGN KEY (b_batch_id) REFERENCES public.batches(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.crawl_pages
    ADD CONSTRAINT crawl_pages_item_id_fkey FOREIGN KEY (item_id) REFERENCES public.items(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.crawl_pages
    ADD CONSTRAINT crawl_pages_job_id_fkey FOREIGN KEY (job_id) REFERENCES public.jobs(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT deliveries_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES public.webhooks(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.delivery_log_reads
    ADD CONSTRAINT delivery_log_reads_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES public.webhooks(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.delivery_log
    ADD CONSTRAINT delivery_log_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES public.webhooks(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.export_chunks
    ADD CONSTRAINT export_chunks_export_id_fkey FOREIGN KEY (export_id) REFERENCES public.exports(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.exports
    ADD CONSTRAINT exports_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES public.users(id);

ALTER TABLE ONLY public.gate_pauses
    ADD CONSTRAINT gate_pauses_name_fkey FOREIGN KEY (name) REFERENCES public.gates(name);

ALTER TABLE ONLY public.invites
    ADD CONSTRAINT invites_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.items
    ADD CONSTRAINT items_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES public.batches(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.items
    ADD CONSTRAINT items_current_job_id_fkey FOREIGN KEY (current_job_id) REFERENCES public.jobs(id);

ALTER TABLE ONLY public.items
    ADD CONSTRAINT items_resolved_by_fkey FOREIGN KEY (resolved_by) REFERENCES public.users(id);

ALTER TABLE ONLY public.job_events
    ADD CONSTRAINT job_events_job_id_fkey FOREIGN KEY (job_id) REFERENCES public.jobs(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.job_items
    ADD CONSTRAINT job_items_item_id_fkey FOREIGN KEY (item_id) REFERENCES public.items(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.job_items
    ADD CONSTRAINT job_items_job_id_fkey FOREIGN KEY (job_id) REFERENCES public.jobs(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES public.batches(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_parent_job_id_fkey FOREIGN KEY (parent_job_id) REFERENCES public.jobs(id);

ALTER TABLE ONLY public.preflights
    ADD CONSTRAINT preflights_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES public.batches(id);

ALTER TABLE ONLY public.preflights
    ADD CONSTRAINT preflights_created_by_fkey FOREIGN KEY (created_by) REFERENCES public.users(id);

ALTER TABLE ONLY public.processed_events
    ADD CONSTRAINT processed_events_job_id_fkey FOREIGN KEY (job_id) REFERENCES public.jobs(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.refused_counts
    ADD CONSTRAINT refused_counts_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES public.webhooks(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.rejected_lines
    ADD CONSTRAINT rejected_lines_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES public.batches(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.replay_deliveries
    ADD CONSTRAINT replay_deliveries_delivery_id_fkey FOREIGN KEY (delivery_id) REFERENCES public.deliveries(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.replay_deliveries
    ADD CONSTRAINT replay_deliveries_replay_id_fkey FOREIGN KEY (replay_id) REFERENCES public.replays(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.replay_differences
    ADD CONSTRAINT replay_differences_item_id_fkey FOREIGN KEY (item_id) REFERENCES public.items(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.replay_differences
    ADD CONSTRAINT replay_differences_job_id_fkey FOREIGN KEY (job_id) REFERENCES public.jobs(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.replay_differences
    ADD CONSTRAINT replay_differences_replay_id_fkey FOREIGN KEY (replay_id) REFERENCES public.replays(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.replay_jobs
    ADD CONSTRAINT replay_jobs_job_id_fkey FOREIGN KEY (job_id) REFERENCES public.jobs(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.replay_jobs
    ADD CONSTRAINT replay_jobs_replay_id_fkey FOREIGN KEY (replay_id) REFERENCES public.replays(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.result_versions
    ADD CONSTRAINT result_versions_item_id_fkey FOREIGN KEY (item_id) REFERENCES public.items(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.result_versions
    ADD CONSTRAINT result_versions_job_id_fkey FOREIGN KEY (job_id) REFERENCES public.jobs(id);

ALTER TABLE ONLY public.results
    ADD CONSTRAINT results_item_id_fkey FOREIGN KEY (item_id) REFERENCES public.items(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.results
    ADD CONSTRAINT results_job_id_fkey FOREIGN KEY (job_id) REFERENCES public.jobs(id);

ALTER TABLE ONLY public.rotations
    ADD CONSTRAINT rotations_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES public.webhooks(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.schedule_runs
    ADD CONSTRAINT schedule_runs_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES public.batches(id);

ALTER TABLE ONLY public.schedule_runs
    ADD CONSTRAINT schedule_runs_schedule_id_fkey FOREIGN KEY (schedule_id) REFERENCES public.schedules(id);

ALTER TABLE ONLY public.schedules
    ADD CONSTRAINT schedules_created_by_fkey FOREIGN KEY (created_by) REFERENCES public.users(id);

ALTER TABLE ONLY public.schedules
    ADD CONSTRAINT schedules_last_batch_id_fkey FOREIGN KEY (last_batch_id) REFERENCES public.batches(id);

ALTER TABLE ONLY public.schedules
    ADD CONSTRAINT schedules_template_batch_id_fkey FOREIGN KEY (template_batch_id) REFERENCES public.batches(id);

ALTER TABLE ONLY public.search_words
    ADD CONSTRAINT search_words_item_id_fkey FOREIGN KEY (item_id) REFERENCES public.results(item_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.sync_calls
    ADD CONSTRAINT sync_calls_item_id_fkey FOREIGN KEY (item_id) REFERENCES public.items(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.webhook_secrets
    ADD CONSTRAINT webhook_secrets_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES public.webhooks(id) ON DELETE CASCADE;
