package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"

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
	c.Request.Body = httpx.NewWholeBody(data)
	route := exchangeOf(c).route
	if coded := c.GetHeader("Content-Encoding"); coded != "" && coded != "identity" && !route.rpc && len(data) > 0 {
		abortWith(c, problem.New(contract.CodeUnsupportedMediaType, "The body must be sent as it is, not encoded.").
			Request("Leave out the header Content-Encoding, and do not compress the body"))
		return
	}
	switch {
	case len(data) == 0 || limit == maxForm || route.rpc:
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
	if contentType == "application/json" { // as mostly
		return true
	}
	kind, more, err := mime.ParseMediaType(contentType)
	if set := more["charset"]; set != "" && !strings.EqualFold(set, "utf-8") { // RFC 8259: JSON has no other
		return false
	}
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
