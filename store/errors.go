package store

import (
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrNotFound reports that no row has the asked-for identity.
var ErrNotFound = errors.New("not found")

// ErrTaken reports that a unique value is already in use.
var ErrTaken = errors.New("already in use")

// ErrDeadlock reports a transaction that lost a deadlock or a serialization
// race: repeating it as a whole is right.
var ErrDeadlock = errors.New("transaction lost a race")

// ErrTooSlow reports a statement that the database ended because its time was
// up.
var ErrTooSlow = errors.New("not answered in time")

// ErrUnsearchable reports content that the database can't take apart into words.
var ErrUnsearchable = errors.New("no words can be made of it")

// translate turns what Postgres says into what callers may test for; it is
// the only place that knows its codes.
func translate(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNotFound
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	switch pg.Code {
	case "23505":
		return errors.Join(ErrTaken, err)
	case "40001", "40P01":
		return errors.Join(ErrDeadlock, err)
	case "57014":
		return errors.Join(ErrTooSlow, err)
	case "54000":
		return errors.Join(ErrUnsearchable, err)
	}
	return err
}
