package problem

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"os"

	"github.com/forewarm/forewarm/cli/contextfile"
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
	var (
		asked *url.Error
		name  *net.DNSError
		dial  *net.OpError
		cert  *x509.UnknownAuthorityError
		host  x509.HostnameError
	)
	where := "the server"
	if errors.As(err, &asked) {
		if u, parsed := url.Parse(asked.URL); parsed == nil {
			where = u.Scheme + "://" + u.Host
		}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), asked != nil &&
		asked.Timeout():
		return where + " did not answer in time"
	case errors.As(err, &name):
		return where + ": no machine has the name " + name.Name
	case errors.As(err, &cert), errors.As(err, &host):
		return where + " shows a certificate that this machine does not trust"
	case errors.As(err, &dial) && dial.Op == "dial":
		return "no server answers at " + where + " (" + innermostError(dial).Error() + ")"
	case asked != nil:
		return "the connection to " + where + " broke (" + innermostError(asked).Error() + ")"
	default:
		return "the connection to the server broke (" + innermostError(err).Error() + ")"
	}
}

// innermostError is the error at the bottom of a chain.
func innermostError(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
