package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

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
	for _, f := range e.Problem.Errors {
		text += fmt.Sprintf("; %s %s", f.Pointer, f.Message)
	}
	return text
}

// maxProblem is how much of an answer that may not be ours is read.
const maxProblem = 1 << 20

// ReadProblem is the *Error of an answer with a status of 400 or more, for requests that this
// package does not send.
func ReadProblem(resp *http.Response) error { return readProblem(resp) }

func readProblem(resp *http.Response) error {
	e := &Error{}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	if err == nil {
		err = json.Unmarshal(body, &e.Problem)
	}
	if err != nil || e.Problem.Code == "" {
		e.Problem = contract.Problem{Title: fmt.Sprintf("the server answered %d without saying why", resp.StatusCode),
			Retryable: resp.StatusCode >= http.StatusInternalServerError}
	}
	e.Problem.Status = resp.StatusCode
	return e
}
