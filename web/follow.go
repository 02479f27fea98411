package web

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/store"
)

// lookEvery is how often a stream looks at what it follows without being told
// that something moved: not everything that moves is told.
const lookEvery = 2 * time.Second

// A look is the present state of what a stream follows, in a word that differs
// whenever the page would, and whether it will change no more by itself.
type look func(ctx context.Context) (string, bool, error)

// follow is a stream that has its page ask for itself again whenever what it
// shows has changed. It looks when the topic has news, and now and then.
func (s *Server) follow(c echo.Context, topic int64, present look) error {
	ctx := c.Request().Context()
	was, done, err := present(ctx)
	if err != nil {
		return err
	}
	key := topicOf(c, topic)
	news, err := s.live.join(key)
	if err != nil {
		return tooManyStreams(err)
	}
	defer s.live.leave(key, news)
	startStream(c)
	// The page may be older than the first look.
	data := itemsMoved
	tick, beat := time.NewTicker(lookEvery), time.NewTicker(s.cfg.beat)
	defer tick.Stop()
	defer beat.Stop()
	for {
		if done {
			data = streamDone
		}
		if data != "" {
			if err := s.live.send(c, []byte(data)); err != nil || done {
				return nil // Done; or the reader is gone: the stream ends either way.
			}
		}
		data = ""
		select {
		case <-ctx.Done():
			return nil
		case <-s.live.quit:
			return nil
		case <-beat.C:
			if !s.mayStay(c) {
				return nil
			}
			data = stillHere
			continue
		case <-news:
		case <-tick.C:
		}
		is, ended, err := present(ctx)
		if err != nil {
			continue // Nothing new can be shown now; the next look may.
		}
		if is != was {
			was, data = is, itemsMoved
		}
		done = ended
	}
}

// itemLive is GET /items/{id}/live.
func (s *Server) itemLive(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	item, err := s.store.Item(c.Request().Context(), id)
	if err != nil {
		return err
	}
	return s.follow(c, item.BatchID, func(ctx context.Context) (string, bool, error) {
		stamp, err := s.store.PageItemStamp(ctx, id)
		return stamp.Text, stamp.Ended, err
	})
}

// jobLive is GET /jobs/{id}/live.
func (s *Server) jobLive(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	job, err := s.store.Job(c.Request().Context(), id)
	if err != nil {
		return err
	}
	return s.follow(c, job.BatchID, func(ctx context.Context) (string, bool, error) {
		stamp, err := s.store.PageJobStamp(ctx, id)
		return stamp.Text, stamp.Ended, err
	})
}

// reconcileLive is GET /reconcile/live. The next run may always come.
func (s *Server) reconcileLive(c echo.Context) error {
	return s.follow(c, overviewTopic, func(ctx context.Context) (string, bool, error) {
		runs, err := s.store.PageRuns(ctx, store.Key{}, 3)
		var stamp strings.Builder
		for i := range runs {
			fmt.Fprintln(&stamp, runs[i].ID, runs[i].FinishedAt != nil, runs[i].Listed, runs[i].Woken)
		}
		return stamp.String(), false, err
	})
}
