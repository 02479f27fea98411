package web

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

// fillDetails reads what is known beside the content: sizes and digests, times,
// what it cost, and what the vendor sent along.
func (s *Server) fillDetails(ctx context.Context, r shownResult, p *views.ResultProps) error {
	var err error
	if p.Contents, err = resultContents(ctx, r); err != nil {
		return err
	}
	times, err := s.store.PageResultTimes(ctx, r.ItemID, r.JobID)
	if err != nil {
		return err
	}
	p.Steps = resultSteps(times, r)
	p.Metadata = resultFacts(ctx, r.ResultFacts)
	p.Line = itemLine(r.Line, r.Original, r.URL)
	if p.Columns, err = s.lineColumns(ctx, r.ItemID); err != nil {
		return err
	}
	raw, err := r.part(ctx, store.PartMetadata, readSmall)
	p.Vendor = vendorMetadata(raw)
	return err
}

// resultContents are the contents that the result has.
func resultContents(ctx context.Context, r shownResult) ([]views.Content, error) {
	var out []views.Content
	for _, each := range []struct {
		name   string
		part   store.Part
		size   int64
		digest []byte
	}{
		{"Markdown", store.PartMarkdown, r.MarkdownSize, r.MarkdownSHA256}, {"HTML", store.PartHTML, r.HTMLSize, r.HTMLSHA256},
	} {
		if each.size < 0 {
			continue
		}
		content, err := r.part(ctx, each.part, shownSource)
		if err != nil {
			return nil, err
		}
		words := views.Count{N: countWords(each.part, content), Known: true, More: each.size > shownSource}
		out = append(out, views.Content{Name: each.name, Bytes: each.size, Words: words, SHA256: hex.EncodeToString(each.digest)})
	}
	return out, nil
}

// countWords counts what a reader reads: in HTML without its tags.
func countWords(part store.Part, content []byte) int64 {
	text := pipeline.PlainText(content, nil)
	if part == store.PartHTML {
		text = pipeline.PlainText(nil, content)
	}
	n := int64(0)
	for range strings.FieldsSeq(text) {
		n++
	}
	return n
}

// resultSteps are the moments on the way of an item, as far as they are known,
// in their order.
func resultSteps(t store.ResultTimes, r shownResult) []views.Step {
	steps := []views.Step{
		{Name: "Submitted", At: t.Submitted},
		{Name: "Accepted by the vendor", At: orZero(t.Accepted)},
		{Name: "Done at the vendor", At: orZero(t.VendorEnded)},
		{Name: "Stored", At: r.StoredAt},
	}
	if t.Accepted == nil && t.Called != nil {
		steps[1] = views.Step{Name: "Vendor called", At: *t.Called}
	}
	var before time.Time
	for i := range steps {
		if steps[i].At.IsZero() {
			continue
		}
		if !before.IsZero() {
			steps[i].After, steps[i].Known = max(0, steps[i].At.Sub(before)), true
		}
		before = steps[i].At
	}
	return steps
}

func resultFacts(ctx context.Context, facts *store.ResultFacts) []views.Pair {
	var pairs []views.Pair
	put := func(name, value string) { pairs = append(pairs, views.Pair{Name: name, Value: value}) }
	if facts.HTTPStatus != nil {
		put(views.Textf(ctx, "HTTP status"), strconv.Itoa(*facts.HTTPStatus))
	}
	if facts.DurationMS != nil {
		put(views.Textf(ctx, "Duration"), views.Textf(ctx, "%d ms", *facts.DurationMS))
	}
	if facts.RetryCount != nil {
		put(views.Textf(ctx, "Vendor's retries"), strconv.Itoa(*facts.RetryCount))
	}
	if facts.Charged != nil {
		put(views.Textf(ctx, "Tokens charged"), idText(*facts.Charged))
	}
	return pairs
}

// vendorMetadata shows what else the vendor sent beside the content, under its
// own names.
func vendorMetadata(raw []byte) []views.Pair {
	var said map[string]json.RawMessage
	if json.Unmarshal(raw, &said) != nil {
		return nil
	}
	for _, known := range []string{"http_status", "duration_ms", "retry_count", "tokens_charged"} {
		delete(said, known) // Shown already, in words.
	}
	pairs := make([]views.Pair, 0, len(said))
	for _, name := range slices.Sorted(maps.Keys(said)) {
		value := string(said[name])
		var plain string
		if json.Unmarshal(said[name], &plain) == nil {
			value = plain
		}
		pairs = append(pairs, views.Pair{Name: clean(name, 200), Value: clean(value, 10_000)})
	}
	return pairs
}
