package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/forewarm/forewarm/contract"
)

// Error is a request that the server answered with a problem. When something in
// between answered instead, Problem has the status and no code.
type Error struct {
	Problem contract.Problem
}

// Error names what happened and what it is about.
func (e *Error) Error() string {
	text := e.Problem.Title
	if e.Problem.Detail != "" {
		text += ": " + e.Problem.Detail
	}
	for i, f := range e.Problem.Errors {
		if i > 0 || !strings.HasSuffix(e.Problem.Detail, f.Message) { // the detail is mostly of the first
			text += fmt.Sprintf("; %s %s", f.Pointer, f.Message)
		}
	}
	return text
}

// maxProblem is how much of an answer that may not be ours is read.
const maxProblem = 1 << 20

// Succeeded reports whether a request did what it asked: its status is 2xx.
func Succeeded(resp *http.Response) bool { return resp.StatusCode/100 == 2 }

// ReadProblem is the *Error of an answer that has not Succeeded, for requests that this
// package does not send.
func ReadProblem(resp *http.Response) error { return readProblem(resp) }

func readProblem(resp *http.Response) error {
	e := &Error{}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	if err == nil {
		err = json.Unmarshal(body, &e.Problem)
	}
	if err != nil || e.Problem.Code == "" {
		e.Problem = contract.Problem{Title: describeAnswer(resp),
			Retryable: resp.StatusCode >= http.StatusInternalServerError}
	}
	e.Problem.Status = resp.StatusCode
	return e
}

// describeAnswer tells an answer that is no problem document. Of where a redirect points only the host is told: the
// rest may have a secret.
func describeAnswer(resp *http.Response) string {
	text := fmt.Sprintf("the server answered %d", resp.StatusCode)
	if to, err := resp.Location(); err == nil {
		return text + " and points to " + to.Scheme + "://" + to.Host + ", where no key is sent"
	}
	return text + " without saying why"
}
