-- Nights of work at one desk, for bench growth: see growthSeed, which puts in $began (of a night), $single and $perjob (how
-- it went out), $nights, $urls (a night), $now, $all (each URL of each night, g from 0, at its place pos) and $admin.
-- Of each hundred items 91 came by webhook, 5 by polling, 3 failed, and one was cancelled. A night has its own numbers for
-- jobs, from those of its first item on. A statement ends with its line.

INSERT INTO users (name, role, password_hash, created_at, password_changed_at) VALUES ('$admin', 'admin', '', $now, $now);

INSERT INTO webhooks (endpoint, event_type, url, state, vendor_webhook_id, created_at, state_at)
    VALUES (repeat('a', 32), 'extract_completed', 'https://desk.example/', 'live', 'hook-1', $now - interval '400 days', $now);

INSERT INTO batches (id, name, kind, options, created_by, created_at, ended_at, submitted, accepted, stored_webhook, stored_poll, failed, cancelled, charged)
    OVERRIDING SYSTEM VALUE SELECT night + 1, 'Night ' || night, CASE WHEN $single THEN 'extract' ELSE 'batch' END, '{"formats":["markdown"]}', 1,
        $began, $began + interval '2 hours', $urls, $urls, $urls / 100 * 91, $urls / 100 * 5, $urls / 100 * 3, $urls / 100, $urls
    FROM generate_series(0, $nights - 1) AS night;

SELECT setval(pg_get_serial_sequence('batches', 'id'), (SELECT max(id) FROM batches));

-- A full page of batches on the first day too.
INSERT INTO batches (name, kind, options, created_by, created_at, ended_at) SELECT 'Empty ' || n, 'batch', '{"formats":["markdown"]}', 1, $now, $now
    FROM generate_series(1, 60) AS n;

INSERT INTO jobs (id, batch_id, kind, state, origin, request_hash, url_count, created_at, call_no, called_at, vendor_job_id, account,
        accepted_at, vendor_status, wake_seq, wake_net, webhook_at, settle_net, ended_at, vendor_ended_at, charged)
    OVERRIDING SYSTEM VALUE SELECT g + 1, night + 1, CASE WHEN $single THEN 'extract' ELSE 'batch' END, 'settled', 'submit', sha256(g::text::bytea),
        least($perjob, $urls), $began, 1, $began, 'job-' || lpad(g::text, 12, '0'), 'bench', $began + interval '1 s', 'completed', 1, 'webhook',
        $began + interval '1 h', 'webhook', $began + interval '1 h' + pos * interval '10 ms', $began + interval '1 h', 1
    FROM $all WHERE pos < ($urls + $perjob - 1) / $perjob;

INSERT INTO items (id, batch_id, position, url, url_hash, state, net, current_job_id, error_code, error_message, created_at, ended_at, resolved_at)
    OVERRIDING SYSTEM VALUE SELECT g + 1, night + 1, pos + 1, url, sha256(url::bytea),
        CASE WHEN g % 100 < 96 THEN 'stored' WHEN g % 100 < 99 THEN 'failed' ELSE 'cancelled' END,
        CASE WHEN g % 100 < 5 THEN 'poll' WHEN g % 100 < 96 THEN 'webhook' END, night * $urls + pos / $perjob + 1,
        CASE WHEN g % 100 >= 96 THEN 'HTTP_404' ELSE '' END, CASE WHEN g % 100 >= 96 THEN 'the page is not there' ELSE '' END,
        $began, $began + interval '1 h' + pos * interval '10 ms',
        CASE WHEN g % 100 BETWEEN 96 AND 98 AND night < $nights - 1 THEN $began + interval '1 d' END
    FROM $all, LATERAL (SELECT 'https://www.host' || pos % 200 || '.example/pages/' || pos AS url) AS page;

INSERT INTO job_items (job_id, input_index, item_id, outcome, reported_at)
    SELECT night * $urls + pos / $perjob + 1, pos % $perjob, g + 1,
        CASE WHEN g % 100 < 96 THEN 'stored' WHEN g % 100 < 99 THEN 'failed' ELSE 'cancelled' END, $began + interval '1 h' FROM $all;

