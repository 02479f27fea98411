package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"time"
)

// benchPagesCmd measures how long the pages take at a size at which carelessness shows.
type benchPagesCmd struct {
	seedSize

	JSON     bool   `name:"json" help:"Print one JSON object: name, machine, rows, aims."`
	Database string `placeholder:"URL" help:"Use this database, filled by bench seed before, and keep it. By default one is made, filled and dropped."`
	Runs     int    `default:"5" help:"Rounds over all addresses; what is shown is the median of the rounds."`
	Visits   int    `default:"20" help:"Visits of each route in a round; each of its addresses is visited at least once."`
	Only     string `placeholder:"TEXT" help:"Only routes and searches that have this in their name."`
	Large    int64  `default:"50000" help:"Rows from which on a table is a large one, which no page may read from end to end."`
	NoScans  bool   `hidden:"" help:"Explain with enable_seqscan off, for a small database."`
	Recount  bool   `help:"Recount every batch first, as doctor does."`
}

// The kinds of rows.
const (
	pageKind   = "page"       // The whole answer.
	streamKind = "first byte" // Of an answer that doesn't end, or is as long as a file.
	searchKind = "search"     // Of the search's page; one row for each kind of search.
)

// The aims.
const (
	pageP95   = 50.0
	searchP95 = 150.0
)

// pageRow is one route, or one kind of search. Times are in milliseconds, as a reader on this machine sees them.
type pageRow struct {
	Path      string    `json:"path"`
	Kind      string    `json:"kind"`
	Addresses []string  `json:"addresses"`
	Visits    int       `json:"visits"`
	P50       float64   `json:"p50_ms"`
	P95       float64   `json:"p95_ms"`
	P99       float64   `json:"p99_ms"`
	Queries   int       `json:"queries"` // Statements of the address with the most.
	Slowest   explained `json:"slowest_query"`
	Worst     string    `json:"worst_address"` // The one with the slowest query.
	Scans     []string  `json:"scans"`         // Large tables that some query of it reads from end to end.

	runs [][]time.Duration
}

// Run measures and exits 1 when an aim isn't held.
func (c *benchPagesCmd) Run(ctx context.Context, a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.Runs < 1 || c.Runs > 100 || c.Visits < 1 || c.Visits > 1000 {
		return errors.New("--runs must be from 1 to 100, --visits from 1 to 1000")
	}
	ctx, end := measuring(ctx, a)
	defer end()
	s, err := c.open(ctx, a)
	if err != nil {
		return err
	}
	report, err := c.measure(ctx, a, s)
	if err := errors.Join(err, s.close(ctx)); err != nil {
		return err
	}
	return conclude(a, c.JSON, report, func(w io.Writer) error { return pagesTable(w, report.Rows) })
}

func (c *benchPagesCmd) open(ctx context.Context, a *app) (*stack, error) {
	if c.Database != "" {
		if err := seeded(ctx, c.Database); err != nil {
			return nil, err
		}
		return namedStack(ctx, a, c.Database)
	}
	s, err := benchStack(ctx, a)
	if err != nil {
		return nil, err
	}
	if err := seedDatabase(ctx, a, s, c.seedSize); err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	return s, nil
}

func (c *benchPagesCmd) measure(ctx context.Context, a *app, s *stack) (benchReport[pageRow], error) {
	report := benchReport[pageRow]{Name: "pages"}
	var err error
	if report.Machine, err = thisMachine(ctx, s.store); err != nil {
		return report, err
	}
	if c.Recount {
		if err := recountSeeded(ctx, s); err != nil {
			return report, err
		}
	}
	r, err := openReader(ctx, s)
	if err != nil {
		return report, err
	}
	if report.Rows, err = c.rows(ctx, r); err != nil {
		return report, err
	}
	if err := c.explain(ctx, a, r, report.Rows); err != nil {
		return report, err
	}
	for run := range c.Runs {
		if _, err := fmt.Fprintf(a.err, "round %d of %d ...\n", run+1, c.Runs); err != nil {
			return report, err
		}
		if err := c.round(ctx, r, report.Rows); err != nil {
			return report, err
		}
	}
	for i := range report.Rows {
		report.Rows[i].finish()
	}
	slices.SortStableFunc(report.Rows, func(x, y pageRow) int { return cmp.Compare(y.P95, x.P95) })
	report.Aims = pageAims(report.Rows, c.Only != "")
	return report, nil
}

// recountSeeded compares the counters of the batches with their rows.
func recountSeeded(ctx context.Context, s *stack) error {
	for after := int64(0); ; {
		differences, last, err := s.store.RecountBatches(ctx, after, recountPage)
		switch {
		case err != nil:
			return fmt.Errorf("recount the batches: %w", err)
		case len(differences) > 0:
			return fmt.Errorf("the counters differ from the rows: %+v", differences)
		case last == 0:
			return nil
		}
		after = last
	}
}

