package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/uptrace/bun"
)

// AuditRow is a line of the audit log.
type AuditRow struct {
	bun.BaseModel `bun:"table:audit_log,alias:a"`
	ID            int64 `bun:",pk"`
	At            time.Time
	UserID        *int64 // Nil for commands, for the program itself, and for who wasn't signed in.
	Who           string // Empty: somebody who wasn't signed in.
	Source        string
	What          string
	Kind          string
	OnID          string
	Before        json.RawMessage `bun:"type:jsonb"`
	After         json.RawMessage `bun:"type:jsonb"`
}

// AuditFilter narrows the audit log; empty members don't. An ID needs the Kind
// of thing that it is the id of.
type AuditFilter struct {
	Who, What, Kind, ID string
	From, Until         time.Time // From is in it, Until is not.
}

// PageAudit lists lines of the audit log that fit, newest first and at most
// limit of them, and where the list goes on: the zero Key is its end. It looks
// at 10,000 lines at most, so a list may go on after fewer than limit lines.
func (q Queries) PageAudit(ctx context.Context, f AuditFilter, from Key, limit int64) ([]AuditRow, Key, error) {
	var rows []AuditRow
	near := f.near(q.db.NewSelect().Model((*AuditRow)(nil)), from)
	query := q.db.NewSelect().Model(&rows).ModelTableExpr("(?) AS a", near.Limit(searchDepth))
	err := f.rest(query).Order("a.at DESC", "a.id DESC").Limit(limit + 1).Scan(ctx)
	if err != nil {
		return nil, Key{}, translate(err)
	}
	if int64(len(rows)) > limit {
		rows = rows[:limit]
		last := &rows[limit-1]
		return rows, Key{At: last.At, ID: last.ID}, nil
	}
	next, err := q.auditEdge(ctx, f, from)
	return rows, next, err
}

// auditEdge is the last line that PageAudit looked at, if there are more.
func (q Queries) auditEdge(ctx context.Context, f AuditFilter, from Key) (Key, error) {
	var edge []AuditRow
	err := f.near(q.db.NewSelect().Model(&edge).Column("id", "at"), from).Offset(searchDepth - 1).Limit(1).Scan(ctx)
	if err != nil || len(edge) == 0 {
		return Key{}, translate(err)
	}
	return Key{At: edge[0].At, ID: edge[0].ID}, nil
}

// near walks along the index of the member that narrows most.
func (f AuditFilter) near(q *bun.SelectQuery, from Key) *bun.SelectQuery {
	switch {
	case f.ID != "":
		q = q.Where("a.kind = ? AND a.on_id = ?", f.Kind, f.ID)
	case f.Who != "":
		q = q.Where("lower(a.who) = lower(?)", f.Who)
	case f.What != "":
		q = q.Where("a.what = ?", f.What)
	case f.Kind != "":
		q = q.Where("a.kind = ?", f.Kind)
	}
	if !f.From.IsZero() {
		q = q.Where("a.at >= ?", f.From)
	}
	if !f.Until.IsZero() {
		q = q.Where("a.at < ?", f.Until)
	}
	return after(q, "at", from).Order("a.at DESC", "a.id DESC")
}

// rest is what near left; what it did not leave holds anyway.
func (f AuditFilter) rest(q *bun.SelectQuery) *bun.SelectQuery {
	if f.Who != "" {
		q = q.Where("lower(a.who) = lower(?)", f.Who)
	}
	if f.What != "" {
		q = q.Where("a.what = ?", f.What)
	}
	if f.Kind != "" {
		q = q.Where("a.kind = ?", f.Kind)
	}
	return q
}

// maxAuditWords bounds the choice of what was done, and on what.
const maxAuditWords = 200

// AuditWords lists what the log tells was done, by name.
func (q Queries) AuditWords(ctx context.Context) ([]string, error) { return q.auditWords(ctx, "what") }

// AuditKinds lists on what kinds of things something was done, by name.
func (q Queries) AuditKinds(ctx context.Context) ([]string, error) { return q.auditWords(ctx, "kind") }

// auditWords jumps along the column's index, however many lines each word has.
func (q Queries) auditWords(ctx context.Context, column string) ([]string, error) {
	var words []string
	err := q.db.NewRaw(`WITH RECURSIVE words AS (
			(SELECT ?column AS word FROM audit_log ORDER BY ?column LIMIT 1)
			UNION ALL
			SELECT (SELECT a.?column FROM audit_log a WHERE a.?column > w.word ORDER BY a.?column LIMIT 1)
				FROM words w WHERE w.word IS NOT NULL)
		SELECT word FROM words WHERE word <> '' LIMIT ?most`,
		named{"column": bun.Ident(column), "most": maxAuditWords}).Scan(ctx, &words)
	return words, translate(err)
}
