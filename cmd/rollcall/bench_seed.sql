-- The tables that stay small, and those that a page reads by one id, for bench seed: see seeder.smallTables, which puts in
-- $now, $first (when the first batch began), $batches (how many), $admin and $testname, and makes share(n) of n as many as
-- fit the size. They are made of what there is: batches, webhooks, jobs, items. A statement ends with its line.

INSERT INTO users (name, role, password_hash, created_at, password_changed_at)
    SELECT CASE n WHEN 1 THEN '$admin' ELSE 'person ' || n END,
        CASE WHEN n = 1 THEN 'admin' WHEN n % 4 = 0 THEN 'operator' ELSE 'analyst' END, '', $first, $first
    FROM generate_series(1, 40) AS n ORDER BY n;

UPDATE batches SET created_by = 1 + id % 40;

UPDATE batches SET name = '$testname' WHERE id = (SELECT max(id) FROM batches WHERE kind = 'extract');

INSERT INTO webhook_secrets (webhook_id, version, sealed, valid_from) SELECT id, 1, '', $first FROM webhooks;

INSERT INTO rotations (webhook_id, started_by, state, webhook_was, started_at, attempt, called_at, stored_at, version, ended_at)
    SELECT w.id, 'person 4', 'done', 'live', $first + n * interval '1 day', 1, $first + n * interval '1 day', $first + n * interval '1 day', 1,
        $first + (n + 1) * interval '1 day' FROM webhooks w, generate_series(1, share(20)) AS n;

INSERT INTO refused_counts (webhook_id, day, cause, deliveries, last_at)
    SELECT w.id, ($first + n * interval '1 day')::date, 'unsigned', n, $first + n * interval '1 day' FROM webhooks w, generate_series(1, share(80)) AS n;

INSERT INTO rejected_lines (batch_id, line, kind, text, reason)
    SELECT b.id, n, 'duplicate', 'https://www.host1.example/pages/' || n, 'the same as an earlier line' FROM batches b, generate_series(1, b.duplicate) AS n;

INSERT INTO audit_log (at, user_id, who, source, what, kind, on_id, after)
    SELECT $first + n * interval '2 minutes', 1 + n % 40, 'person ' || n % 40, '127.0.0.1',
        (ARRAY['batch.submit', 'user.sign_in', 'export.make', 'failures.resolve'])[1 + n % 4], (ARRAY['batch', 'user', 'export', 'item'])[1 + n % 4],
        (1 + n % $batches)::text, '{"n": 1}' FROM generate_series(1, share(50000)) AS n;

INSERT INTO reconcile_runs (trigger, started_at, finished_at, window_start, window_end, pages, listed, missing, woken)
    SELECT 'timer', t, t + interval '3 s', t - interval '48 hours', t, 20, 1900, n % 7, n % 7
    FROM (SELECT n, $first + n * interval '10 minutes' AS t FROM generate_series(1, share(12000)) AS n) AS runs;

INSERT INTO call_counts (hour, kind, n)
    SELECT date_trunc('hour', $first, 'UTC') + h * interval '1 hour', kind, 100 + h
    FROM generate_series(0, share(2159)) AS h, unnest(ARRAY['submit', 'result', 'list', 'status']) AS kind;

INSERT INTO schedules (name, template_batch_id, cron, zone, created_by, created_at, next_at)
    SELECT 'each night, ' || id, id, '0 2 * * *', 'Europe/Berlin', 1 + id % 40, created_at, $now + interval '9 hours'
    FROM batches WHERE kind <> 'crawl' ORDER BY id LIMIT 30;

INSERT INTO schedule_runs (schedule_id, due_at, at, outcome, batch_id, reason)
    SELECT s.id, b.created_at, b.created_at, CASE WHEN b.rn % 5 = 0 THEN 'skipped' ELSE 'started' END, CASE WHEN b.rn % 5 <> 0 THEN b.id END, ''
    FROM (SELECT id, created_at, row_number() OVER (ORDER BY id) AS rn FROM batches) AS b JOIN schedules s ON s.id = 1 + b.rn % 30;

