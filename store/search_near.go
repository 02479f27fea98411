package store

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

// A signature tells which words of a result stand beside each other: for each
// such pair two bits are set, of about bitsOfPair bits for each. A page that has
// the words of a phrase, but not beside each other, is then passed over without
// unpacking its words, in 29 of 30 cases; the others are looked at.
const (
	bitsOfPair    = 10
	leastNear     = 8         // Bytes.
	largestNear   = 4096      // Of one that is larger every bit may be set: it rules nothing out.
	lastPosition  = 1<<14 - 1 // Of Postgres.
	pairsOfASlice = 1 << 11
)

// pair is two words that stand beside each other, as a number of which both
// halves choose a bit.
type pair uint64

func pairOf(first, second string) pair {
	h := fnv.New64a()
	_, _ = h.Write([]byte(first)) // It never fails.
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(second))
	return pair(h.Sum64())
}

// halves are what the bits are chosen by, in the size of Postgres's integers.
func (p pair) halves() [2]uint32 {
	return [2]uint32{uint32(p) & (1<<31 - 1), uint32(p>>32) & (1<<31 - 1)} //nolint:gosec // Only bits are wanted.
}

// nearOf is the signature of a tsvector as Postgres writes it. One that can't be
// read gets one that rules nothing out: the search then unpacks its words.
func nearOf(words string) []byte {
	at, err := placesOf(words)
	if err != nil {
		return bytes.Repeat([]byte{0xff}, leastNear)
	}
	pairs := map[pair]struct{}{}
	for i := range at {
		if at[i].place == lastPosition {
			break // Postgres counts no further: what comes after shares this place, and is beside nothing.
		}
		for j := i + 1; j < len(at) && at[j].place <= at[i].place+1; j++ {
			if at[j].place == at[i].place+1 {
				pairs[pairOf(at[i].word, at[j].word)] = struct{}{}
			}
		}
	}
	near := make([]byte, min(largestNear, max(leastNear, len(pairs)*bitsOfPair/8)))
	for p := range pairs {
		for _, half := range p.halves() {
			bit := half % uint32(len(near)*8) //nolint:gosec // At most largestNear.
			near[bit/8] |= 1 << (bit % 8)
		}
	}
	return near
}

// placed is a word at its place in a text.
type placed struct {
	word  string
	place int
}

// placesOf reads a tsvector as Postgres writes it, 'word':1,7A 'other':2, into
// its words in the order of the text.
func placesOf(words string) ([]placed, error) {
	out := make([]placed, 0, pairsOfASlice)
	for words != "" {
		word, rest, ok := quoted(words)
		if !ok {
			return nil, fmt.Errorf("read words from %.40q", words)
		}
		places, after, _ := strings.Cut(rest, " ")
		for place := range strings.SplitSeq(strings.TrimPrefix(places, ":"), ",") {
			n, err := strconv.Atoi(strings.TrimRight(place, "ABCD"))
			if err != nil {
				return nil, fmt.Errorf("read the place of a word from %.40q: %w", words, err)
			}
			out = append(out, placed{word, n})
		}
		words = after
	}
	slices.SortFunc(out, func(a, b placed) int { return a.place - b.place })
	return out, nil
}

