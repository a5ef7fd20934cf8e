package redact

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// matchShapes is the condition that a part of the text looks like one of the pictures. In these, 0 stands for
// a digit, x for a digit of hex, A for a capital, ; for a colon or a hyphen, _ for a colon or a space,
// and any other character for itself.
func matchShapes(drawings ...string) func(string) bool {
	var all []picture
	for _, drawing := range drawings {
		all = append(all, pictureOf(drawing))
	}
	return func(text string) bool {
		return slices.ContainsFunc(all, func(p picture) bool { return p.occursIn(text) })
	}
}

// picture is what the bytes of a part of a text may be. It is looked for by the byte at anchor, where few fit: those in
// rare.
type picture struct {
	bytes  []*set
	anchor int
	rare   string
}

// pictured are the characters that a sign of a picture stands for, if not itself.
var pictured = map[rune]string{'0': digits, 'x': digits + "abcdefABCDEF", 'A': letters[:26], ';': ":-", '_': ": "}

func pictureOf(drawing string) picture {
	p := picture{rare: letters + digits}
	for i, sign := range drawing {
		characters := pictured[sign]
		if characters == "" {
			characters = string(sign)
		}
		p.bytes = append(p.bytes, setOf(characters))
		if len(characters) < len(p.rare) {
			p.anchor, p.rare = i, characters
		}
	}
	return p
}

// occursIn reports whether a part of the text looks like the picture.
func (p picture) occursIn(text string) bool {
	for at := 0; ; at++ {
		i := p.nextRare(text[min(at+p.anchor, len(text)):])
		if i < 0 || at+i+len(p.bytes) > len(text) {
			return false
		}
		if at += i; p.matchesAt(text[at:]) {
			return true
		}
	}
}

func (p picture) nextRare(text string) int {
	if len(p.rare) == 1 {
		return strings.IndexByte(text, p.rare[0])
	}
	for i := range len(text) {
		if p.bytes[p.anchor].has(text[i]) {
			return i
		}
	}
	return -1
}

func (p picture) matchesAt(text string) bool {
	for i, s := range p.bytes {
		if !s.has(text[i]) {
			return false
		}
	}
	return true
}

// manyDigits is the condition that so many digits follow each other, with at most one space or hyphen between two.
func manyDigits(least int) func(string) bool {
	return func(text string) bool {
		digits, divided := 0, true
		for i := range len(text) {
			switch c := text[i]; {
			case c >= '0' && c <= '9':
				if digits++; digits == least {
					return true
				}
				divided = false
			case (c == ' ' || c == '-') && !divided:
				divided = true
			default:
				digits, divided = 0, true
			}
		}
		return false
	}
}

// manyHex is the condition that 32 digits of hex follow each other, or 16 pairs of them.
func manyHex(text string) bool {
	for range inHex.findRuns(text, 32) {
		return true
	}
	return hexPairs(text)
}

var hexPairs = matchShapes("xx_xx_xx_xx_xx_xx_xx_xx_xx_xx_xx_xx_xx_xx_xx_xx")

// colonsOfIPv6 is the condition of an address of IPv6: eight groups, or a gap.
func colonsOfIPv6(text string) bool {
	return strings.Contains(text, "::") || strings.Count(text, ":") >= 7
}

// headOfSyslog is the condition of a priority or a month at the beginning.
func headOfSyslog(text string) bool { return text != "" && (text[0] == '<' || classOf(text[0]) == 1) }

// hasFiveFields is the condition that a word has five fields with colons between them.
func hasFiveFields(text string) bool {
	for from, to := range inField.findRuns(text, 8) {
		if strings.Count(text[from:to], ":") >= 4 {
			return true
		}
	}
	return false
}

// set is a set of bytes.
type set [256]bool

func setOf(characters string) *set {
	var s set
	for i := range len(characters) {
		s[characters[i]] = true
	}
	return &s
}

func (s *set) has(c byte) bool { return s[c] }

// findRuns yields the longest pieces of text that are made of the set alone, of the given size or longer,
// from one place to another.
func (s *set) findRuns(text string, size int) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		from := 0
		for i := 0; i <= len(text); i++ {
			if i < len(text) && s.has(text[i]) {
				continue
			}
			if i-from >= size && !yield(from, i) {
				return
			}
			from = i + 1
		}
	}
}

const letters, digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", "0123456789"

