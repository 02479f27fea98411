package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"rollcall/store/embedded"
)

// backupCmd writes the database into a file that restoreCmd, and pg_restore, read.
type backupCmd struct {
	File string `arg:"" type:"path" help:"The file to write; one that is there is replaced once the new one is whole. Of a link it is the file that the link names. Folders, devices and pipes are refused."`
}

// Run dumps what the database was at one moment; a server that runs goes on.
func (c *backupCmd) Run(ctx context.Context, a *app) error {
	path, err := backupTarget(c.File)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return a.withDatabase(ctx, func(ctx context.Context, s *stack) error {
		file, err := os.CreateTemp(filepath.Dir(path), ".rollcall-backup-") // CreateTemp uses mode 0600.
		if err != nil {
			return fmt.Errorf("backup: %w", err)
		}
		defer func() { _ = os.Remove(file.Name()) }() // It is gone when all went well.
		dump, err := s.tool(ctx, "pg_dump", "--format=custom", "--no-owner", "--no-privileges")
		if err != nil {
			return errors.Join(err, file.Close())
		}
		dump.Stdout = file
		err = runTool(dump)
		info, statErr := file.Stat()
		if err := errors.Join(err, statErr, file.Sync(), file.Close()); err != nil {
			return fmt.Errorf("backup: %w", err)
		}
		if err := os.Rename(file.Name(), path); err != nil {
			return fmt.Errorf("backup: %w", err)
		}
		_, err = fmt.Fprintf(a.out, "wrote %s, %d bytes\nThe key that opens its secrets is not in it: keep a copy of ROLLCALL_SECRET_KEY, or of %s, in another place.\n",
			path, info.Size(), filepath.Join(string(a.config.DataDir), "secret.key"))
		return err
	})
}

// backupTarget is the file to write: what is given or, when that is a link, what the link names. What is there is replaced,
// and so must be a plain file.
func backupTarget(given string) (string, error) {
	path, err := filepath.EvalSymlinks(given)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(given); err == nil {
			return "", fmt.Errorf("%s is a link to what isn't there", given)
		}
		return given, nil // It is made, if its folder is there.
	}
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file that could be replaced (%s): name another", given, info.Mode().Type())
	}
	return path, err
}

// restoreCmd brings back what backupCmd wrote.
type restoreCmd struct {
	File string `arg:"" type:"existingfile" help:"The backup."`
}

// Run fills an empty database, in one transaction; one that holds anything is left as it is.
func (c *restoreCmd) Run(ctx context.Context, a *app) error {
	if err := a.check(); err != nil {
		return err
	}
	s := newStack(a.config, a.log, a.now)
	err := s.ownDatabase(ctx)
	if err == nil {
		err = c.restore(ctx, s)
	}
	if err := errors.Join(err, s.close(ctx)); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	_, err = fmt.Fprintf(a.out, "restored. Before the server starts, give it the key of then: ROLLCALL_SECRET_KEY, or %s (mode 0600).\nIs it lost, run: rollcall secrets begin-anew\n",
		filepath.Join(string(a.config.DataDir), "secret.key"))
	return err
}

func (c *restoreCmd) restore(ctx context.Context, s *stack) error {
	if err := emptyDatabase(ctx, s.dsn); err != nil {
		return err
	}
	file, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // It was only read.
	// Through standard input, as the folder may be closed to whoever runs the tool.
	tool, err := s.tool(ctx, "pg_restore", "--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error")
	if err != nil {
		return err
	}
	tool.Stdin = file
	if err := runTool(tool); err != nil {
		return err
	}
	if err := foundAgain(ctx, s.dsn); err != nil {
		return err
	}
	newer, err := newerSchema(ctx, s.dsn)
	if err == nil && newer != "" {
		s.log.WarnContext(ctx, "schema of a newer release", slog.String("detail", newer))
	}
	return err
}

