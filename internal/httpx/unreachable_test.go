package httpx

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// get is the error of a request to an address, in the layers that a caller adds.
func get(t *testing.T, address string) error {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	direct := &http.Client{Transport: &http.Transport{}}
	answer, err := direct.Do(r)
	if err == nil {
		_ = answer.Body.Close()
	}
	require.Error(t, err)
	return fmt.Errorf("calling: %w", err)
}

// What people read of a service that gives no answer has the address and the cause, and none
// of the words of the layers between.
func TestWhyNoServiceAnswers(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	cutting := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	}))
	defer cutting.Close()
	hung := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hung }))
	defer silent.Close()
	defer close(hung)
	hurried, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	r, err := http.NewRequestWithContext(hurried, http.MethodPost, silent.URL, nil)
	require.NoError(t, err)
	_, late := (&http.Client{Transport: &http.Transport{}}).Do(r)
	require.True(t, MayHaveArrived(late))
	require.False(t, MayHaveArrived(get(t, "http://127.0.0.1:1/")))
	overTLS := "https" + plain.URL[len("http"):]
	for want, err := range map[string]error{
		"no server answers at http://127.0.0.1:1 (connection refused)":       get(t, "http://127.0.0.1:1/v1?secret=x"),
		overTLS + " does not speak TLS: write http:// if it is not meant to": get(t, overTLS),
		secure.URL + " shows a certificate that this machine does not trust": get(t, secure.URL),
		"the connection to " + cutting.URL + " was cut":                      get(t, cutting.URL),
		silent.URL + " took the connection, and did not answer in time":      late,
		"the server did not answer in time":                                  context.DeadlineExceeded,
		"the connection to the server was cut":                               fmt.Errorf("reading: %w", io.ErrUnexpectedEOF),
		"the server: no machine has the name x": &net.OpError{Op: "dial",
			Err: &net.DNSError{Name: "x", IsNotFound: true}},
		"the server: this machine could not look up the name x": &net.DNSError{Name: "x", IsTimeout: true},
		"the server does not speak TLS: write http:// if it is not meant to": tls.RecordHeaderError{
			Msg: "first record does not look like a TLS handshake"},
		"the connection to the server broke (no route to host)": &net.OpError{Op: "read", Err: syscall.EHOSTUNREACH},
	} {
		got, ok := DescribeUnreachable(err, "the server")
		require.True(t, ok, want)
		require.Equal(t, want, got)
	}
	_, ok := DescribeUnreachable(errors.New("the disk is full"), "the server")
	require.False(t, ok)
}
