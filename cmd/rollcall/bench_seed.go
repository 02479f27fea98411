package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"rollcall/internal/pipeline"
)

// benchSeedCmd fills a database as years of work would, so that pages and searches can be measured on it.
type benchSeedCmd struct {
	seedSize

	Database string `placeholder:"URL" help:"Fill and keep this database, which must be empty: no account, no setting, nothing of anybody's. By default one is made, filled and dropped, which only shows how long that takes."`
}

// seedSize is how much there is to be, for each command that seeds.
type seedSize struct {
	Items      int    `default:"1000000" help:"Items, in batches from 20 to 20,000."`
	Results    int    `default:"200000" help:"How many of the items are stored, each with a text of about 8 KB. The others failed, were cancelled, or are outstanding."`
	Deliveries int    `default:"1000000" help:"Requests that reached the webhook endpoint."`
	Seed       uint64 `default:"1" help:"Decides everything that is left to chance."`
}

// leastSeed is how small a seeded database may be: every kind of row is in it.
const leastSeed = 1000

func (c *seedSize) check() error {
	if c.Items < leastSeed || c.Items > 100_000_000 {
		return fmt.Errorf("--items=%d: must be from %d to 100000000", c.Items, leastSeed)
	}
	if c.Results < 100 || c.Results > c.Items*9/10 {
		return fmt.Errorf("--results=%d: must be from 100 to nine tenths of the items", c.Results)
	}
	if c.Deliveries < leastSeed || c.Deliveries > 100_000_000 {
		return fmt.Errorf("--deliveries=%d: must be from %d to 100000000", c.Deliveries, leastSeed)
	}
	return nil
}

// Run fills the database and tells how long each step took.
func (c *benchSeedCmd) Run(ctx context.Context, a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	ctx, end := measuring(ctx, a)
	defer end()
	s, err := c.open(ctx, a)
	if err != nil {
		return err
	}
	err = seedDatabase(ctx, a, s, c.seedSize)
	if err != nil && c.Database != "" {
		err = fmt.Errorf("the database is filled in part, and its constraints are not all back: drop it: %w", err)
	}
	return errors.Join(err, s.close(ctx))
}

// open opens the database that is named, else one of its own.
func (c *benchSeedCmd) open(ctx context.Context, a *app) (*stack, error) {
	if c.Database == "" {
		return benchStack(ctx, a)
	}
	if err := unused(ctx, c.Database); err != nil {
		return nil, err
	}
	return namedStack(ctx, a, c.Database)
}

// seeder fills one database.
type seeder struct {
	seedSize

	s       *stack
	telling sync.Mutex // Several tables are written at once, to one reader.
	out     io.Writer
	now     func() time.Time
	began   time.Time
	batches []seedBatch
	states  []seedState // Of each item, by its id less one.
	text    *madeText
}

// seedDatabase fills the stack's database. What constraints and indexes of the large tables would check and keep up row by
// row is taken away first and put back at the end, which checks all rows at once. The database must be empty, and is to be
// dropped if this is cut short.
func seedDatabase(ctx context.Context, a *app, s *stack, size seedSize) error {
	d := &seeder{seedSize: size, s: s, out: a.err, now: a.now, began: a.now().UTC().Truncate(time.Second), text: newMadeText(size.Seed)}
	d.plan()
	var again []string
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"constraints and indexes put aside", func(ctx context.Context) error {
			var err error
			again, err = d.putAside(ctx)
			return err
		}},
		{"batches, jobs, items and results", d.rowsOfWork},
		{"words of the search, deliveries and events", d.rowsBeside},
		{"indexes and constraints", func(ctx context.Context) error { return d.putBack(ctx, again) }},
		{"people, webhooks, schedules, files", d.smallTables},
		{"figures by hour", d.countHours},
		{"vacuum and analyze", func(ctx context.Context) error { return d.exec(ctx, `VACUUM ANALYZE`) }},
	} {
		began := d.now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		if err := d.tell("%s: %s\n", step.name, d.now().Sub(began).Round(100*time.Millisecond)); err != nil {
			return err
		}
	}
	return nil
}

// rowsOfWork writes what the other rows refer to.
func (d *seeder) rowsOfWork(ctx context.Context) error {
	return together(
		ctx,
		func(ctx context.Context) error {
			return d.copyAll(ctx, d.batchRows(), d.jobRows(), d.itemRows(), d.lineageRows(), d.crawlRows())
		},
		func(ctx context.Context) error { return d.copyAll(ctx, d.resultRows()) },
	)
}

// rowsBeside reads the words of the results, as the running server would, while it writes what tells of the work.
func (d *seeder) rowsBeside(ctx context.Context) error {
	if err := d.exec(ctx, `UPDATE search_backfill SET done_at = $1`, d.began); err != nil {
		return err
	}
	if err := d.exec(ctx, `ANALYZE items, results, search_todo`); err != nil {
		return err
	}
	p, err := quietPipeline(d.s, d.now, nobody, seedAccount)
	if err != nil {
		return err
	}
	read := func(ctx context.Context) error { return readWords(ctx, p) }
	again := read
	return together(ctx, read, again, func(ctx context.Context) error {
		return d.copyAll(ctx, d.webhookRows(), d.deliveryRows(), d.eventRows(), d.timelineRows(), d.logRows())
	})
}

