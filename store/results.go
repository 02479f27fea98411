package store

import (
	"context"
	"crypto/sha256"
	"time"
)

// resultsBytes is how much content one statement takes; a result alone may have
// more.
const resultsBytes = 4 << 20

// insertResults sends the content as parameters, not inside the text, which
// would be copied and escaped. A trigger notes that its words are to be read.
func (t Tx) insertResults(ctx context.Context, results []*Result) error {
	for len(results) > 0 {
		var c resultColumns
		n, size := 0, 0
		for n < len(results) && (n == 0 || size+results[n].Size() <= resultsBytes) {
			size += results[n].Size()
			c.add(results[n])
			n++
		}
		if err := c.insert(ctx, t); err != nil {
			return err
		}
		results = results[n:]
	}
	return nil
}

// Size is how many bytes of content there are.
func (r *Result) Size() int { return len(r.Markdown) + len(r.HTML) + len(r.Links) + len(r.Metadata) }

// resultColumns are results turned on their side, as unnest takes them.
type resultColumns struct {
	item                                                      []int64
	job                                                       []*int64
	net, title, mark, reason                                  []string
	at                                                        []time.Time
	markdown, html, links, metadata, digest, htmlDigest, page [][]byte
	status, retries                                           []*int
	duration, charged                                         []*int64
}

func (c *resultColumns) add(r *Result) {
	c.item, c.job, c.net, c.at = append(c.item, r.ItemID), append(c.job, r.JobID), append(c.net, string(r.Net)), append(c.at, r.StoredAt)
	c.title, c.markdown, c.html = append(c.title, r.Title), append(c.markdown, r.Markdown), append(c.html, r.HTML)
	c.links, c.metadata = append(c.links, r.Links), append(c.metadata, r.Metadata)
	c.status, c.duration = append(c.status, r.HTTPStatus), append(c.duration, r.DurationMS)
	c.retries, c.charged = append(c.retries, r.RetryCount), append(c.charged, r.Charged)
	c.digest, c.htmlDigest = append(c.digest, digest(r.Markdown)), append(c.htmlDigest, digest(r.HTML))
	c.page, c.mark, c.reason = append(c.page, r.PageKey), append(c.mark, string(r.Mark)), append(c.reason, r.MarkReason)
}

func (c *resultColumns) insert(ctx context.Context, t Tx) error {
	_, err := t.tx.Tx.ExecContext(ctx, `INSERT INTO results (item_id, job_id, net, stored_at, title,
			markdown, html, links, metadata, http_status, duration_ms, retry_count, charged,
			markdown_sha256, html_sha256, page_key, mark, mark_reason)
		SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::timestamptz[], $5::text[],
			$6::bytea[], $7::bytea[], $8::bytea[], $9::bytea[], $10::integer[], $11::bigint[], $12::integer[], $13::bigint[],
			$14::bytea[], $15::bytea[], $16::bytea[], $17::text[], $18::text[])`,
		c.item, c.job, c.net, c.at, c.title, c.markdown, c.html, c.links, c.metadata, c.status, c.duration, c.retries,
		c.charged, c.digest, c.htmlDigest, c.page, c.mark, c.reason)
	return translate(err)
}

// digest is the SHA-256 of content, or nil when there is none.
func digest(content []byte) []byte {
	if content == nil {
		return nil
	}
	sum := sha256.Sum256(content)
	return sum[:]
}
