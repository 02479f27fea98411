package preflight

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// columns are those of a file that has some.
type columns struct {
	all []string       // Their names as they stand.
	url int            // Which of them holds the URLs, or -1.
	of  map[string]int // Where a field stands, of files that name their fields line by line.
}

// add returns the place of a field, a new one's behind the others. It reports false when there are too many.
func (c *columns) add(field string) (int, bool) {
	if at, ok := c.of[field]; ok {
		return at, true
	}
	if len(c.all) == MaxColumns {
		return 0, false
	}
	if c.of == nil {
		c.of = map[string]int{}
	}
	taken := map[string]bool{}
	for _, other := range c.all {
		taken[other] = true
	}
	c.of[field] = len(c.all)
	c.all = append(c.all, unusedName(nameOf(field, len(c.all)), taken))
	return c.of[field], true
}

// beside are all but the URL's own.
func (c *columns) beside() []string {
	if c.url < 0 || len(c.all) == 0 {
		return nil
	}
	return slices.Concat(c.all[:c.url], c.all[c.url+1:])
}

// urlNames are what people call a column of URLs, without blanks and marks, the clearest first.
var urlNames = []string{
	"url", "urls", "link", "links", "href", "uri", "loc", "fullurl", "pageurl", "producturl", "itemurl", "targeturl", "sourceurl", "finalurl",
	"landingpageurl", "landingpage", "permalink", "address", "webaddress", "location", "weburl", "websiteurl", "siteurl", "website", "webpage",
	"page", "web", "site", "homepage", "domain", "host",
}

// nameRank is a name's place in urlNames, or a number beyond them.
func nameRank(name string) int {
	bare := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, clip(name, 60))
	if i := slices.Index(urlNames, bare); i >= 0 {
		return i
	}
	return len(urlNames)
}

// urlColumn is the column that was chosen, by name or by number, or the one that looks like it.
func urlColumn(chosen string, s shape, rows [][]string) (int, error) {
	if chosen != "" {
		return chosenColumn(chosen, s.names)
	}
	if len(s.names) == 1 {
		return 0, nil
	}
	best, most := -1, [4]float64{}
	for i := range s.names {
		strong, weak := shares(rows, i)
		rank := len(urlNames)
		if s.header {
			rank = nameRank(s.names[i])
		}
		if strong+weak == 0 && rank == len(urlNames) {
			continue
		}
		// URLs with a scheme say most, then a name that says URL, then how many cells look like it.
		score := [4]float64{0, float64(-rank), strong, weak}
		if strong >= 0.5 {
			score[0] = 1
		}
		if best < 0 || slices.Compare(score[:], most[:]) > 0 {
			best, most = i, score
		}
	}
	if best < 0 {
		return -1, &FileError{Field: "url_column", Reason: "no column holds URLs; choose the one to read: " + listed(s.names)}
	}
	return best, nil
}

// chosenColumn is the column with this name, or else with this number.
func chosenColumn(chosen string, names []string) (int, error) {
	if i := slices.Index(names, chosen); i >= 0 {
		return i, nil
	}
	same := func(name string) bool { return strings.EqualFold(name, strings.TrimSpace(chosen)) }
	if i := slices.IndexFunc(names, same); i >= 0 {
		return i, nil
	}
	if n, err := strconv.Atoi(strings.TrimSpace(chosen)); err == nil && n >= 1 && n <= len(names) {
		return n - 1, nil
	}
	return -1, &FileError{Field: "url_column", Reason: fmt.Sprintf("there is no column %q; there are: %s", clip(chosen, 80), listed(names))}
}

// listed names the first columns.
func listed(names []string) string {
	var quoted []string
	for _, n := range names[:min(len(names), 20)] {
		quoted = append(quoted, strconv.Quote(clip(n, 40)))
	}
	if len(names) > 20 {
		quoted = append(quoted, fmt.Sprintf("and %d more", len(names)-20))
	}
	return strings.Join(quoted, ", ")
}

// maxColumnName is the longest name of a column, in bytes; longer ones are cut.
const maxColumnName = 200

// uniqueNames names so many columns by their titles: one without gets its number, one that comes twice a number too.
func uniqueNames(titles []string, width int) []string {
	out, taken := make([]string, width), map[string]bool{}
	for i := range out {
		title := ""
		if i < len(titles) {
			title = titles[i]
		}
		out[i] = unusedName(nameOf(title, i), taken)
		taken[out[i]] = true
	}
	return out
}

func unusedName(name string, taken map[string]bool) string {
	unused := name
	for n := 2; taken[unused]; n++ {
		unused = fmt.Sprintf("%s (%d)", name, n)
	}
	return unused
}

// nameOf makes of a column's title a name that can be shown and stored, or names it after its place.
func nameOf(title string, at int) string {
	name := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(title, "\uFFFD"))
	if name = strings.Join(strings.Fields(name), " "); isBlank(name) {
		return fmt.Sprintf("column %d", at+1)
	}
	return clip(name, maxColumnName)
}
