package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"rollcall/migrations"
)

// schemaEvery is how often readiness checks look at the migrations, which takes connections of their own.
const schemaEvery = 30 * time.Second

// schemaReady makes a check that reports whether this release may run on the database as it is now: somebody may have
// migrated it back, restored an older one, or begun a newer release. A good answer holds for schemaEvery; a database
// that doesn't answer is no answer.
func (s *stack) schemaReady() func(context.Context) error {
	var mu sync.Mutex
	var good time.Time
	return func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if !good.IsZero() && s.now().Sub(good) < schemaEvery {
			return nil
		}
		err := migrations.Check(ctx, s.dsn)
		if errors.Is(err, migrations.ErrNotMigrated) || errors.Is(err, migrations.ErrNewerSchema) {
			return err
		}
		if err == nil {
			good = s.now()
		}
		return nil
	}
}

// newerSchema says that a newer release has migrated a database on which this one can run all the same; "" when none has.
func newerSchema(ctx context.Context, dsn string) (string, error) {
	newer, err := migrations.Newer(ctx, dsn)
	if err != nil {
		return "", fmt.Errorf("look for migrations of a newer release: %w", err)
	}
	if len(newer) == 0 {
		return "", nil
	}
	return fmt.Sprintf("a newer release of Rollcall has migrated this database (%d migrations from %s on); while an upgrade rolls that is so, else run the newer one",
		len(newer), newer[0]), nil
}
