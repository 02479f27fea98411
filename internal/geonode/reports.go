package geonode

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// Usage is the vendor's report of the concurrency in use. Its members aren't
// published, so the body is kept as sent in Reply.Raw and nothing depends on it.
type Usage struct{ Reply Reply }

// Health is the vendor's liveness report, the body as sent in Reply.Raw.
type Health struct{ Reply Reply }

// DailyRequests counts one day's extractions.
type DailyRequests struct {
	Date    Timestamp `json:"date"`
	Success Count     `json:"success_request_count"`
	Failed  Count     `json:"failed_request_count"`
}

// DailyTokens counts one day's tokens, which are requests under an older name.
type DailyTokens struct {
	Date Timestamp `json:"date"`
	Used Count     `json:"tokens_used"`
}

// Statistics are aggregates over a period for the key in use.
type Statistics struct {
	Reply                   Reply           `json:"-"`
	ExtractionCount         Count           `json:"extraction_count"`
	PreviousExtractionCount Count           `json:"previous_period_extraction_count"`
	SuccessRate             Measure         `json:"success_rate"`                // From 0 to 1.
	AverageDuration         Measure         `json:"average_extraction_duration"` // Milliseconds.
	TokensUsed              Count           `json:"period_tokens_used"`
	Requests                []DailyRequests `json:"requests"`
	DailyTokens             []DailyTokens   `json:"tokens_used"`
}

// Usage reads the concurrency in use. The body must be JSON, of any shape.
func (c *Client) Usage(ctx context.Context) (*Usage, error) {
	reply, err := c.do(ctx, call{
		op: "get usage", method: http.MethodGet, path: []string{"v1", "usage"},
		timeout: c.cfg.Timeouts.List, keepRaw: true,
	}, func(b []byte) error {
		if !json.Valid(b) {
			return malformed("not JSON")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &Usage{Reply: reply}, nil
}

// Statistics reads the aggregates of a period; zero times leave the vendor's default,
// the last 30 days.
func (c *Client) Statistics(ctx context.Context, start, end time.Time) (*Statistics, error) {
	q := url.Values{}
	windowQuery(q, start, end)
	out := new(Statistics)
	reply, err := c.do(ctx, call{
		op: "get statistics", method: http.MethodGet, path: []string{"v1", "statistics"},
		query: q, timeout: c.cfg.Timeouts.List,
	}, func(b []byte) error {
		_, err := decodeObject(b, out)
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Reply = reply
	return out, nil
}

// Health asks whether the vendor is up; any 2xx says yes.
func (c *Client) Health(ctx context.Context) (*Health, error) {
	reply, err := c.do(ctx, call{
		op: "get health", method: http.MethodGet, path: []string{"health"},
		timeout: c.cfg.Timeouts.List, keepRaw: true,
	}, nil)
	if err != nil {
		return nil, err
	}
	return &Health{Reply: reply}, nil
}
