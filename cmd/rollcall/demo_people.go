package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	env, err := d.leaveSettings()
	if err != nil {
		return err
	}
	fmt.Fprintf(&b, "\n  Commands work on it with its settings, such as\n    env $(cat %s) %s webhook list\n\n", env, calledAs())
	_, err = io.WriteString(out, b.String())
	return err
}

// calledAs is the command as this one was called: it needn't be on the path.
func calledAs() string {
	if name := os.Args[0]; !strings.ContainsAny(name, " '\"$") {
		return name
	}
	return "rollcall"
}

// leaveSettings writes the settings of this demo into its folder, which only its owner may read: one NAME=VALUE a line.
func (d *demo) leaveSettings() (string, error) {
	path := filepath.Join(string(d.config.DataDir), "demo.env")
	text := fmt.Sprintf("ROLLCALL_DATA_DIR=%s\nSCRAPER_API_BASE_URL=%s\nGEONODE_SCRAPER_API_KEY=%s\nROLLCALL_PUBLIC_URL=%s\n",
		d.config.DataDir, d.config.ScraperAPIBaseURL, d.config.GeonodeScraperAPIKey, d.config.PublicURL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("write the demo's settings: %w", err)
	}
	return path, nil
}
