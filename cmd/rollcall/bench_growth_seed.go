package main

import (
	"context"
	_ "embed"
	"strconv"
	"strings"
	"time"
)

// growthSQL makes the rows.
//
//go:embed bench_growth.sql
var growthSQL string

// growthSeed is a desk that was given the same URLs each night.
type growthSeed struct {
	nights, urls int // The URLs are a multiple of 100.
	now          time.Time
}

// Of so many nights one goes out as single jobs, the others, and the last in any case, as jobs of growthPerJob URLs.
const (
	growthSingly = 10
	growthPerJob = 1000
)

// fill writes nights of work into an empty database, bodies left out, by statements that make their rows on the server.
// Deliveries and the vendor's log of them are those of the last 90 days, as the settings keep them.
func (g growthSeed) fill(ctx context.Context, d *seeder) error {
	again, err := d.putAside(ctx)
	if err != nil {
		return err
	}
	for _, statement := range sqlStatements(growthSQL) {
		began := d.now()
		if err := d.exec(ctx, g.filledIn(statement)); err != nil {
			return err
		}
		if took := d.now().Sub(began); took > time.Second {
			if err := d.tell("  %.40s: %s\n", strings.TrimSpace(statement), took.Round(100*time.Millisecond)); err != nil {
				return err
			}
		}
	}
	if err := d.putBack(ctx, again); err != nil {
		return err
	}
	return d.exec(ctx, `VACUUM ANALYZE`)
}

// filledIn puts the sizes and the time into a statement.
func (g growthSeed) filledIn(statement string) string {
	now := "'" + g.now.UTC().Format(time.RFC3339) + "'::timestamptz"
	return strings.NewReplacer(
		"$began", now+" - make_interval(days => "+strconv.Itoa(g.nights)+" - night, hours => 3)",
		"$single", "(("+strconv.Itoa(g.nights)+" - night) % "+strconv.Itoa(growthSingly)+" = 0)",
		"$perjob", "(CASE WHEN ("+strconv.Itoa(g.nights)+" - night) % "+strconv.Itoa(growthSingly)+" = 0 THEN 1 ELSE "+strconv.Itoa(growthPerJob)+" END)",
		"$nights", strconv.Itoa(g.nights), "$urls", strconv.Itoa(g.urls), "$now", now, "$admin", seedAdmin,
		"$all", "generate_series(0, "+strconv.Itoa(g.nights*g.urls-1)+") AS g, LATERAL (SELECT g / "+strconv.Itoa(g.urls)+" AS night, g % "+
			strconv.Itoa(g.urls)+" AS pos) AS place",
	).Replace(statement)
}
