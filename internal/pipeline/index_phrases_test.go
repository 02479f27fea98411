package pipeline_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"rollcall/store"
)

// TestPhrasesAreFoundWhereTheyStand: searches with phrases, which go by
// signatures first, find what Postgres finds when it looks at every text; also
// in results whose signature is not made yet, or can't be.
func TestPhrasesAreFoundWhereTheyStand(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	dice := rand.New(rand.NewPCG(1, 1))
	words := strings.Fields(`copper kettle lid it's back\slash x-ray maker.example smith@maker.example don't-know 1.299 café`)
	some := func(n int) string {
		picked := make([]string, n)
		for i := range picked {
			picked[i] = words[dice.IntN(len(words))]
		}
		return strings.Join(picked, " ")
	}
	for range 60 {
		l.add(1+dice.Int64N(2), "a.example", some(2), some(5+dice.IntN(20)))
	}
	l.add(1, "a.example", "", strings.Repeat("copper kettle lid ", 7000)) // More words than Postgres counts.
	l.read()
	l.exec(`UPDATE search_words SET near = NULL WHERE item_id % 4 = 0`)
	l.exec(`UPDATE search_words SET words = strip(words) WHERE item_id = 56`) // As nothing here writes it, and can read it.
	l.exec(`UPDATE search_backfill SET near_below = 9223372036854775807`)
	searches := []string{
		`"copper kettle"`, `"copper kettle" lid`, `"copper kettle" -lid`, `copper -"kettle lid"`, `"it's back\slash"`, `"x-ray" OR "copper lid"`,
		`"copper kettle" OR "kettle lid" -café`, `-"copper kettle" -"lid lid" café`, `"nowhere there"`, `"copper nowhere"`,
	}
	for range 40 {
		search := `"` + some(2+dice.IntN(2)) + `"`
		switch dice.IntN(4) {
		case 0:
			search += " OR " + some(1)
		case 1:
			search = "-" + search + " " + some(1)
		case 2:
			search += ` "` + some(2) + `"`
		}
		searches = append(searches, search)
	}
	for _, search := range searches {
		l.wantAsPostgres(search)
	}
	for more := true; more; {
		var err error
		if more, err = l.pipe.Index(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := l.count(`SELECT count(*) FROM search_words WHERE near IS NULL`); n > 0 {
		t.Errorf("%d results have no signature", n)
	}
	for _, search := range searches {
		l.wantAsPostgres(search)
	}
}

// wantAsPostgres compares what is found with a look at every text, whole and page by page.
func (l *library) wantAsPostgres(search string) {
	l.t.Helper()
	rows, err := l.store.SQL().QueryContext(l.t.Context(), `SELECT item_id FROM search_words WHERE words @@ websearch_to_tsquery('simple', $1) ORDER BY seq DESC`, search)
	if err != nil {
		l.t.Fatal(err)
	}
	defer rows.Close()
	var want []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			l.t.Fatal(err)
		}
		want = append(want, id)
	}
	if err := rows.Err(); err != nil {
		l.t.Fatal(err)
	}
	l.want(fmt.Sprintf("%q", search), store.Search{Text: search, Limit: 100}, want...)
	var paged []int64
	for after := (store.SearchPlace{}); ; {
		found := l.find(store.Search{Text: search, Limit: 7, After: after})
		for i := range found.Hits {
			paged, after = append(paged, found.Hits[i].ItemID), found.Hits[i].Place
		}
		if !found.More {
			break
		}
	}
	if !slices.Equal(paged, want) {
		l.t.Errorf("%q by pages: got %v, want %v", search, paged, want)
	}
}
