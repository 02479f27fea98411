package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"rollcall/internal/sandbox"
	"rollcall/store"
)

// summary is the roll call of a demo batch beside what the vendor counted. Its names are read by programs.
type summary struct {
	Submitted   int64       `json:"submitted"`
	Invalid     int64       `json:"invalid"`
	Duplicate   int64       `json:"duplicate"`
	Accepted    int64       `json:"accepted"`
	Stored      int64       `json:"stored"`
	Failed      int64       `json:"failed"`
	Cancelled   int64       `json:"cancelled"`
	Outstanding int64       `json:"outstanding"`
	ByNet       byNet       `json:"by_net"`
	VendorCalls vendorCalls `json:"vendor_calls"`
	Seconds     float64     `json:"seconds"`
	Seed        uint64      `json:"seed"`
	Sandbox     vendorBooks `json:"sandbox"`
	// What the vendor saw of its signatures: rotations, and deliveries answered 401 that could have been verified.
	Rotations    int `json:"rotations"`
	RefusedValid int `json:"refused_valid"`
	// RefusedSecretLost is deliveries signed with a secret whose answer was lost: nothing can verify them.
	RefusedSecretLost int64 `json:"refused_secret_lost"`
}

// byNet splits the stored items.
type byNet struct {
	Webhook   int64 `json:"webhook"`
	Poll      int64 `json:"poll"`
	Reconcile int64 `json:"reconcile"`
	Replay    int64 `json:"replay"`
	Sync      int64 `json:"sync"`
}

// vendorCalls counts the calls the vendor got: Results are the pages of results after the first, which comes with the
// status; Total has the calls about webhooks and the account as well.
type vendorCalls struct {
	Total   int `json:"total"`
	Submit  int `json:"submit"`
	Status  int `json:"status"`
	List    int `json:"list"`
	Results int `json:"results"`
}

// other are the calls about webhooks and the account.
func (n vendorCalls) other() int { return n.Total - n.Submit - n.Status - n.List - n.Results }

// vendorBooks is what the vendor counted: jobs, deliveries, and URLs by how they ended, each attempt for itself.
type vendorBooks struct {
	Jobs       int   `json:"jobs"`
	Delivered  int   `json:"delivered"`
	Dropped    int   `json:"dropped"`
	Duplicated int   `json:"duplicated"`
	Completed  int   `json:"completed"`
	Failed     int   `json:"failed"`
	Charged    int64 `json:"charged"`
}

// summarize puts the two accounts side by side.
func summarize(b *store.Batch, books sandbox.Books, took time.Duration) summary {
	return summary{
		Submitted: b.Submitted, Invalid: b.Invalid, Duplicate: b.Duplicate, Accepted: b.Accepted, Stored: b.Stored(),
		Failed: b.Failed, Cancelled: b.Cancelled, Outstanding: b.Outstanding,
		ByNet: byNet{
			Webhook: b.StoredWebhook, Poll: b.StoredPoll, Reconcile: b.StoredReconcile, Replay: b.StoredReplay,
			Sync: b.StoredSync,
		},
		VendorCalls: countCalls(books.Calls), Seconds: math.Round(took.Seconds()*100) / 100, Seed: books.Seed,
		Sandbox: countBooks(books), Rotations: books.Deliveries.Rotations, RefusedValid: books.Deliveries.RefusedValid,
	}
}

func countCalls(calls map[string]sandbox.CallCount) vendorCalls {
	var n vendorCalls
	for name, count := range calls {
		n.Total += count.Total
		kind, verb, _ := strings.Cut(name, ".")
		if kind == "webhooks" {
			continue
		}
		switch verb {
		case "submit", "sync":
			n.Submit += count.Total
		case "status":
			n.Status += count.Total
		case "list":
			n.List += count.Total
		case "results":
			n.Results += count.Total
		}
	}
	return n
}

func countBooks(books sandbox.Books) vendorBooks {
	n := vendorBooks{
		Jobs: len(books.Jobs), Delivered: books.Deliveries.Delivered, Dropped: books.Deliveries.Dropped,
		Duplicated: books.Deliveries.Duplicated, Charged: books.Charged,
	}
	for i := range books.Jobs {
		for o := range books.Jobs[i].Outcomes {
			switch books.Jobs[i].Outcomes[o].Status {
			case "completed":
				n.Completed++
			case "failed":
				n.Failed++
			}
		}
	}
	return n
}

// balance returns what of the roll call doesn't add up.
func (s summary) balance() []string {
	var problems []string
	if s.Submitted != s.Invalid+s.Duplicate+s.Accepted {
		problems = append(problems, fmt.Sprintf("submitted %d is not invalid %d + duplicate %d + accepted %d",
			s.Submitted, s.Invalid, s.Duplicate, s.Accepted))
	}
	if s.Accepted != s.Stored+s.Failed+s.Cancelled+s.Outstanding {
		problems = append(problems, fmt.Sprintf("accepted %d is not stored %d + failed %d + cancelled %d + outstanding %d",
			s.Accepted, s.Stored, s.Failed, s.Cancelled, s.Outstanding))
	}
	if n := s.ByNet; s.Stored != n.Webhook+n.Poll+n.Reconcile+n.Replay+n.Sync {
		problems = append(problems, fmt.Sprintf("stored %d is not the sum over the nets %+v", s.Stored, n))
	}
	if s.RefusedValid != 0 {
		problems = append(problems, fmt.Sprintf("%d deliveries were refused for good though their secret was known", s.RefusedValid))
	}
	if s.Outstanding != 0 {
		problems = append(problems, fmt.Sprintf("%d URLs are outstanding", s.Outstanding))
	}
	return problems
}

// text is the roll call for a person.
func (s summary) text() string {
	return fmt.Sprintf(`
Roll call: %d submitted = %d invalid + %d duplicate + %d accepted
           %d accepted = %d stored + %d failed + %d cancelled + %d outstanding
  by net:  webhook %d, poll %d, reconcile %d, replay %d, sync %d
  vendor:  %d calls (%d submit, %d status, %d list, %d more pages of results, %d other); %d jobs; deliveries: %d arrived, %d dropped, %d sent twice
  secrets: %d rotations, %d good deliveries refused, %d signed with a secret nobody saw
  time:    %.1f s
`, s.Submitted, s.Invalid, s.Duplicate, s.Accepted, s.Accepted, s.Stored, s.Failed, s.Cancelled, s.Outstanding,
		s.ByNet.Webhook, s.ByNet.Poll, s.ByNet.Reconcile, s.ByNet.Replay, s.ByNet.Sync,
		s.VendorCalls.Total, s.VendorCalls.Submit, s.VendorCalls.Status, s.VendorCalls.List, s.VendorCalls.Results, s.VendorCalls.other(),
		s.Sandbox.Jobs, s.Sandbox.Delivered, s.Sandbox.Dropped, s.Sandbox.Duplicated,
		s.Rotations, s.RefusedValid, s.RefusedSecretLost, s.Seconds)
}
