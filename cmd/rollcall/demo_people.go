package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"rollcall/store"
)

// person is a user of the demo.
type person struct {
	name     string
	role     store.Role
	password string
}

// addPeople makes a user of each role with a random password; one that an earlier demo made gets a new password.
// It returns the id of the first, the analyst.
func (d *demo) addPeople(ctx context.Context) (int64, error) {
	d.people = []person{
		{"alice", store.RoleAnalyst, randomPassword()},
		{"otto", store.RoleOperator, randomPassword()},
		{"ada", store.RoleAdmin, randomPassword()},
	}
	for _, p := range d.people {
		err := d.addUser(ctx, p.name, p.role, p.password)
		if errors.Is(err, store.ErrTaken) {
			err = d.setPassword(ctx, p.name, p.password)
		}
		if err != nil {
			return 0, fmt.Errorf("demo user %s: %w", p.name, err)
		}
	}
	alice, err := d.store.UserByName(ctx, d.people[0].name)
	if err != nil {
		return 0, fmt.Errorf("demo user %s: %w", d.people[0].name, err)
	}
	return alice.ID, nil
}

// introduce prints where the dashboard is and who may sign in.
func (d *demo) introduce(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n  Open  %s\n\n  Sign in as one of\n", d.url)
	for _, p := range d.people {
		fmt.Fprintf(&b, "    %-6s %s   (%s)\n", p.name, p.password, p.role)
	}
	b.WriteString("\n")
	_, err := io.WriteString(out, b.String())
	return err
}
