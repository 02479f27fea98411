package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Actor is who asks for a change.
type Actor struct {
	UserID int64  // Zero: nobody with an account.
	Name   string // As it was then: people may be renamed.
	Source string // The address they came from; "command line" for commands.
}

type actorKey struct{}

// WithActor says on whose behalf everything done with the context is.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf is who asks; the program itself when nobody does.
func ActorOf(ctx context.Context) Actor {
	if a, ok := ctx.Value(actorKey{}).(Actor); ok {
		return a
	}
	return Actor{Name: "rollcall"}
}

// Change is a line of the audit log: what was done, on what, and how it was
// before and after. No secret, password or token belongs in it, not even a
// hash of one.
type Change struct {
	What          string // A verb on a noun, such as "webhook.pause".
	Kind, ID      string // What it was done on, such as "webhook" and "3".
	Before, After any    // Become JSON; nil says nothing.
}

// mostAudited bounds the JSON of one side of a change, in bytes.
const mostAudited = 8 << 10

// Audit writes a change down, in the transaction that makes it: what did not
// happen is not in the log, and what is in the log did.
func (q Queries) Audit(ctx context.Context, now time.Time, c Change) error {
	before, err := auditedJSON(c.Before)
	if err != nil {
		return fmt.Errorf("audit %s: %w", c.What, err)
	}
	after, err := auditedJSON(c.After)
	if err != nil {
		return fmt.Errorf("audit %s: %w", c.What, err)
	}
	who := ActorOf(ctx)
	_, err = q.db.NewRaw(`INSERT INTO audit_log (at, user_id, who, source, what, kind, on_id, before, after)
		VALUES (?, nullif(?, 0), ?, ?, ?, ?, ?, ?::jsonb, ?::jsonb)`,
		now, who.UserID, CleanText(who.Name), CleanText(who.Source), c.What, c.Kind, CleanText(c.ID),
		jsonArg(before), jsonArg(after)).Exec(ctx)
	return translate(err)
}

func auditedJSON(side any) (json.RawMessage, error) {
	if side == nil {
		return nil, nil
	}
	raw, err := json.Marshal(side)
	if err != nil {
		return nil, err
	}
	if len(raw) > mostAudited {
		return json.RawMessage(`"too large to keep"`), nil
	}
	return json.RawMessage(withoutNUL.Replace(CleanText(string(raw)))), nil
}

// withoutNUL replaces the NULs of JSON, which are escaped there and which the
// database refuses all the same. A backslash that is escaped escapes nothing.
var withoutNUL = strings.NewReplacer(`\\`, `\\`, `\u0000`, `\ufffd`) //nolint:gochecknoglobals // A constant.
