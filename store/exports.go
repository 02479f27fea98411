package store

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/uptrace/bun"
)

// ExportState is how far the making of a file has come.
type ExportState string

// The states of an export. A done one expires; the others stay as they ended.
const (
	ExportWaiting   ExportState = "waiting"
	ExportRunning   ExportState = "running"
	ExportDone      ExportState = "done"
	ExportFailed    ExportState = "failed"
	ExportCancelled ExportState = "cancelled"
	ExportExpired   ExportState = "expired"
)

// Export is a file that somebody had made of items, or a line that tells that
// one was sent.
type Export struct {
	bun.BaseModel `bun:"table:exports,alias:ex"`
	ID            int64 `bun:",pk,autoincrement"`
	SubmitToken   *string
	OwnerID       *int64
	MadeBy        string
	CreatedAt     time.Time
	Direct        bool // Sent at once, and not kept.
	State         ExportState
	Name          string          // Of the file.
	Picked        string          // What was asked for, for a reader.
	Filter        json.RawMessage `bun:"type:jsonb"`
	Choices       json.RawMessage `bun:"type:jsonb"`
	Columns       []string        `bun:",array"`
	Expected      *int64          // Rows, about.
	Rows          int64
	Pages         int64 // Files in a ZIP.
	Bytes         int64
	SHA256        []byte          `bun:"sha256"`
	Manifest      json.RawMessage `bun:"type:jsonb"`
	Reason        string
	Claim         int
	StartedAt     *time.Time
	BeatAt        *time.Time
	EndedAt       *time.Time
	ExpiresAt     time.Time
	Downloads     int
	Held          bool // There may be pieces of the file.
}

// Over reports an export that comes no further.
func (e *Export) Over() bool { return e.State != ExportWaiting && e.State != ExportRunning }

// Spent reports a file whose time is up, though it may not be removed yet.
func (e *Export) Spent(now time.Time) bool {
	return e.State == ExportDone && !e.Direct && !now.Before(e.ExpiresAt)
}

// ExportProgress is what a writer knows of its file.
type ExportProgress struct{ Rows, Pages, Bytes int64 }

// InsertExport writes an export and fills in its ID. The error is ErrTaken when
// its token has made one before.
func (q Queries) InsertExport(ctx context.Context, e *Export) error {
	_, err := q.db.NewInsert().Model(e).
		Column("submit_token", "owner_id", "made_by", "created_at", "direct", "state", "name", "picked", "filter", "choices",
			"columns", "expected", "started_at", "beat_at", "expires_at", "claim", "held").Returning("id").Exec(ctx)
	return translate(err)
}

// Export is one export; ErrNotFound when there is none.
func (q Queries) Export(ctx context.Context, id int64) (*Export, error) {
	e := &Export{}
	err := q.db.NewSelect().Model(e).Where("ex.id = ?", id).Scan(ctx)
	return e, translate(err)
}

// ExportOfToken is the export that a form asked for.
func (q Queries) ExportOfToken(ctx context.Context, token string) (*Export, error) {
	e := &Export{}
	err := q.db.NewSelect().Model(e).Where("ex.submit_token = ?", token).Scan(ctx)
	return e, translate(err)
}

// exportTurn is the advisory lock of those who begin with an export.
const exportTurn = 0x7865

// ClaimExport takes an export up, or again when its writer died. It returns
// the claim to write under, or 0 when it is over, and false when others have to
// end first: one of a person's runs at a time, and most of all together.
func (t Tx) ClaimExport(ctx context.Context, id int64, most int, now time.Time) (int, bool, error) {
	if _, err := t.db.NewRaw("SELECT pg_advisory_xact_lock(?)", exportTurn).Exec(ctx); err != nil {
		return 0, false, translate(err)
	}
	var busy struct{ Own, All int }
	err := t.db.NewRaw(`SELECT count(*) FILTER (WHERE ex.owner_id IS NOT DISTINCT FROM me.owner_id) AS own, count(*) AS "all"
		FROM exports ex, exports me WHERE me.id = ?0 AND ex.id <> ?0 AND ex.state = 'running' AND NOT ex.direct`, id).Scan(ctx, &busy)
	if err != nil {
		return 0, false, translate(err)
	}
	if busy.Own > 0 || busy.All >= most {
		return 0, false, nil
	}
	var claims []int
	err = t.db.NewRaw(`UPDATE exports SET state = 'running', claim = claim + 1, started_at = coalesce(started_at, ?now), beat_at = ?now,
			rows = 0, pages = 0, bytes = 0
		WHERE id = ?id AND state IN ('waiting', 'running') AND NOT direct RETURNING claim`, named{"now": now, "id": id}).Scan(ctx, &claims)
	if err != nil || len(claims) == 0 {
		return 0, true, translate(err)
	}
	return claims[0], true, nil
}

