package main

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/url"
	"strings"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// picks finds ids in a seeded database for the addresses that are visited. The first error stays.
type picks struct {
	ctx context.Context //nolint:containedctx // It lives as long as one function.
	s   *store.Store
	err error
}

// ids are the first columns of some rows, as text.
func (p *picks) ids(query string, args ...any) []string {
	if p.err != nil {
		return nil
	}
	rows, err := p.s.SQL().QueryContext(p.ctx, query, args...)
	if err != nil {
		p.err = fmt.Errorf("%.80s: %w", query, err)
		return nil
	}
	defer func() { _ = rows.Close() }() // Err tells what went wrong.
	var out []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			p.err = err
			return nil
		}
		out = append(out, id)
	}
	p.err = rows.Err()
	if p.err == nil && len(out) == 0 {
		p.err = fmt.Errorf("nothing is there for %.80s", query)
	}
	return out
}

// one is the first of ids, "0" without any.
func (p *picks) one(query string, args ...any) string {
	return first(p.ids(query, args...))
}

// deep is where a list by time and id goes on, far from its beginning: after that share of its rows.
func (p *picks) deep(table, at string, share float64) string {
	if p.err != nil {
		return ""
	}
	var when time.Time
	var id int64
	// By id, which runs with the time: an OFFSET would read all before it.
	err := p.s.SQL().QueryRowContext(p.ctx, fmt.Sprintf(`SELECT %s, id FROM %s WHERE id >= (SELECT min(id) + ((max(id) - min(id)) * %g)::bigint FROM %s) ORDER BY id LIMIT 1`,
		at, table, 1-share, table)).Scan(&when, &id)
	if err != nil {
		p.err = fmt.Errorf("deep in %s: %w", table, err)
	}
	raw := binary.BigEndian.AppendUint64(nil, uint64(when.UnixMicro()))
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(raw, uint64(id))) //nolint:gosec // As above.
}

// place is where a list by number goes on.
func place(n int) string {
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(n))) //nolint:gosec // As web's placeCursor.
}

// perID puts each id into each pattern.
func perID(ids []string, patterns ...string) []string {
	var out []string
	for _, pattern := range patterns {
		for _, id := range ids {
			out = append(out, strings.ReplaceAll(pattern, ":id", id))
		}
	}
	return out
}

// visits are the addresses by which each route of the table is measured: several ids, filters, deep pages.
func visits(ctx context.Context, s *store.Store) (map[string][]string, error) {
	p := &picks{ctx: ctx, s: s}
	out := map[string][]string{}
	p.work(out)
	p.results(out)
	p.operations(out)
	p.people(out)
	p.files(out)
	return out, p.err
}

