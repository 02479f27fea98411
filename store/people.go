package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrLastAdmin reports a change that would leave no active admin.
var ErrLastAdmin = errors.New("the last active admin")

// ErrNotAdmin reports that who asks for a change of people is no active admin
// any more: somebody changed that while they asked.
var ErrNotAdmin = errors.New("who asks is no active admin")

// ErrStale reports that what a change was built on has changed meanwhile.
var ErrStale = errors.New("changed meanwhile")

// userFacts is what the audit log tells of a person; empty members say nothing.
type userFacts struct {
	Role     Role    `json:"role,omitempty"`
	Disabled *bool   `json:"disabled,omitempty"`
	TimeZone *string `json:"time_zone,omitempty"`
	Theme    *string `json:"theme,omitempty"`
}

// lockAdmins locks every active admin, in one order, until the transaction
// ends, so that of two changes at once the second sees what the first left. It
// refuses a person who is none of them; commands act for nobody with an account.
func (t Tx) lockAdmins(ctx context.Context) ([]int64, error) {
	var ids []int64
	err := t.db.NewRaw(`SELECT id FROM users WHERE role = ? AND disabled_at IS NULL ORDER BY id FOR NO KEY UPDATE`,
		RoleAdmin).Scan(ctx, &ids)
	if err != nil {
		return nil, translate(err)
	}
	if who := ActorOf(ctx).UserID; who != 0 && !slices.Contains(ids, who) {
		return nil, ErrNotAdmin
	}
	return ids, nil
}

// lockUser reads a person and locks the row: sign-ins, and whatever ends
// sessions, wait for each other.
func (t Tx) lockUser(ctx context.Context, id int64) (*User, error) {
	u := new(User)
	if err := t.db.NewSelect().Model(u).Where("u.id = ?", id).For("NO KEY UPDATE").Scan(ctx); err != nil {
		return nil, translate(err)
	}
	return u, nil
}

// changeUser changes a person for an admin. last says that the person is the
// only active admin.
func (s *Store) changeUser(ctx context.Context, id int64, do func(ctx context.Context, tx Tx, u *User, last bool) error) error {
	err := s.InTx(ctx, func(ctx context.Context, tx Tx) error {
		admins, err := tx.lockAdmins(ctx)
		if err != nil {
			return err
		}
		u, err := tx.lockUser(ctx, id)
		if err != nil {
			return err
		}
		return do(ctx, tx, u, slices.Equal(admins, []int64{id}))
	})
	if err != nil {
		return fmt.Errorf("change user %d: %w", id, err)
	}
	return nil
}

// SetRole gives a person another role, from their next request on. The same
// one again changes nothing. ErrLastAdmin, ErrNotAdmin, ErrNotFound.
func (s *Store) SetRole(ctx context.Context, id int64, role Role, now time.Time) error {
	return s.changeUser(ctx, id, func(ctx context.Context, tx Tx, u *User, last bool) error {
		switch {
		case u.Role == role:
			return nil
		case last:
			return ErrLastAdmin
		}
		if _, err := tx.db.NewRaw("UPDATE users SET role = ? WHERE id = ?", role, id).Exec(ctx); err != nil {
			return translate(err)
		}
		// Pages that only the old role may watch end.
		if err := tx.tellSessions(ctx, id); err != nil {
			return err
		}
		return tx.Audit(ctx, now, Change{
			What: "user.role", Kind: "user", ID: u.Name, Before: userFacts{Role: u.Role}, After: userFacts{Role: role},
		})
	})
}

// DisableUser closes an account: sessions end, and no link opens it. Twice is
// as good as once. ErrLastAdmin, ErrNotAdmin, ErrNotFound.
func (s *Store) DisableUser(ctx context.Context, id int64, now time.Time) error {
	return s.changeUser(ctx, id, func(ctx context.Context, tx Tx, u *User, last bool) error {
		switch {
		case u.DisabledAt != nil:
			return nil
		case last:
			return ErrLastAdmin
		}
		if _, err := tx.db.NewRaw("UPDATE users SET disabled_at = ? WHERE id = ?", now, id).Exec(ctx); err != nil {
			return translate(err)
		}
		if _, err := tx.db.NewRaw("DELETE FROM invites WHERE user_id = ?", id).Exec(ctx); err != nil {
			return translate(err)
		}
		if _, err := tx.DeleteUserSessions(ctx, id, nil); err != nil {
			return err
		}
		return tx.auditDisabled(ctx, u, "user.disable", true, now)
	})
}

// EnableUser opens a closed account again, with the password it had. Twice is
// as good as once. ErrNotAdmin, ErrNotFound.
func (s *Store) EnableUser(ctx context.Context, id int64, now time.Time) error {
	return s.changeUser(ctx, id, func(ctx context.Context, tx Tx, u *User, _ bool) error {
		if u.DisabledAt == nil {
			return nil
		}
		if _, err := tx.db.NewRaw("UPDATE users SET disabled_at = NULL WHERE id = ?", id).Exec(ctx); err != nil {
			return translate(err)
		}
		return tx.auditDisabled(ctx, u, "user.enable", false, now)
	})
}