// BeatExport notes how far a file is. It reports false when somebody else
// writes it by now, or nobody is to.
func (q Queries) BeatExport(ctx context.Context, id int64, claim int, p ExportProgress, now time.Time) (bool, error) {
	n, err := affected(q.db.NewRaw(`UPDATE exports SET rows = ?, pages = ?, bytes = ?, beat_at = ?
		WHERE id = ? AND claim = ? AND state = 'running'`, p.Rows, p.Pages, p.Bytes, now, id, claim).Exec(ctx))
	return n == 1, err
}

// TouchExport notes that the writer of a file is alive. It reports false as
// BeatExport does.
func (q Queries) TouchExport(ctx context.Context, id int64, claim int, now time.Time) (bool, error) {
	n, err := affected(q.db.NewRaw(`UPDATE exports SET beat_at = ? WHERE id = ? AND claim = ? AND state = 'running'`, now, id, claim).Exec(ctx))
	return n == 1, err
}

// ReleaseExport has an export wait again whose claim went wrong, so that others
// go first. It reports false as BeatExport does.
func (q Queries) ReleaseExport(ctx context.Context, id int64, claim int, now time.Time) (bool, error) {
	n, err := affected(q.db.NewRaw(`UPDATE exports SET state = 'waiting', beat_at = ? WHERE id = ? AND claim = ? AND state = 'running' AND NOT direct`,
		now, id, claim).Exec(ctx))
	return n == 1, err
}

// ExpectExport notes how many rows a file will have, about.
func (q Queries) ExpectExport(ctx context.Context, id int64, claim int, rows int64) error {
	_, err := q.db.NewRaw(`UPDATE exports SET expected = ? WHERE id = ? AND claim = ?`, rows, id, claim).Exec(ctx)
	return translate(err)
}

// PutChunk keeps a piece of a file. It reports false, and keeps nothing, as
// BeatExport does.
func (s *Store) PutChunk(ctx context.Context, id int64, claim, n int, body []byte, p ExportProgress, now time.Time) (bool, error) {
	mine := false
	err := s.InTx(ctx, func(ctx context.Context, tx Tx) error {
		var err error
		if mine, err = tx.BeatExport(ctx, id, claim, p, now); err != nil || !mine {
			return err
		}
		_, err = tx.tx.Tx.ExecContext(ctx, `INSERT INTO export_chunks (export_id, n, body) VALUES ($1, $2, $3)`, id, n, body)
		return translate(err)
	})
	return mine, err
}

// Chunk is a piece of a file; ErrNotFound when it is gone.
func (s *Store) Chunk(ctx context.Context, id int64, n int) ([]byte, error) {
	var body []byte
	err := s.SQL().QueryRowContext(ctx, `SELECT body FROM export_chunks WHERE export_id = $1 AND n = $2`, id, n).Scan(&body)
	return body, translate(err)
}

// DropChunks deletes pieces of a file, at most limit of them, and says how many.
func (q Queries) DropChunks(ctx context.Context, id int64, limit int) (int64, error) {
	return affected(q.db.NewRaw(`DELETE FROM export_chunks WHERE export_id = ?0
		AND n IN (SELECT n FROM export_chunks WHERE export_id = ?0 ORDER BY n LIMIT ?1)`, id, limit).Exec(ctx))
}

// ExportSpace is how much all files that are kept take up, in bytes.
func (q Queries) ExportSpace(ctx context.Context) (int64, error) {
	var bytes int64
	err := q.db.NewRaw(`SELECT coalesce(sum(bytes), 0)::bigint FROM exports WHERE held`).Scan(ctx, &bytes)
	return bytes, translate(err)
}

// EndExport ends what a claim writes: done with a sum and a manifest, or failed
// for a reason. It reports false as BeatExport does. Late is for one who sent a
// file: nobody else knows how that ended, whatever was thought meanwhile.
func (q Queries) EndExport(ctx context.Context, e *Export, p ExportProgress, late bool, now time.Time) (bool, error) {
	n, err := affected(q.db.NewRaw(`UPDATE exports SET state = ?state, rows = ?rows, pages = ?pages, bytes = ?bytes, sha256 = ?sum, manifest = ?manifest::jsonb,
			reason = ?reason, ended_at = ?now, beat_at = ?now, expires_at = ?expires
		WHERE id = ?id AND claim = ?claim AND (state = 'running' OR ?late AND direct AND state = 'failed')`, named{
		"state": e.State, "rows": p.Rows, "pages": p.Pages, "bytes": p.Bytes, "sum": e.SHA256, "manifest": jsonArg(e.Manifest), "reason": CleanText(e.Reason),
		"now": now, "expires": e.ExpiresAt, "id": e.ID, "claim": e.Claim, "late": late,
	}).Exec(ctx))
	return n == 1, err
}

