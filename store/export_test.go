package store

import (
	"context"

	"github.com/uptrace/bun"
)

// Watch gives the text of every statement of s from here on to see.
func Watch(s *Store, see func(query string)) {
	s.bun = s.bun.WithQueryHook(watcher{see})
	s.Queries = Queries{db: s.bun, hot: newHot(s.bun)}
}

type watcher struct{ see func(string) }

// BeforeQuery implements bun.QueryHook.
func (watcher) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

// AfterQuery implements bun.QueryHook.
func (w watcher) AfterQuery(_ context.Context, event *bun.QueryEvent) { w.see(event.Query) }
