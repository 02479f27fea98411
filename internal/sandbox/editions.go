package sandbox

import (
	"fmt"
	"net/url"
	"strconv"
)

// looked is what a made page was when it was last submitted.
type looked struct {
	times   int // How often jobs carried it.
	edition int // How often it has changed.
	last    *job
}

// look says which edition of a made page a job sees, and lets the page change from one job to the next. It goes by the
// order in which an account submits the page, not by who runs first. The caller holds mu.
func (s *Sandbox) look(j *job, text string) int {
	u, err := url.Parse(text)
	if err != nil || !isMade(u.Hostname()) {
		return 0
	}
	u.Fragment, u.RawFragment = "", ""
	name := j.account.name + " " + u.String()
	was := s.looks[name]
	if was.last == j {
		return was.edition
	}
	if was.times++; was.times > 1 && s.dice.share("change", u.String(), strconv.Itoa(was.times)) < s.cfg.PagesChange {
		was.edition++
	}
	was.last = j
	s.looks[name] = was
	return was.edition
}

// update is what an edition says at its head; the page that never changed has nothing there. No two editions of a page
// are alike: the date is another.
func (p *draft) update() {
	if p.edition == 0 {
		return
	}
	// A draft of its own: what follows on the page stays as it was.
	u := &draft{d: p.d, key: fmt.Sprint(p.key, " edition ", p.edition), lang: p.lang}
	month, day := p.edition/28%12+1, p.edition%28+1
	p.add("<p><time>%d-%02d-%02d</time> %s %s</p>\n", 2027+p.edition/(28*12), month, day, u.emoji(), u.sentence())
}

// stock is a number in a table: an edition changes about one in three of them.
func (p *draft) stock(n int) int {
	d, names := p.d, []string{"stock", p.key, strconv.Itoa(p.asks), strconv.Itoa(p.edition)}
	if p.edition == 0 || d.pick(3, names...) > 0 {
		return n
	}
	return d.pick(500, append(names, "left")...)
}
