// Package views renders Rollcall's pages and the fragments that live pages swap in.
//
// There is one .templ file per page, beside the struct of exactly what that page shows: plain values, already decided
// by package web, which maps rows to them. Words for states, nets and verdicts are passed as the database spells them;
// a word this package doesn't know is shown as it is. Ids are strings that go into paths. A zero time.Time is unknown
// and shown as a dash, as is a zero Count.
//
// Pages live under a policy that allows no inline script and no inline style, so there are none here: colors and
// widths come from classes, SVG attributes and <progress>. Every form works without JavaScript; app.js only localizes
// times, copies text, ticks boxes and switches the theme.
package views

//go:generate go tool templ generate
