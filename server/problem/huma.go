package problem

import (
	"errors"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	"github.com/forewarm/forewarm/contract"
)

// FieldsKey is where an operation's metadata lists the fields that its body may
// have, a []string.
const FieldsKey = "fields"

// Install makes huma answer with problem documents. huma keeps its error maker
// in package variables, so that this is for the whole process.
var Install = sync.OnceFunc(func() {
	huma.ValidateStrictCasing = true
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		return fromHuma(nil, status, message, errs)
	}
	huma.NewErrorWithContext = func(ctx huma.Context, status int, message string, errs ...error) huma.StatusError {
		var names []string
		if ctx != nil && ctx.Operation() != nil {
			names, _ = ctx.Operation().Metadata[FieldsKey].([]string)
		}
		return fromHuma(names, status, message, errs)
	}
})

// OfSchema is the problem of a body that breaks its schema; names are the fields
// that it may have.
func OfSchema(names []string, errs []error) *Problem {
	p := New(contract.CodeValidationFailed, "")
	for _, err := range errs {
		var detail *huma.ErrorDetail
		if errors.As(err, &detail) {
			p = p.addDetail(detail, names)
		}
	}
	return p
}

// noBody is what huma says when a request lacks the body that its route needs.
const noBody = "request body is required"

// fromHuma makes a problem of what huma found wrong with a request.
func fromHuma(names []string, status int, message string, errs []error) huma.StatusError {
	var p *Problem
	for _, err := range errs {
		if errors.As(err, &p) {
			return p
		}
	}
	p = New(codeFor(status, errs), message)
	if message == noBody {
		return p.addError("body", contract.FieldError{Code: "required", Message: "is missing"},
			"Send one JSON object in UTF-8")
	}
	for _, err := range errs {
		var detail *huma.ErrorDetail
		if errors.As(err, &detail) {
			p = p.addDetail(detail, names)
		}
	}
	return p
}

var codes = map[int]string{
	http.StatusNotFound:              contract.CodeNotFound,
	http.StatusMethodNotAllowed:      contract.CodeMethodNotAllowed,
	http.StatusRequestEntityTooLarge: contract.CodeBodyTooLarge,
	http.StatusUnsupportedMediaType:  contract.CodeUnsupportedMediaType,
	http.StatusRequestTimeout:        contract.CodeTimeout,
	http.StatusBadRequest:            contract.CodeMalformedJSON,
	http.StatusUnprocessableEntity:   contract.CodeValidationFailed,
}

// codeFor tells apart wrong parameters, which are 400, from wrong bodies.
func codeFor(status int, errs []error) string {
	parameters := len(errs) > 0
	for _, err := range errs {
		var detail *huma.ErrorDetail
		if !errors.As(err, &detail) || strings.HasPrefix(detail.Location, "body") {
			parameters = false
		}
	}
	if parameters {
		return contract.CodeInvalidParameter
	}
	if code, ok := codes[status]; ok {
		return code
	}
	return contract.CodeInternal
}

// addDetail adds what is wrong with one value, and for a name that does not
// exist the closest one that does.
func (p *Problem) addDetail(d *huma.ErrorDetail, names []string) *Problem {
	if p.isFull() { // not even a closest name is looked for
		return p.countUnnamed()
	}
	location := clipPlace(d.Location)
	if d.Message == validation.MsgUnexpectedProperty {
		return p.unknownField(location, names)
	}
	if field, e, fix, ok := findUnreadable(d.Message); ok {
		return p.addError(location+"."+clipPlace(field), e, fix)
	}
	broke, bound := findBrokenRule(d.Message)
	if broke.code == required && bound != "" { // huma names the object that lacks it
		location, bound = location+"."+bound, ""
	}
	return p.addError(location, broke.fieldError(lastPart(location), bound), broke.wayOut(nameOfPlace(location)))
}

func (p *Problem) unknownField(location string, fields []string) *Problem {
	last, places := lastPart(location), parentsOf(fields)
	names := slices.Sorted(maps.Keys(places))
	e := contract.FieldError{Code: "unknown-field", Allowed: fieldsAt(location, fields),
		Message: "is not a field of this request"}
	near, ok := sameThing(last, names)
	if !ok {
		near, ok = Closest(last, names)
	}
	switch {
	case !ok:
		return p.addError(location, e, "Leave it out")
	case near != last:
		e.Message += "; did you mean " + near + "?"
		return p.addError(location, e, "Rename it to "+near)
	}
	place := "under " + places[last]
	if places[last] == "" {
		place = "at the top of the body"
	}
	e.Message = "is not a field here; it belongs " + place
	return p.addError(location, e, "Put it "+place)
}

// fieldsAt are the names that there are at a place of the body, beside the one that there is not.
func fieldsAt(location string, fields []string) (names []string) {
	under := indices.ReplaceAllString(strings.TrimSuffix(location, lastPart(location)), "")
	under = strings.TrimPrefix(strings.TrimPrefix(under, "body"), ".")
	for _, path := range fields {
		if name, ok := strings.CutPrefix(path, under); ok && !strings.Contains(name, ".") {
			names = append(names, name)
		}
	}
	return names
}

// indices are those of lists in a place of huma's.
var indices = regexp.MustCompile(`\[\d+\]`)

// sameThing is the field that asks for what answers call by another name: their
// pool_id is a request's pool, and the other way round.
func sameThing(wrong string, names []string) (string, bool) {
	bare := strings.TrimSuffix(strings.TrimSuffix(wrong, "_name"), "_id")
	for _, name := range []string{wrong, bare, bare + "_id"} {
		if slices.Contains(names, name) {
			return name, true
		}
	}
	return "", false
}

// parentsOf says of each name in a body what it is under; nothing is the top.
func parentsOf(fields []string) map[string]string {
	at := map[string]string{}
	for _, path := range fields {
		dot := strings.LastIndexByte(path, '.')
		name := path[dot+1:]
		if known, ok := at[name]; !ok || len(path)-len(name) < len(known) {
			at[name] = path[:max(dot, 0)]
		}
	}
	return at
}

// addError adds what is wrong at a place. The first is what the problem is about.
func (p *Problem) addError(location string, e contract.FieldError, fix string) *Problem {
	if e.Pointer = pointerTo(location); len(p.Errors) == 0 {
		p.Detail = nameOfPlace(location) + " " + e.Message
	}
	if p = p.Field(e); fix != "" {
		p = p.Request(fix)
	}
	return p
}

// clipPlace cuts a place whose names are longer than any field's: it is told three times.
func clipPlace(location string) string {
	const most = 512
	if len(location) <= most {
		return location
	}
	return strings.ToValidUTF8(location[:most], "") + "…"
}

// nameOfPlace is a place as a sentence names it.
func nameOfPlace(location string) string {
	in, rest, _ := strings.Cut(location, ".")
	switch {
	case rest != "":
		return rest
	case strings.HasPrefix(in, "body["):
		return "item " + strings.Trim(strings.TrimPrefix(in, "body"), "[]")
	default:
		return "the body"
	}
}

// pointerTo turns huma's body.windows[0].gpus into /windows/0/gpus, and
// query.limit into limit.
func pointerTo(location string) string {
	in, rest, _ := strings.Cut(location, ".")
	switch {
	case in != "body" && strings.HasPrefix(in, "body["):
		return jsonPointer(strings.TrimPrefix(in, "body") + "." + rest)
	case in == "body" && rest == "":
		return ""
	case in == "body":
		return jsonPointer(rest)
	default:
		return rest
	}
}

func lastPart(location string) string {
	return location[strings.LastIndexAny(location, ".]")+1:]
}
