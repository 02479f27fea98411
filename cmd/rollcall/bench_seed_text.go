package main

import (
	"math/rand/v2"
	"strings"
)

// Texts have words as common as those of a language are: the n-th is about n times rarer than the first.
const (
	madeWords    = 80_000
	madeExponent = 1.07
	madeOffset   = 4
	madeDraws    = 1 << 20 // How many draws from the distribution are made beforehand; texts pick among them.
)

// madeText makes texts.
type madeText struct {
	rand  *rand.Rand
	words []string // The most common first.
	draws []string
}

// madeVocabulary are the words of all texts, the most common first.
func madeVocabulary() []string {
	words := make([]string, madeWords)
	syllables := strings.Fields("ba de fi go lu ma ne pi ro su ta ve wi xo yu za ker lin mon per sol tan dor gim hal")
	for i := range words {
		for n := i + 1; n > 0; n /= len(syllables) {
			words[i] += syllables[n%len(syllables)]
		}
	}
	return words
}

func newMadeText(seed uint64) *madeText {
	r := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // Chance that a seed repeats is what is wanted.
	m := &madeText{rand: r, words: madeVocabulary(), draws: make([]string, madeDraws)}
	zipf := rand.NewZipf(r, madeExponent, madeOffset, madeWords-1)
	for i := range m.draws {
		m.draws[i] = m.words[zipf.Uint64()]
	}
	return m
}

// page is a text of about that many bytes, with its title, in Markdown.
func (m *madeText) page(size int) (title, text string) { //nolint:nonamedreturns // Which is which.
	var out strings.Builder
	out.Grow(size + 64)
	out.WriteString("# ")
	for n := 0; out.Len() < size; n++ {
		draw := m.rand.Uint64()
		out.WriteString(m.draws[draw%madeDraws])
		switch {
		case n == 5:
			title = out.String()[2:]
			out.WriteString("\n\n")
		case draw>>32%12 == 0:
			out.WriteString(". ")
		default:
			out.WriteByte(' ')
		}
	}
	return title, out.String()
}
