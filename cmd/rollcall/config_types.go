package main

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// size is a number of bytes, written as 33554432, 32MiB or 32MB (powers of 1024 and of 1000).
type size int64

// sizeUnits is sorted so that a longer suffix stands before one it ends in.
func sizeUnits() []struct {
	suffix string
	bytes  int64
} {
	return []struct {
		suffix string
		bytes  int64
	}{
		{"GiB", 1 << 30},
		{"MiB", 1 << 20},
		{"KiB", 1 << 10},
		{"GB", 1e9},
		{"MB", 1e6},
		{"kB", 1e3},
		{"B", 1},
	}
}

// UnmarshalText reads a size.
func (s *size) UnmarshalText(text []byte) error {
	number, unit := strings.TrimSpace(string(text)), int64(1)
	for _, u := range sizeUnits() {
		if n := len(number) - len(u.suffix); n > 0 && strings.EqualFold(number[n:], u.suffix) {
			number, unit = strings.TrimSpace(number[:n]), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return errors.New("must be a size such as 32MiB")
	}
	*s = size(n * unit)
	return nil
}

// String writes a size in the largest unit that divides it.
func (s size) String() string {
	for _, u := range sizeUnits() {
		if s >= size(u.bytes) && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.suffix
		}
	}
	return "0B"
}

// prefixes is a list of networks, comma separated; a lone address is a network of one.
type prefixes []netip.Prefix

// UnmarshalText reads the list.
func (p *prefixes) UnmarshalText(text []byte) error {
	var list prefixes
	for word := range strings.SplitSeq(string(text), ",") {
		word = strings.TrimSpace(word)
		if word == "" {
			continue
		}
		prefix, err := parsePrefix(word)
		if err != nil {
			return err
		}
		list = append(list, prefix)
	}
	*p = list
	return nil
}

func parsePrefix(word string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(word); err == nil {
		return addr.Prefix(addr.BitLen())
	}
	prefix, err := netip.ParsePrefix(word)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is not a network such as 10.0.0.0/8", word)
	}
	return prefix.Masked(), nil
}

// String writes the list as it is read.
func (p prefixes) String() string {
	words := make([]string, len(p))
	for i, prefix := range p {
		words[i] = prefix.String()
	}
	return strings.Join(words, ",")
}

// fieldPaths are places in a JSON object, in the order they are tried.
type fieldPaths []string

// UnmarshalText reads a comma separated list of dotted paths.
func (f *fieldPaths) UnmarshalText(text []byte) error {
	dotted := regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)
	var list fieldPaths
	for word := range strings.SplitSeq(string(text), ",") {
		word = strings.TrimSpace(word)
		if !dotted.MatchString(word) {
			return fmt.Errorf("%q is not a dotted path such as data.job_id", word)
		}
		list = append(list, word)
	}
	*f = list
	return nil
}

// String writes the list as it is read.
func (f fieldPaths) String() string { return strings.Join(f, ",") }
