// Package geonode is Rollcall's client of the Geonode Scraper API. It is a leaf:
// it knows the vendor's wire shapes and nothing of batches, items or tables.
//
// # What it promises
//
//   - One method per endpoint for extractions, batches, crawls, webhooks and
//     reports. Every method makes one HTTP request: nothing is retried here, because
//     the vendor has no idempotency key and only the pipeline knows whether a second
//     call is safe. (net/http itself sends a request again when a reused connection
//     took no byte of it, or when an HTTP/2 server says it didn't process the stream;
//     both are safe for submits.)
//   - Every failure is an [*Error]. It can be tested with errors.Is against the
//     sentinels of this package, says whether and when to try again, and says
//     for submits whether the vendor may have taken the work (see [Certainty]).
//   - Time and memory are bounded: each call has a timeout, each answer a limit
//     counted after decompression. No redirect is followed.
//   - The API key, webhook secrets and query strings appear in no error text.
//
// # How it reads
//
// The vendor's API is described from the outside, so reading is lenient: unknown
// members and words pass, a missing counter is unknown rather than zero, and one
// unreadable item doesn't lose the page it is on. What must hold is held firmly:
// an answer without a usable job id, or a list without its rows, is [ErrMalformed]
// and never an empty success.
package geonode