// work is batches, items, jobs.
func (p *picks) work(out map[string][]string) {
	largest := p.ids(`SELECT id FROM batches WHERE stored_webhook > 0 ORDER BY accepted DESC, id LIMIT 2`)
	newest := p.ids(`SELECT id FROM batches ORDER BY id DESC LIMIT 2`)
	crawls := p.ids(`SELECT id FROM batches WHERE kind = 'crawl' AND stored_webhook > 0 ORDER BY accepted DESC, id LIMIT 1`)
	open := p.ids(`SELECT id FROM batches WHERE ended_at IS NULL ORDER BY accepted DESC LIMIT 2`)
	batches := append(append(append([]string{}, largest...), newest...), crawls...)
	single := upTo(largest, 1)
	out["/"] = []string{"/", "/?span=48h", "/?span=30d"}
	out["/live"] = []string{"/live"}
	out["/batches"] = []string{"/batches", "/batches?name=da", "/batches?name=nosuchname", "/batches?from=" + p.deep("batches", "created_at", 0.9)}
	out["/batches/new"] = []string{"/batches/new"}
	out["/batches/:id"] = perID(batches, "/batches/:id")
	out["/batches/:id/items"] = append(perID(batches, "/batches/:id/items", "/batches/:id/items?state=failed", "/batches/:id/items?state=stored"),
		perID(single, "/batches/:id/items?from="+place(15_000), "/batches/:id/items?jobs="+place(10), "/batches/:id/items?host=www.host7.example",
			"/batches/:id/items?url=pages%2F77", "/batches/:id/items?url=nosuchpage", "/batches/:id/items?http=4xx", "/batches/:id/items?min_bytes=9000",
			"/batches/:id/items?min_ms=3000&net=webhook", "/batches/:id/items?state=stored&mark=empty", "/batches/:id/items?code=TIMEOUT")...)
	out["/batches/:id/items"] = append(out["/batches/:id/items"], perID(crawls, "/batches/:id/items?view=table",
		"/batches/:id/items?parent="+p.one(`SELECT c.item_id FROM crawl_pages c JOIN items i ON i.id = c.item_id WHERE i.batch_id = $1 AND c.depth = 2 LIMIT 1`, first(crawls)))...)
	out["/batches/:id/rejected.csv"] = perID(largest, "/batches/:id/rejected.csv")
	out["/batches/:id/items/rows"] = perID(single, "/batches/:id/items/rows?"+rowIDs(p.ids(`SELECT id FROM items WHERE batch_id = $1 ORDER BY position LIMIT 50`, first(largest))))
	out["/batches/:id/stuck"] = perID(append(open, single...), "/batches/:id/stuck", "/batches/:id/stuck?part=1")
	out["/batches/:id/live"] = perID(batches, "/batches/:id/live")
	out["/batches/:id/cancel"] = perID(append(open, largest...), "/batches/:id/cancel")
	out["/batches/:id/rerun"] = perID(batches, "/batches/:id/rerun", "/batches/:id/rerun?which=failures")
	out["/crawls/new"] = []string{"/crawls/new"}
	out["/try"] = []string{"/try"}
	items := append(p.ids(`SELECT item_id FROM results ORDER BY stored_at DESC LIMIT 3`), p.ids(`SELECT id FROM items WHERE state = 'failed' ORDER BY ended_at DESC LIMIT 2`)...)
	items = append(items, p.one(`SELECT item_id FROM crawl_pages LIMIT 1`))
	out["/items/:id"] = perID(items, "/items/:id")
	out["/items/:id/live"] = perID(upTo(items, 2), "/items/:id/live")
	jobs := append(p.ids(`SELECT id FROM jobs ORDER BY url_count DESC, id LIMIT 2`), p.ids(`SELECT id FROM jobs WHERE kind = 'extract' ORDER BY id DESC LIMIT 2`)...)
	out["/jobs/:id"] = append(perID(jobs, "/jobs/:id"), perID(upTo(jobs, 1), "/jobs/:id?from="+place(40))...)
	out["/jobs/:id/live"] = perID(upTo(jobs, 2), "/jobs/:id/live")
	out["/jobs/cancel"] = []string{"/jobs/cancel?job=" + strings.Join(p.ids(`SELECT id FROM jobs ORDER BY id DESC LIMIT 20`), "&job=")}
	out["/batches/:id/export"] = perID(single, "/batches/:id/export?format=csv", "/batches/:id/export?format=jsonl")
}

// upTo are the first ids, at most n.
func upTo(ids []string, n int) []string { return ids[:min(n, len(ids))] }

// first is the first id, "0" without any.
func first(ids []string) string {
	if len(ids) == 0 {
		return "0"
	}
	return ids[0]
}

func rowIDs(ids []string) string { return "id=" + strings.Join(ids, "&id=") }

// results are what is read, compared and searched.
func (p *picks) results(out map[string][]string) {
	ids := append(p.ids(`SELECT item_id FROM results ORDER BY stored_at DESC LIMIT 3`), p.ids(`SELECT item_id FROM result_versions ORDER BY item_id LIMIT 2`)...)
	out["/results/:id"] = perID(ids, "/results/:id", "/results/:id?tab=markdown", "/results/:id?tab=links", "/results/:id?tab=metadata", "/results/:id?tab=story", "/results/:id?tab=history")
	out["/results/:id/preview"] = perID(p.ids(`SELECT item_id FROM results WHERE html IS NOT NULL ORDER BY stored_at DESC LIMIT 3`), "/results/:id/preview")
	out["/results/:id/download"] = perID(ids, "/results/:id/download?format=markdown", "/results/:id/download?format=json")
	pair := p.ids(`SELECT item_id FROM results WHERE page_key = (SELECT r.page_key FROM results r WHERE EXISTS (
		SELECT FROM results o WHERE o.page_key = r.page_key AND o.item_id <> r.item_id) LIMIT 1) ORDER BY item_id LIMIT 2`)
	if len(pair) == 2 {
		out["/compare/results"] = []string{"/compare/results?a=" + pair[0] + "&b=" + pair[1], "/compare/results?a=" + pair[0] + "&b=" + pair[1] + "&blanks=ignore"}
	}
	sides := p.ids(`SELECT unnest(ARRAY[a_batch_id, b_batch_id]) FROM comparisons LIMIT 2`)
	if len(sides) == 2 {
		both := "a=" + sides[0] + "&b=" + sides[1]
		out["/compare/batches"] = []string{"/compare/batches?a=" + sides[0], "/compare/batches?" + both, "/compare/batches?" + both + "&kind=unchanged&from=" + place(1000)}
		out["/compare/batches/live"] = []string{"/compare/batches/live?" + both}
	}
}

