package preflight

// columns are those of a file with columns.
type columns struct {
	all []string // Their names as they stand.
	url int      // Which of them holds the URLs.
}

// beside are all but the URL's own.
func (c columns) beside() []string {
	if len(c.all) == 0 {
		return nil
	}
	out := make([]string, 0, len(c.all)-1)
	out = append(out, c.all[:c.url]...)
	return append(out, c.all[c.url+1:]...)
}
