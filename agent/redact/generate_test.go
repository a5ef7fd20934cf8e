package redact

import (
	"fmt"
	"math/rand/v2"
	"regexp/syntax"
	"testing"
	"unicode"
)

// drawMatch returns a text that the pattern matches, unless an edge in it cannot be met.
func drawMatch(r *rand.Rand, p *syntax.Regexp) string {
	repeat := func(least, most int) (text string) {
		if most < 0 {
			most = least + 3
		}
		for range least + r.IntN(most-least+1) {
			text += drawMatch(r, p.Sub[0])
		}
		return text
	}
	switch p.Op {
	case syntax.OpLiteral:
		var text string
		for _, c := range p.Rune {
			text += string(anyCase(r, c, p.Flags))
		}
		return text
	case syntax.OpCharClass:
		return string(drawMember(r, p.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return string(' ' + r.Int32N('~'-' '))
	case syntax.OpStar:
		return repeat(0, -1)
	case syntax.OpPlus:
		return repeat(1, -1)
	case syntax.OpQuest:
		return repeat(0, 1)
	case syntax.OpRepeat:
		return repeat(p.Min, p.Max)
	case syntax.OpCapture:
		return drawMatch(r, p.Sub[0])
	case syntax.OpAlternate:
		return drawMatch(r, p.Sub[r.IntN(len(p.Sub))])
	case syntax.OpConcat:
		var text string
		for _, sub := range p.Sub {
			text += drawMatch(r, sub)
		}
		return text
	}
	return "" // an edge
}

// drawMember returns a character of a class, which is given as ranges: one that is seen, if the class has any.
func drawMember(r *rand.Rand, ranges []rune) rune {
	for range 200 {
		c := '!' + r.Int32N('~'-'!'+1)
		for i := 0; i < len(ranges); i += 2 {
			if c >= ranges[i] && c <= ranges[i+1] {
				return c
			}
		}
	}
	if ranges[0] == '\t' {
		return ' '
	}
	i := 2 * r.IntN(len(ranges)/2)
	return ranges[i] + r.Int32N(min(ranges[i+1]-ranges[i], 90)+1)
}

func anyCase(r *rand.Rand, c rune, flags syntax.Flags) rune {
	if flags&syntax.FoldCase == 0 {
		return c
	}
	for range r.IntN(4) {
		c = unicode.SimpleFold(c)
	}
	return c
}

// TestNoRuleMissesItsOwn makes texts that match each rule, and checks that no condition keeps the rule from them.
func TestNoRuleMissesItsOwn(t *testing.T) {
	t.Parallel()
	r, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(2, 2))
	for i, d := range r.detectors {
		pattern, err := syntax.Parse(d.re.String(), syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for range 100 {
			text := drawMatch(random, pattern)
			for _, around := range []string{"%s", "x %s y", "12%s,", `"%s"`, "token: %s\n"} {
				line := toPlainText(fmt.Sprintf(around, text))
				if d.re.MatchString(line) {
					seen++
				}
				if err := r.sameFor(i, line, r.index.findWords(foldCase(line))); err != nil {
					t.Fatalf("%s: %q: %v", d.name, line, err)
				}
			}
		}
		if seen < 25 {
			t.Errorf("only %d of 500 texts match %s", seen, d.re)
		}
	}
}
