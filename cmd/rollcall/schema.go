package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"rollcall/migrations"
	"rollcall/store/embedded"
)

// dumpTimeout bounds one run of pg_dump on an empty database.
const dumpTimeout = time.Minute

type migrateSchemaCmd struct{}

// Run migrates a database of its own and prints its schema.
func (c *migrateSchemaCmd) Run(ctx context.Context, a *app) error {
	config := *a.config
	config.DatabaseURL, config.DataDir = "", ""
	s := newStack(&config, a.log, a.now)
	err := printSchema(ctx, s, a.out)
	return errors.Join(err, s.close(ctx))
}

func printSchema(ctx context.Context, s *stack, out io.Writer) error {
	if err := s.temporaryDataDir(); err != nil {
		return err
	}
	if err := s.ownDatabase(ctx); err != nil {
		return err
	}
	if err := migrations.Up(ctx, s.dsn); err != nil {
		return fmt.Errorf("migrate up: %w", err)
	}
	dump, err := dumpSchema(ctx, s.dsn, s.config.PostgresBin)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, tidyDump(dump))
	return err
}

// dumpSchema runs the pg_dump that came with the server.
func dumpSchema(ctx context.Context, dsn, binDir string) (string, error) {
	if binDir == "" {
		found, err := embedded.FindBinaries(ctx)
		if err != nil {
			return "", err
		}
		binDir = found.Dir
	}
	ctx, cancel := context.WithTimeout(ctx, dumpTimeout)
	defer cancel()
	var out, complaints bytes.Buffer
	//nolint:gosec // The folder is the installed server's or a setting, the address is ours.
	cmd := exec.CommandContext(ctx, filepath.Join(binDir, "pg_dump"), "--schema-only", "--no-owner", "--no-privileges",
		"--no-comments", "--encoding=UTF8", dsn)
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("pg_dump: %w: %s", err, strings.TrimSpace(complaints.String()))
	}
	return out.String(), nil
}

// tidyDump takes out of a dump what differs between versions of pg_dump and says nothing of the schema: comments,
// session settings, backslash commands, and more than one empty line in a row.
func tidyDump(dump string) string {
	noise := regexp.MustCompile(`^(--.*|SET .*;|SELECT pg_catalog\.set_config\(.*|\\(un)?restrict.*)$`)
	var b strings.Builder
	b.WriteString("-- The schema that the migrations make, River's tables included. Written by: make schema\n")
	b.WriteString("-- To read, never to run.\n\n")
	empty := true
	for line := range strings.Lines(dump) {
		line = strings.TrimRight(line, " \r\n")
		if noise.MatchString(line) || (line == "" && empty) {
			continue
		}
		empty = line == ""
		b.WriteString(line + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}