// operations are failures, deliveries, replays, reconciling, webhooks.
func (p *picks) operations(out map[string][]string) {
	group := p.one(`SELECT failure_group FROM items WHERE state = 'failed' LIMIT 1`)
	batch := p.one(`SELECT batch_id FROM items WHERE state = 'failed' AND resolved_at IS NULL ORDER BY id DESC LIMIT 1`)
	out["/failures"] = []string{
		"/failures", "/failures?code=TIMEOUT", "/failures?host=www.host7.example", "/failures?group=" + group, "/failures?standing=resolved",
		"/failures?standing=all", "/failures?batch=" + batch,
		"/failures?from=" + p.deep("items", "coalesce(ended_at, created_at)", 0.5),
	}
	failed := "item=" + strings.Join(p.ids(`SELECT id FROM items WHERE state = 'failed' AND resolved_at IS NULL ORDER BY ended_at DESC LIMIT 20`), "&item=")
	out["/failures/resolve"] = []string{"/failures/resolve?" + failed, "/failures/resolve?all=1&batch=" + batch, "/failures/resolve?all=1&group=" + group}
	out["/resubmit"] = []string{"/resubmit?" + failed, "/resubmit?all=1&batch=" + batch, "/resubmit?all=1&code=TIMEOUT"}
	out["/deliveries"] = []string{
		"/deliveries", "/deliveries?verdict=refused", "/deliveries?verdict=duplicate", "/deliveries?webhook=1", "/deliveries?event=batch_completed",
		"/deliveries?class=4", "/deliveries?http=401", "/deliveries?job=" + p.one(`SELECT vendor_job_id FROM jobs WHERE vendor_job_id IS NOT NULL ORDER BY id DESC LIMIT 1`),
		"/deliveries?batch=" + batch, "/deliveries?verdict=duplicate&webhook=3&class=2", "/deliveries?about=foreign", "/deliveries?about=held",
		"/deliveries?from=" + p.deep("deliveries", "received_at", 0.9), "/deliveries?verdict=accepted&webhook=2&from=" + p.deep("deliveries", "received_at", 0.5),
	}
	out["/deliveries/log"] = []string{
		"/deliveries/log", "/deliveries/log?status=failed", "/deliveries/log?class=5", "/deliveries/log?webhook=2", "/deliveries/log?event=batch_completed",

		"/deliveries/log?standing=received", "/deliveries/log?standing=absent", "/deliveries/log?standing=refused", "/deliveries/log?standing=given_up",
		"/deliveries/log?standing=pending", "/deliveries/log?standing=lost", "/deliveries/log?standing=absent&webhook=3",
		"/deliveries/log?from=" + p.deep("delivery_log", "created_at", 0.5),
	}
	deliveries := append(p.ids(`SELECT id FROM deliveries ORDER BY id DESC LIMIT 2`), p.ids(`SELECT id FROM deliveries WHERE verdict = 'refused' ORDER BY id DESC LIMIT 1`)...)
	out["/deliveries/:id"] = perID(deliveries, "/deliveries/:id")
	out["/deliveries/:id/body"] = perID(deliveries, "/deliveries/:id/body")
	replays := p.ids(`SELECT id FROM replays ORDER BY id DESC LIMIT 2`)
	out["/replays"] = []string{"/replays"}
	out["/replays/new"] = []string{"/replays/new", "/replays/new?from=received&verdict=refused", "/replays/new?from=received&verdict=duplicate&webhook=1", "/replays/new?from=log&status=failed", "/replays/new?row=" + strings.Join(deliveries, "&row=")}
	out["/replays/:id"] = perID(replays, "/replays/:id", "/replays/:id?outcome=settled_now")
	out["/replays/:id/live"] = perID(replays, "/replays/:id/live")
	out["/replays/:id/differences"] = perID(p.ids(`SELECT DISTINCT replay_id FROM replay_differences LIMIT 2`), "/replays/:id/differences")
	out["/replays/:id/differences/:item"] = p.ids(`SELECT '/replays/' || replay_id || '/differences/' || item_id FROM replay_differences LIMIT 3`)
	out["/reconcile"] = []string{"/reconcile", "/reconcile?from=" + p.deep("reconcile_runs", "started_at", 0.9)}
	out["/reconcile/live"] = []string{"/reconcile/live"}
	out["/webhooks"] = []string{"/webhooks"}
	out["/webhooks/adopt"] = []string{"/webhooks/adopt"}
	out["/webhooks/check"] = []string{"/webhooks/check"}
	hooks := p.ids(`SELECT id FROM webhooks ORDER BY id`)
	out["/webhooks/:id"] = perID(hooks, "/webhooks/:id")
	out["/webhooks/:id/sent/:batch"] = perID(upTo(hooks, 1), "/webhooks/:id/sent/"+p.one(`SELECT id FROM batches WHERE name = $1`, pipeline.TestName("extract_completed")))
	out["/webhooks/:id/sent/:batch/live"] = perID(out["/webhooks/:id/sent/:batch"], ":id/live")
	out["/webhooks/:id/rotation"] = perID(hooks, "/webhooks/:id/rotation")
	out["/webhooks/:id/rotation/live"] = perID(upTo(hooks, 1), "/webhooks/:id/rotation/live")
}

