package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"rollcall/internal/preflight"
)

// preflightCmd judges the lines of a file and spends nothing. It needs no database and no vendor.
type preflightCmd struct {
	File     string `arg:"" help:"File with the URLs: plain text, CSV, JSON lines or an XML sitemap, gzipped or not; - is standard input."`
	JSON     bool   `name:"json" help:"Print a JSON object for each line, then one of totals."`
	Rejected string `short:"o" placeholder:"FILE" help:"Write the duplicate and invalid lines to this CSV, with all their columns."`
	readFlags
}

// readFlags say how a file of URLs is read.
type readFlags struct {
	Format         string `default:"auto" enum:"auto,txt,csv,jsonl,sitemap" help:"What the file is: ${enum}."`
	Delimiter      string `placeholder:"CHAR" help:"Delimiter of a CSV: , ; | or tab. Default: the one it has."`
	Header         *bool  `negatable:"" help:"The first record of a CSV names the columns."`
	URLColumn      string `name:"url-column" placeholder:"NAME" help:"Name, or number from 1, of the column or field with the URLs."`
	Charset        string `placeholder:"NAME" help:"Character set: utf-8, utf-16le, windows-1252, iso-8859-15, shift_jis and what else browsers know."`
	KeepDuplicates bool   `help:"Accept lines that repeat another."`
	KeepFragment   bool   `help:"Hold URLs apart that differ in what follows the #."`
	SortQuery      bool   `help:"Take URLs for the same whose parameters only stand in another order."`
	MaxLines       int    `default:"200000" help:"The most lines to read."`
}

// unreadableFile is the exit code when the file can't be read, as for a command line that can't be.
const unreadableFile = 2

// Run prints the verdicts. It ends with 1 when a line is invalid, and with 2 when the file can't be read to its end.
func (c *preflightCmd) Run(ctx context.Context, a *app) error {
	totals, err := c.judge(ctx, a)
	if err != nil {
		return exitError(complain(a.err, err, unreadableFile))
	}
	if totals.Invalid > 0 {
		return exitError(1)
	}
	return nil
}

// verdicts is what is done with the lines and, once all are read, with what they came to.
type verdicts interface {
	line(l preflight.Line) error
	end(d preflight.Detected, t preflight.Totals) error
}

func (c *preflightCmd) judge(ctx context.Context, a *app) (preflight.Totals, error) {
	var none preflight.Totals
	in, open, err := c.open(a, c.File)
	if err != nil {
		return none, err
	}
	defer in.Close()
	out := bufio.NewWriter(a.out)
	var told verdicts = &toldToPeople{out: out, name: c.File}
	if c.JSON {
		told = &toldToPrograms{out: json.NewEncoder(out)}
	}
	all := []verdicts{told}
	if c.Rejected != "" {
		rejected, err := newRejectedFile(c.Rejected)
		if err != nil {
			return none, err
		}
		defer rejected.discard()
		all = append(all, rejected)
	}
	detected, totals, err := preflight.Read(ctx, in, c.File, c.choices(), open, func(l preflight.Line) error {
		return each(all, func(v verdicts) error { return v.line(l) })
	})
	if err == nil {
		err = each(all, func(v verdicts) error { return v.end(detected, totals) })
	}
	if wrong, ok := errors.AsType[*preflight.FileError](err); ok {
		err = fmt.Errorf("%s: %w", c.File, c.named(wrong))
	}
	return totals, errors.Join(err, out.Flush())
}

// each stops at the first error.
func each(all []verdicts, do func(verdicts) error) error {
	for _, v := range all {
		if err := do(v); err != nil {
			return err
		}
	}
	return nil
}

// named names the flag of the choice that is wrong.
func (c *readFlags) named(e *preflight.FileError) error {
	if e.Field == "" {
		return e
	}
	return fmt.Errorf("--%s: %w", strings.ReplaceAll(e.Field, "_", "-"), e)
}

func (c *readFlags) choices() preflight.Choices {
	format, delimiter := c.Format, c.Delimiter
	if format == "auto" {
		format = ""
	}
	if delimiter == "tab" || delimiter == `\t` {
		delimiter = "\t"
	}
	return preflight.Choices{
		Format: format, Delimiter: delimiter, Header: c.Header, URLColumn: c.URLColumn, Charset: c.Charset,
		KeepDuplicates: c.KeepDuplicates, KeepFragment: c.KeepFragment, SortQuery: c.SortQuery, MaxLines: c.MaxLines,
	}
}

// open opens the file, and what a sitemap index in it may name: files of the same folder. Nothing is fetched.
func (c *readFlags) open(a *app, name string) (io.ReadCloser, preflight.Opener, error) {
	if c.MaxLines < 1 {
		return nil, nil, fmt.Errorf("--max-lines=%d: must be 1 or more", c.MaxLines)
	}
	if name == "-" {
		return io.NopCloser(a.in), nil, nil
	}
	file, err := os.Open(name) //nolint:gosec // Whoever runs the command names it.
	if err != nil {
		return nil, nil, err
	}
	return file, besideOf(filepath.Dir(name)), nil
}

// besideOf opens sitemaps by the last part of their address, in the folder of their index and nowhere else.
func besideOf(folder string) preflight.Opener {
	return func(address string) (io.ReadCloser, error) {
		u, err := url.Parse(address)
		if err != nil {
			return nil, errors.New("its address is no URL")
		}
		name := path.Base(u.Path)
		root, err := os.OpenRoot(folder)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		info, err := root.Stat(name)
		if err != nil || !info.Mode().IsRegular() {
			return nil, fmt.Errorf("it is not fetched, and there is no file %q beside the index", name)
		}
		return root.Open(name)
	}
}

// toldToPrograms prints a JSON object a line.
type toldToPrograms struct{ out *json.Encoder }

// judgedLine is how a line is printed.
type judgedLine struct {
	Line        int               `json:"line"`
	Verdict     preflight.Verdict `json:"verdict"`
	Original    string            `json:"original"`
	URL         *string           `json:"url"` // null when the line is invalid.
	Reason      *string           `json:"reason"`
	DuplicateOf *int              `json:"duplicate_of"`
}

func (p *toldToPrograms) line(l preflight.Line) error {
	out := judgedLine{Line: l.Number, Verdict: l.Verdict, Original: l.Original}
	if l.URL != "" {
		out.URL = &l.URL
	}
	if l.Reason != "" {
		out.Reason = &l.Reason
	}
	if l.DuplicateOf > 0 {
		out.DuplicateOf = &l.DuplicateOf
	}
	return p.encode(out)
}

func (p *toldToPrograms) end(d preflight.Detected, t preflight.Totals) error {
	return p.encode(struct {
		preflight.Totals
		Read preflight.Detected `json:"read_as"`
	}{t, d})
}

func (p *toldToPrograms) encode(v any) error {
	p.out.SetEscapeHTML(false) // It is read by programs and people, not by browsers.
	return p.out.Encode(v)
}
