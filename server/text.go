package server

import (
	"bytes"
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/plaintext"
	"github.com/forewarm/forewarm/server/problem"
)

// single are headers, as net/http writes them, of which two would leave open which
// one counts, here and at a proxy.
var single = []string{"Authorization", "Content-Type", contract.HeaderIdempotencyKey, "If-Match", "Last-Event-Id"}

// checkText refuses paths and queries with characters that no name has, of which
// databases take some and refuse others, and headers that contradict themselves.
func (s *Server) checkText(c *gin.Context) {
	for _, name := range single {
		if len(c.Request.Header[name]) > 1 {
			abortWith(c, problem.Parameter(name, "must be given once"))
			return
		}
	}
	if exchangeOf(c).route.ShowsSecret && c.Request.Header.Get(contract.HeaderIdempotencyKey) != "" {
		abortWith(c, problem.Parameter(contract.HeaderIdempotencyKey,
			"must not be given: the answer shows a secret that is stored nowhere, and a repeat makes another one").
			Request("Leave it out"))
		return
	}
	if !onlyLegible(c.Request.URL.Path) {
		abortWith(c, problem.Parameter("path", "must be UTF-8 without control or invisible characters"))
		return
	}
	if c.Request.URL.RawQuery == "" {
		return
	}
	query, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		abortWith(c, problem.Parameter("query", "must be pairs of name=value, joined by & and escaped"))
		return
	}
	for name, values := range query {
		if len(values) > 1 {
			abortWith(c, problem.Parameter(plaintext.Escape(name), "must be given once").
				Request("Join the values of a list by commas"))
			return
		}
		for _, value := range append(values, name) {
			if !onlyLegible(value) {
				abortWith(c, problem.Parameter(plaintext.Escape(name),
					"must be UTF-8 without control or invisible characters"))
				return
			}
		}
	}
}

func onlyLegible(text string) bool {
	return utf8.ValidString(text) && plaintext.Find(text) == ""
}

// checkPlainText refuses text that would do something where it is shown, or that one of
// the databases cannot hold.
func checkPlainText(place, text string) *problem.Problem {
	switch {
	case isWordOfDaemon(place):
		return nil
	case isProgramText(place):
		text = breaksInPrograms.Replace(text)
	}
	found := plaintext.Find(text)
	if found == "" {
		return nil
	}
	rule := "must be plain text; it has the control or invisible character " + found
	return problem.New(contract.CodeValidationFailed, cmp.Or(place, "the body")+" "+rule).
		Field(contract.FieldError{Pointer: place, Code: "control-character", Message: rule}).Fix("Leave "+found+" out",
		"")
}

// isProgramText reports whether a place has what a program is given, which may be several lines.
// The program itself has one.
func isProgramText(place string) bool {
	place = placeInItem(place)
	return strings.HasPrefix(place, "/command/") && place != "/command/0" || strings.HasPrefix(place, "/environment/")
}

// placeInItem is a place in a batch as its request has it, and any other place as it is.
func placeInItem(place string) string {
	index, inside, found := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(place, "/items"), "/"), "/")
	if _, err := strconv.Atoi(index); err != nil || !found {
		return place
	}
	return "/" + inside
}

// isWordOfDaemon reports whether a place has what a daemon says of a job, which may quote what its
// holder chose. It is cleaned where it is read: a heartbeat must not be refused because of a job.
func isWordOfDaemon(place string) bool {
	return strings.HasPrefix(place, "/jobs/") && strings.HasSuffix(place, "/reason")
}

var breaksInPrograms = strings.NewReplacer("\n", "", "\t", "")

// checkBatch checks the text of a batch, which is a list of requests, an object with one, or a sequence of
// requests. Only what is escaped or beyond ASCII can be a control character.
func checkBatch(data []byte) *problem.Problem {
	if !slices.ContainsFunc(data, func(b byte) bool { return b == '\\' || b >= 0x7f }) {
		return nil
	}
	if !utf8.Valid(data) {
		return malformedProblem("", "is not UTF-8")
	}
	f := form{data: data, textOnly: true}
	one := isOneValue(data)
	for i := 0; i == 0 || !one && f.hasMore(); i++ {
		if !one {
			f.root = "/" + strconv.Itoa(i)
		}
		if p := f.checkValue(0); p != nil {
			if p.Code == contract.CodeMalformedJSON && !f.strict {
				return nil // the decoder of batches refuses all, and names the request
			}
			return p
		}
	}
	return nil
}

// isOneValue reports whether a batch is a list, or an object with one, rather than a sequence of requests, none of
// which has items.
func isOneValue(data []byte) bool {
	data = bytes.TrimLeft(data, " \t\r\n")
	inside, isObject := bytes.CutPrefix(data, []byte("{"))
	return bytes.HasPrefix(data, []byte("[")) ||
		isObject && bytes.HasPrefix(bytes.TrimLeft(inside, " \t\r\n"), []byte(`"items"`))
}
