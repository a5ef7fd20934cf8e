// Package problem turns every failure into one kind of answer: a problem
// document (RFC 9457) that names what is wrong, the rule and the way out.
//
// It is the only place that knows which failure has which status. What a caller
// may not know, or cannot do anything about, becomes "internal" or "not-found"
// outside and is logged in full.
package problem

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/phrase"
)

// Problem is a problem document that is also an error. Handlers return it, or
// any other error for From to translate.
type Problem struct {
	contract.Problem
	unnamed int // wrong values beyond mostErrors
}

// mostErrors is how many wrong values an answer names. A body of a megabyte can have a hundred thousand, and each is
// told with its rule and all that would do.
const mostErrors = 32

// New returns the problem of a code in the catalogue.
func New(code, detail string) *Problem {
	return &Problem{Problem: contract.NewProblem(code, detail)}
}

// Error names the code and the detail.
func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

// GetStatus returns the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType returns the media type of problem documents, whatever was asked
// for.
func (p *Problem) ContentType(string) string { return contract.ProblemContentType }

// Fix adds something to try next. The command may be empty.
func (p *Problem) Fix(label, command string) *Problem {
	p.Fixes = append(p.Fixes, contract.Fix{Label: label, Command: command})
	return p
}

// Request adds advice on how to write the request.
func (p *Problem) Request(label string) *Problem {
	p.Fixes = append(p.Fixes, contract.Fix{Label: label, Request: true})
	return p
}

// Repeat adds that the same request may be sent again with a field set, and what
// that does.
func (p *Problem) Repeat(field string, value any, label string) *Problem {
	p.Fixes = append(p.Fixes, contract.Fix{Label: label, Set: map[string]any{field: value}})
	return p
}

// Field adds a wrong value. After mostErrors of them it only counts.
func (p *Problem) Field(e contract.FieldError) *Problem {
	if p.isFull() {
		return p.countUnnamed()
	}
	p.Errors = append(p.Errors, e)
	return p
}

func (p *Problem) isFull() bool { return len(p.Errors) >= mostErrors }

// countUnnamed counts one more wrong value in the last line, which says how many are not named.
func (p *Problem) countUnnamed() *Problem {
	if p.unnamed++; p.unnamed == 1 {
		p.Errors = append(p.Errors, contract.FieldError{Code: "more"})
	}
	p.Errors[len(p.Errors)-1].Message = phrase.Count(p.unnamed, "more value") + " of this request are wrong"
	if p.unnamed == 1 {
		p.Errors[len(p.Errors)-1].Message = "1 more value of this request is wrong"
	}
	return p
}

// About says which request the problem belongs to.
func (p *Problem) About(requestID, path string) *Problem {
	p.RequestID, p.Instance = requestID, path
	return p
}

// Write sends the problem. It is for what is answered outside of the API's
// operations.
func (p *Problem) Write(w http.ResponseWriter) { p.WriteAs(w, p.Problem) }

// WriteAs is Write with another body, which has what the problem says.
func (p *Problem) WriteAs(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", contract.ProblemContentType)
	if p.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="forewarm"`)
	}
	w.WriteHeader(p.Status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(body) // the status is sent; nothing is left to say
}

// Invalid returns the problem of one field of a body.
func Invalid(field, rule, fix string) *Problem {
	p := New(contract.CodeValidationFailed, cmp.Or(field, "the body")+" "+rule).
		Field(contract.FieldError{Pointer: jsonPointer(field), Code: "invalid", Message: rule})
	if fix != "" {
		p = p.Fix(strings.ToUpper(fix[:1])+fix[1:], "")
	}
	return p
}

// Parameter returns the problem of a query parameter or header.
func Parameter(name, rule string) *Problem {
	return New(contract.CodeInvalidParameter, name+" "+rule).
		Field(contract.FieldError{Pointer: name, Code: "invalid", Message: rule})
}
