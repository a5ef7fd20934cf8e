package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/server/api"
	"github.com/forewarm/forewarm/server/problem"
)

const (
	maxBody = 1 << 20 // of a request of the API
	maxForm = 4 << 10 // of the page's forms: enough for a key
)

// checkBody reads the body of a request within bounds and checks the form of an
// API's before anything decodes it, so that a broken or hostile one is named by
// place: the decoder behind takes any depth, repeated names, and NaN as "bad
// syntax".
func (s *Server) checkBody(c *gin.Context) {
	limit := exchangeOf(c).route.bodyLimit
	if c.Request.Body == nil || c.Request.Body == http.NoBody || limit == 0 {
		return
	}
	body, done := s.pacedBodyOf(c)
	data, err := httpx.ReadBody(body, limit)
	if _, tooLarge := errors.AsType[*httpx.TooLargeError](err); tooLarge {
		abortWith(c, problem.New(contract.CodeBodyTooLarge,
			fmt.Sprintf("A body may have %d bytes.", limit)).Request("Send less at once"))
		return
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.Header("Connection", "close")
		abortWith(c, problem.New(contract.CodeBodyTooSlow,
			"The body arrived too slowly.").Request("Send it again, whole"))
		return
	}
	if err != nil {
		abortWith(c, problem.New(contract.CodeMalformedJSON, "The body could not be read to its end."))
		return
	}
	done()
	c.Request.Body = io.NopCloser(bytes.NewReader(data))
	switch {
	case len(data) == 0 || limit == maxForm:
		return
	case limit == api.MaxBatchBody: // whose form is checked as it is read
		if p := checkBatch(data); p != nil {
			abortWith(c, p)
		}
		return
	}
	if !isJSON(c.Request) {
		abortWith(c, problem.New(contract.CodeUnsupportedMediaType, "The body must be JSON.").
			Request("Send the header Content-Type: application/json"))
		return
	}
	p := checkJSON(data)
	if p == nil && c.Request.Method == http.MethodPatch {
		p = checkPatch(data)
	}
	if p != nil {
		abortWith(c, p)
	}
}

// isJSON reports whether the body is said to be what the method takes. What
// PATCH takes is a merge patch (RFC 7396), by either name.
func isJSON(r *http.Request) bool {
	contentType := r.Header.Get("Content-Type")
	kind, _, err := mime.ParseMediaType(contentType)
	return contentType == "" || err == nil && (kind == "application/json" || r.Method == http.MethodPatch &&
		kind == api.MergePatch)
}

// checkPatch refuses null, with which a merge patch takes a field away: no field
// that can be patched can be missing, and to take null for "as it is" would be to
// do something else than was asked.
func checkPatch(data []byte) *problem.Problem {
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil // no object: told as any wrong body
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if fields[name] == nil {
			return problem.Invalid(name, "must not be null: the field cannot be removed", "").
				Request("Leave it out to keep it as it is, or send another value")
		}
	}
	return nil
}

// checkJSON walks through the tokens and reports the first thing wrong with its
// place: syntax, depth, a name that comes twice, a number no float holds.
func checkJSON(data []byte) *problem.Problem {
	if !utf8.Valid(data) {
		return malformedProblem("", "is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	w := walker{dec: dec}
	if p := w.checkValue("", 0); p != nil {
		return p
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return malformedProblem("", "has something after its JSON value")
	}
	return nil
}

type walker struct{ dec *json.Decoder }

// checkValue reads one value at the place.
func (w walker) checkValue(place string, depth int) *problem.Problem {
	if depth > httpx.MaxDepth {
		return malformedProblem(place, fmt.Sprintf("nests deeper than %d levels", httpx.MaxDepth))
	}
	token, err := w.dec.Token()
	if err != nil {
		return malformedProblem(place,
			fmt.Sprintf("is not valid JSON (at byte %d); numbers must be finite, and NaN is none",
				w.dec.InputOffset()))
	}
	switch t := token.(type) {
	case string:
		return checkPlainText(place, t)
	case json.Number:
		if f, err := strconv.ParseFloat(t.String(), 64); err != nil || math.IsInf(f, 0) {
			return malformedProblem(place, "is a number beyond all bounds")
		}
	case json.Delim:
		return w.checkComposite(t, place, depth)
	}
	return nil
}

func (w walker) checkComposite(open json.Delim, place string, depth int) *problem.Problem {
	seen, last := map[string]bool{}, place
	for i := 0; w.dec.More(); i++ {
		at := place + "/" + strconv.Itoa(i)
		if open == '{' {
			token, err := w.dec.Token()
			name, ok := token.(string)
			if err != nil || !ok { // what is wrong is between the value before and here
				return malformedProblem(last, fmt.Sprintf("is not valid JSON (at byte %d)", w.dec.InputOffset()))
			}
			if at = place + "/" + name; seen[name] {
				return malformedProblem(at, "comes twice")
			}
			seen[name] = true
			if p := checkPlainText(place, name); p != nil {
				return p
			}
		}
		if p := w.checkValue(at, depth+1); p != nil {
			return p
		}
		last = at
	}
	if _, err := w.dec.Token(); err != nil {
		return malformedProblem(place, fmt.Sprintf("is not valid JSON (at byte %d)", w.dec.InputOffset()))
	}
	return nil
}

func malformedProblem(place, message string) *problem.Problem {
	what := place
	if what == "" {
		what = "the body"
	}
	return problem.New(contract.CodeMalformedJSON, what+" "+message).
		Field(contract.FieldError{Pointer: place, Code: "malformed", Message: message}).
		Request("Send one JSON object in UTF-8")
}
