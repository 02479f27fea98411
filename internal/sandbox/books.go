package sandbox

import (
	"maps"
	"time"
)

// Books is what the sandbox knows to be true, for comparison with what a client believes.
type Books struct {
	// Seed is the seed of chance.
	Seed uint64 `json:"seed"`
	// Jobs are all accepted jobs in the order of acceptance; sync calls follow with the kind "sync".
	Jobs []JobRecord `json:"jobs"`
	// Charged is the tokens charged to all accounts, and Reserved those of items not yet ended.
	Charged  int64 `json:"charged"`
	Reserved int64 `json:"reserved"`
	// Calls counts the calls by endpoint, for instance extract.submit, extract.sync, extract.status, extract.list,
	// batch.status (the first result page), batch.results (later pages), batch.cancel, webhooks.create, usage, health.
	Calls map[string]CallCount `json:"calls"`
	// Deliveries counts what happened to webhook deliveries.
	Deliveries DeliveryCounts `json:"deliveries"`
}

// JobRecord is one accepted job.
type JobRecord struct {
	ID         string    `json:"id"`
	Kind       string    `json:"kind"` // extract, batch, crawl or sync.
	Account    string    `json:"account"`
	Status     string    `json:"status"` // As the contract words it, or "forgotten" by the fault forget.
	AcceptedAt time.Time `json:"accepted_at"`
	EndedAt    time.Time `json:"ended_at"` // Zero while it runs.
	// Submitted is the list as it came, Invalid what of it was set aside.
	Submitted []string  `json:"submitted"`
	Invalid   []string  `json:"invalid"`
	Outcomes  []Outcome `json:"outcomes"`
	Charged   int       `json:"charged"`
}

// Outcome is how one URL of a job ended.
type Outcome struct {
	// Index is the item's number: input_index in a batch, the order of discovery in a crawl.
	Index  int    `json:"index"`
	URL    string `json:"url"`
	Parent string `json:"parent,omitempty"` // Of a crawled page.
	Depth  int    `json:"depth,omitempty"`
	Status string `json:"status"`
	// Code is the error code, empty for a good page, and Retryable whether sending the URL again can help.
	Code      string `json:"code,omitempty"`
	Retryable bool   `json:"retryable,omitempty"`
	// MarkdownSHA256 and HTMLSHA256 are lower-case hex over the UTF-8 text; empty for a format not asked for.
	MarkdownSHA256 string `json:"markdown_sha256,omitempty"`
	HTMLSHA256     string `json:"html_sha256,omitempty"`
	Charged        int    `json:"charged"`
}

// CallCount counts the calls of one endpoint by the status of the answer; 0 is a connection broken on purpose.
type CallCount struct {
	Total    int         `json:"total"`
	ByStatus map[int]int `json:"by_status"`
}

// DeliveryCounts counts webhook deliveries: Events is how many were due; each of them ends as Delivered (answered 2xx),
// Dropped, Abandoned, or is still on its way.
type DeliveryCounts struct {
	Events    int `json:"events"`
	Delivered int `json:"delivered"`
	Dropped   int `json:"dropped"`
	Abandoned int `json:"abandoned"`
	// Attempts is the requests sent, split into Accepted (2xx), Refused (another answer) and Unanswered.
	Attempts   int `json:"attempts"`
	Accepted   int `json:"accepted"`
	Refused    int `json:"refused"`
	Unanswered int `json:"unanswered"`
	// RefusedValid is the attempts answered 401 though nothing was altered and the secret that signed them was told to
	// the client, now or before a rotation.
	RefusedValid int `json:"refused_valid"`
	// Rotations is the secrets made by rotation, and SecretsUntold those of them whose answer was broken on purpose.
	Rotations     int `json:"rotations"`
	SecretsUntold int `json:"secrets_untold"`
	// The rest counts what the faults did.
	Duplicated     int `json:"duplicated"`
	Delayed        int `json:"delayed"`
	Reordered      int `json:"reordered"`
	Early          int `json:"early"`
	WrongSignature int `json:"wrong_signature"`
	Altered        int `json:"altered"`
	SwitchedOff    int `json:"switched_off"` // Webhooks, not deliveries.
}

// Books copies the books as they stand.
func (s *Sandbox) Books() Books {
	s.mu.Lock()
	defer s.mu.Mutex.Unlock() // Nothing changes here.
	return s.books()
}

// books are the Books. The caller holds mu.
func (s *Sandbox) books() Books {
	b := Books{
		Seed: s.cfg.Seed, Jobs: make([]JobRecord, 0, len(s.jobList)+len(s.syncs)), Calls: map[string]CallCount{},
		Deliveries: s.sent,
	}
	for _, list := range [][]*job{s.jobList, s.syncs} {
		for _, j := range list {
			b.Jobs = append(b.Jobs, j.recorded())
		}
	}
	for _, a := range s.accounts {
		b.Charged += a.charged
		b.Reserved += a.reserved
	}
	for name, n := range s.calls {
		b.Calls[name] = CallCount{Total: n.Total, ByStatus: maps.Clone(n.ByStatus)}
	}
	return b
}

// recorded is the job as the books show it. The lists of URLs are shared: they never change. The caller holds mu.
func (j *job) recorded() JobRecord {
	r := JobRecord{
		ID: j.id, Kind: string(j.kind), Account: j.account.name, Status: j.status, AcceptedAt: j.created.Time,
		EndedAt: j.ended, Submitted: j.submitted, Invalid: j.invalid, Charged: j.charged,
		Outcomes: make([]Outcome, len(j.items)),
	}
	for i, it := range j.items {
		o := Outcome{
			Index: it.number, URL: it.url, Parent: it.parent, Depth: it.depth, Status: it.status, Code: it.end.code,
			Retryable: it.end.retryable, MarkdownSHA256: it.mdSum, HTMLSHA256: it.htmlSum, Charged: it.charged,
		}
		if j.kind == kindCrawl {
			o.Index = it.index
		}
		r.Outcomes[i] = o
	}
	return r
}

// count notes one call.
func (s *Sandbox) count(name string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.calls[name]
	if n == nil {
		n = &CallCount{ByStatus: map[int]int{}}
		s.calls[name] = n
	}
	n.Total++
	n.ByStatus[status]++
}
