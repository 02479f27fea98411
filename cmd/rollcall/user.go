package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"rollcall/store"
	"rollcall/web"
)

// userCmd looks after people.
type userCmd struct {
	List     userListCmd     `cmd:"" help:"List the people who have an account."`
	Add      userAddCmd      `cmd:"" help:"Give somebody an account."`
	Invite   userInviteCmd   `cmd:"" help:"Make a one-time link by which somebody makes their account."`
	Role     userRoleCmd     `cmd:"" help:"Give somebody another role."`
	Disable  userDisableCmd  `cmd:"" help:"Close an account; who is signed in with it is signed out."`
	Enable   userEnableCmd   `cmd:"" help:"Open a closed account again."`
	Password userPasswordCmd `cmd:"" aliases:"passwd" help:"Give somebody a new password; who is signed in with the old one is signed out."`
	Sessions userSessionsCmd `cmd:"" help:"Look after who is signed in."`
}

type userAddCmd struct {
	Name          string     `arg:"" help:"The name to sign in with."`
	Role          store.Role `enum:"analyst,operator,admin" default:"analyst" help:"analyst, operator or admin."`
	PasswordStdin bool       `help:"Read the password from standard input. Default: one is made and printed."`
}

// Run adds a user.
func (c *userAddCmd) Run(ctx context.Context, a *app) error {
	if text := web.CheckName(ctx, c.Name); text != "" {
		return fmt.Errorf("user %q: %s", c.Name, text)
	}
	password, made, err := choosePassword(ctx, a.in, c.PasswordStdin)
	if err != nil {
		return err
	}
	return a.withStore(ctx, func(ctx context.Context, s *stack) error {
		err := s.addUser(ctx, c.Name, c.Role, password)
		if errors.Is(err, store.ErrTaken) {
			return fmt.Errorf("there is a user %q already; user password gives a new one", c.Name)
		}
		if err != nil {
			return fmt.Errorf("add user %q: %w", c.Name, err)
		}
		return tellPassword(a.out, fmt.Sprintf("added %s %s", c.Role, c.Name), password, made)
	})
}

// addUser adds somebody; ErrTaken when the name is in use.
func (s *stack) addUser(ctx context.Context, name string, role store.Role, password string) error {
	now := s.now()
	return s.store.CreateUser(ctx, &store.User{
		Name: name, Role: role, PasswordHash: web.HashPassword(password), CreatedAt: now, PasswordChangedAt: now,
	})
}

// choosePassword reads a password, or makes one; the second result says which.
func choosePassword(ctx context.Context, in io.Reader, read bool) (string, bool, error) {
	if !read {
		return randomPassword(), true, nil
	}
	line, err := bufio.NewReader(io.LimitReader(in, 4<<10)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", false, fmt.Errorf("read the password: %w", err)
	}
	password := strings.TrimRight(line, "\r\n")
	if text := web.CheckPassword(ctx, password); text != "" {
		return "", false, errors.New(text)
	}
	return password, false, nil
}

// randomPassword has over 100 bits and can be typed.
func randomPassword() string {
	text := strings.ToLower(rand.Text())
	return text[:6] + "-" + text[6:12] + "-" + text[12:18] + "-" + text[18:24]
}

// tellPassword prints what was done and, this once, a password that was made.
func tellPassword(out io.Writer, what, password string, made bool) error {
	if made {
		what += "; password (not shown again): " + password
	}
	_, err := fmt.Fprintln(out, what)
	return err
}

type userListCmd struct {
	JSON bool `name:"json" help:"Print a JSON array."`
}

// listedUser is a user as user list tells of it.
type listedUser struct {
	Name         string     `json:"name"`
	Role         store.Role `json:"role"`
	CreatedAt    time.Time  `json:"created_at"`
	LastSignInAt *time.Time `json:"last_sign_in_at"`
	Disabled     bool       `json:"disabled"`
}

// Run lists the users by name.
func (c *userListCmd) Run(ctx context.Context, a *app) error {
	return a.withStore(ctx, func(ctx context.Context, s *stack) error {
		users, err := s.store.Users(ctx)
		if err != nil {
			return fmt.Errorf("list users: %w", err)
		}
		list := make([]listedUser, len(users))
		for i := range users {
			u := &users[i]
			list[i] = listedUser{u.Name, u.Role, u.CreatedAt.UTC(), u.LastSignInAt, u.DisabledAt != nil}
		}
		if c.JSON {
			return json.NewEncoder(a.out).Encode(list)
		}
		return writeUsers(a.out, list)
	})
}

func writeUsers(out io.Writer, list []listedUser) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintln(table, "NAME\tROLE\tSINCE\tLAST SIGN-IN\tDISABLED"); err != nil {
		return err
	}
	for _, u := range list {
		seen := "never"
		if u.LastSignInAt != nil {
			seen = u.LastSignInAt.UTC().Format(time.DateTime)
		}
		if _, err := fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%t\n", u.Name, u.Role, u.CreatedAt.Format(time.DateOnly), seen, u.Disabled); err != nil {
			return err
		}
	}
	return table.Flush()
}
