package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"
)

// Invite is a link that is good once: it makes an account, or sets the
// password of one. TokenHash is the SHA-256 of the token in the link.
type Invite struct {
	bun.BaseModel `bun:"table:invites,alias:iv"`
	ID            int64 `bun:",pk,autoincrement"`
	TokenHash     []byte
	UserID        *int64 // Whose password it sets; nil for who has no account yet.
	Name          string
	Role          Role
	MadeBy        string
	CreatedAt     time.Time
	ExpiresAt     time.Time
}

const (
	// maxInvitesListed bounds the list of open links.
	maxInvitesListed = 1000
	// invitesKept is how long a link that has expired is still listed.
	invitesKept = 7 * 24 * time.Hour
)

// Invites lists the links that wait to be used, the latest first; those that
// expired lately are among them.
func (q Queries) Invites(ctx context.Context) ([]Invite, error) {
	var invites []Invite
	err := q.db.NewSelect().Model(&invites).Order("iv.created_at DESC", "iv.id DESC").Limit(maxInvitesListed).Scan(ctx)
	return invites, translate(err)
}

// InviteByID finds a link by its id, expired ones too; ErrNotFound when it was
// used, revoked or replaced.
func (q Queries) InviteByID(ctx context.Context, id int64) (*Invite, error) {
	in := new(Invite)
	if err := q.db.NewSelect().Model(in).Where("iv.id = ?", id).Scan(ctx); err != nil {
		return nil, translate(err)
	}
	return in, nil
}

// LiveInvite finds the link of a token's hash that can be used now;
// ErrNotFound for any other, whatever the reason.
func (q Queries) LiveInvite(ctx context.Context, hash []byte, now time.Time) (*Invite, error) {
	in := new(Invite)
	err := q.db.NewSelect().Model(in).Where("iv.token_hash = ?", hash).Where("iv.expires_at > ?", now).Scan(ctx)
	if err != nil {
		return nil, translate(err)
	}
	return in, nil
}

// DeleteOldInvites removes links that expired a week ago or longer.
func (q Queries) DeleteOldInvites(ctx context.Context, now time.Time) (int64, error) {
	return affected(q.db.NewDelete().Model((*Invite)(nil)).Where("expires_at < ?", now.Add(-invitesKept)).Exec(ctx))
}

// invited is an invitation as the audit log tells of it.
type invited struct {
	Name      string    `json:"name,omitempty"`
	Role      Role      `json:"role,omitempty"`
	ExpiresAt time.Time `json:"link_expires_at"`
}

// Invite keeps a link for somebody who has no account yet and fills in its id;
// an earlier one for the same name is good no more. ErrTaken: the name has an
// account. ErrNotAdmin: who asks is no admin any more.
func (s *Store) Invite(ctx context.Context, in *Invite) error {
	err := s.InTx(ctx, func(ctx context.Context, tx Tx) error {
		if _, err := tx.lockAdmins(ctx); err != nil {
			return err
		}
		if _, err := tx.UserByName(ctx, in.Name); err == nil {
			return ErrTaken
		} else if !errors.Is(err, ErrNotFound) {
			return err
		}
		if err := tx.putInvite(ctx, in); err != nil {
			return err
		}
		return tx.Audit(ctx, in.CreatedAt, Change{
			What: "user.invite", Kind: "user", ID: in.Name, After: invited{Role: in.Role, ExpiresAt: in.ExpiresAt},
		})
	})
	if err != nil {
		return fmt.Errorf("invite %q: %w", in.Name, err)
	}
	return nil
}

// putInvite replaces the open link of the name, if there is one.
func (t Tx) putInvite(ctx context.Context, in *Invite) error {
	_, err := t.db.NewDelete().Model((*Invite)(nil)).Where("lower(name) = lower(?)", in.Name).Exec(ctx)
	if err != nil {
		return translate(err)
	}
	_, err = t.db.NewInsert().Model(in).Returning("id").Exec(ctx)
	return translate(err)
}

// RevokeInvite takes a link back; ErrNotFound when it is gone already.
func (s *Store) RevokeInvite(ctx context.Context, id int64, now time.Time) error {
	err := s.InTx(ctx, func(ctx context.Context, tx Tx) error {
		if _, err := tx.lockAdmins(ctx); err != nil {
			return err
		}
		in, err := tx.takeInvite(ctx, "id = ?", id)
		if err != nil {
			return err
		}
		return tx.Audit(ctx, now, Change{
			What: "user.revoke_link", Kind: "user", ID: in.Name, Before: invited{Role: in.Role, ExpiresAt: in.ExpiresAt},
		})
	})
	if err != nil {
		return fmt.Errorf("revoke link %d: %w", id, err)
	}
	return nil
}

// takeInvite removes the one link that matches and returns it.
func (t Tx) takeInvite(ctx context.Context, where string, args ...any) (*Invite, error) {
	in := new(Invite)
	_, err := t.db.NewDelete().Model(in).Where(where, args...).Returning("*").Exec(ctx)
	if err == nil && in.ID == 0 {
		return nil, ErrNotFound
	}
	return in, translate(err)
}

// UseInvite turns a link into an account, or gives the one it is for its new
// password, and returns it; the link is good no more, and sessions of the old
// password end. ErrNotFound: the link can't be used. ErrTaken: somebody got an
// account of that name meanwhile.
func (s *Store) UseInvite(ctx context.Context, hash []byte, passwordHash string, now time.Time) (*User, error) {
	var user *User
	err := s.InTx(ctx, func(ctx context.Context, tx Tx) error {
		in, err := tx.LiveInvite(ctx, hash, now)
		if err != nil {
			return err
		}
		if in.UserID != nil {
			// The person is locked before the link, as whoever replaces it does.
			if user, err = tx.lockUser(ctx, *in.UserID); err != nil {
				return err
			}
		}
		if in, err = tx.takeInvite(ctx, "token_hash = ? AND expires_at > ?", hash, now); err != nil {
			return err
		}
		if in.UserID == nil {
			user, err = tx.acceptInvite(ctx, in, passwordHash, now)
			return err
		}
		return tx.useReset(ctx, user, passwordHash, now)
	})
	if err != nil {
		return nil, fmt.Errorf("use a link: %w", err)
	}
	return user, nil
}

func (t Tx) acceptInvite(ctx context.Context, in *Invite, passwordHash string, now time.Time) (*User, error) {
	u := &User{Name: in.Name, Role: in.Role, PasswordHash: passwordHash, CreatedAt: now, PasswordChangedAt: now}
	if err := t.AddUser(ctx, u); err != nil {
		return nil, err
	}
	return u, t.Audit(asUser(ctx, u), now, Change{
		What: "user.accept_invite", Kind: "user", ID: u.Name, After: userFacts{Role: u.Role},
	})
}

func (t Tx) useReset(ctx context.Context, u *User, passwordHash string, now time.Time) error {
	if u.DisabledAt != nil {
		return ErrNotFound
	}
	if err := t.newPassword(ctx, u, passwordHash, nil, now); err != nil {
		return err
	}
	return t.Audit(asUser(ctx, u), now, Change{What: "user.password", Kind: "user", ID: u.Name, After: means{"one-time link"}})
}

// means is by what a password was changed.
type means struct {
	By string `json:"by"`
}

// asUser has what follows written down under the name of the person whose
// account it is: nobody is signed in yet.
func asUser(ctx context.Context, u *User) context.Context {
	return WithActor(ctx, Actor{UserID: u.ID, Name: u.Name, Source: ActorOf(ctx).Source})
}
