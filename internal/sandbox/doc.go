// Package sandbox is the vendor, simulated over HTTP: a stateful stand-in for the Geonode Scraper API, written from
// the vendor's published contract with wire types of its own, so that nothing of our client leaks into it.
//
// It runs extract (sync and async), batch and crawl jobs, over real pages (fetched over http and https) and made
// pages (hosts under sandbox.test, generated from the URL and a seed, no network), keeps webhooks with signed and
// retried deliveries and a delivery log, counts tokens, and misbehaves on demand: see Faults and Switches.
//
// Some paths on any made host are special: /slow/5s answers late; /fail/CODE fails for good with that code;
// /fail-retryable/N fails, retryably, the first N times (once without N) that an account submits it; /huge/5mb is large;
// /plain/... is tiny and costs nothing to make; /steady/... is a good page that the fault item_fail spares; /latin1, /invalid-utf8, /nul, /empty and /script (hostile) try what a
// page may hold. Every other path is a good page, which may
// change a little from one submission to the next (Config.PagesChange).
//
// A real page that answers other than 2xx fails with TARGET_HTTP_404 and so on (retryable for 429 and 5xx). Other codes:
// DNS_FAILED, CONNECTION_FAILED, TIMEOUT (the last two retryable), TLS_ERROR, ADDRESS_REFUSED, TOO_MANY_REDIRECTS,
// CONTENT_TOO_LARGE, UNSUPPORTED_CONTENT, EXTRACTION_FAILED, ROBOTS_DISALLOWED, SANDBOX_FULL. The fault item_fail uses
// RATE_LIMITED and TIMEOUT (retryable), TARGET_BLOCKED and EXTRACTION_FAILED (not).
//
// It also keeps its own books (see Books): what it accepted, how each URL ended, what it charged, which calls it got
// and which deliveries it sent, so that a test can compare a client's account with the truth.
//
// What it decides is derived from the seed and from names (URL, job content, attempt number), never from the order
// in which goroutines happen to run; so the same seed and the same calls give the same outcomes. Job ids, webhook
// ids and secrets also depend on the start time, so that a restarted sandbox never reuses an id.
//
// Everything is held in memory, apart from the text of really fetched pages, which goes to an unnamed temporary file
// (Config.MaxKeptBytes); the text of made pages is generated again whenever it is asked for. Jobs are never forgotten,
// and past Config.MaxURLs no new one is accepted.
package sandbox
