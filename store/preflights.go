package store

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/uptrace/bun"
)

// Preflight is what somebody pasted or uploaded, looked through before it
// becomes a batch. It is its owner's alone.
type Preflight struct {
	bun.BaseModel `bun:"table:preflights,alias:p"`
	ID            int64  `bun:",pk,autoincrement"`
	CreatedBy     *int64 // Nil: the command line.
	CreatedAt     time.Time
	ExpiresAt     time.Time
	Name          string
	Kind          Kind            // Empty: by the number of URLs.
	Options       json.RawMessage `bun:"type:jsonb"`
	HeadersSealed []byte
	Pasted        []byte // As it came, like Upload; only PreflightContent reads them.
	Upload        []byte
	PastedSize    int64 `bun:",scanonly"`
	Packed        bool  // Upload is an archive of files; false: one file as it came.
	UploadName    string
	UploadSize    int64
	Choices       json.RawMessage `bun:"type:jsonb"`
	StoredDays    int             // URLs stored in the last days are left out; 0: are not.
	Reading       int             // Which reading the lines are of; 0: nothing was read.
	Detected      json.RawMessage `bun:"type:jsonb"`
	Totals        json.RawMessage `bun:"type:jsonb"`
	Problem       string          // Why it could not be read to its end.
	ProblemField  string          // The choice that is to blame; "" when none is.
	BatchID       *int64          // What it became.
}

// PreflightLine is one line of a reading, with what is to become of it.
type PreflightLine struct {
	bun.BaseModel `bun:"table:preflight_lines,alias:pl"`
	PreflightID   int64 `bun:",pk"`
	Number        int   `bun:",pk"`
	Verdict       LineVerdict
	Original      string
	URL           string
	Reason        string
	DuplicateOf   *int64   // The line that it repeats.
	StoredItem    *int64   // The item whose result it would fetch again.
	Extra         []string `bun:",array"`
}

// LineVerdict is what is to become of a line.
type LineVerdict string

// The verdicts of lines. Accepted and fixed ones are submitted.
const (
	LineAccepted  LineVerdict = "accepted"
	LineFixed     LineVerdict = "fixed"
	LineDuplicate LineVerdict = "duplicate"
	LineInvalid   LineVerdict = "invalid"
)

// Rejected are the verdicts of lines that become no item, Sent of those that do.
func Rejected() []LineVerdict { return []LineVerdict{LineDuplicate, LineInvalid} }

// Sent are the verdicts of lines that become items.
func Sent() []LineVerdict { return []LineVerdict{LineAccepted, LineFixed} }

// PreflightsKept is how many preflights of one owner are kept; older ones
// expire when a new one comes.
const PreflightsKept = 20

// InsertPreflight writes a preflight with its content and fills in its ID.
func (t Tx) InsertPreflight(ctx context.Context, p *Preflight) error {
	_, err := t.db.NewInsert().Model(p).
		Column("created_by", "created_at", "expires_at", "name", "kind", "options", "headers_sealed", "pasted", "upload", "packed",
			"upload_name", "upload_size", "choices", "stored_days").
		Returning("id").Exec(ctx)
	if err != nil {
		return translate(err)
	}
	_, err = t.db.NewRaw(`UPDATE preflights SET expires_at = ?now WHERE expires_at > ?now AND id IN (
		SELECT id FROM preflights WHERE created_by IS NOT DISTINCT FROM ?owner AND batch_id IS NULL ORDER BY id DESC OFFSET ?kept LIMIT 100)`,
		named{"now": p.CreatedAt, "owner": p.CreatedBy, "kept": PreflightsKept}).Exec(ctx)
	return translate(err)
}

// preflightColumns are all but the content.
const preflightColumns = `id, created_by, created_at, expires_at, name, kind, options, headers_sealed, packed, upload_name, upload_size,
	coalesce(octet_length(pasted), 0) AS pasted_size, choices, stored_days, reading, detected, totals, problem, problem_field, batch_id`

// Preflight returns a preflight without its content. One of another owner, or
// whose time is over, is ErrNotFound.
func (q Queries) Preflight(ctx context.Context, id int64, owner *int64, now time.Time) (*Preflight, error) {
	return q.preflight(ctx, id, owner, now, "")
}

// LockPreflight is Preflight for who is about to change it, or to read it again.
func (t Tx) LockPreflight(ctx context.Context, id int64, owner *int64, now time.Time) (*Preflight, error) {
	return t.preflight(ctx, id, owner, now, " FOR UPDATE")
}

func (q Queries) preflight(ctx context.Context, id int64, owner *int64, now time.Time, lock string) (*Preflight, error) {
	p := &Preflight{}
	err := q.db.NewRaw(`SELECT `+preflightColumns+` FROM preflights
		WHERE id = ?id AND created_by IS NOT DISTINCT FROM ?owner AND expires_at > ?now`+lock,
		named{"id": id, "owner": owner, "now": now}).Scan(ctx, p)
	return p, translate(err)
}

// PreflightContent returns what was pasted and what was uploaded.
func (q Queries) PreflightContent(ctx context.Context, id int64) ([]byte, []byte, error) {
	var row struct{ Pasted, Upload []byte }
	err := q.db.NewRaw(`SELECT pasted, upload FROM preflights WHERE id = ?`, id).Scan(ctx, &row)
	return row.Pasted, row.Upload, translate(err)
}