// quoted takes the word in quotes off the beginning of a tsvector or tsquery as
// Postgres writes it, where quotes and backslashes in a word are doubled.
func quoted(text string) (string, string, bool) {
	if text == "" || text[0] != '\'' {
		return "", text, false
	}
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] != '\'':
		case i+1 < len(text) && text[i+1] == '\'':
			i++
		default:
			word := text[1:i]
			if strings.ContainsAny(word, `'\`) {
				word = strings.NewReplacer("''", "'", `\\`, `\`).Replace(word)
			}
			return word, text[i+1:], true
		}
	}
	return "", text, false
}

// arm is one of the ways in which a text can have what is searched for; a
// search with OR has several.
type arm struct {
	// words asks of a text, as the terms of a tsquery, all of the arm but the order
	// of words: an index knows that without unpacking anything.
	words []string
	pairs []pair // That the text has beside each other.
}

// armsOf takes a tsquery apart, as Postgres writes those of a websearch: words
// and phrases, some with a !, joined by & and those by |. It is nil when an
// index knows all of the search, or when there is no telling.
func armsOf(query string) []arm {
	var arms []arm
	now, exact, wanted := arm{}, true, false
	for {
		t, ok := termOf(query)
		if !ok {
			return nil
		}
		switch {
		case len(t.words) == 1:
			now.words = append(now.words, t.text)
			wanted = wanted || !t.negated
		case t.negated:
			exact = false // A text that has the words, but not in a row, is meant.
		default:
			exact, wanted = false, true
			now.phrase(t.words)
		}
		switch {
		case strings.HasPrefix(t.rest, " & "):
		case !wanted:
			return nil
		case t.rest == "" && exact:
			return nil
		case t.rest == "":
			return append(arms, now)
		default:
			arms, now, wanted = append(arms, now), arm{}, false
		}
		query = t.rest[min(len(t.rest), len(" & ")):]
	}
}

// phrase asks for the words of a phrase.
func (a *arm) phrase(words []string) {
	for i, word := range words {
		a.words = append(a.words, quote(word))
		if i > 0 {
			a.pairs = append(a.pairs, pairOf(words[i-1], word))
		}
	}
}

// term is a word or a phrase of a tsquery; rest is what follows it.
type term struct {
	text, rest string
	negated    bool
	words      []string
}

// termOf takes the first term off a tsquery; false when it is of another kind.
func termOf(query string) (term, bool) {
	t := term{}
	t.rest, t.negated = strings.CutPrefix(query, "!")
	rest, open := strings.CutPrefix(t.rest, "( ")
	for more := true; more; rest, more = strings.CutPrefix(rest, " <-> ") {
		word, after, ok := quoted(rest)
		if !ok {
			return t, false
		}
		t.words, rest = append(t.words, word), after
	}
	if open {
		var closed bool
		if rest, closed = strings.CutPrefix(rest, " )"); !closed {
			return t, false
		}
	}
	t.text, t.rest = query[:len(query)-len(rest)], rest
	known := rest == "" || strings.HasPrefix(rest, " & ") || strings.HasPrefix(rest, " | ")
	return t, known
}

// quote writes a word as a tsquery has it.
func quote(word string) string {
	return "'" + strings.NewReplacer("'", "''", `\`, `\\`).Replace(word) + "'"
}

// nearLook is how many results one step goes through to find some that have no
// signature.
const nearLook = 1_000

// PutNear gives results from before there were signatures theirs, at most limit
// of them, and goes on from the newest to the oldest. It reports whether there
// is more to go through, false too when another process is at it. A result that
// is being read anew meanwhile is passed over, and so is one that an earlier
// release reads behind it: a search then unpacks their words.
func (t Tx) PutNear(ctx context.Context, limit int64) (bool, error) {
	var place []int64
	err := t.db.NewRaw(`SELECT near_below FROM search_backfill WHERE near_below IS NOT NULL FOR UPDATE SKIP LOCKED`).Scan(ctx, &place)
	if err != nil || len(place) == 0 {
		return false, translate(err)
	}
	var reach *int64
	err = t.db.NewRaw(`WITH looked AS MATERIALIZED (SELECT item_id, near IS NULL AS far FROM search_words WHERE item_id < ?below ORDER BY item_id DESC LIMIT ?look),
			far AS (SELECT item_id FROM looked WHERE far ORDER BY item_id DESC LIMIT ?limit)
		SELECT CASE WHEN count(*) = ?limit THEN min(item_id) ELSE (SELECT min(item_id) FROM looked) END FROM far`,
		named{"below": place[0], "look": nearLook, "limit": limit}).Scan(ctx, &reach)
	if err != nil {
		return false, translate(err)
	}
	if _, err = t.db.NewRaw(`UPDATE search_backfill SET near_below = ?`, reach).Exec(ctx); err != nil || reach == nil {
		return false, translate(err)
	}
	return true, t.putNear(ctx, *reach, place[0])
}

// putNear gives results of a stretch that have none the signature of their words.
func (t Tx) putNear(ctx context.Context, from, below int64) error {
	var rows []struct {
		ItemID int64
		Words  string
	}
	err := t.db.NewRaw(`SELECT item_id, words::text AS words FROM search_words WHERE item_id >= ? AND item_id < ? AND near IS NULL
		ORDER BY item_id FOR UPDATE SKIP LOCKED`, from, below).Scan(ctx, &rows)
	if err != nil || len(rows) == 0 {
		return translate(err)
	}
	ids, near := make([]int64, len(rows)), make([][]byte, len(rows))
	for i, row := range rows {
		ids[i], near[i] = row.ItemID, nearOf(row.Words)
	}
	_, err = t.tx.Tx.ExecContext(ctx, `UPDATE search_words AS w SET near = e.near FROM unnest($1::bigint[], $2::bytea[]) AS e (item_id, near)
		WHERE w.item_id = e.item_id`, ids, near)
	return translate(err)
}
