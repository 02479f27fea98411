package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ensureDataDir makes the data folder. For root it may be passed through by others (0711), since the private
// Postgres runs as an unprivileged user below it; for anybody else it is private (0700).
func (c *Config) ensureDataDir() error {
	dir := string(c.DataDir)
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	mode := fs.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o711
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { //nolint:gosec // Parents hold nothing of ours and must be passable.
		return fmt.Errorf("data folder: %w", err)
	}
	if err := os.Mkdir(dir, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("data folder: %w", err)
	}
	if err := os.Chmod(dir, mode); err != nil { // The umask may have taken bits away.
		return fmt.Errorf("data folder: %w", err)
	}
	return nil
}

// loadSecretKey returns the 32 bytes that encrypt secrets at rest: from the settings, else from secret.key in the
// data folder, which is made, readable by its owner only, when it isn't there. Two processes that start together agree on one key.
func (c *Config) loadSecretKey() ([]byte, error) {
	if c.SecretKey != "" {
		return decodeSecretKey(c.SecretKey)
	}
	if err := c.ensureDataDir(); err != nil {
		return nil, err
	}
	path := filepath.Join(string(c.DataDir), "secret.key")
	key, err := readSecretKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := makeSecretKey(path); err != nil {
		return nil, fmt.Errorf("secret key %s: %w", path, err)
	}
	return readSecretKey(path)
}

func readSecretKey(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("secret key: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("secret key %s can be read by others (mode %#o): run chmod 600 on it", path, info.Mode().Perm())
	}
	text, err := os.ReadFile(path) //nolint:gosec // The path is the data folder's, a setting.
	if err != nil {
		return nil, fmt.Errorf("secret key: %w", err)
	}
	key, err := decodeSecretKey(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("secret key %s: %w", path, err)
	}
	return key, nil
}

// makeSecretKey writes a new key aside and links it into place: the link fails when another process was faster,
// and nobody ever sees half a key.
func makeSecretKey(path string) error {
	file, err := os.CreateTemp(filepath.Dir(path), "secret.*.new") // CreateTemp uses mode 0600.
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // A leftover holds a key that nobody uses.
	key := make([]byte, 32)
	_, _ = rand.Read(key) // It never fails, as documented.
	_, err = file.WriteString(base64.StdEncoding.EncodeToString(key) + "\n")
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Link(file.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
