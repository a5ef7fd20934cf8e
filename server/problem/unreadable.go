package problem

import (
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/contract"
)

// Unreadable is the problem of a body that fits its schema and still cannot be read, such as one with 1e3 where a whole
// number is to be, which is the same to a schema; false: err is something else. Fields lie in place, as in "request.";
// empty: at the top of the body.
func Unreadable(place string, err error) (*Problem, bool) {
	field, e, fix, ok := findUnreadable(err.Error())
	if !ok {
		return nil, false
	}
	return New(contract.CodeValidationFailed, "").addError("body."+place+field, e, fix), true
}

// findUnreadable finds the field in what encoding/json says, and the rule that it breaks. It is read from the words, as
// huma hands on no more.
func findUnreadable(message string) (field string, e contract.FieldError, fix string, ok bool) {
	what, isJSON := strings.CutPrefix(message, "json: cannot unmarshal ")
	value, rest, isField := strings.Cut(what, " into Go struct field ")
	place, kind, isTyped := strings.Cut(rest, " of type ")
	_, field, isNamed := strings.Cut(place, ".")
	if !isJSON || !isField || !isTyped || !isNamed {
		return "", e, "", false
	}
	number, isNumber := strings.CutPrefix(value, "number ")
	if isNumber && strings.Contains(kind, "int") {
		e, fix = notWhole(field, number)
		return field, e, fix, true
	}
	return field, contract.FieldError{Code: "type", Message: "cannot be read as what it is to be"},
		"Send " + field + " as /openapi.json describes it", true
}

// notWhole is the rule of whole numbers for one that is not written as such, or is too large for any.
func notWhole(field, number string) (e contract.FieldError, fix string) {
	e = contract.FieldError{Code: "type",
		Message: "must be a whole number in digits alone, without a fraction or an exponent"}
	value, err := strconv.ParseFloat(number, 64)
	const most = 1 << 53 // whole numbers up to it are exact
	switch {
	case err == nil && value > -most && value < most && value == float64(int64(value)):
		return e, "Send " + field + " as " + strconv.FormatInt(int64(value), 10)
	case strings.ContainsAny(number, ".eE"):
		return e, "Send a whole number as " + field
	case strings.HasPrefix(number, "-"):
		return contract.FieldError{Code: "minimum", Message: "is too small"}, "Send a larger " + field
	}
	return contract.FieldError{Code: "maximum", Message: "is too large"}, "Send a smaller " + field
}
