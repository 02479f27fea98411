package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"rollcall/internal/geonode"
	"rollcall/internal/pipeline"
	"rollcall/store"
)

// seedAdmin is who owns what belongs to somebody. Nobody can sign in as it before a measurement gives it a password.
const seedAdmin = "bench"

// nobody is an address that refuses every call.
const nobody = "http://127.0.0.1:9"

// quietPipeline is a pipeline without workers on a vendor.
func quietPipeline(s *stack, now func() time.Time, vendor, key string) (*pipeline.Pipeline, error) {
	client, err := geonode.New(geonode.Config{BaseURL: vendor, APIKey: key, Now: now})
	if err != nil {
		return nil, err
	}
	s.onClose("vendor's client", func(context.Context) error {
		client.Close()
		return nil
	})
	seal := make([]byte, 32)
	_, _ = rand.Read(seal) // It never fails.
	return pipeline.New(pipeline.Config{
		Store: s.store, Vendor: client, Logger: s.log, Now: now, Key: seal, Account: seedAccount, OnlySubmit: true,
	})
}

// smallTables fills the tables that stay small, or that a page reads by one id.
func (d *seeder) smallTables(ctx context.Context) error {
	text := strings.NewReplacer("$admin", seedAdmin, "$testname", pipeline.TestName("extract_completed")).Replace(seedSQL)
	for _, statement := range sqlStatements(text) {
		statement = seedShares.ReplaceAllStringFunc(statement, func(part string) string {
			n, _ := strconv.Atoi(strings.Trim(part, "share()")) // The pattern lets only digits through.
			return strconv.Itoa(d.share(n))
		})
		var values []any
		for _, arg := range []struct {
			name, kind string
			value      any
		}{{"$now", "timestamptz", d.began}, {"$first", "timestamptz", d.batches[0].created}, {"$batches", "bigint", len(d.batches)}} {
			if strings.Contains(statement, arg.name) {
				values = append(values, arg.value)
				statement = strings.ReplaceAll(statement, arg.name, fmt.Sprintf("$%d::%s", len(values), arg.kind))
			}
		}
		if err := d.exec(ctx, statement, values...); err != nil {
			return err
		}
	}
	return d.preflights(ctx)
}

// seedSQL makes rows of what there is: batches, webhooks, jobs, items.
//
//go:embed bench_seed.sql
var seedSQL string

// sqlStatements are the statements of a file, without its lines of comment; each ends with its line.
func sqlStatements(file string) []string {
	var code strings.Builder
	for line := range strings.Lines(file) {
		if !strings.HasPrefix(line, "--") {
			code.WriteString(line)
		}
	}
	var out []string
	for statement := range strings.SplitSeq(code.String(), ";\n") {
		if statement = strings.TrimSpace(statement); statement != "" {
			out = append(out, statement)
		}
	}
	return out
}

// seedShares are the sizes in statements that shrink with the database.
//
//nolint:gochecknoglobals // A compiled pattern never changes.
var seedShares = regexp.MustCompile(`share\(\d+\)`)

// share is so many rows beside a million items, and fewer beside fewer; never less than a few.
func (d *seeder) share(n int) int {
	return max(min(n, 3), int(float64(n)*min(1, float64(d.Items)/1e6)))
}

// seedLines is how many lines the preflights have.
const seedLines = 5000

// preflights are read as any are, one of them with every kind of line.
func (d *seeder) preflights(ctx context.Context) error {
	p, err := quietPipeline(d.s, d.now, nobody, seedAccount)
	if err != nil {
		return err
	}
	owner := int64(1)
	for n := range 3 {
		var text strings.Builder
		for i := range min(seedLines, d.Items) {
			switch i % 50 {
			case 7:
				text.WriteString("no address at all\n")
			case 9:
				text.WriteString("www.host9.example/fixed/" + strconv.Itoa(i) + "\n")
			default:
				text.WriteString(d.url(1+(i-i%40/39)*(n+1)%d.Items) + "\n")
			}
		}
		in := pipeline.PreflightInput{Submission: pipeline.Submission{
			Name: fmt.Sprintf("list %d", n+1), Kind: store.KindBatch, Text: text.String(), CreatedBy: &owner, Options: pipeline.Options{Formats: []string{"markdown"}},
		}}
		if _, err := p.Preflight(ctx, in); err != nil {
			return fmt.Errorf("preflight: %w", err)
		}
	}
	return nil
}

// countHours counts the figures of each hour, as the running server would have.
func (d *seeder) countHours(ctx context.Context) error {
	p, err := quietPipeline(d.s, d.now, nobody, seedAccount)
	if err != nil {
		return err
	}
	if err := d.exec(ctx, `INSERT INTO settings (key, value, updated_at) VALUES ('calls_counted_since', $1, $2)`,
		d.batches[0].created.Format(time.RFC3339Nano), d.began); err != nil {
		return err
	}
	for {
		n, err := p.RollUp(ctx)
		if err != nil {
			return err
		}
		if n <= 1 {
			return nil // Only the present hour is left, which is never closed.
		}
	}
}
