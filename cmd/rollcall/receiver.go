package main

import (
	"io"
	"net/http"

	"rollcall/internal/pipeline"
)

// receiver is the webhook endpoint without the pages.
func receiver(s *stack) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /webhooks/geonode/{endpoint}", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(s.config.MaxBody)))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer := s.pipeline.Receive(r.Context(), pipeline.Incoming{
			Endpoint: r.PathValue("endpoint"), Header: r.Header, Body: body, Source: r.RemoteAddr, ReceivedAt: s.now(),
		})
		w.WriteHeader(answer.Status)
	})
	return mux
}
