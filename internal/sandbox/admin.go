package sandbox

import (
	"crypto/subtle"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"
)

// maxAdminBody bounds what the admin paths read.
const maxAdminBody = 1 << 20

// adminRoutes are for tests and operators of the sandbox, not part of the vendor: the books, the faults, the switches, and
// the secrets of webhooks, which whoever looks for leaks must know.
func (s *Sandbox) adminRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /_sandbox/books", s.admin(func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, r, s.Books())
	}))
	mux.HandleFunc("GET /_sandbox/faults", s.admin(func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, r, s.Faults())
	}))
	mux.HandleFunc("PUT /_sandbox/faults", s.admin(s.putFaults))
	mux.HandleFunc("GET /_sandbox/switches", s.admin(func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, r, s.Switches())
	}))
	mux.HandleFunc("PUT /_sandbox/switches", s.admin(s.putSwitches))
	mux.HandleFunc("GET /_sandbox/secrets", s.admin(func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, r, s.madeSecrets())
	}))
}

// MadeSecret is a secret that a webhook had at any time, whether anybody was told it or not.
type MadeSecret struct {
	Secret string `json:"secret"`
	// Made is when, by the right time, whatever the vendor's clock said.
	Made time.Time `json:"made"`
	// Untold says that its answer was broken on purpose; Present that a webhook that is not deleted has it now.
	Untold  bool `json:"untold"`
	Present bool `json:"present"`
	// RefusedValid is its share of DeliveryCounts.RefusedValid.
	RefusedValid int `json:"refused_valid"`
}

// madeSecrets are the secrets of all webhooks, in the order in which they were made.
func (s *Sandbox) madeSecrets() []MadeSecret {
	s.mu.Lock()
	defer s.mu.Mutex.Unlock() // Nothing changes here.
	all := make([]MadeSecret, len(s.secrets))
	for i, made := range s.secrets {
		all[i] = *made
		all[i].RefusedValid = s.refused[made.Secret]
		for _, a := range s.accounts {
			all[i].Present = all[i].Present || slices.ContainsFunc(a.hooks, func(h *hook) bool { return h.secret == made.Secret })
		}
	}
	return all
}

// admin lets only callers on loopback pass, and others that know the token. A request that a web page made is refused
// without the token wherever it comes from.
func (s *Sandbox) admin(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token := r.Header.Get("X-Sandbox-Admin")
		known := s.cfg.AdminToken != "" && subtle.ConstantTimeCompare([]byte(token), []byte(s.cfg.AdminToken)) == 1
		site := r.Header.Get("Sec-Fetch-Site")
		foreign := site != "" && site != "none" && site != "same-origin"
		if !known && (!fromLoopback(r) || foreign) {
			http.Error(w, "the sandbox's admin paths are for loopback or the admin token", http.StatusForbidden)
			return
		}
		next(w, r)
	}
}

// fromLoopback says that both ends of the connection are on this machine, by the name the caller used too.
func fromLoopback(r *http.Request) bool {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !at.Addr().Unmap().IsLoopback() {
		return false
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || (err == nil && ip.Unmap().IsLoopback())
}

func (s *Sandbox) answer(w http.ResponseWriter, r *http.Request, body any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(body); err != nil {
		s.log.DebugContext(r.Context(), "admin answer not sent", slog.Any("err", err))
	}
}

// putFaults takes a JSON object of rates by name, or the text that ParseFaults reads.
func (s *Sandbox) putFaults(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAdminBody))
	if err != nil {
		http.Error(w, "the body could not be read", http.StatusBadRequest)
		return
	}
	var faults Faults
	if json.Unmarshal(body, &faults) != nil {
		if faults, err = ParseFaults(string(body)); err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
	}
	if err := s.SetFaults(faults); err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	s.answer(w, r, s.Faults())
}

// putSwitches takes the whole set as JSON; what is left out goes back to its default.
func (s *Sandbox) putSwitches(w http.ResponseWriter, r *http.Request) {
	var switches Switches
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAdminBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&switches); err != nil {
		http.Error(w, "the switches can't be read: "+err.Error(), http.StatusUnprocessableEntity)
		return
	}
	if err := s.SetSwitches(switches); err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	s.answer(w, r, s.Switches())
}
