package placement

import (
	"slices"
	"strings"
)

// Term is a condition on the labels of a node. As a word of a set it is written as String says, and a set covers it
// where its labels meet it.
type Term struct {
	Key    string
	Not    bool     // the node must not be so
	Values []string // of which the label has one; none: whatever it has
}

// ParseTerm reads a condition: key, !key, key=value, key!=value, key in (a, b) or key notin (a, b). It returns false
// for what has no key, or no value where some belong; what characters they have is for others to say.
func ParseTerm(text string) (Term, bool) {
	if head, list, isList := strings.Cut(text, "("); isList {
		return parseList(head, list)
	}
	if key, isNot := strings.CutPrefix(text, "!"); isNot {
		return Term{Key: key, Not: true}, isKey(key)
	}
	if key, value, isNot := strings.Cut(text, "!="); isNot {
		return Term{Key: key, Not: true, Values: []string{value}}, isKey(key) && !strings.ContainsAny(value, "=!, ")
	}
	key, value, hasValue := strings.Cut(text, "=")
	if !hasValue {
		return Term{Key: key}, isKey(key)
	}
	return Term{Key: key, Values: []string{value}}, isKey(key) && !strings.ContainsAny(value, "=!, ")
}

func isKey(text string) bool { return text != "" && !strings.ContainsAny(text, "=!(), \n") }

// parseList reads what is before and behind the bracket of a list.
func parseList(head, list string) (Term, bool) {
	words := strings.Fields(head)
	list, closed := strings.CutSuffix(strings.TrimSpace(list), ")")
	if len(words) != 2 || !closed || words[1] != "in" && words[1] != "notin" || !isKey(words[0]) {
		return Term{}, false
	}
	t := Term{Key: words[0], Not: words[1] == "notin"}
	for value := range strings.SplitSeq(list, ",") {
		value = strings.TrimSpace(value)
		if value == "" || strings.ContainsAny(value, "=!() \n") {
			return Term{}, false
		}
		t.Values = append(t.Values, value)
	}
	slices.Sort(t.Values)
	t.Values = slices.Compact(t.Values)
	return t, true
}

// String writes the term in one way, whatever it was read from.
func (t Term) String() string {
	switch {
	case len(t.Values) == 0 && t.Not:
		return "!" + t.Key
	case len(t.Values) == 0:
		return t.Key
	case len(t.Values) == 1 && t.Not:
		return t.Key + "!=" + t.Values[0]
	case len(t.Values) == 1:
		return t.Key + "=" + t.Values[0]
	case t.Not:
		return t.Key + " notin (" + strings.Join(t.Values, ",") + ")"
	}
	return t.Key + " in (" + strings.Join(t.Values, ",") + ")"
}

// NewTerms returns the set of these conditions, each written in one way: who asks the same is alike.
func NewTerms(conditions ...string) Set {
	words := make([]string, 0, len(conditions))
	for _, text := range conditions {
		if t, ok := ParseTerm(text); ok {
			text = t.String()
		}
		words = append(words, text)
	}
	return NewSet(words...)
}

// met reports whether labels, as key=value and key, meet the term.
func (t Term) met(labels []string) bool {
	has := func(word string) bool {
		_, found := slices.BinarySearch(labels, word)
		return found
	}
	if len(t.Values) == 0 {
		return has(t.Key) != t.Not
	}
	return slices.ContainsFunc(t.Values, func(v string) bool { return has(t.Key + "=" + v) }) != t.Not
}

// isCondition reports whether a word is more than a label.
func isCondition(word string) bool { return strings.ContainsAny(word, "!(") }

// meets reports whether labels have a word, or meet the condition that it is.
func meets(labels []string, word string) bool {
	if _, found := slices.BinarySearch(labels, word); found || !isCondition(word) {
		return found
	}
	t, ok := ParseTerm(word)
	return ok && t.met(labels)
}
