package httpx

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
)

// DescribeUnreachable says for people why a service gave no answer, without the names of the
// layers that noticed. false: err is another failure. service is what it is called where the
// error does not tell its address.
func DescribeUnreachable(err error, service string) (text string, ok bool) {
	asked, _ := errors.AsType[*url.Error](err)
	where := service
	if asked != nil {
		if u, err := url.Parse(asked.URL); err == nil {
			where = u.Scheme + "://" + u.Host
		}
	}
	name, unnamed := errors.AsType[*net.DNSError](err)
	failed, broken := errors.AsType[*net.OpError](err)
	switch {
	case unnamed && name.IsNotFound:
		return where + ": no machine has the name " + name.Name, true
	case unnamed:
		return where + ": this machine could not look up the name " + name.Name, true
	case IsLate(err) && asked != nil && MayHaveArrived(err):
		return where + " took the connection, and did not answer in time", true
	case IsLate(err):
		return where + " did not answer in time", true
	case isDistrusted(err):
		return where + " shows a certificate that this machine does not trust", true
	case isPlain(err):
		return where + " does not speak TLS: write http:// if it is not meant to", true
	case broken && failed.Op == "dial":
		return "no server answers at " + where + " (" + innermost(failed).Error() + ")", true
	case isCut(err):
		return "the connection to " + where + " was cut", true
	case broken || asked != nil:
		return "the connection to " + where + " broke (" + innermost(err).Error() + ")", true
	}
	return "", false
}

// DescribeFailure is what DescribeUnreachable says, or else the error's own text.
func DescribeFailure(err error, service string) string {
	if text, ok := DescribeUnreachable(err, service); ok {
		return text
	}
	return err.Error()
}

// MayHaveArrived reports whether a request that was not answered may have been received all the same: its connection
// was there, and nothing came of it.
func MayHaveArrived(err error) bool {
	failed, broken := errors.AsType[*net.OpError](err)
	return (IsLate(err) || isCut(err)) && !(broken && failed.Op == "dial")
}

// IsLate reports whether there was no answer in time.
func IsLate(err error) bool {
	timed, ok := errors.AsType[net.Error](err)
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || ok && timed.Timeout()
}

func isDistrusted(err error) bool {
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, host := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	return unknown || host || invalid
}

// isPlain reports whether the other side answered TLS in plain HTTP: net/http says so by a text
// alone.
func isPlain(err error) bool {
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	return plain || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client")
}

func isCut(err error) bool {
	for _, cut := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed} {
		if errors.Is(err, cut) {
			return true
		}
	}
	return false
}

// innermost is the error at the bottom of a chain.
func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
