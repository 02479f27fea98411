package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// PreflightReading is what was found when a preflight's content was read.
type PreflightReading struct {
	Choices, Detected, Totals json.RawMessage
	StoredDays                int
	Problem, ProblemField     string
}

// LineWriter takes the lines of a reading, inside its transaction.
type LineWriter struct {
	tx pgx.Tx
	id int64
}

// WriteReading puts a new reading in place of a preflight's lines, in one
// transaction: read hands the lines to the writer and returns what was found.
// It is ErrNotFound when the preflight's time is over or it became a batch.
func (s *Store) WriteReading(ctx context.Context, id int64, now time.Time, read func(*LineWriter) (PreflightReading, error)) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var locked int64
		err := tx.QueryRow(ctx, `SELECT id FROM preflights WHERE id = $1 AND expires_at > $2 AND batch_id IS NULL FOR UPDATE`,
			id, now).Scan(&locked)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrNotFound
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM preflight_lines WHERE preflight_id = $1`, id); err != nil {
			return err
		}
		r, err := read(&LineWriter{tx: tx, id: id})
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE preflights SET choices = $2, detected = $3, totals = $4, stored_days = $5, problem = $6,
			problem_field = $7, reading = reading + 1 WHERE id = $1`,
			id, string(r.Choices), string(r.Detected), string(r.Totals), r.StoredDays, CleanText(r.Problem), r.ProblemField)
		return err
	})
	return translate(err)
}

// Put writes lines, which come in the order of their numbers. Texts are cleaned
// as the database needs them.
func (w *LineWriter) Put(ctx context.Context, lines []PreflightLine) error {
	_, err := w.tx.CopyFrom(ctx, pgx.Identifier{"preflight_lines"},
		[]string{"preflight_id", "number", "verdict", "original", "url", "reason", "duplicate_of", "stored_item", "extra"},
		pgx.CopyFromSlice(len(lines), func(i int) ([]any, error) {
			l := &lines[i]
			return []any{
				w.id, l.Number, string(l.Verdict), CleanText(l.Original), CleanText(l.URL), CleanText(l.Reason), l.DuplicateOf,
				l.StoredItem, cleanAll(l.Extra),
			}, nil
		}))
	if err != nil {
		return fmt.Errorf("copy lines: %w", err)
	}
	return nil
}

func cleanAll(texts []string) []string {
	if texts == nil {
		return nil
	}
	clean := make([]string, len(texts))
	for i, text := range texts {
		clean[i] = CleanText(text)
	}
	return clean
}

// StoredPage is the newest result of a page.
type StoredPage struct {
	Key    []byte
	ItemID int64
	At     time.Time
}

// StoredSince finds which of the pages, by their keys, have a result stored
// since then: the newest of each.
func (w *LineWriter) StoredSince(ctx context.Context, keys [][]byte, since time.Time) ([]StoredPage, error) {
	rows, err := w.tx.Query(ctx, `SELECT k.key, r.item_id, r.stored_at FROM unnest($1::bytea[]) AS k (key)
		CROSS JOIN LATERAL (SELECT item_id, stored_at FROM results
			WHERE page_key = k.key AND stored_at >= $2 ORDER BY stored_at DESC, item_id DESC LIMIT 1) AS r`, keys, since)
	if err != nil {
		return nil, fmt.Errorf("look for what is stored: %w", err)
	}
	pages, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (StoredPage, error) {
		var p StoredPage
		err := row.Scan(&p.Key, &p.ItemID, &p.At)
		return p, err
	})
	if err != nil {
		return nil, fmt.Errorf("look for what is stored: %w", err)
	}
	return pages, nil
}
