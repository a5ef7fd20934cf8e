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

// needs reads a need: | stands between words, " & " between groups. The empty need holds for every text.
func needs(text string) need {
	var n need
	for group := range strings.SplitSeq(text, " & ") {
		if group != "" {
			n = append(n, strings.Split(group, "|"))
		}
	}
	return n
}

// ended needs one of the words where no letter follows it.
func ended(words []string) need {
	words = slices.Clone(words)
	for i, word := range words {
		if wordByte(word[len(word)-1]) {
			words[i] += `\b`
		}
	}
	return need{words}
}

// spellings are the texts that a pattern matches. It must be made of letters, groups, alternatives and question marks
// alone.
func spellings(pattern string) []string {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		panic(err) // the patterns are constants
	}
	return spelled(tree)
}

func spelled(p *syntax.Regexp) []string {
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
		return append(spelled(p.Sub[0]), "")
	case syntax.OpEmptyMatch:
		return []string{""}
	case syntax.OpCapture:
		return spelled(p.Sub[0])
	case syntax.OpAlternate:
		var all []string
		for _, sub := range p.Sub {
			all = append(all, spelled(sub)...)
		}
		return all
	case syntax.OpConcat:
		all := []string{""}
		for _, sub := range p.Sub {
			var longer []string
			for _, begin := range all {
				for _, end := range spelled(sub) {
					longer = append(longer, begin+end)
				}
			}
			all = longer
		}
		return all
	}
	panic("redact: a pattern with more than spellings: " + p.String())
}

// fold maps the letters that patterns without case take for one another to one of them.
func fold(text string) string {
	if ascii(text) {
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

// ascii reports whether a text is of the characters from space to tilde alone.
func ascii(text string) bool {
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

// add returns the numbers of a need's groups.
func (x *index) add(n need) []int {
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
		e.word = fold(e.word)
		x.words[written] = e
	}
	e.groups = append(e.groups, group)
}

// build makes the index ready after the last add.
func (x *index) build() {
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

// find looks for the words in a folded text.
func (x *index) find(text string) satisfied {
	groups := make(satisfied, x.groups)
	for i := range len(text) {
		pair := int(text[i]) << 8
		if i+1 < len(text) {
			pair |= int(text[i+1])
		}
		for _, e := range x.byPair[x.first[pair]] {
			if e.at(text, i) {
				for _, g := range e.groups {
					groups[g] = true
				}
			}
		}
	}
	return groups
}

// at reports whether the word stands at place i.
func (e entry) at(text string, i int) bool {
	if !strings.HasPrefix(text[i:], e.word) {
		return false
	}
	return (!e.begin || edge(text, i)) && (!e.end || edge(text, i+len(e.word)))
}

// edge is \b of patterns.
func edge(text string, i int) bool {
	return (i > 0 && wordByte(text[i-1])) != (i < len(text) && wordByte(text[i]))
}

func wordByte(c byte) bool { return class(c) != 0 || c == '_' }

// all reports whether the groups are satisfied.
func (s satisfied) all(groups []int) bool {
	for _, g := range groups {
		if !s[g] {
			return false
		}
	}
	return true
}