func (t Tx) auditDisabled(ctx context.Context, u *User, what string, is bool, now time.Time) error {
	was := !is
	return t.Audit(ctx, now, Change{
		What: what, Kind: "user", ID: u.Name, Before: userFacts{Disabled: &was}, After: userFacts{Disabled: &is},
	})
}

// ResetPassword keeps a link by which a person sets a new password. The old one
// is replaced by unusable, the hash of what nobody knows, and sessions end.
// ErrStale: the account is disabled. ErrNotAdmin, ErrNotFound.
func (s *Store) ResetPassword(ctx context.Context, in *Invite, unusable string) error {
	return s.changeUser(ctx, *in.UserID, func(ctx context.Context, tx Tx, u *User, _ bool) error {
		if u.DisabledAt != nil {
			return ErrStale
		}
		in.Name, in.Role = u.Name, u.Role
		if err := tx.newPassword(ctx, u, unusable, nil, in.CreatedAt); err != nil {
			return err
		}
		if err := tx.putInvite(ctx, in); err != nil {
			return err
		}
		return tx.Audit(ctx, in.CreatedAt, Change{
			What: "user.reset_password", Kind: "user", ID: u.Name, After: invited{ExpiresAt: in.ExpiresAt},
		})
	})
}

// ReplacePassword gives a person a password that somebody else chose; sessions
// end, and so does an open link. ErrNotAdmin, ErrNotFound.
func (s *Store) ReplacePassword(ctx context.Context, id int64, hash string, now time.Time) error {
	return s.changeUser(ctx, id, func(ctx context.Context, tx Tx, u *User, _ bool) error {
		if err := tx.newPassword(ctx, u, hash, nil, now); err != nil {
			return err
		}
		return tx.Audit(ctx, now, Change{What: "user.password", Kind: "user", ID: u.Name, After: means{"command"}})
	})
}

// ChangePassword gives a person the password they chose, if the old one is
// still that of the hash was; every session ends but the one with the hash
// keep. ErrStale: it was changed meanwhile.
func (s *Store) ChangePassword(ctx context.Context, id int64, was, hash string, keep []byte, now time.Time) error {
	err := s.InTx(ctx, func(ctx context.Context, tx Tx) error {
		u, err := tx.lockUser(ctx, id)
		if err != nil {
			return err
		}
		if u.PasswordHash != was || u.DisabledAt != nil {
			return ErrStale
		}
		if err := tx.newPassword(ctx, u, hash, keep, now); err != nil {
			return err
		}
		return tx.Audit(ctx, now, Change{What: "user.password", Kind: "user", ID: u.Name, After: means{"old password"}})
	})
	if err != nil {
		return fmt.Errorf("change the password of user %d: %w", id, err)
	}
	return nil
}

// newPassword ends what the old password opened. The caller has locked the row.
func (t Tx) newPassword(ctx context.Context, u *User, hash string, keep []byte, now time.Time) error {
	if _, err := t.SetPassword(ctx, u.ID, hash, now); err != nil {
		return err
	}
	u.PasswordHash = hash
	if _, err := t.db.NewRaw("DELETE FROM invites WHERE user_id = ?", u.ID).Exec(ctx); err != nil {
		return translate(err)
	}
	_, err := t.DeleteUserSessions(ctx, u.ID, keep)
	return err
}

// SetTaste keeps how a person wants pages: a time zone's IANA name, empty for
// the browser's, and a theme, empty for the system's.
func (s *Store) SetTaste(ctx context.Context, id int64, zone, theme string, now time.Time) error {
	err := s.InTx(ctx, func(ctx context.Context, tx Tx) error {
		u, err := tx.lockUser(ctx, id)
		if err != nil || u.TimeZone == zone && u.Theme == theme {
			return err
		}
		_, err = tx.db.NewRaw("UPDATE users SET time_zone = ?, theme = ? WHERE id = ?", zone, theme, id).Exec(ctx)
		if err != nil {
			return translate(err)
		}
		return tx.Audit(ctx, now, Change{
			What: "user.settings", Kind: "user", ID: u.Name,
			Before: userFacts{TimeZone: &u.TimeZone, Theme: &u.Theme}, After: userFacts{TimeZone: &zone, Theme: &theme},
		})
	})
	if err != nil {
		return fmt.Errorf("settings of user %d: %w", id, err)
	}
	return nil
}

// CreateUser is AddUser for a command, with a line in the audit log.
func (s *Store) CreateUser(ctx context.Context, u *User) error {
	return s.InTx(ctx, func(ctx context.Context, tx Tx) error {
		// An open invitation of that name can't be used any more. It goes before the
		// account comes, as when it is used: two such must not wait for each other.
		if _, err := tx.db.NewRaw("DELETE FROM invites WHERE lower(name) = lower(?)", u.Name).Exec(ctx); err != nil {
			return translate(err)
		}
		if err := tx.AddUser(ctx, u); err != nil {
			return err
		}
		return tx.Audit(ctx, u.CreatedAt, Change{What: "user.add", Kind: "user", ID: u.Name, After: userFacts{Role: u.Role}})
	})
}
