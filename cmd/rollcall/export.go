package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rollcall/internal/export"
	"rollcall/internal/pipeline"
	"rollcall/store"
)

// exportCmd writes items and what is stored of them into a file, of any size.
type exportCmd struct {
	Batch  int64  `help:"Items of this batch; without it, of all batches."`
	Format string `default:"csv" help:"csv, jsonl, zip or parquet."`
	Output string `short:"o" required:"" placeholder:"FILE" help:"Where to; - is the standard output."`

	State    string    `help:"In this state: outstanding, stored, failed or cancelled."`
	Net      string    `help:"Stored by this net: webhook, poll, reconcile, replay or sync."`
	HTTP     int       `name:"http" help:"With this HTTP status of the page."`
	Code     string    `help:"Failed with this code."`
	Host     string    `help:"Of this host."`
	URLPart  string    `name:"url" help:"With this anywhere in the URL."`
	MinBytes size      `help:"With at least this much Markdown and HTML, such as 10kB."`
	MaxBytes size      `help:"With at most this much."`
	Mark     string    `help:"That look empty, or blocked."`
	Since    sinceTime `help:"Answered since then: a time span back from now such as 2h, or a moment such as 2026-11-28 or 2026-11-28T15:00:00Z."`
	Until    sinceTime `help:"Answered until then, in the same forms."`

	Markdown    bool  `default:"true" negatable:"" help:"With the Markdown."`
	HTML        bool  `name:"html" help:"With the HTML."`
	Links       *bool `negatable:"" help:"With the links; by itself in jsonl and parquet."`
	Metadata    *bool `negatable:"" help:"With what else the vendor said; by itself in jsonl and parquet."`
	UnsafeCells bool  `help:"Leave cells of a CSV file as they are that a spreadsheet would run."`
	BOM         bool  `name:"bom" help:"Begin a CSV file with a byte order mark, for old versions of Excel."`
	JSON        bool  `name:"json" help:"Print the manifest as one JSON object."`
}

// Run writes the file beside its place and moves it there when it is whole: what goes wrong leaves no file, and
// whatever was there before as it was.
func (c *exportCmd) Run(ctx context.Context, a *app) error {
	if err := a.check(); err != nil {
		return err
	}
	req, err := c.request(a)
	if err != nil {
		return err
	}
	return a.withStore(ctx, func(ctx context.Context, s *stack) error {
		direct, err := pipeline.BeginExport(ctx, s.store, a.now, req)
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("there is no batch %d", c.Batch)
		}
		if err != nil {
			return err
		}
		m, err := c.write(ctx, a, direct)
		if err != nil {
			return err
		}
		return c.tell(a, m)
	})
}

func (c *exportCmd) request(a *app) (pipeline.ExportRequest, error) {
	none := pipeline.ExportRequest{}
	if c.Output == "-" && c.JSON {
		return none, errors.New("--json prints on the standard output, where the file would go")
	}
	if !slices.Contains(export.Formats(), export.Format(c.Format)) {
		return none, fmt.Errorf("--format %s: choose one of csv, jsonl, zip, parquet", c.Format)
	}
	from, err := c.Since.at(a.now())
	until, err2 := c.Until.end(a.now())
	if err := errors.Join(err, err2, c.checkWords()); err != nil {
		return none, err
	}
	choices := export.Default(export.Format(c.Format))
	choices.Markdown, choices.HTML, choices.SafeCells, choices.BOM = c.Markdown, c.HTML, !c.UnsafeCells, c.BOM
	choices.Links = *cmp.Or(c.Links, &choices.Links)
	choices.Metadata = *cmp.Or(c.Metadata, &choices.Metadata)
	words := c.words()
	return pipeline.ExportRequest{
		Choices: choices, Picked: picked(c.Batch, words), Words: words,
		Filter: store.ItemFilter{
			Batch: c.Batch, State: store.ItemState(c.State), Net: store.Net(c.Net), HTTPStatus: c.HTTP, Code: c.Code, Host: strings.ToLower(c.Host),
			URLPart: c.URLPart, MinBytes: int64(c.MinBytes), MaxBytes: int64(c.MaxBytes), From: from, Until: until, Mark: c.Mark,
		},
	}, nil
}

// checkWords refuses words that no item has: they would find nothing, most likely by mistake.
func (c *exportCmd) checkWords() error {
	var errs []error
	for _, each := range []struct{ flag, got, words string }{
		{"state", c.State, "outstanding, stored, failed, cancelled"},
		{"net", c.Net, "webhook, poll, reconcile, replay, sync"},
		{"mark", c.Mark, "empty, blocked"},
	} {
		if each.got != "" && !slices.Contains(strings.Split(each.words, ", "), each.got) {
			errs = append(errs, fmt.Errorf("--%s %s: choose one of %s", each.flag, each.got, each.words))
		}
	}
	return errors.Join(errs...)
}

// words say the filter by name and value, for the manifest.
func (c *exportCmd) words() map[string]string {
	words := map[string]string{}
	for name, value := range map[string]string{
		"batch": number(c.Batch), "state": c.State, "net": c.Net, "http": number(int64(c.HTTP)), "code": c.Code, "host": c.Host, "url": c.URLPart,
		"min_bytes": number(int64(c.MinBytes)), "max_bytes": number(int64(c.MaxBytes)), "mark": c.Mark, "since": string(c.Since), "until": string(c.Until),
	} {
		if value != "" {
			words[name] = value
		}
	}
	return words
}

// picked says the same in a line.
func picked(batch int64, words map[string]string) string {
	text := "items of all batches"
	if batch > 0 {
		text = fmt.Sprintf("items of batch %d", batch)
	}
	var narrowed []string
	for name, value := range words {
		if name != "batch" {
			narrowed = append(narrowed, strings.ReplaceAll(name, "_", " ")+" "+value)
		}
	}
	slices.Sort(narrowed)
	if len(narrowed) > 0 {
		text += ", with " + strings.Join(narrowed, ", ")
	}
	return text
}

func (c *exportCmd) write(ctx context.Context, a *app, direct *pipeline.DirectExport) (export.Manifest, error) {
	send := func(w io.Writer) (export.Manifest, error) {
		return direct.Send(ctx, w, func() error { return ctx.Err() })
	}
	if c.Output == "-" {
		out := bufio.NewWriter(a.out)
		m, err := send(out)
		return m, errors.Join(err, out.Flush())
	}
	return atomically(c.Output, send)
}

// atomically fills a file that takes the place of path once it is whole and on the disk.
func atomically(path string, fill func(io.Writer) (export.Manifest, error)) (export.Manifest, error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".part-*")
	if err != nil {
		return export.Manifest{}, err
	}
	m, err := fill(file)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return m, errors.Join(err, os.Remove(file.Name()))
	}
	return m, nil
}

func (c *exportCmd) tell(a *app, m export.Manifest) error {
	if c.JSON {
		return json.NewEncoder(a.out).Encode(m)
	}
	if c.Output == "-" {
		return nil
	}
	_, err := fmt.Fprintf(a.out, "%s: %d rows, %d bytes, SHA-256 %s\n", c.Output, m.Rows, m.Bytes, m.SHA256)
	return err
}