// emptyDatabase refuses a database that holds a table or a view of anybody's, in whatever schema; those that an extension
// brought are nobody's. A database that was emptied by dropping the schema public gets that back: a backup doesn't bring it.
func emptyDatabase(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	var tables int
	var public bool
	err = conn.QueryRow(ctx, `SELECT count(*), to_regnamespace('public') IS NOT NULL FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema'
			AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')`).Scan(&tables, &public)
	if err == nil && tables == 0 && !public {
		_, err = conn.Exec(ctx, `CREATE SCHEMA public`)
	}
	if err := errors.Join(err, conn.Close(ctx)); err != nil {
		return fmt.Errorf("database: %w", err)
	}
	if tables > 0 {
		return fmt.Errorf("the database is not empty (%d tables), and nothing was changed: name an empty one, or a new ROLLCALL_DATA_DIR", tables)
	}
	return nil
}

// foundAgain checks that what was restored is where a server looks for it: else that would begin an empty schema of
// its own.
func foundAgain(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	var found bool
	var path string
	err = conn.QueryRow(ctx, `SELECT to_regclass('bun_migrations') IS NOT NULL, current_setting('search_path')`).Scan(&found, &path)
	if err := errors.Join(err, conn.Close(ctx)); err != nil {
		return fmt.Errorf("database: %w", err)
	}
	if !found {
		return fmt.Errorf("all is restored, into the schema that it was in, but this database looks for tables in others (search_path %s): change that before a server starts", path)
	}
	return nil
}

// tool is a program of PostgreSQL, on the stack's database. How to reach it goes through the environment: others may
// read command lines, and what only our own driver knows of an address, libpq refuses.
func (s *stack) tool(ctx context.Context, name string, args ...string) (*exec.Cmd, error) {
	path := name
	if dir := s.toolDir(ctx); dir != "" {
		path = filepath.Join(dir, name)
	}
	if _, err := exec.LookPath(path); err != nil {
		return nil, fmt.Errorf("%s is needed, of the server's version or newer (Debian: apt-get install postgresql-client): %w", name, err)
	}
	env, database, err := libpqEnv(s.dsn)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, append(args, "--dbname="+database)...) //nolint:gosec // The folder is a setting or a known place.
	cmd.Env = append(os.Environ(), env...)
	return cmd, nil
}

// libpqParameters are those of an address that libpq takes from its environment, beside where the server is.
func libpqParameters() map[string]string {
	return map[string]string{"sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT", "sslcert": "PGSSLCERT", "sslkey": "PGSSLKEY"}
}

// libpqEnv is a database's address as libpq's environment, and the name of the database as its tools take it. Of
// several servers it is the first.
func libpqEnv(dsn string) ([]string, string, error) {
	c, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, "", errors.New("DATABASE_URL can't be read") // The error would show the address.
	}
	env := []string{"PGHOST=" + c.Host, fmt.Sprintf("PGPORT=%d", c.Port), "PGUSER=" + c.User, "PGPASSWORD=" + c.Password}
	for name, variable := range libpqParameters() {
		if value := parameter(dsn, name); value != "" {
			env = append(env, variable+"="+value)
		}
	}
	// A name with an equals sign or of the form of an address would be taken for one.
	name := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(c.Database)
	return env, "dbname='" + name + "'", nil
}

// parameter is one parameter of an address, which is a URL or a list of name=value.
func parameter(dsn, name string) string {
	if u, err := url.Parse(dsn); err == nil && strings.HasPrefix(u.Scheme, "postgres") {
		return u.Query().Get(name)
	}
	for field := range strings.FieldsSeq(dsn) {
		if value, ok := strings.CutPrefix(field, name+"="); ok {
			return strings.Trim(value, "'")
		}
	}
	return ""
}

// toolDir is where the programs lie that fit the private Postgres; for another server the PATH says.
func (s *stack) toolDir(ctx context.Context) string {
	if s.config.DatabaseURL != "" {
		if _, err := exec.LookPath("pg_dump"); err == nil {
			return ""
		}
	}
	if s.config.PostgresBin != "" {
		return s.config.PostgresBin
	}
	if found, err := embedded.FindBinaries(ctx); err == nil {
		return found.Dir
	}
	return ""
}

// runTool runs a program; what it says is part of the error.
func runTool(cmd *exec.Cmd) error {
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, strings.TrimSpace(said.String()))
	}
	return nil
}