// rows are those of all routes that GET answers, and of all kinds of searches. A route that nobody has given addresses is an
// error, so that a new one can't be forgotten.
func (c *benchPagesCmd) rows(ctx context.Context, r *reader) ([]pageRow, error) {
	known, err := visits(ctx, r.stack.store)
	if err != nil {
		return nil, err
	}
	var rows []pageRow
	for _, read := range r.web.Reads() {
		addresses, ok := known[read.Path]
		switch {
		case read.Path == "/search":
			continue // Its rows are the kinds of searches.
		case !ok:
			return nil, fmt.Errorf("%s is a new route: say in bench_pages_routes.go by which addresses it is to be measured", read.Path)
		case len(addresses) == 0:
			continue
		}
		kind := pageKind
		if read.Stream || read.Long {
			kind = streamKind
		}
		rows = append(rows, pageRow{Path: read.Path, Kind: kind, Addresses: addresses})
	}
	for _, search := range searches(r.stack.now()) {
		rows = append(rows, pageRow{Path: search.name, Kind: searchKind, Addresses: search.addresses})
	}
	rows = slices.DeleteFunc(rows, func(row pageRow) bool { return !strings.Contains(row.Path+" "+row.Kind, c.Only) })
	if len(rows) == 0 {
		return nil, fmt.Errorf("--only=%s: there is nothing such", c.Only)
	}
	return rows, nil
}

// explain visits each address once, which also warms what there is to warm, and explains what it asked.
func (c *benchPagesCmd) explain(ctx context.Context, a *app, r *reader, rows []pageRow) error {
	large := c.Large
	if c.NoScans {
		large = 0
	}
	x, err := newExplainer(ctx, r.stack.store, large, c.NoScans)
	if err != nil {
		return err
	}
	defer x.close()
	for i := range rows {
		row := &rows[i]
		for _, address := range row.Addresses {
			if err := explainVisit(ctx, r, x, row, address); err != nil {
				return fmt.Errorf("%s: %w", address, err)
			}
		}
	}
	_, err = fmt.Fprintf(a.err, "%d routes and searches explained\n", len(rows))
	return err
}

func explainVisit(ctx context.Context, r *reader, x *explainer, row *pageRow, address string) error {
	r.said.begin()
	_, err := r.get(ctx, address, row.Kind == streamKind)
	said := r.said.take()
	if err != nil {
		return err
	}
	told, err := x.explain(ctx, said)
	if err != nil {
		return err
	}
	row.Queries = max(row.Queries, len(told))
	for _, each := range told {
		if each.MS > row.Slowest.MS || row.Slowest.SQL == "" {
			row.Slowest, row.Worst = each, address
		}
		for _, table := range each.Scans {
			if told := table + " in " + address; !slices.Contains(row.Scans, told) {
				row.Scans = append(row.Scans, told)
			}
		}
	}
	return nil
}

// round visits every route once after the other, in another order each time.
func (c *benchPagesCmd) round(ctx context.Context, r *reader, rows []pageRow) error {
	for _, i := range rand.Perm(len(rows)) { //nolint:gosec // No secret hangs on the order.
		row := &rows[i]
		took := make([]time.Duration, max(c.Visits, len(row.Addresses)))
		for n := range took {
			var err error
			if took[n], err = r.get(ctx, row.Addresses[n%len(row.Addresses)], row.Kind == streamKind); err != nil {
				return err
			}
		}
		slices.Sort(took)
		row.runs = append(row.runs, took)
	}
	return nil
}

// finish computes what follows from the visits: the median of the rounds.
func (p *pageRow) finish() {
	at := func(share int) float64 {
		var each []float64
		for _, took := range p.runs {
			each = append(each, float64(took[(len(took)*share+99)/100-1].Microseconds())/1000)
		}
		slices.Sort(each)
		return round(each[len(each)/2])
	}
	for _, took := range p.runs {
		p.Visits += len(took)
	}
	p.P50, p.P95, p.P99 = at(50), at(95), at(99)
}

// pageAims are what the rows must show. A kind without a row wasn't measured and holds no aim, unless only some routes
// were asked for.
func pageAims(rows []pageRow, onlySome bool) []aim {
	worst, scans := map[string]float64{}, 0
	for i := range rows {
		worst[rows[i].Kind] = max(worst[rows[i].Kind], rows[i].P95)
		scans += len(rows[i].Scans)
	}
	aims := []aim{noMore("large tables read from end to end", float64(scans), 0)}
	for _, each := range []struct {
		kind, name string
		want       float64
	}{
		{pageKind, "p95 of the slowest page in ms", pageP95},
		{streamKind, "p95 of the slowest first byte in ms", pageP95},
		{searchKind, "p95 of the slowest kind of search in ms", searchP95},
	} {
		if got, there := worst[each.kind]; there || !onlySome {
			aims = append(aims, atMost(each.name, got, each.want))
		}
	}
	return aims
}

