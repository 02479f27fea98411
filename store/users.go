package store

import (
	"context"
	"errors"
	"time"
)

// ErrLastAdmin reports a change that would leave the installation without
// anybody who may administer it.
var ErrLastAdmin = errors.New("the last admin must stay one")

// maxUsersListed bounds the list of people; a self-hosted desk has dozens.
const maxUsersListed = 1000

// HasUsers reports whether anybody has an account: before that, every page
// leads to the set-up.
func (q Queries) HasUsers(ctx context.Context) (bool, error) {
	var has bool
	err := q.db.NewRaw("SELECT EXISTS (SELECT 1 FROM users)").Scan(ctx, &has)
	return has, translate(err)
}

// AddUser inserts u and fills in its id. A name in use, without regard to
// case, is ErrTaken.
func (q Queries) AddUser(ctx context.Context, u *User) error {
	_, err := q.db.NewInsert().Model(u).Returning("id").Exec(ctx)
	return translate(err)
}

// UserByID finds a person, disabled ones too; ErrNotFound when there is none.
func (q Queries) UserByID(ctx context.Context, id int64) (*User, error) {
	u := new(User)
	err := q.db.NewSelect().Model(u).Where("u.id = ?", id).Scan(ctx)
	if err != nil {
		return nil, translate(err)
	}
	return u, nil
}

// UserByName finds a person without regard to case, disabled ones too;
// ErrNotFound when there is none.
func (q Queries) UserByName(ctx context.Context, name string) (*User, error) {
	u := new(User)
	err := q.db.NewSelect().Model(u).Where("lower(u.name) = lower(?)", name).Scan(ctx)
	if err != nil {
		return nil, translate(err)
	}
	return u, nil
}

// Users lists people by name, at most a thousand of them.
func (q Queries) Users(ctx context.Context) ([]User, error) {
	var users []User
	err := q.db.NewSelect().Model(&users).OrderExpr("lower(u.name)").Limit(maxUsersListed).Scan(ctx)
	return users, translate(err)
}

// SetPassword replaces the hash of a person's password; zero rows means that
// there is no such person.
func (q Queries) SetPassword(ctx context.Context, id int64, hash string, at time.Time) (int64, error) {
	return affected(q.db.NewUpdate().Model((*User)(nil)).
		Set("password_hash = ?", hash).Set("password_changed_at = ?", at).
		Where("id = ?", id).Exec(ctx))
}

// SetPreferences keeps how a person wants pages: a time zone's IANA name or
// "", and a theme, "light", "dark" or "".
func (q Queries) SetPreferences(ctx context.Context, id int64, zone, theme string) (int64, error) {
	return affected(q.db.NewUpdate().Model((*User)(nil)).
		Set("time_zone = ?", zone).Set("theme = ?", theme).Where("id = ?", id).Exec(ctx))
}

// SetSignedIn notes when a person last signed in.
func (q Queries) SetSignedIn(ctx context.Context, id int64, at time.Time) (int64, error) {
	return affected(q.db.NewUpdate().Model((*User)(nil)).
		Set("last_sign_in_at = ?", at).Where("id = ?", id).Exec(ctx))
}

// SetRole changes what a person may do. ErrLastAdmin refuses to take the role
// from the last enabled admin; two such changes at once can't both pass, as
// each locks the admins first.
func (s *Store) SetRole(ctx context.Context, id int64, role Role) error {
	return s.changeAdmins(ctx, id, role != RoleAdmin, func(ctx context.Context, tx Tx) (int64, error) {
		return affected(tx.db.NewUpdate().Model((*User)(nil)).Set("role = ?", role).Where("id = ?", id).Exec(ctx))
	})
}

// SetDisabled bars a person from signing in, ending every session at once, or
// lets them in again. ErrLastAdmin as for SetRole.
func (s *Store) SetDisabled(ctx context.Context, id int64, disabled bool, at time.Time) error {
	return s.changeAdmins(ctx, id, disabled, func(ctx context.Context, tx Tx) (int64, error) {
		if !disabled {
			return affected(tx.db.NewUpdate().Model((*User)(nil)).Set("disabled_at = NULL").Where("id = ?", id).Exec(ctx))
		}
		if _, err := tx.DeleteUserSessions(ctx, id, nil); err != nil {
			return 0, err
		}
		return affected(tx.db.NewUpdate().Model((*User)(nil)).Set("disabled_at = ?", at).Where("id = ?", id).Exec(ctx))
	})
}

func (s *Store) changeAdmins(ctx context.Context, id int64, takes bool, change func(context.Context, Tx) (int64, error)) error {
	return s.InTx(ctx, func(ctx context.Context, tx Tx) error {
		var admins []int64
		err := tx.db.NewRaw("SELECT id FROM users WHERE role = ? AND disabled_at IS NULL ORDER BY id FOR UPDATE",
			RoleAdmin).Scan(ctx, &admins)
		if err != nil {
			return translate(err)
		}
		if takes && len(admins) == 1 && admins[0] == id {
			return ErrLastAdmin
		}
		rows, err := change(ctx, tx)
		if err == nil && rows == 0 {
			return ErrNotFound
		}
		return err
	})
}
