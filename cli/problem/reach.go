package problem

import (
	"errors"
	"net"
	"net/url"

	"github.com/forewarm/forewarm/cli/contextfile"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/internal/httpx"
)

// UnansweredError is of a request that would change something, and may have: its connection was there, and no answer
// came.
type UnansweredError struct {
	Submits bool // a job
	Err     error
}

// Error is that of the cause.
func (e *UnansweredError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnansweredError) Unwrap() error { return e.Err }

// fromUnreachable says that no server answered, and what may have been done nevertheless.
func fromUnreachable(err error) *exit.Error {
	e := &exit.Error{Code: exit.Failed, Message: UnreachableText(err), Err: err, Next: startCommands(err)}
	unanswered, ok := errors.AsType[*UnansweredError](err)
	switch {
	case ok && unanswered.Submits:
		e.Detail = []string{"the job may have been submitted: see, before you submit it again"}
		e.Next = append([]string{"forewarm jobs list --mine"}, e.Next...)
	case ok:
		e.Detail = []string{"the server may have carried out the request"}
	}
	return e
}

// startCommands are what to run where no server answers: one on this machine is started as it
// was before, since another address would be that of another installation.
func startCommands(err error) []string {
	elsewhere := "forewarm status --server " + contextfile.DefaultServer
	asked, ok := errors.AsType[*url.Error](err)
	if !ok {
		return []string{"forewarm up", elsewhere}
	}
	isTaken := httpx.IsLate(err) && httpx.MayHaveArrived(err) // so that nothing else can listen there
	u, err := url.Parse(asked.URL)
	switch {
	case err != nil:
		return []string{"forewarm contexts list", elsewhere}
	case isTaken && u.Scheme+"://"+u.Host == contextfile.DefaultServer:
		return []string{"forewarm status", "forewarm doctor"}
	case isTaken:
		return []string{"forewarm status --server " + u.Scheme + "://" + u.Host, "forewarm contexts list"}
	case u.Scheme+"://"+u.Host == contextfile.DefaultServer:
		return []string{"forewarm up", "forewarm contexts list"}
	case u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback():
		return []string{"forewarm up --listen " + u.Host, elsewhere}
	}
	return []string{"forewarm contexts list", elsewhere}
}

// UnreachableText says why no server answered, without the names of the layers that
// noticed.
func UnreachableText(err error) string {
	if text, ok := httpx.DescribeUnreachable(err, "the server"); ok {
		return text
	}
	return "the connection to the server broke (" + err.Error() + ")"
}