// people are accounts, the audit log, and what needs nobody signed in.
func (p *picks) people(out map[string][]string) {
	out["/users"] = []string{"/users"}
	out["/users/:id"] = perID(p.ids(`SELECT id FROM users ORDER BY id LIMIT 3`), "/users/:id")
	out["/users/invites/:id"] = perID(p.ids(`SELECT id FROM invites ORDER BY id LIMIT 1`), "/users/invites/:id")
	out["/audit"] = []string{
		"/audit", "/audit?who=person+7", "/audit?what=batch.submit", "/audit?kind=batch&id=7", "/audit?who=nobody", "/audit?from=" + p.deep("audit_log", "at", 0.9),
	}
	out["/audit.csv"], out["/audit.jsonl"] = []string{"/audit.csv"}, []string{"/audit.jsonl"}
	out["/account"] = []string{"/account"}
	out["/sign-in"], out["/setup"], out["/invite/:token"] = []string{"/sign-in"}, []string{"/setup"}, []string{"/invite/nosuchtoken"}
	out["/healthz"], out["/readyz"] = []string{"/healthz"}, []string{"/readyz"}
	out["/static/*"] = nil // Files of the program: no database is behind them.
}

// files are preflights, schedules and exports.
func (p *picks) files(out map[string][]string) {
	preflights := p.ids(`SELECT id FROM preflights WHERE created_by = 1 AND batch_id IS NULL ORDER BY id DESC LIMIT 2`)
	out["/preflights/:id"] = perID(preflights, "/preflights/:id", "/preflights/:id?verdict=invalid", "/preflights/:id?verdict=duplicate", "/preflights/:id?from="+place(1000))
	out["/preflights/:id/rejected.csv"] = perID(preflights, "/preflights/:id/rejected.csv")
	schedules := p.ids(`SELECT id FROM schedules ORDER BY id LIMIT 2`)
	out["/schedules"] = []string{"/schedules"}
	batch := p.one(`SELECT id FROM batches WHERE kind = 'batch' ORDER BY accepted DESC, id LIMIT 1`)
	out["/schedules/new"] = []string{"/schedules/new?batch=" + batch}
	out["/schedules/next"] = []string{"/schedules/next?" + url.Values{"batch": {batch}, "how": {"cron"}, "cron": {"0 2 * * *"}, "zone": {"Europe/Berlin"}}.Encode()}
	out["/schedules/:id"] = perID(schedules, "/schedules/:id")
	out["/schedules/:id/change"] = perID(schedules, "/schedules/:id/change")
	out["/schedules/:id/run"] = perID(schedules, "/schedules/:id/run")
	out["/schedules/:id/remove"] = perID(schedules, "/schedules/:id/remove")
	exports := p.ids(`SELECT id FROM exports WHERE id IN (SELECT export_id FROM export_chunks) ORDER BY id DESC LIMIT 2`)
	out["/exports"] = []string{"/exports", "/exports?from=" + p.deep("exports", "created_at", 0.9)}
	out["/exports/new"] = []string{"/exports/new", "/exports/new?batch=" + batch, "/exports/new?state=failed&code=TIMEOUT"}
	out["/exports/live"] = []string{"/exports/live"}
	out["/exports/items"] = []string{"/exports/items?format=jsonl&state=stored&batch=" +
		p.one(`SELECT id FROM batches WHERE stored_webhook > 0 AND accepted <= 1000 ORDER BY accepted DESC, id LIMIT 1`)}
	out["/exports/:id"] = perID(exports, "/exports/:id")
	out["/exports/:id/live"] = perID(exports, "/exports/:id/live")
	out["/exports/:id/manifest.json"] = perID(exports, "/exports/:id/manifest.json")
	out["/exports/:id/download"] = perID(exports, "/exports/:id/download")
}