ALTER TABLE results DISABLE TRIGGER results_to_search;

INSERT INTO results (item_id, job_id, net, stored_at, title, http_status, duration_ms, charged, page_key)
    SELECT g + 1, night * $urls + pos / $perjob + 1, CASE WHEN g % 100 < 5 THEN 'poll' ELSE 'webhook' END,
        $began + interval '1 h' + pos * interval '10 ms', 'Page ' || pos, 200, 900, 1, decode(md5(pos::text), 'hex')
    FROM $all WHERE g % 100 < 96;

ALTER TABLE results ENABLE TRIGGER results_to_search;

UPDATE search_backfill SET done_at = $now;

INSERT INTO job_events (job_id, at, kind, net, detail)
    SELECT j.id, CASE WHEN n = 1 THEN j.accepted_at ELSE j.ended_at END, CASE WHEN n = 1 THEN 'accepted' ELSE 'settled' END, '', ''
    FROM jobs j, generate_series(1, 2) AS n;

INSERT INTO processed_events (vendor_job_id, event_type, received_at, state, job_id)
    SELECT vendor_job_id, kind || '_completed', webhook_at, 'claimed', id FROM jobs;

INSERT INTO deliveries (webhook_id, received_at, verdict, status, event_type, vendor_job_id, vendor_delivery_id, headers, body, body_size)
    SELECT 1, webhook_at, 'accepted', 200, kind || '_completed', vendor_job_id, 'del-' || id,
        CASE WHEN webhook_at > $now - interval '30 days' THEN 'Content-Type: application/json' ELSE '' END::bytea,
        CASE WHEN webhook_at > $now - interval '30 days' THEN '{"data":{}}' ELSE '' END::bytea, 11
    FROM jobs WHERE webhook_at > $now - interval '90 days' ORDER BY webhook_at;

INSERT INTO delivery_log (webhook_id, vendor_id, attempt, event_type, vendor_job_id, status, http_status, delivered_at, created_at, seen_at, delivery_id)
    SELECT 1, vendor_delivery_id, 1, event_type, vendor_job_id, 'success', 200, received_at, received_at, received_at, id FROM deliveries;

INSERT INTO hourly_stats (hour, rolled_at, took_ms, closed, stored_webhook, stored_poll, stored_reconcile, stored_replay, stored_sync,
        submit_latency, vendor_latency, jobs_completed, jobs_failed, jobs_cancelled, in_time, repaired_poll, repaired_reconcile, repaired_replay,
        charged, compared_jobs, calls_each_second, calls_backoff, deliveries_accepted, deliveries_duplicate, deliveries_refused)
    SELECT hour, $now, 1, true, 800, 40, 0, 0, 0, array_fill(5::bigint, ARRAY[40]), array_fill(5::bigint, ARRAY[40]), 20, 0, 0, 20, 0, 0, 0, 840, 20, 100, 50, 20, 0, 0
    FROM generate_series(date_trunc('hour', $now - make_interval(days => $nights + 1), 'UTC'), date_trunc('hour', $now, 'UTC') - interval '1 h', '1 h') AS hour;

INSERT INTO reconcile_runs (trigger, started_at, finished_at, window_start, window_end, listed)
    SELECT 'timer', at, at + interval '5 s', at - interval '2 d', at, 20 FROM generate_series($now - least($nights, 90) * interval '1 d', $now, '10 min') AS at;

INSERT INTO audit_log (at, who, what, kind, on_id) SELECT $now - n * interval '1 h', 'bench', 'batch.submit', 'batch', n::text FROM generate_series(1, $nights * 20) AS n;

SELECT setval(pg_get_serial_sequence('jobs', 'id'), (SELECT max(id) FROM jobs)),
    setval(pg_get_serial_sequence('items', 'id'), (SELECT max(id) FROM items));
