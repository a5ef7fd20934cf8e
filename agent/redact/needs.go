package redact

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

// need is a necessary condition of a rule, as words: a text can only match the rule if it holds one word of each group.
// Words are found in any case. One that begins or ends with \b must do so at the edge of a word, as in a pattern.
type need [][]string

// parseNeed reads a need: | stands between words, " & " between groups. The empty need holds for every text.
func parseNeed(text string) need {
	var n need
	for group := range strings.SplitSeq(text, " & ") {
		if group != "" {
			n = append(n, strings.Split(group, "|"))
		}
	}
	return n
}

// needsWordEnd needs one of the words where no letter follows it.
func needsWordEnd(words []string) need {
	words = slices.Clone(words)
	for i, word := range words {
		if wordByte(word[len(word)-1]) {
			words[i] += `\b`
		}
	}
	return need{words}
}

// listSpellings are the texts that a pattern matches. It must be made of letters, groups, alternatives and
// question marks alone.
func listSpellings(pattern string) []string {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		panic(err) // the patterns are constants
	}
	return spellSyntax(tree)
}

func spellSyntax(p *syntax.Regexp) []string {
	switch p.Op {
	case syntax.OpLiteral:
		return []string{string(p.Rune)}
	case syntax.OpCharClass:
		var all []string
		for i := 0; i < len(p.Rune); i += 2 {
			for r := p.Rune[i]; r <= p.Rune[i+1]; r++ {
				all = append(all, string(r))
			}
		}
		return all
	case syntax.OpQuest:
		return append(spellSyntax(p.Sub[0]), "")
	case syntax.OpEmptyMatch:
		return []string{""}
	case syntax.OpCapture:
		return spellSyntax(p.Sub[0])
	case syntax.OpAlternate:
		var all []string
		for _, sub := range p.Sub {
			all = append(all, spellSyntax(sub)...)
		}
		return all
	case syntax.OpConcat:
		all := []string{""}
		for _, sub := range p.Sub {
			var longer []string
			for _, begin := range all {
				for _, end := range spellSyntax(sub) {
					longer = append(longer, begin+end)
				}
			}
			all = longer
		}
		return all
	}
	panic("redact: a pattern with more than spellings: " + p.String())
}

// foldCase maps the letters that patterns without case take for one another to one of them.
func foldCase(text string) string {
	if isASCII(text) {
		return strings.ToLower(text)
	}
	return strings.Map(foldRune, text)
}

func foldRune(r rune) rune {
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	if least >= 'A' && least <= 'Z' {
		return least + 'a' - 'A'
	}
	return least
}

// isASCII reports whether a text is of the characters from space to tilde alone.
func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// index finds which groups of words a text satisfies, looking at each place of the text once.
type index struct {
	groups int               // how many groups there are
	first  [1 << 16]uint16   // by two bytes: where in byPair the words that begin so are
	byPair [][]entry         // the words that begin with two bytes; none at 0
	known  map[string]int    // the number of each group
	words  map[string]*entry // while it is made
}

// entry is a word and the groups that it satisfies.
type entry struct {
	word       string
	begin, end bool // at the edge of a word
	groups     []int
}

// satisfied tells of each group whether a text satisfies it.
type satisfied []bool

// addNeed returns the numbers of a need's groups.
func (x *index) addNeed(n need) []int {
	if x.known == nil {
		x.known, x.words = map[string]int{}, map[string]*entry{}
	}
	var numbers []int
	for _, group := range n {
		key := strings.Join(group, "|")
		number, ok := x.known[key]
		if !ok {
			number = x.groups
			x.known[key] = number
			x.groups++
			for _, word := range group {
				x.addWord(word, number)
			}
		}
		numbers = append(numbers, number)
	}
	return numbers
}

func (x *index) addWord(written string, group int) {
	e := x.words[written]
	if e == nil {
		e = &entry{}
		e.word, e.begin = strings.CutPrefix(written, `\b`)
		e.word, e.end = strings.CutSuffix(e.word, `\b`)
		e.word = foldCase(e.word)
		x.words[written] = e
	}
	e.groups = append(e.groups, group)
}

// buildIndex makes the index ready after the last add.
func (x *index) buildIndex() {
	lists := map[int][]entry{}
	for _, e := range x.words {
		if len(e.word) > 1 {
			pair := int(e.word[0])<<8 | int(e.word[1])
			lists[pair] = append(lists[pair], *e)
			continue
		}
		for second := range 256 {
			pair := int(e.word[0])<<8 | second
			lists[pair] = append(lists[pair], *e)
		}
	}
	x.byPair = [][]entry{nil}
	for pair, list := range lists {
		x.first[pair] = uint16(len(x.byPair))
		x.byPair = append(x.byPair, list)
	}
	x.words = nil
}

// findWords looks for the words in a folded text.
func (x *index) findWords(text string) satisfied {
	groups := make(satisfied, x.groups)
	for i := range len(text) {
		pair := int(text[i]) << 8
		if i+1 < len(text) {
			pair |= int(text[i+1])
		}
		for _, e := range x.byPair[x.first[pair]] {
			if e.standsAt(text, i) {
				for _, g := range e.groups {
					groups[g] = true
				}
			}
		}
	}
	return groups
}

// standsAt reports whether the word stands at place i.
func (e entry) standsAt(text string, i int) bool {
	if !strings.HasPrefix(text[i:], e.word) {
		return false
	}
	return (!e.begin || isWordEdge(text, i)) && (!e.end || isWordEdge(text, i+len(e.word)))
}

// isWordEdge is \b of patterns.
func isWordEdge(text string, i int) bool {
	return (i > 0 && wordByte(text[i-1])) != (i < len(text) && wordByte(text[i]))
}

func wordByte(c byte) bool { return classOf(c) != 0 || c == '_' }

// hasAll reports whether the groups are satisfied.
func (s satisfied) hasAll(groups []int) bool {
	for _, g := range groups {
		if !s[g] {
			return false
		}
	}
	return true
}
