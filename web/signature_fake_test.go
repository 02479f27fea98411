package web

import (
	"context"
	"strings"
	"sync"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// fakeSignatures is the part of fakePipeline that looks at signatures: good is
// what verifies.
type fakeSignatures struct {
	mu      sync.Mutex
	checked []pipeline.Captured
	stored  map[int64]pipeline.Verification
	taken   []int64
}

func (f *fakeSignatures) SignatureHeader() string { return "X-Webhook-Signature" }

// CheckRequest finds that a signature matches that says so.
func (f *fakeSignatures) CheckRequest(c pipeline.Captured) pipeline.Checked {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checked = append(f.checked, c)
	if strings.Contains(c.Header.Get("X-Webhook-Signature"), "good") {
		return pipeline.Checked{Matches: true, Form: "body whole none hex", Reading: "as it was pasted", Event: "crawl_completed"}
	}
	return pipeline.Checked{Diagnosis: pipeline.Diagnosis{Code: pipeline.DiagnosedNothing, Text: "Nothing matches: <b>."}}
}

func (f *fakeSignatures) VerifyStored(_ context.Context, id int64) (pipeline.Verification, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	v, ok := f.stored[id]
	if !ok {
		return v, store.ErrNotFound
	}
	return v, nil
}

func (f *fakeSignatures) TakeUpAgain(_ context.Context, ids []int64) (pipeline.TakenUp, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.taken = append(f.taken, ids...)
	if f.stored[ids[0]].Matches {
		return pipeline.TakenUp{Recovered: 1}, nil
	}
	return pipeline.TakenUp{Refused: 1}, nil
}