// SubmittedPreflight notes which batch a preflight became.
func (t Tx) SubmittedPreflight(ctx context.Context, id, batchID int64) error {
	_, err := t.db.NewRaw(`UPDATE preflights SET batch_id = ? WHERE id = ?`, batchID, id).Exec(ctx)
	return translate(err)
}

// ExpirePreflight ends a preflight's time.
func (q Queries) ExpirePreflight(ctx context.Context, id int64, now time.Time) error {
	_, err := q.db.NewRaw(`UPDATE preflights SET expires_at = ? WHERE id = ?`, now, id).Exec(ctx)
	return translate(err)
}

// PreflightLines returns lines after a number, in order, with one of the
// verdicts.
func (q Queries) PreflightLines(ctx context.Context, id int64, verdicts []LineVerdict, after, limit int) ([]PreflightLine, error) {
	var parts []PreflightLine
	for _, v := range verdicts {
		// Each verdict by itself follows the index; together they would not.
		var lines []PreflightLine
		err := q.db.NewSelect().Model(&lines).Where("preflight_id = ? AND verdict = ? AND number > ?", id, v, after).
			Order("number").Limit(int64(limit)).Scan(ctx)
		if err != nil {
			return nil, translate(err)
		}
		parts = append(parts, lines...)
	}
	slices.SortFunc(parts, func(a, b PreflightLine) int { return a.Number - b.Number })
	return parts[:min(limit, len(parts))], nil
}

// sweptLines is how many lines one statement of a sweep deletes.
const sweptLines = 5000

// SweepPreflight takes one step at removing what nobody needs any more: lines
// and content of a submitted preflight, all of one whose time is over. It
// reports whether there was anything to do.
func (s *Store) SweepPreflight(ctx context.Context, now time.Time) (bool, error) {
	found := false
	err := s.InTx(ctx, func(ctx context.Context, tx Tx) error {
		var rows []struct {
			ID   int64
			Over bool
		}
		err := tx.db.NewRaw(`SELECT id, expires_at <= ?now AS over FROM preflights
			WHERE expires_at <= ?now OR batch_id IS NOT NULL AND pasted IS NOT NULL
			ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED`, named{"now": now}).Scan(ctx, &rows)
		if err != nil || len(rows) == 0 {
			return translate(err)
		}
		found = true
		return tx.sweep(ctx, rows[0].ID, rows[0].Over)
	})
	return found, err
}

// sweep deletes some lines; when none are left, the content or the whole.
func (t Tx) sweep(ctx context.Context, id int64, over bool) error {
	gone, err := affected(t.db.NewRaw(`DELETE FROM preflight_lines WHERE preflight_id = ?id AND number IN (
		SELECT number FROM preflight_lines WHERE preflight_id = ?id ORDER BY number LIMIT ?limit)`,
		named{"id": id, "limit": sweptLines}).Exec(ctx))
	if err != nil {
		return err
	}
	if gone == sweptLines {
		return t.overForAll(ctx, id, over)
	}
	last := `UPDATE preflights SET pasted = NULL, upload = NULL, headers_sealed = NULL WHERE id = ?`
	if over {
		last = `DELETE FROM preflights WHERE id = ?`
	}
	_, err = t.db.NewRaw(last, id).Exec(ctx)
	return translate(err)
}

// overForAll ends the time of a preflight that is half removed by every clock:
// one that is behind would still take what is left of it for the whole.
func (t Tx) overForAll(ctx context.Context, id int64, over bool) error {
	if !over {
		return nil
	}
	_, err := t.db.NewRaw(`UPDATE preflights SET expires_at = 'epoch' WHERE id = ? AND expires_at > 'epoch'`, id).Exec(ctx)
	return translate(err)
}

// Speed is how fast recent batches came: so many URLs in so much time.
type Speed struct {
	Batches, URLs int64
	Took          time.Duration
}

// RecentSpeed sums up the newest ended batches of a kind, at most 20 of the
// last 200; the zero Speed when there are none.
func (q Queries) RecentSpeed(ctx context.Context, kind Kind) (Speed, error) {
	var row struct {
		Batches int64
		URLs    int64 `bun:"urls"`
		Seconds float64
	}
	err := q.db.NewRaw(`SELECT count(*) AS batches, coalesce(sum(accepted), 0) AS urls,
			coalesce(sum(extract(epoch FROM ended_at - created_at)), 0) AS seconds
		FROM (SELECT * FROM (SELECT id, kind, accepted, cancelled, ended_at, created_at FROM batches ORDER BY created_at DESC, id DESC LIMIT 200) AS newest
			WHERE ended_at IS NOT NULL AND kind = ? AND accepted > 0 AND cancelled = 0
				AND NOT EXISTS (SELECT FROM (SELECT origin FROM jobs WHERE batch_id = newest.id ORDER BY id DESC LIMIT 50) AS last
					WHERE origin = 'resubmit') LIMIT 20) AS recent`, kind).Scan(ctx, &row)
	return Speed{Batches: row.Batches, URLs: row.URLs, Took: time.Duration(row.Seconds * float64(time.Second))}, translate(err)
}
