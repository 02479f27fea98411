package store

import (
	"context"
	"time"
)

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

// SetSignedIn notes when a person last signed in.
func (q Queries) SetSignedIn(ctx context.Context, id int64, at time.Time) (int64, error) {
	return affected(q.db.NewUpdate().Model((*User)(nil)).
		Set("last_sign_in_at = ?", at).Where("id = ?", id).Exec(ctx))
}
