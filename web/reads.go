package web

import "net/http"

// Read is one address of the table of routes that GET answers.
type Read struct {
	Path string // As the table has it, with the names of its parameters.
	// Stream marks an answer that never ends, Long one that takes as long as it is large.
	Stream, Long bool
}

// Reads are all addresses that GET answers, in the order of the table: for whoever checks or measures each of them.
func (s *Server) Reads() []Read {
	var reads []Read
	for _, r := range s.routes() {
		if r.method == http.MethodGet {
			reads = append(reads, Read{Path: r.path, Stream: r.stream, Long: r.long})
		}
	}
	return reads
}