// CancelExport ends an export that is not over. It reports false when it is.
func (q Queries) CancelExport(ctx context.Context, id int64, now time.Time) (bool, error) {
	n, err := affected(q.db.NewRaw(`UPDATE exports SET state = 'cancelled', ended_at = ?
		WHERE id = ? AND state IN ('waiting', 'running') AND NOT direct`, now, id).Exec(ctx))
	return n == 1, err
}

// ExpireExport takes a done file away from everybody. It reports false when it
// isn't there.
func (q Queries) ExpireExport(ctx context.Context, id int64) (bool, error) {
	n, err := affected(q.db.NewRaw(`UPDATE exports SET state = 'expired' WHERE id = ? AND state = 'done' AND NOT direct`, id).Exec(ctx))
	return n == 1, err
}

// TookExport tells whether the person has taken the file before: another piece
// of it is then no new download.
func (q Queries) TookExport(ctx context.Context, id, userID int64) (bool, error) {
	var took bool
	err := q.db.NewRaw(`SELECT EXISTS (SELECT FROM audit_log WHERE kind = 'export' AND on_id = ? AND what = 'export.download' AND user_id = ?)`,
		strconv.FormatInt(id, 10), userID).Scan(ctx, &took)
	return took, translate(err)
}

// CountDownload counts that a file was taken.
func (q Queries) CountDownload(ctx context.Context, id int64) error {
	_, err := q.db.NewRaw(`UPDATE exports SET downloads = downloads + 1 WHERE id = ?`, id).Exec(ctx)
	return translate(err)
}

// SpentExports lists exports whose pieces may go: nobody may have the file any
// more. Done ones whose time is up become expired.
func (q Queries) SpentExports(ctx context.Context, now time.Time, limit int) ([]int64, error) {
	_, err := q.db.NewRaw(`UPDATE exports SET state = 'expired' WHERE held AND state = 'done' AND expires_at <= ?`, now).Exec(ctx)
	if err != nil {
		return nil, translate(err)
	}
	var ids []int64
	err = q.db.NewRaw(`SELECT id FROM exports WHERE held AND state IN ('expired', 'failed', 'cancelled') ORDER BY id LIMIT ?`, limit).Scan(ctx, &ids)
	return ids, translate(err)
}

// EmptiedExport notes that no pieces are left of a file.
func (q Queries) EmptiedExport(ctx context.Context, id int64) error {
	_, err := q.db.NewRaw(`UPDATE exports SET held = false WHERE id = ? AND state IN ('expired', 'failed', 'cancelled')`, id).Exec(ctx)
	return translate(err)
}

// ForgetExports deletes what is known of exports made before the time, at most
// limit of them.
func (q Queries) ForgetExports(ctx context.Context, before time.Time, limit int) (int64, error) {
	return affected(q.db.NewRaw(`DELETE FROM exports WHERE id IN (SELECT id FROM exports
		WHERE created_at < ? AND NOT held AND state NOT IN ('waiting', 'running') ORDER BY created_at, id LIMIT ?)`, before, limit).Exec(ctx))
}

// StillExports lists exports that nobody has written since the time, and those
// that were sent straight out and broke off with their process.
func (q Queries) StillExports(ctx context.Context, before time.Time) ([]Export, error) {
	var rows []Export
	err := q.db.NewSelect().Model(&rows).Column("id", "direct", "claim", "state").
		Where("ex.state IN ('waiting', 'running') AND ex.beat_at <= ?", before).Order("ex.id").Limit(100).Scan(ctx)
	return rows, translate(err)
}

// PageExports lists exports, newest first, those after the key; owner 0 lists
// everybody's.
func (q Queries) PageExports(ctx context.Context, owner int64, from Key, limit int64) ([]Export, error) {
	var rows []Export
	query := q.db.NewSelect().Model(&rows).ExcludeColumn("manifest", "submit_token")
	if owner > 0 {
		query = query.Where("ex.owner_id = ?", owner)
	}
	err := after(query, "created_at", from).Order("ex.created_at DESC", "ex.id DESC").Limit(limit).Scan(ctx)
	return rows, translate(err)
}
