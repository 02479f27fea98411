package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Switches settles the points that the contract leaves open (marked NONE or CUT there). The zero value is the most
// likely reading of each.
type Switches struct {
	// Signature is the form of X-Webhook-Signature.
	Signature SignatureForm `json:"signature"`
	// CallbackBody is what data holds in batch and crawl callbacks: "summary" (also ""), "full" or "empty" (the job id
	// and status alone).
	CallbackBody string `json:"callback_body"`
	// EventsForFailed and EventsForCancelled let jobs that ended so fire their completed event. Default: no event.
	EventsForFailed    bool `json:"events_for_failed"`
	EventsForCancelled bool `json:"events_for_cancelled"`
	// DeliveryIDPerAttempt gives every attempt an id of its own. Default: one id per event, shared by its attempts.
	DeliveryIDPerAttempt bool `json:"delivery_id_per_attempt"`
	// RetriesKeepSignature sends retries with the secret of the first attempt. Default: signed anew.
	RetriesKeepSignature bool `json:"retries_keep_signature"`
	// PausedKeep holds events for a paused webhook until it is resumed. Default: they are dropped.
	PausedKeep bool `json:"paused_keep"`
	// DisableAfter switches a webhook off after that many refused attempts in a row. Default: 0, never.
	DisableAfter int `json:"disable_after"`
	// IndexAccepted numbers batch items over the accepted URLs. Default: over the submitted list.
	IndexAccepted bool `json:"index_accepted"`
	// InvalidObjects reports invalid URLs as objects. Default: as plain strings.
	InvalidObjects bool `json:"invalid_objects"`
	// ListOrder is the order of the job lists and of the delivery log: "newest" (also "") first, "oldest" first, or
	// "shuffled", where a new row may come to stand anywhere.
	ListOrder string `json:"list_order"`
	// ResultsShuffled lists the results of a batch or crawl in no order. Default: by input_index, or as they were found.
	ResultsShuffled bool `json:"results_shuffled"`
	// PlanDetail refuses a batch over the plan's size like a request that is wrong in itself. Default: as a standard error.
	PlanDetail bool `json:"plan_detail"`
	// SyncListed shows sync calls in the extract job list, and SyncFires lets them fire extract_completed. Default: neither.
	SyncListed bool `json:"sync_listed"`
	SyncFires  bool `json:"sync_fires"`
	// ChildrenListed shows every URL of a batch or crawl as an extraction of its own in the extract job list, and
	// ChildrenFire lets each fire extract_completed; both hold for jobs accepted from then on. Default: neither.
	ChildrenListed bool `json:"children_listed"`
	ChildrenFire   bool `json:"children_fire"`
	// CancelFreezes stops a cancelled job from changing: what was running counts as cancelled. Default: running items
	// still land and are charged.
	CancelFreezes bool `json:"cancel_freezes"`
	// CancelledOmitted leaves cancelled items out of the results. Default: they are listed as cancelled.
	CancelledOmitted bool `json:"cancelled_omitted"`
	// ErrorBody is the form of all error answers of GET and DELETE calls, and of 429 and 5xx answers of the others:
	// "standard" (also ""), "empty", "html", "text" (a line of plain text) or "detail" (JSON with a text as its detail).
	ErrorBody string `json:"error_body"`
	// LogWithoutJob leaves the job out of the rows of the delivery log. Default: each row names it.
	LogWithoutJob bool `json:"log_without_job"`
}

// SignatureForm says how a delivery is signed; the sum itself is always HMAC-SHA256.
type SignatureForm struct {
	// Encoding is "hex" (also ""), "HEX", "base64" or "base64url".
	Encoding string `json:"encoding"`
	// Prefix stands before the encoded sum, for instance "sha256=".
	Prefix string `json:"prefix"`
	// Signed is "body" (also ""), "id.body" or "timestamp.body".
	Signed string `json:"signed"`
	// Key is "whole" (also "": the whole secret string), "rest" (what follows whsec_) or "base64" (the bytes that the
	// rest encodes).
	Key string `json:"key"`
}

// Check names every switch with an unknown value.
func (s Switches) Check() error {
	errs := make([]error, 0, 7)
	for _, c := range []struct {
		name, value string
		known       []string
	}{
		{"callback_body", s.CallbackBody, []string{"", "summary", "full", "empty"}},
		{"list_order", s.ListOrder, []string{"", "newest", "oldest", "shuffled"}},
		{"error_body", s.ErrorBody, []string{"", "standard", "empty", "html", "text", "detail"}},
		{"signature.encoding", s.Signature.Encoding, []string{"", "hex", "HEX", "base64", "base64url"}},
		{"signature.signed", s.Signature.Signed, []string{"", "body", "id.body", "timestamp.body"}},
		{"signature.key", s.Signature.Key, []string{"", "whole", "rest", "base64"}},
	} {
		if !slices.Contains(c.known, c.value) {
			errs = append(errs, fmt.Errorf("switch %s is %q, not one of: %s", c.name, c.value, strings.Join(c.known[1:], ", ")))
		}
	}
	if s.DisableAfter < 0 {
		errs = append(errs, fmt.Errorf("switch disable_after is %d, less than 0", s.DisableAfter))
	}
	return errors.Join(errs...)
}
