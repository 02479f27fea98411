package embedded

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
)

// includeLine makes initdb's postgresql.conf read ours. What an operator writes below it wins.
const includeLine = "include = 'rollcall.conf'"

// configure writes the server's configuration at every start. What initdb found out about this machine, such as the
// kind of shared memory that works, stays in postgresql.conf.
func (l launcher) configure() error {
	ident, err := l.identConf()
	if err != nil {
		return err
	}
	main, err := os.ReadFile(filepath.Join(l.folder.data, "postgresql.conf"))
	if err != nil {
		return fmt.Errorf("configuration of the database: %w", err)
	}
	files := map[string]string{
		"rollcall.conf": l.serverConf(),
		"pg_hba.conf":   "# Written by Rollcall at every start.\nlocal all all peer map=" + appName + "\n",
		"pg_ident.conf": ident,
	}
	if !slices.Contains(strings.Split(string(main), "\n"), includeLine) {
		files["postgresql.conf"] = string(main) + "\n" + includeLine + "\n"
	}
	for name, text := range files {
		if err := l.folder.replace(filepath.Join(l.folder.data, name), text); err != nil {
			return err
		}
	}
	return nil
}

// serverConf is rollcall.conf. initdb has seen to the memory and the 100 connections.
func (l launcher) serverConf() string {
	values := map[string]string{
		"listen_addresses":        "",
		"port":                    port,
		"unix_socket_directories": `"` + strings.ReplaceAll(l.folder.run, `"`, `""`) + `"`,
		"unix_socket_permissions": "0700",
		"max_wal_size":            "1GB",
		"random_page_cost":        "1.1",
		"jit":                     "off", // Short queries only lose by it.
		"timezone":                "UTC",
		"log_timezone":            "UTC",
		"log_line_prefix":         "%m [%p] ",
		"lc_messages":             "C",
		// Statements hold pages, headers and other people's data; the log must not.
		"log_min_error_statement":           "panic",
		"log_parameter_max_length_on_error": "0",
	}
	maps.Copy(values, l.settings)
	var b strings.Builder
	b.WriteString("# Written by Rollcall at every start. Put changes at the end of postgresql.conf.\n")
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&b, "%s = '%s'\n", name, strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(values[name]))
	}
	return b.String()
}

// identConf lets root, the server's user and this process's user in as the application's role.
func (l launcher) identConf() (string, error) {
	me, err := user.Current()
	if err != nil {
		return "", fmt.Errorf("name of this user: %w", err)
	}
	names := []string{"root", l.folder.account.name, me.Username}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString("# Written by Rollcall at every start.\n")
	for _, name := range slices.Compact(names) {
		fmt.Fprintf(&b, "%s \"%s\" %s\n", appName, name, appName)
	}
	return b.String(), nil
}

// replace writes a file of the server whole or not at all.
func (f folder) replace(path, text string) error {
	temp := path + ".new"
	err := os.WriteFile(temp, []byte(text), 0o600)
	if err == nil {
		err = f.give(temp)
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("configuration of the database: %w", err), os.RemoveAll(temp))
	}
	return nil
}
