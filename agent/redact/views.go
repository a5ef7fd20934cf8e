package redact

import (
	"html"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// view is a reading of the base text. Byte i of text was made from the bytes
// from[i] to to[i] of the base text; without these, it is the base text.
type view struct {
	text     string
	from, to []int32
}

// listViews returns the readings that differ from each other.
func listViews(base string) []view {
	whole := view{text: base}
	all := listReadings(whole.rewriteMatches(sequences).rewriteMatches(orphans))
	if !isASCII(base) && controls.MatchString(base) {
		all = append(all, listReadings(whole.rewriteMatches(orphans))...)
	}
	return all
}

// listReadings returns a view as it stands, decoded, decoded and joined, and joined alone: what divides a secret may
// look like an escape together with what comes after it.
func listReadings(first view) []view {
	all := []view{first.rewriteMatches(spaces)}
	decoded := first.rewriteMatches(escapes).rewriteMatches(escapes)
	others := []view{decoded.rewriteMatches(spaces), decoded.rewriteMatches(joints), first.rewriteMatches(joints)}
	for _, v := range others {
		if v.text != all[len(all)-1].text {
			all = append(all, v)
		}
	}
	return all
}

// withOrigins returns the view with the places that its bytes were made from.
func (v view) withOrigins() view {
	if v.from != nil {
		return v
	}
	v.from, v.to = make([]int32, len(v.text)), make([]int32, len(v.text))
	for i := range len(v.text) {
		v.from[i], v.to[i] = int32(i), int32(i+1)
	}
	return v
}

// originOf returns what part of the base text a span of the view was made from.
func (v view) originOf(s span) span {
	if v.from != nil {
		s.from, s.to = int(v.from[s.from]), int(v.to[s.to-1])
	}
	return s
}

// rewrite replaces each match of re by what with returns for it; an empty result
// takes the match out.
type rewrite struct {
	begins *set           // the bytes that matches begin with
	re     *regexp.Regexp // at the beginning of a text
	with   func(match string) string
}

// findMatches returns the places of all matches.
func (w rewrite) findMatches(text string) [][]int {
	var all [][]int
	for i := 0; i < len(text); i++ {
		if !w.begins.has(text[i]) {
			continue
		}
		if m := w.re.FindStringIndex(text[i:]); m != nil {
			all = append(all, []int{i, i + m[1]})
			i += m[1] - 1
		}
	}
	return all
}

var spaces = rewrite{setOf(weakSpace[:1]), atStart(weakSpace), func(string) string { return " " }}

// sequences and orphans take out terminal sequences and the control characters
// that are left.
var (
	sequences = rewrite{terminal, atStart(ansi.String()), func(string) string { return "" }}
	orphans   = rewrite{terminal, atStart(controls.String()), func(string) string { return "" }}
)

// escapes are the ways to write a character by its number: URL, C and JSON
// strings, and HTML; and terminal sequences that are written so.
var escapes = rewrite{
	setOf(`\%&`),
	atStart(`(?:\\x1[bB]|\\u001[bB]|\\033|\\e)\[[0-9;]*[A-Za-z]|%[0-9A-Fa-f]{2}|\\x[0-9A-Fa-f]{2}|` +
		`\\u[0-9A-Fa-f]{4}|\\[0-3][0-7]{2}|&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[a-z]{2,6});`),
	unescapeMatch,
}

// joints are what divides a secret without belonging to it: quotes with what
// joins two strings between them, escapes of line ends, mark-up tags and unusual
// spaces.
var joints = rewrite{
	setOf("\"'`\\<" + weakSpace[:1]),
	atStart("[\"'`]\\s*[+.&,]?\\s*[\"'`]|\\\\[nrt]|[\"'`\\\\]|</?[A-Za-z][^<>]{0,40}>|" + weakSpace),
	func(string) string { return "" },
}

func unescapeMatch(match string) string {
	switch {
	case strings.Contains(match, "["): // A terminal sequence that was written out.
		return ""
	case match[0] == '&':
		return strings.Map(plainRune, html.UnescapeString(match))
	case match[0] == '%':
		return characterOf(match[1:], 16)
	case match[1] == 'x' || match[1] == 'u':
		return characterOf(match[2:], 16)
	default:
		return characterOf(match[1:], 8)
	}
}

func characterOf(digits string, base int) string {
	n, err := strconv.ParseUint(digits, base, 21)
	if err != nil {
		return ""
	}
	r := plainRune(rune(n))
	if r < 0 || !utf8.ValidRune(r) {
		return ""
	}
	return string(r)
}

// rewriteMatches returns the view with every match rewritten.
func (v view) rewriteMatches(w rewrite) view {
	matches := w.findMatches(v.text)
	if matches == nil {
		return v
	}
	v = v.withOrigins()
	out := view{from: make([]int32, 0, len(v.text)), to: make([]int32, 0, len(v.text))}
	var text strings.Builder
	text.Grow(len(v.text))
	at := 0
	for _, m := range matches {
		text.WriteString(v.text[at:m[0]])
		out.from, out.to = append(out.from, v.from[at:m[0]]...), append(out.to, v.to[at:m[0]]...)
		with := w.with(v.text[m[0]:m[1]])
		text.WriteString(with)
		for range len(with) {
			out.from, out.to = append(out.from, v.from[m[0]]), append(out.to, v.to[m[1]-1])
		}
		at = m[1]
	}
	text.WriteString(v.text[at:])
	out.from, out.to = append(out.from, v.from[at:]...), append(out.to, v.to[at:]...)
	out.text = text.String()
	return out
}
