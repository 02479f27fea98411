package main

import (
	"crypto/sha256"
	"fmt"
	"time"

	"rollcall/internal/preflight"
	"rollcall/store"
)

// seedAccount is whose the jobs are.
const seedAccount = "bench"

func (d *seeder) batchRows() seedTable {
	columns := []string{
		"id", "name", "kind", "options", "created_at", "ended_at", "submitted", "duplicate", "accepted",
		"stored_webhook", "stored_poll", "stored_reconcile", "stored_replay", "failed", "cancelled", "charged",
	}
	return seedTable{"batches", columns, rowsOf(len(d.batches), func(i int) []any {
		b := &d.batches[i]
		var ended *time.Time
		if b.counts[seedOutstanding] == 0 {
			at := b.ended(b.size)
			ended = &at
		}
		options := `{"formats":["markdown"]}`
		if b.kind == store.KindCrawl {
			options = `{"formats":["markdown"],"crawl":{"limit":1000,"max_depth":4}}`
		}
		return []any{
			b.id, fmt.Sprintf("%s %d, %s", d.text.words[100+b.id%5000], b.id, b.created.Format("2 January")), string(b.kind), options,
			b.created, ended, b.size + b.rejected, b.rejected, b.size, b.byNet[store.NetWebhook], b.byNet[store.NetPoll],
			b.byNet[store.NetReconcile], b.byNet[store.NetReplay], b.counts[seedFailed], b.counts[seedCancelled], b.counts[seedStored],
		}
	})}
}

func vendorJob(job int) string { return fmt.Sprintf("job-%010d", job) }

func (d *seeder) jobRows() seedTable {
	columns := []string{
		"id", "batch_id", "kind", "state", "origin", "request_hash", "url_count", "created_at", "call_no", "called_at", "vendor_job_id",
		"account", "accepted_at", "vendor_status", "wake_seq", "wake_net", "next_poll_at", "webhook_at", "settle_net", "ended_at", "vendor_ended_at", "charged",
	}
	return seedTable{"jobs", columns, d.everyJob(func(b *seedBatch, at, job int) []any {
		hash := sha256.Sum256([]byte(vendorJob(job)))
		kind, urls := b.kind, min(b.perJob, b.size-at*b.perJob)
		if kind == store.KindCrawl {
			urls = 1
		}
		called := b.created.Add(time.Duration(at) * time.Millisecond)
		row := []any{
			job, b.id, string(kind), "accepted", "submit", hash[:], urls, b.created, 1, called, vendorJob(job),
			seedAccount, called.Add(300 * time.Millisecond), "processing", 0, nil, d.began.Add(time.Minute), nil, nil, nil, nil, 0,
		}
		if d.isOpen(b, at) {
			return row
		}
		ended, net := b.jobEnded(at), seedNet(job)
		var webhook *time.Time
		if net == store.NetWebhook {
			webhook = &ended
		}
		row[3], row[13], row[14], row[15], row[16] = "settled", "completed", 1, string(net), nil
		row[17], row[18], row[19], row[20], row[21] = webhook, string(net), ended.Add(time.Second), ended.Add(-2*time.Second), urls
		return row
	})}
}

// seedFailures are what failed items say.
func seedFailures() [][2]string {
	return [][2]string{
		{"TIMEOUT", "the page took longer than 30 s"},
		{"HTTP_403", "https://www.example/ answered 403"},
		{"HTTP_404", "the page is not there"},
		{"DNS", "the host has no address"},
		{"BLOCKED", "request 1a2b3c4d was blocked"},
	}
}

func (d *seeder) itemRows() seedTable {
	columns := []string{
		"id", "batch_id", "position", "url", "url_hash", "state", "net", "current_job_id", "error_code", "error_message", "created_at",
		"ended_at", "resolved_at", "resolved_note",
	}
	failures := seedFailures()
	return seedTable{"items", columns, d.everyItem(func(b *seedBatch, at, item int, state seedState) []any {
		url := d.url(item)
		hash := sha256.Sum256([]byte(url))
		row := []any{
			item, b.id, at + 1, url, hash[:], string(state.name()), nil, b.jobs + at/b.perJob + 1, "", "", b.created, nil, nil, "",
		}
		if state != seedOutstanding {
			row[11] = b.ended(at)
		}
		switch state {
		case seedStored:
			row[6] = string(seedNet(item))
		case seedFailed:
			why := failures[item*7%len(failures)]
			row[8], row[9] = why[0], why[1]
			if item%3 != 0 && !b.open {
				row[12], row[13] = b.ended(at).Add(24*time.Hour), "seen"
			}
		case seedCancelled:
			row[8], row[9] = "CANCELLED", "cancelled by a person"
		case seedOutstanding:
		}
		return row
	})}
}

func (d *seeder) lineageRows() seedTable {
	columns := []string{"job_id", "input_index", "item_id", "outcome", "reported_at"}
	return seedTable{"job_items", columns, d.everyItem(func(b *seedBatch, at, item int, state seedState) []any {
		job, index := b.jobs+at/b.perJob+1, at%b.perJob
		if state == seedOutstanding {
			return []any{job, index, item, nil, nil}
		}
		return []any{job, index, item, string(state.name()), b.ended(at)}
	})}
}

// crawlRows makes trees: each page but the first was found on one of those before it.
func (d *seeder) crawlRows() seedTable {
	columns := []string{"job_id", "url_hash", "item_id", "parent_url", "depth"}
	return seedTable{"crawl_pages", columns, d.everyItem(func(b *seedBatch, at, item int, _ seedState) []any {
		if b.kind != store.KindCrawl {
			return nil
		}
		hash := sha256.Sum256([]byte(d.url(item)))
		parent, depth := "", 1
		for up := at; up > 0; up = (up - 1) / 8 {
			depth++
		}
		if at > 0 {
			parent = d.url(b.items + (at-1)/8 + 1)
		}
		return []any{b.jobs + at/b.perJob + 1, hash[:], item, parent, depth}
	})}
}

// seedHTMLOf is of how many items one, if it is stored, has HTML beside its Markdown.
const seedHTMLOf = 50

// seedTextSize is about how long the stored texts are, in bytes.
const seedTextSize = 8 << 10

func (d *seeder) resultRows() seedTable {
	columns := []string{
		"item_id", "job_id", "net", "stored_at", "title", "markdown", "html", "links", "metadata", "http_status", "duration_ms", "charged", "markdown_sha256", "page_key",
	}
	return seedTable{"results", columns, d.everyItem(func(b *seedBatch, at, item int, state seedState) []any {
		if state != seedStored {
			return nil
		}
		title, text := d.text.page(seedTextSize)
		sum := sha256.Sum256([]byte(text))
		var page []byte
		if item%seedHTMLOf == 0 {
			page = []byte("<!doctype html><title>" + title + "</title><p>" + text + "</p>")
		}
		key := preflight.Key(preflight.Canonical(d.url(item), false, false))
		return []any{
			item, b.jobs + at/b.perJob + 1, string(seedNet(item)), b.ended(at), title, []byte(text), page, []byte(`["` + d.url(item+1) + `"]`),
			[]byte(`{"language":"xx"}`), 200, 500 + item%3000, 1, sum[:], key[:],
		}
	})}
}