func pagesTable(w io.Writer, rows []pageRow) error {
	if _, err := fmt.Fprint(w, "The slowest first; times in ms over loopback, the slowest query by EXPLAIN (ANALYZE, BUFFERS).\n\n"+
		"route\tkind\tp50\tp95\tp99\tqueries\tslowest query\tblocks\tof\n"); err != nil {
		return err
	}
	for i := range rows {
		r := &rows[i]
		if _, err := fmt.Fprintf(w, "%s\t%s\t%.1f\t%.1f\t%.1f\t%d\t%.1f\t%d\t%.70s\n",
			r.Path, r.Kind, r.P50, r.P95, r.P99, r.Queries, r.Slowest.MS, r.Slowest.Buffers, r.Worst); err != nil {
			return err
		}
	}
	for i := range rows {
		for _, scan := range rows[i].Scans {
			if _, err := fmt.Fprintf(w, "read from end to end: %s\n", scan); err != nil {
				return err
			}
		}
	}
	first := &rows[0]
	_, err := fmt.Fprintf(w, "\nWhat bounds it: the slowest, %s, takes %.1f ms in the median and makes %d queries; the slowest of those takes %.1f ms alone: %.100s\n",
		first.Path, first.P50, first.Queries, first.Slowest.MS, first.Slowest.SQL)
	return err
}

// search is one kind of search with its addresses.
type search struct {
	name      string
	addresses []string
}

// searches are kinds of searches, by how common their words are in the seeded texts.
func searches(now time.Time) []search {
	w := madeVocabulary()
	kind := func(name string, filter url.Values, texts ...string) search {
		s := search{name: name}
		for _, text := range texts {
			query := url.Values{"q": {text}}
			for key := range filter {
				query.Set(key, filter.Get(key))
			}
			s.addresses = append(s.addresses, "/search?"+query.Encode())
		}
		return s
	}
	phrase := func(words ...string) string { return `"` + strings.Join(words, " ") + `"` }
	best := url.Values{"order": {"best"}}
	host := url.Values{"host": {"www.host7.example"}}
	old := url.Values{"since": {now.AddDate(0, 0, -60).Format("2006-01-02")}, "until": {now.AddDate(0, 0, -58).Format("2006-01-02")}}
	return []search{
		kind("a word of every page", nil, w[0], w[1], w[2], w[5]),
		kind("common", nil, w[40], w[60], w[80], w[25]),
		kind("common, best first", best, w[40], w[60], w[80], w[25]),
		kind("middling", nil, w[3000], w[2000], w[4000]),
		kind("middling, best first", best, w[3000], w[2000], w[4000]),
		kind("rare", nil, w[60_000], w[70_001], w[50_002]),
		kind("none", nil, "nosuchwordatall", "nobody@nowhere.example"),
		kind("two common", nil, w[30]+" "+w[50], w[20]+" "+w[70]),
		kind("common and rare", nil, w[30]+" "+w[20_000], w[2]+" "+w[40_000]),
		kind("phrase of the most common", nil, phrase(w[1], w[2]), phrase(w[0], w[3]), phrase(w[4], w[2])),
		kind("phrase of common", nil, phrase(w[20], w[30]), phrase(w[40], w[25]), phrase(w[33], w[60])),
		kind("phrase of common, best first", best, phrase(w[20], w[30]), phrase(w[2], w[1])),
		kind("phrase of middling", nil, phrase(w[100], w[150]), phrase(w[300], w[200]), phrase(w[180], w[90])),
		kind("phrase of rare", nil, phrase(w[4000], w[5000]), phrase(w[9000], w[800])),
		kind("phrase of three", nil, phrase(w[1], w[2], w[3]), phrase(w[20], w[1], w[40])),
		kind("phrase and a word", nil, phrase(w[20], w[30])+" "+w[500], phrase(w[1], w[2])+" "+w[9000]),
		kind("phrase or a word", nil, phrase(w[100], w[150])+" OR "+w[9000]),
		kind("without a phrase", nil, w[300]+" -"+phrase(w[1], w[2])),
		kind("or", nil, w[2000]+" OR "+w[9000], w[10]+" OR "+w[20]),
		kind("exclusion", nil, w[300]+" -"+w[10], w[1]+" -"+w[0]),
		kind("common in a host", host, w[40], w[60]),
		kind("middling in a host", host, w[3000]),
		kind("phrase in a host", host, phrase(w[20], w[30]), phrase(w[100], w[150])),
		kind("common in old days", old, w[40], w[30]),
		kind("rare in old days", old, w[20_000]),
		kind("phrase in old days", old, phrase(w[20], w[30])),
	}
}
