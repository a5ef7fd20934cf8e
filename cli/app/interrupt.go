package app

import (
	"net/http"
	"strings"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/problem"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/internal/httpx"
)

// interruptDoer knows what an interruption, or an answer that did not come, may have left behind: a request that
// changes something is carried out, though nobody waits for its answer.
type interruptDoer struct{ next client.Doer }

// Do sends a request.
func (d interruptDoer) Do(r *http.Request) (*http.Response, error) {
	resp, err := d.next.Do(r)
	switch {
	case err == nil || changesNothing(r):
		return resp, err
	case r.Context().Err() == nil && httpx.MayHaveArrived(err):
		return nil, &problem.UnansweredError{Submits: strings.HasSuffix(r.URL.Path, "/v1/jobs"), Err: err}
	case r.Context().Err() == nil:
		return nil, err
	}
	return nil, &exit.Error{Code: exit.Interrupt,
		Message: "interrupted before the server answered: it may have carried out the request",
		Next:    []string{"forewarm events --last 5"}, Err: err}
}