// readWords reads until no result is left.
func readWords(ctx context.Context, p *pipeline.Pipeline) error {
	for {
		if more, err := p.Index(ctx); err != nil || !more {
			return err
		}
	}
}

// largeTables are those that grow without end.
func largeTables() []string {
	return []string{
		"items", "jobs", "job_items", "job_events", "crawl_pages", "results", "deliveries", "processed_events", "delivery_log", "search_words",
	}
}

// putAside drops foreign keys and indexes of the large tables, and returns what makes them again.
func (d *seeder) putAside(ctx context.Context) ([]string, error) {
	rows, err := d.s.store.SQL().QueryContext(ctx, `SELECT gone, again FROM (
			SELECT 1 AS turn, format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) AS gone,
				format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) AS again
			FROM pg_constraint WHERE contype = 'f' AND conrelid = ANY ($1::text[]::regclass[])
			UNION ALL SELECT 0, format('DROP INDEX %s', indexrelid::regclass), pg_get_indexdef(indexrelid)
			FROM pg_index x WHERE indrelid = ANY ($1::text[]::regclass[]) AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = x.indexrelid)
		) each_one ORDER BY turn, again LIKE '% gin %' DESC, again`, largeTables())
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err tells what went wrong.
	var gone, again []string
	for rows.Next() {
		var drop, add string
		if err := rows.Scan(&drop, &add); err != nil {
			return nil, err
		}
		gone, again = append(gone, drop), append(again, add)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for _, drop := range gone {
		if err := d.exec(ctx, drop); err != nil {
			return nil, err
		}
	}
	return again, nil
}

// putBack makes indexes and constraints again, in their order, by two connections.
func (d *seeder) putBack(ctx context.Context, again []string) error {
	queue := make(chan string, len(again))
	for _, statement := range again {
		queue <- statement
	}
	close(queue)
	work := func(ctx context.Context) error {
		return d.onConn(ctx, func(conn *pgx.Conn) error {
			if _, err := conn.Exec(ctx, `SET maintenance_work_mem = '512MB'`); err != nil {
				return err
			}
			for statement := range queue {
				if _, err := conn.Exec(ctx, statement); err != nil {
					return fmt.Errorf("%s: %w", statement, err)
				}
			}
			return nil
		})
	}
	second := work
	return together(ctx, work, second)
}

// together does several things at once, and ends them all when one goes wrong.
func together(ctx context.Context, do ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(do))
	var group sync.WaitGroup
	for i, each := range do {
		group.Go(func() {
			if errs[i] = each(ctx); errs[i] != nil {
				cancel()
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// exec runs one statement.
func (d *seeder) exec(ctx context.Context, statement string, args ...any) error {
	if _, err := d.s.store.SQL().ExecContext(ctx, statement, args...); err != nil {
		return fmt.Errorf("%.60s: %w", statement, err)
	}
	return nil
}

// onConn does something on a connection of its own.
func (d *seeder) onConn(ctx context.Context, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, d.s.dsn)
	if err != nil {
		return fmt.Errorf("reach the database: %w", err)
	}
	return errors.Join(do(conn), conn.Close(context.WithoutCancel(ctx)))
}

// seedTable is rows for one table; next returns false after the last.
type seedTable struct {
	name    string
	columns []string
	next    func() ([]any, bool)
}

// copyAll writes the rows of one table after the other.
func (d *seeder) copyAll(ctx context.Context, tables ...seedTable) error {
	for _, t := range tables {
		if err := d.copy(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// copy writes the rows of a table and puts its sequence behind them.
func (d *seeder) copy(ctx context.Context, t seedTable) error {
	began, n := d.now(), int64(0)
	err := d.onConn(ctx, func(conn *pgx.Conn) error {
		var err error
		n, err = conn.CopyFrom(ctx, pgx.Identifier{t.name}, t.columns, pgx.CopyFromFunc(func() ([]any, error) {
			row, ok := t.next()
			if !ok {
				return nil, nil
			}
			return row, nil
		}))
		if err != nil || t.columns[0] != "id" {
			return err
		}
		_, err = conn.Exec(ctx, `SELECT setval(pg_get_serial_sequence($1, 'id'), greatest(1, (SELECT max(id) FROM `+pgx.Identifier{t.name}.Sanitize()+`)))`, t.name)
		return err
	})
	if err != nil {
		return fmt.Errorf("rows of %s: %w", t.name, err)
	}
	return d.tell("  %s: %d rows in %s\n", t.name, n, d.now().Sub(began).Round(100*time.Millisecond))
}

// tell reports how far it is.
func (d *seeder) tell(format string, args ...any) error {
	d.telling.Lock()
	defer d.telling.Unlock()
	_, err := fmt.Fprintf(d.out, format, args...)
	return err
}

// rowsOf makes rows from the first to the last of something counted from 0.
func rowsOf(n int, row func(i int) []any) func() ([]any, bool) {
	i := -1
	return func() ([]any, bool) {
		for i++; i < n; i++ {
			if r := row(i); r != nil {
				return r, true
			}
		}
		return nil, false
	}
}
