// Package compat has the routes of five older schedulers, with the shapes of their requests and
// answers, for clients that nobody changes any more.
//
// A route translates: it asks the API in the name of whoever calls it, so that keys, roles, limits
// and checks are those of every request, and puts the answer into the old shape. What a route
// promised and the API cannot do is answered with 501, and what to use instead. A field of a
// request that no old client had is refused, and so is one that would set what only the system
// knows. docs/compat.md says which route becomes what.
package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/inward"
	"github.com/forewarm/forewarm/server/problem"
)

// Route is one of them.
type Route struct {
	Method, Path string
	Policy       auth.Policy
	// Answer returns the status and the body, which is nil for none. A failure is a problem's.
	Answer func(*Call) (status int, body any, err error)
}

// Call is a request to a route.
type Call struct {
	Context context.Context // in which the API may be asked
	API     inward.API
	Param   func(name string) string
	Query   url.Values
	Body    []byte
	Now     time.Time
	Once    string // the idempotency key that was sent, or a new one
}

// Failure is a problem with one more name for its detail, which some old clients read.
type Failure struct {
	contract.Problem
	Error string `json:"error"`
}

// Routes are all routes.
func Routes() []Route {
	return slices.Concat(dgpuRoutes(), jobRoutes(), tenantRoutes(), allocateRoutes(), identityRoutes(), stationRoutes(),
		operationRoutes(), healthRoutes(), missingRoutes())
}

// most bounds how much of a list an answer is made of. The API's own lists have pages instead.
const most = 5000

// perPage is how much of a list is asked for at once.
const perPage = 200

// get reads something.
func (c *Call) get(path string, query url.Values, into any) error {
	return c.ask(inward.Request{Method: http.MethodGet, Path: path, Query: query}, into)
}

// post asks for a change that has one effect, however often the request is sent.
func (c *Call) post(path string, body, into any) error {
	return c.ask(inward.Request{Method: http.MethodPost, Path: path, Body: body, Once: c.Once}, into)
}

func (c *Call) ask(r inward.Request, into any) error {
	_, err := c.API.Ask(c.Context, r, into)
	return err
}

// path is that of something whose id the route names.
func (c *Call) path(before string, after ...string) string {
	return strings.Join(append([]string{before, url.PathEscape(c.Param("id"))}, after...), "/")
}

// decode reads the body. A field that the route does not know is refused.
func (c *Call) decode(into any) error {
	dec := json.NewDecoder(bytes.NewReader(c.Body))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	wrong, isType := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case err == nil:
		return nil
	case isType && wrong.Field != "":
		return problem.Invalid(wrong.Field, "must be "+kindOf(wrong.Type), "")
	case strings.Contains(err.Error(), "unknown field "):
		_, name, _ := strings.Cut(err.Error(), "unknown field ")
		return problem.Invalid(strings.Trim(name, `"`), "is no field of this request", "leave it out")
	}
	return problem.New(contract.CodeMalformedJSON, "The body must be an object in JSON.")
}

// kindOf is what a field takes, for people.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}

// list reads the first of a list, the newest first: as many as wanted, after some that are not.
// It says whether there are more.
func list[T any](c *Call, path string, query url.Values, skip, want int, keep func(T) bool) (
	out []T, more bool, err error) {
	out = []T{}
	asked := url.Values{"limit": {strconv.Itoa(perPage)}}
	for name, values := range query {
		asked[name] = values
	}
	for seen := 0; ; {
		var page contract.List[T]
		if err := c.get(path, asked, &page); err != nil {
			return nil, false, err
		}
		for _, item := range page.Items {
			if keep != nil && !keep(item) {
				continue
			}
			if seen++; seen <= skip {
				continue
			}
			if len(out) == want {
				return out, true, nil
			}
			out = append(out, item)
		}
		if page.NextCursor == "" {
			return out, false, nil
		}
		if seen >= most {
			return out, true, nil
		}
		asked.Set("cursor", page.NextCursor)
	}
}

// number reads a parameter of the query.
func (c *Call) number(name string, usual, from, to int) (int, error) {
	text := c.Query.Get(name)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < from || n > to {
		return 0, problem.Parameter(name, fmt.Sprintf("must be a number from %d to %d", from, to))
	}
	return n, nil
}

// oneOf reads a parameter of the query that has a few values; empty: it was left out.
func (c *Call) oneOf(name string, allowed ...string) (string, error) {
	text := c.Query.Get(name)
	if text != "" && !slices.Contains(allowed, text) {
		return "", problem.Parameter(name, "must be one of "+strings.Join(allowed, ", "))
	}
	return text, nil
}

// bounded is a number of a request, and what it may be.
type bounded struct {
	field        string
	value        float64
	least, limit float64
}

// checkNumbers refuses what no request may have.
func checkNumbers(all ...bounded) error {
	for _, b := range all {
		if !(b.value >= b.least && b.value <= b.limit) {
			return problem.Invalid(b.field, fmt.Sprintf("must be from %.0f to %.0f", b.least, b.limit), "")
		}
	}
	return nil
}

// notOffered is the problem of what was promised once, and is not done here.
func notOffered(detail, instead, command string) *problem.Problem {
	return problem.New(contract.CodeNotOffered, detail).Fix(instead, command)
}

// renamed has the problem of a request to the API name the fields of the old request. The pairs are
// fields of the API, and what they were called.
func renamed(err error, pairs ...string) error {
	p, ok := errors.AsType[*problem.Problem](err)
	if !ok {
		return err
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if rest, found := strings.CutPrefix(p.Detail, pairs[i]+" "); found {
			p.Detail = pairs[i+1] + " " + rest
		}
		for j := range p.Errors {
			if p.Errors[j].Pointer == "/"+pairs[i] {
				p.Errors[j].Pointer = "/" + strings.ReplaceAll(pairs[i+1], ".", "/")
			}
		}
	}
	return p
}

// anyGPU is what a request needs that names no more than a number of GPUs: the API wants to be told
// at least that much.
func anyGPU(n contract.Needs, model string) contract.Needs {
	if model == "" && n == (contract.Needs{}) {
		n.MinGPUMemoryMiB = 1
	}
	return n
}

// shell is a command that was one text: it is read as a shell reads it.
func shell(text string) []string { return []string{"/bin/sh", "-c", text} }

// commandText is a command as one text.
func commandText(command []string) string {
	if len(command) == 3 && command[0] == "/bin/sh" && command[1] == "-c" {
		return command[2]
	}
	return strings.Join(command, " ")
}