INSERT INTO exports (owner_id, made_by, created_at, state, name, picked, filter, choices, expected, rows, bytes, sha256, manifest, started_at, ended_at, expires_at, held)
    SELECT 1 + n % 40, 'person ' || n % 40, t, 'done', 'batch-' || n || '.csv', 'batch ' || n, '{"filter":{"batch":1},"words":{}}',
        '{"format":"csv"}', 1000, 1000, 100000, sha256(n::text::bytea), '{"rows":1000}', t, t + interval '9 s', $now + interval '48 hours', true
    FROM (SELECT n, $first + n * interval '1 hour' AS t FROM generate_series(1, share(1200)) AS n) AS made;

INSERT INTO export_chunks (export_id, n, body) SELECT id, 0, convert_to(repeat('a,b,c' || chr(10), 20000), 'UTF8') FROM exports WHERE id % 40 = 1;

INSERT INTO replays (state, picked, address, planned_by, planned_at, run_by, started_at, ended_at, lines, jobs, calls, already_settled, settled_now, refetch, refetched, differing)
    SELECT 'done', 'refused deliveries', '/deliveries?verdict=refused', 'person 4', t, 'person 4', t, t + interval '5 minutes', 500, 500, 500, 400, 100, true, 400, 20
    FROM (SELECT $first + n * interval '1 day' AS t FROM generate_series(1, share(60)) AS n) AS planned;

INSERT INTO replay_jobs (replay_id, job_id, calls, state, woken_at, ended_at, outcome, refetched)
    SELECT r.id, j.id, 1, 'ended', r.started_at, r.ended_at, CASE WHEN j.id % 5 = 0 THEN 'settled_now' ELSE 'already_settled' END, 'same'
    FROM replays r JOIN LATERAL (SELECT id FROM jobs WHERE id > r.id * 100 AND state = 'settled' ORDER BY id LIMIT share(500)) AS j ON true;

INSERT INTO replay_deliveries (replay_id, delivery_id, outcome)
    SELECT r.id, d.id, 'already' FROM replays r JOIN LATERAL (SELECT id FROM deliveries WHERE id > r.id * 10 ORDER BY id LIMIT 50) AS d ON true;

INSERT INTO replay_differences (replay_id, item_id, job_id, found_at, version, kept, title, markdown)
    SELECT 1 + n % share(60), item_id, job_id, $now, 1, true, title, markdown
    FROM (SELECT row_number() OVER () AS n, item_id, job_id, title, markdown FROM (SELECT * FROM results ORDER BY item_id LIMIT 1200) AS oldest) AS r;

INSERT INTO result_versions (item_id, version, job_id, net, stored_at, replaced_at, title, markdown, markdown_sha256)
    SELECT item_id, 1, job_id, net, stored_at, stored_at + interval '1 day', title, markdown, markdown_sha256 FROM results ORDER BY item_id LIMIT 200;

UPDATE results SET version = 2 WHERE item_id IN (SELECT item_id FROM result_versions);

INSERT INTO comparisons (a_batch_id, b_batch_id, state, asked_at, ended_at, a_stored, b_stored, unchanged, changed, added, gone)
    SELECT a, b, 'done', $now, $now, 5000, 5000, 2000, 2000, 500, 500
    FROM (SELECT id AS b, lag(id) OVER (ORDER BY id) AS a FROM (SELECT id FROM batches WHERE stored_webhook > 0 ORDER BY accepted DESC, id LIMIT 2) AS two) AS pair WHERE a IS NOT NULL;

INSERT INTO comparison_pages (comparison_id, kind, n, a_item_id, b_item_id, a_state, b_state)
    SELECT c.id, (ARRAY['unchanged', 'changed', 'recovered', 'lost'])[1 + i.position % 4], i.position, i.id, i.id, 'stored', 'stored'
    FROM comparisons c JOIN items i ON i.batch_id = c.b_batch_id AND i.position <= 5000;

INSERT INTO invites (token_hash, name, role, made_by, created_at, expires_at)
    SELECT sha256(n::text::bytea), 'invited ' || n, 'analyst', '$admin', $now, $now + interval '3 days' FROM generate_series(1, 8) AS n;
