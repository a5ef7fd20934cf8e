// Package redact takes secrets and names out of raw text before it may go to
// the customer's own language model.
//
// A line is first made plain: escape sequences, control and invisible
// characters are removed and look-alike characters replaced. Detectors then
// look at three views of it: as it stands, with escapes such as %41 or \u0041
// decoded, and with quotes, string joins and tags removed, so that a split or
// encoded secret is also found. What any view shows is cut out of the line.
//
// Patterns are slow, so each detector has conditions that are quick to check
// and that every match meets: words that a line must hold, shapes of numbers,
// places where a match may begin. They change no result; tests check that by
// searching without them as well. A new detector needs none.
//
// It errs on the side of cutting too much. A Redactor works on single lines, a
// Stream on those of one log, and so on secrets that span lines. No redactor finds
// every secret, which is why redacted text goes nowhere but to the model that the
// customer chose.
package redact

import (
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Scrubbed is text that has been through a Redactor. Only this package can make
// one that is not empty: a function that takes a Scrubbed cannot be handed raw
// text.
type Scrubbed struct{ text string }

// String returns the redacted text.
func (s Scrubbed) String() string { return s.text }

// MarshalText returns the redacted text.
func (s Scrubbed) MarshalText() ([]byte, error) { return []byte(s.text), nil }

// Count is how many pieces each detector cut out, by the detector's name.
type Count map[string]int

// Add adds the counts of other.
func (c Count) Add(other Count) {
	for name, n := range other {
		c[name] += n
	}
}

// Config says what to cut out beside what the detectors find. The zero value is
// ready.
type Config struct {
	// Patterns are the customer's own regular expressions (RE2). They are applied
	// to the plain text, where every match is cut out.
	Patterns []string
	// Words are names to cut out wherever they stand, in any case: the login name,
	// the host name, project names. Words under 3 letters are refused.
	Words []string
	// MaxLine is the longest result in bytes; 0 means 2 KiB.
	MaxLine int
}

// Redactor cuts secrets out of lines. It is safe for concurrent use.
type Redactor struct {
	detectors []detector
	index     index          // of the words that the detectors need
	groups    [][]int        // of words that each detector needs
	marks     *regexp.Regexp // of what was cut out
	maxLine   int
}

// New returns a Redactor, or the first pattern or word that cannot be used.
func New(c Config) (*Redactor, error) {
	if c.MaxLine < 0 {
		return nil, errors.New("making a redactor: the longest line must not be negative")
	}
	r := &Redactor{detectors: slices.Clone(builtin), maxLine: c.MaxLine}
	if r.maxLine == 0 {
		r.maxLine = 2 << 10
	}
	for i, p := range c.Patterns {
		re, err := regexp.Compile(p)
		if err != nil {
			return nil, fmt.Errorf("making a redactor: pattern %d: %w", i+1, err)
		}
		if re.MatchString("") {
			return nil, fmt.Errorf("making a redactor: pattern %d matches the empty text and so everything", i+1)
		}
		r.detectors = append(r.detectors, detector{name: "custom", re: re})
	}
	for i, w := range c.Words {
		word := finishLine(toPlainText(w))
		if utf8.RuneCountInString(word) < 3 {
			return nil, fmt.Errorf("making a redactor: word %d is shorter than 3 letters", i+1)
		}
		r.detectors = append(r.detectors, detector{name: "word",
			re: regexp.MustCompile(`(?i)` + regexp.QuoteMeta(word))})
	}
	for _, d := range r.detectors {
		r.groups = append(r.groups, r.index.addNeed(d.need))
	}
	r.index.buildIndex()
	r.marks = regexp.MustCompile(`\[redacted:(?:` +
		strings.Join(append(Names(), "custom", "word", "encoded", "line"), "|") + `)\]`)
	return r, nil
}

// Names returns the names of the built-in detectors, in order of precedence.
func Names() []string {
	var names []string
	for _, d := range builtin {
		names = append(names, d.name)
	}
	return slices.Compact(names)
}

// Redact returns the line without what the detectors find, each piece replaced
// by "[redacted:name]". Any input is safe, and work is bounded by the longest
// line of the configuration. What was redacted stays as it is: cutting out one
// piece can show another, so it is done until nothing is found.
func (r *Redactor) Redact(line string) (Scrubbed, Count) {
	text, count := boundLine(line, 8*r.maxLine), Count{}
	for range passes {
		once, found := r.redactOnce(text)
		count.Add(found)
		if once == text || len(found) == 0 && once == finishLine(toPlainText(once)) {
			return Scrubbed{text: once}, count
		}
		text = once
	}
	count.Add(Count{"line": 1})
	return Scrubbed{text: "[redacted:line]"}, count
}

// passes is how often a line is looked at; one that still shows something is cut out whole.
const passes = 6

// redactOnce redacts what stands between the marks of earlier passes.
func (r *Redactor) redactOnce(text string) (string, Count) {
	var out strings.Builder
	count, at := Count{}, 0
	between := func(piece string) {
		base := toPlainText(piece)
		clean, found := cutSpans(base, r.findSecrets(base))
		out.WriteString(tidyPiece(clean))
		count.Add(found)
	}
	for _, m := range r.marksIn(text) {
		between(text[at:m[0]])
		out.WriteString(text[m[0]:m[1]])
		at = m[1]
	}
	between(text[at:])
	return truncateText(strings.TrimSpace(out.String()), r.maxLine), count
}

// marksIn returns where the marks of earlier passes are.
func (r *Redactor) marksIn(text string) [][]int {
	if !strings.Contains(text, "[redacted:") {
		return nil
	}
	return r.marks.FindAllStringIndex(text, -1)
}

// boundLine cuts a line that is too long to look at, at a space, so that no half of
// a secret escapes its detector.
func boundLine(line string, limit int) string {
	if len(line) <= limit {
		return line
	}
	line = line[:limit]
	if i := strings.LastIndexAny(line, " \t"); i >= 0 {
		return line[:i]
	}
	return ""
}

// truncateText cuts redacted text between two characters.
func truncateText(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	text = text[:limit]
	if i := strings.LastIndex(text, "[redacted:"); i >= 0 && !strings.Contains(text[i:], "]") {
		text = text[:i] // half a mark would be taken for text
	}
	return strings.TrimSpace(text)
}

// span is a piece of the base text and the rank of the detector that found it.
type span struct {
	from, to int
	name     string
}

// findSecrets returns what the detectors see in any view, as spans of the base text.
func (r *Redactor) findSecrets(base string) []span {
	var found []span
	for _, v := range listViews(base) {
		for s := range r.seenIn(v.text) {
			found = append(found, v.originOf(s))
		}
		for _, s := range r.encodedSecrets(v.text) {
			found = append(found, v.originOf(s))
		}
	}
	return found
}

// seenIn yields what the detectors see in a text, the first detector's first.
func (r *Redactor) seenIn(text string) iter.Seq[span] {
	return func(yield func(span) bool) {
		words := r.index.findWords(foldCase(text))
		for i, d := range r.detectors {
			if !words.hasAll(r.groups[i]) {
				continue
			}
			for _, s := range d.findGroups(text) {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// cutSpans replaces the spans in text. Spans that overlap become one, which is named
// after the first found.
func cutSpans(text string, found []span) (string, Count) {
	count := Count{}
	slices.SortStableFunc(found, func(a, b span) int { return a.from - b.from })
	var out strings.Builder
	at := 0
	for i := 0; i < len(found); {
		s := found[i]
		for i++; i < len(found) && found[i].from < s.to; i++ {
			s.to = max(s.to, found[i].to)
		}
		out.WriteString(text[at:s.from])
		out.WriteString("[redacted:" + s.name + "]")
		count[s.name]++
		at = s.to
	}
	out.WriteString(text[at:])
	return out.String(), count
}
