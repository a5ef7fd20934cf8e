package api

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// textRule is what a schema demands of a text.
type textRule struct {
	min, max *int // in characters
	pattern  func(string) bool
	enum     []string
}

func (r textRule) allows(text string) bool {
	n := utf8.RuneCountInString(text)
	return (r.min == nil || n >= *r.min) && (r.max == nil || n <= *r.max) &&
		(r.pattern == nil || r.pattern(text)) && (r.enum == nil || slices.Contains(r.enum, text))
}

// textRuleOf is what a schema demands of a text; false: it demands something else.
func textRuleOf(s *huma.Schema) (textRule, bool) {
	rule := textRule{min: s.MinLength, max: s.MaxLength}
	if s.Type != huma.TypeString || s.Ref != "" || isComposed(s) || s.Format != "" {
		return rule, false
	}
	if s.Pattern != "" {
		rule.pattern = matcherOf(s.Pattern)
	}
	for _, one := range s.Enum {
		text, ok := one.(string)
		if !ok {
			return rule, false
		}
		rule.enum = append(rule.enum, text)
	}
	return rule, true
}

// matcherOf matches texts with a pattern. One that only says which characters a text
// has, such as ^[!-~]+$, needs no regular expression.
func matcherOf(pattern string) func(string) bool {
	of, err := syntax.Parse(pattern, syntax.Perl)
	if err == nil && of.Op == syntax.OpConcat && len(of.Sub) == 3 && of.Sub[0].Op == syntax.OpBeginText &&
		of.Sub[1].Op == syntax.OpPlus && of.Sub[1].Sub[0].Op == syntax.OpCharClass && of.Sub[2].Op == syntax.OpEndText {
		return consistsOf(of.Sub[1].Sub[0].Rune)
	}
	return regexp.MustCompile(pattern).MatchString
}

// consistsOf matches texts, of one character or more, which are all within the ranges.
func consistsOf(ranges []rune) func(string) bool {
	return func(text string) bool {
		for _, c := range text {
			within := false
			for i := 0; i+1 < len(ranges) && !within; i += 2 {
				within = ranges[i] <= c && c <= ranges[i+1]
			}
			if !within {
				return false
			}
		}
		return text != ""
	}
}