// inName, inWord, inPacked and inShort are the characters of secretName, of the rule for random words, of words that
// may be encoded, and of short with its padding.
var (
	inName   = setOf(letters + digits + "_.-")
	inWord   = setOf(letters + digits + "+/=_~.-")
	inPacked = setOf(letters + digits + "+/_-")
	inField  = setOf(letters + digits + "_.*@:-")
	inHex    = setOf(digits + "abcdefABCDEF")
	inShort  = setOf(letters + digits + "+/=")
)

// namedValues returns where a secretName begins that has a sign behind it, and the quote behind that.
func namedValues(quote string) func(string) []int {
	return func(text string) (starts []int) {
		for from, to := range inName.findRuns(text, 2) {
			after := strings.TrimLeft(strings.TrimLeft(text[to:], `"']`), space)
			value := strings.TrimLeft(strings.TrimLeft(after, ":=>"), space)
			if len(after) > len(value) && strings.HasPrefix(value, quote) && namesSecret(text[from:to]) {
				starts = append(starts, from)
			}
		}
		return starts
	}
}

// flagValues returns where a secretName begins that is an option, with its value behind a space.
func flagValues(text string) (starts []int) {
	for from, to := range inName.findRuns(text, 3) {
		hyphen := strings.IndexByte(text[from:to], '-')
		if hyphen >= 0 && to < len(text) && strings.IndexByte(space, text[to]) >= 0 && namesSecret(text[from:to]) {
			starts = append(starts, from+hyphen)
		}
	}
	return starts
}

// wordsAt returns where one of the words may begin, in any case; before says where a word can. A letter that is not
// ASCII may begin or be in any word.
func wordsAt(before func(text string, i int) bool, words []string) func(string) []int {
	var byFirst [utf8.RuneSelf][]string
	for _, word := range words {
		word, _, _ = strings.Cut(strings.Map(onlyASCII, word), "\x00")
		if word != "" {
			byFirst[word[0]] = append(byFirst[word[0]], word)
		}
	}
	return func(text string) (starts []int) {
		for i := range text {
			if (text[i] >= utf8.RuneSelf || beginsWithAny(text[i:], byFirst[lowerASCII(text[i])])) && before(text, i) {
				starts = append(starts, i)
			}
		}
		return starts
	}
}

func beginsWithAny(text string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return beginsWith(text, word) })
}

func onlyASCII(r rune) rune {
	if r >= utf8.RuneSelf {
		return 0
	}
	return unicode.ToLower(r)
}

func lowerASCII(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// beginsWith reports whether a text begins with a word, which is given in lower case, in any case.
func beginsWith(text, word string) bool {
	if len(text) < len(word) {
		return false
	}
	for i := range len(word) {
		if lowerASCII(text[i]) != word[i] {
			return false
		}
	}
	return true
}

// noLetterBefore is (?:^|[^\pL]) of patterns.
func noLetterBefore(text string, i int) bool {
	r, _ := utf8.DecodeLastRuneInString(text[:i])
	return i == 0 || !unicode.IsLetter(r)
}

// dottedQuads returns the places of digits from which an address of IPv4 may begin: up to three, a point,
// more digits and another point.
func dottedQuads(text string) (starts []int) {
	for i := range len(text) - 1 {
		if text[i+1] != '.' {
			continue
		}
		next := i + 2
		for next < len(text) && classOf(text[next]) == 3 {
			next++
		}
		if next == i+2 || next == len(text) || text[next] != '.' {
			continue
		}
		from := i + 1
		for from > 0 && from > i-2 && classOf(text[from-1]) == 3 {
			from--
		}
		for ; from <= i; from++ {
			starts = append(starts, from)
		}
	}
	return starts
}

// space is \s of patterns.
const space = "\t\n\f\r "

// namesSecret reports whether a word can be a secretName.
func namesSecret(word string) bool {
	word = strings.ToLower(word)
	return slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(word, w) })
}

// disorderlyWords returns where the words begin that are not orderly.
func disorderlyWords(text string) (starts []int) {
	for from, to := range inWord.findRuns(text, 16) {
		if !isOrderly(text[from:to], "") {
			starts = append(starts, from)
		}
	}
	return starts
}

// shortlyCoded is the condition of a word that is text when decoded, as shortly reads it.
func shortlyCoded(text string) bool {
	for from, to := range inShort.findRuns(text, 7) {
		bare := strings.TrimRight(text[from:to], "=")
		word := text[from+strings.LastIndexByte(bare, '=')+1 : to]
		if shortCode(word) {
			return true
		}
	}
	return false
}
