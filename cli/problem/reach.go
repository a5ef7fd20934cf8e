package problem

import (
	"errors"
	"net"
	"net/url"

	"github.com/forewarm/forewarm/cli/contextfile"
	"github.com/forewarm/forewarm/internal/httpx"
)

// startCommands are what to run where no server answers: one on this machine is started as it
// was before, since another address would be that of another installation.
func startCommands(err error) []string {
	elsewhere := "forewarm status --server " + contextfile.DefaultServer
	asked, ok := errors.AsType[*url.Error](err)
	if !ok {
		return []string{"forewarm up", elsewhere}
	}
	u, err := url.Parse(asked.URL)
	switch {
	case err != nil:
		return []string{"forewarm contexts list", elsewhere}
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
