package problem

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2/validation"

	"github.com/forewarm/forewarm/contract"
)

// rule is a kind of rule that a schema can have: how huma tells that it is
// broken, and how we do.
type rule struct {
	told    string // huma's format, with at most one verb, for what bounds the value
	code    string
	message string // %s: the bound
	fix     string // %s: the field; empty: nothing better than the rule can be advised
}

// required is the code of what is missing.
const required = "required"

const (
	anInstant = "must be a time with its offset (RFC 3339), such as 2026-03-02T09:00:00Z"
	anAddress = "must be an e-mail address, such as ada@example.com"
)

// rules are tried in order, so that the formats of text come before the pattern
// whose beginning they share.
var rules = []rule{
	{validation.MsgExpectedMinimumNumber, "minimum", "must be at least %s", "Send a larger %s"},
	{validation.MsgExpectedMaximumNumber, "maximum", "must be at most %s", "Send a smaller %s"},
	{validation.MsgExpectedExclusiveMinimumNumber, "exclusive-minimum", "must be more than %s", "Send a larger %s"},
	{validation.MsgExpectedExclusiveMaximumNumber, "exclusive-maximum", "must be less than %s", "Send a smaller %s"},
	{validation.MsgExpectedNumberBeMultipleOf, "multiple-of", "must be a multiple of %s", "Send another %s"},
	{validation.MsgExpectedMinLength, "min-length", "must be at least %s long", "Send a longer %s"},
	{validation.MsgExpectedMaxLength, "max-length", "must be at most %s long", "Send a shorter %s"},
	{validation.MsgExpectedMinItems, "min-items", "must hold at least %s", "Send more in %s"},
	{validation.MsgExpectedMaxItems, "max-items", "must hold at most %s", "Send less in %s"},
	{validation.MsgExpectedArrayItemsUnique, "unique-items", "must not have duplicates",
		"Send each value of %s once"},
	{validation.MsgExpectedOneOf, "enum", "must be one of %s", "Send one of these as %s"},
	{validation.MsgExpectedRequiredProperty, required, "is missing", "Add %s"},
	{"required query parameter is missing", required, "is missing", "Add %s"},
	{"required header parameter is missing", required, "is missing", "Add %s"},
	{validation.MsgExpectedRFC3339DateTime, "format", anInstant, "Send such a time as %s"},
	{"invalid date/time for format %s", "format", anInstant, "Send such a time as %s"},
	{validation.MsgExpectedRFC5322Email, "format", anAddress, "Send such an address as %s"},
	{validation.MsgExpectedBase64String, "format", "must be base64", "Encode %s"},
	{validation.MsgExpectedBePattern, "pattern", "must be %s", "Send such a %s"},
	{validation.MsgExpectedMatchPattern, "pattern", "must match the pattern %s", "Send such a %s"},
	{validation.MsgExpectedInteger, "type", "must be a whole number", "Send a whole number as %s"},
	{"invalid integer", "type", "must be a whole number", "Send a whole number as %s"},
	{validation.MsgExpectedNumber, "type", "must be a number", "Send a number as %s"},
	{"invalid float", "type", "must be a number", "Send a number as %s"},
	{validation.MsgExpectedBoolean, "type", "must be true or false", "Send true or false as %s"},
	{"invalid boolean", "type", "must be true or false", "Send true or false as %s"},
	{validation.MsgExpectedString, "type", "must be text", "Send text as %s"},
	{validation.MsgExpectedArray, "type", "must be a list", "Send a list as %s"},
	{validation.MsgExpectedObject, "type", "must be an object", "Send an object as %s"},
	{"unknown query parameter", "unknown-field", "is not a parameter of this request", "Leave %s out"},
	{"expected at most one value, but received multiple values", "max-items", "must be given once", "Send %s once"},
}

// findBrokenRule finds the rule that a message of huma's tells of, and what it bounds the
// value by. What no rule fits is told as it came.
func findBrokenRule(message string) (rule, string) {
	for _, r := range rules {
		if bound, ok := r.parseBound(message); ok {
			return r, bound
		}
	}
	return rule{code: "invalid", message: message}, ""
}

// parseBound reads back what a message was made from.
func (r rule) parseBound(message string) (string, bool) {
	before, after, verb := strings.Cut(r.told, "%")
	if !verb {
		return "", message == r.told
	}
	rest, begins := strings.CutPrefix(message, before)
	bound, ends := strings.CutSuffix(rest, after[1:])
	return bound, begins && ends
}

// wayOut says how to keep the rule for a field.
func (r rule) wayOut(field string) string {
	if r.fix == "" {
		return ""
	}
	return fmt.Sprintf(r.fix, field)
}

// fieldError is the rule as it binds the field of that name.
func (r rule) fieldError(name, bound string) contract.FieldError {
	e := contract.FieldError{Code: r.code, Message: r.message}
	switch {
	case r.code == "enum":
		e.Allowed = strings.Split(bound, ", ")
	case r.code != "pattern" && bound != "":
		bound = r.noteLimit(&e, name, bound)
	}
	switch {
	case e.Limit != nil && *e.Limit == 1 && strings.HasPrefix(r.code, "min-"):
		e.Message = "must not be empty"
	case strings.Contains(r.message, "%s"):
		e.Message = fmt.Sprintf(r.message, bound)
	}
	return e
}

// noteLimit notes a bound that is a number, and returns it as people read it.
func (r rule) noteLimit(e *contract.FieldError, name, bound string) string {
	limit, err := strconv.ParseFloat(bound, 64)
	if err != nil {
		return bound
	}
	switch {
	case strings.HasSuffix(r.code, "-length"):
		e.Unit = contract.UnitCharacters
	case strings.HasSuffix(r.code, "-items"):
		e.Unit = contract.UnitItems
	default:
		e.Unit = unitOf(name)
	}
	e.Limit = &limit
	return formatQuantity(limit, e.Unit)
}

// unitOf is what the number in a field counts, which its name ends in.
func unitOf(name string) string {
	switch {
	case strings.HasSuffix(name, "_seconds"):
		return contract.UnitSeconds
	case strings.HasSuffix(name, "_mib"):
		return contract.UnitMiB
	case name == "days":
		return contract.UnitDays
	case name == "hours":
		return contract.UnitHours
	}
	return ""
}

// formatQuantity writes a number of a unit, without exponents.
func formatQuantity(n float64, unit string) string {
	text := strconv.FormatFloat(n, 'f', -1, 64)
	switch unit {
	case contract.UnitSeconds:
		return text + " s" + inLargestUnit(n)
	case contract.UnitMiB:
		return text + " MiB"
	case contract.UnitDays, contract.UnitHours, contract.UnitCharacters:
		return formatCount(text, strings.TrimSuffix(unit, "s"))
	}
	return text
}

// inLargestUnit tells a number of seconds again in the largest unit that divides it.
func inLargestUnit(n float64) string {
	for _, unit := range []struct {
		name    string
		seconds int64
	}{{"day", 86400}, {"hour", 3600}, {"minute", 60}} {
		if whole := int64(n); float64(whole) == n && whole > 0 && whole%unit.seconds == 0 {
			return " (" + formatCount(strconv.FormatInt(whole/unit.seconds, 10), unit.name) + ")"
		}
	}
	return ""
}

func formatCount(n, noun string) string {
	if n == "1" {
		return n + " " + noun
	}
	return n + " " + noun + "s"
}
