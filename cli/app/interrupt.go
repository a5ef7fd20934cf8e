package app

import (
	"net/http"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/client"
)

// interruptDoer knows what an interruption may have left behind: a request that
// changes something is carried out, though nobody waits for its answer.
type interruptDoer struct{ next client.Doer }

// Do sends a request.
func (d interruptDoer) Do(r *http.Request) (*http.Response, error) {
	resp, err := d.next.Do(r)
	if err == nil || r.Context().Err() == nil || changesNothing(r) {
		return resp, err
	}
	return nil, &exit.Error{Code: exit.Interrupt,
		Message: "interrupted before the server answered: it may have carried out the request",
		Next:    []string{"forewarm events --last 5"}, Err: err}
}
