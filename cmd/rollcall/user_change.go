package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"rollcall/store"
	"rollcall/web"
)

// onUser does something to the person of that name; what says what, for errors.
func (a *app) onUser(ctx context.Context, name, what string, do func(ctx context.Context, s *stack, u *store.User) error) error {
	return a.withStore(ctx, func(ctx context.Context, s *stack) error {
		u, err := s.store.UserByName(ctx, name)
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("there is no user %q", name)
		}
		if err != nil {
			return fmt.Errorf("look for user %q: %w", name, err)
		}
		err = do(ctx, s, u)
		if errors.Is(err, store.ErrLastAdmin) {
			return fmt.Errorf("%s is the last active admin: make somebody else an admin first", u.Name)
		}
		if err != nil {
			return fmt.Errorf("%s of user %q: %w", what, name, err)
		}
		return nil
	})
}

type userInviteCmd struct {
	Name string     `arg:"" help:"The name to sign in with."`
	Role store.Role `enum:"analyst,operator,admin" default:"analyst" help:"analyst, operator or admin."`
}

// Run prints a one-time link, this once: what is kept is a hash.
func (c *userInviteCmd) Run(ctx context.Context, a *app) error {
	if text := web.CheckName(ctx, c.Name); text != "" {
		return fmt.Errorf("user %q: %s", c.Name, text)
	}
	return a.withStore(ctx, func(ctx context.Context, s *stack) error {
		token, in := web.NewInvite(c.Name, c.Role, store.ActorOf(ctx).Name, s.now())
		err := s.store.Invite(ctx, in)
		if errors.Is(err, store.ErrTaken) {
			return fmt.Errorf("there is a user %q already; user password gives a new password", c.Name)
		}
		if err != nil {
			return err
		}
		return a.tellLink(fmt.Sprintf("invited %s %s", c.Role, c.Name), token, in)
	})
}

// tellLink prints a one-time link.
func (a *app) tellLink(what, token string, in *store.Invite) error {
	base, hint := a.config.publicBase(), ""
	if base == "" {
		hint = "\nthis is only the path: put the address that people open Rollcall at before it, or set ROLLCALL_PUBLIC_URL"
	}
	_, err := fmt.Fprintf(a.out, "%s; link (works once, until %s, not shown again): %s%s\n",
		what, in.ExpiresAt.UTC().Format("2006-01-02 15:04 UTC"), web.InviteLink(base, token), hint)
	return err
}

type userRoleCmd struct {
	Name string     `arg:"" help:"Whose role."`
	Role store.Role `arg:"" enum:"analyst,operator,admin" help:"analyst, operator or admin."`
}

// Run changes a role.
func (c *userRoleCmd) Run(ctx context.Context, a *app) error {
	return a.onUser(ctx, c.Name, "role", func(ctx context.Context, s *stack, u *store.User) error {
		if err := s.store.SetRole(ctx, u.ID, c.Role, s.now()); err != nil {
			return err
		}
		return tell(a.out, "%s is now: %s", u.Name, c.Role)
	})
}

type userDisableCmd struct {
	Name string `arg:"" help:"Whose account."`
}

// Run closes an account.
func (c *userDisableCmd) Run(ctx context.Context, a *app) error {
	return a.onUser(ctx, c.Name, "account", func(ctx context.Context, s *stack, u *store.User) error {
		if err := s.store.DisableUser(ctx, u.ID, s.now()); err != nil {
			return err
		}
		return tell(a.out, "disabled %s, who is signed out everywhere", u.Name)
	})
}

type userEnableCmd struct {
	Name string `arg:"" help:"Whose account."`
}

// Run opens a closed account.
func (c *userEnableCmd) Run(ctx context.Context, a *app) error {
	return a.onUser(ctx, c.Name, "account", func(ctx context.Context, s *stack, u *store.User) error {
		if err := s.store.EnableUser(ctx, u.ID, s.now()); err != nil {
			return err
		}
		return tell(a.out, "enabled %s", u.Name)
	})
}

type userPasswordCmd struct {
	Name          string `arg:"" help:"Whose password."`
	PasswordStdin bool   `xor:"how" help:"Read the password from standard input. Default: one is made and printed."`
	Link          bool   `xor:"how" help:"Print a one-time link instead, by which they choose it themselves."`
}

// Run replaces a password, or makes a link that does.
func (c *userPasswordCmd) Run(ctx context.Context, a *app) error {
	if c.Link {
		return a.onUser(ctx, c.Name, "password", func(ctx context.Context, s *stack, u *store.User) error {
			token, in, unusable := web.NewReset(u.ID, store.ActorOf(ctx).Name, s.now())
			err := s.store.ResetPassword(ctx, in, unusable)
			if errors.Is(err, store.ErrStale) {
				return errors.New("the account is disabled; user enable opens it")
			}
			if err != nil {
				return err
			}
			return a.tellLink("the password of "+u.Name+" is reset", token, in)
		})
	}
	password, made, err := choosePassword(ctx, a.in, c.PasswordStdin)
	if err != nil {
		return err
	}
	return a.onUser(ctx, c.Name, "password", func(ctx context.Context, s *stack, u *store.User) error {
		if err := s.store.ReplacePassword(ctx, u.ID, web.HashPassword(password), s.now()); err != nil {
			return err
		}
		return tellPassword(a.out, "new password for "+c.Name, password, made)
	})
}

// setPassword gives the person of that name a password.
func (s *stack) setPassword(ctx context.Context, name, password string) error {
	u, err := s.store.UserByName(ctx, name)
	if err != nil {
		return fmt.Errorf("look for user %q: %w", name, err)
	}
	return s.store.ReplacePassword(ctx, u.ID, web.HashPassword(password), s.now())
}

// userSessionsCmd looks after sessions.
type userSessionsCmd struct {
	End userSessionsEndCmd `cmd:"" help:"Sign somebody out everywhere."`
}

type userSessionsEndCmd struct {
	Name string `arg:"" help:"Whose sessions."`
}

// Run ends every session of a person, and the live pages they have open.
func (c *userSessionsEndCmd) Run(ctx context.Context, a *app) error {
	return a.onUser(ctx, c.Name, "sessions", func(ctx context.Context, s *stack, u *store.User) error {
		n, err := s.store.EndUserSessions(ctx, u.ID, s.now())
		if err != nil {
			return err
		}
		return tell(a.out, "%s is signed out everywhere; sessions ended: %d", u.Name, n)
	})
}

func tell(out io.Writer, format string, args ...any) error {
	_, err := fmt.Fprintf(out, format+"\n", args...)
	return err
}
