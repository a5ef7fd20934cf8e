package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	xssh "golang.org/x/crypto/ssh"

	"github.com/forewarm/forewarm/provisioners"
)

const (
	mostOutput = 1 << 20
	mostErrors = 4 << 10
)

// errRefused is a host that we reached and that will not have us, or that is not
// the one it should be.
var errRefused = errors.New("the host refused us or is not the one that is known")

// connectTo opens a connection that ends with the context. Whatever goes wrong here,
// the host was not asked to do anything.
func (f *Fleet) connectTo(ctx context.Context, h Host) (*xssh.Client, error) {
	client, err := f.dialHost(ctx, h)
	if err == nil {
		return client, nil
	}
	kind := provisioners.KindTransient
	if errors.Is(err, errRefused) {
		kind = provisioners.KindDenied
	}
	if ended := ctx.Err(); ended != nil {
		kind, err = provisioners.KindTransient, errors.Join(ended, err)
	}
	return nil, &provisioners.Error{Kind: kind, Scope: h.Name, Message: "connecting to " + h.dialAddress(), Err: err}
}

func (f *Fleet) dialHost(ctx context.Context, h Host) (*xssh.Client, error) {
	signer, err := f.config.readIdentity()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	trust, err := f.config.trustOf(h)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	ctx, cancel := context.WithTimeout(ctx, f.config.ConnectTimeout)
	defer cancel()
	var dialer net.Dialer
	raw, err := dialer.DialContext(ctx, "tcp", h.dialAddress())
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	believed := false
	settings := &xssh.ClientConfig{
		User: h.User, Auth: []xssh.AuthMethod{xssh.PublicKeys(signer)}, HostKeyAlgorithms: trust.algorithms,
		HostKeyCallback: func(name string, remote net.Addr, key xssh.PublicKey) error {
			if err := trust.believe(name, remote, key); err != nil {
				return fmt.Errorf("%w: %w", errRefused, err)
			}
			believed = true
			return nil
		},
	}
	conn, channels, requests, err := xssh.NewClientConn(raw, h.dialAddress(), settings)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = raw.Close()
		return nil, classifyHandshake(err, believed)
	}
	return xssh.NewClient(conn, channels, requests), nil
}

// classifyHandshake tells a host that said no from a line that broke. The library has no
// type for the former: it is what is left once we believed the host.
func classifyHandshake(err error, believed bool) error {
	var broken net.Error
	if !believed || errors.As(err, &broken) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return err
	}
	return fmt.Errorf("%w: %w", errRefused, err)
}

// errFailed is a command that ended with another exit code than 0.
var errFailed = errors.New("the command failed on the host")

// runCommand runs one command on the host. The error of a connection is typed; any
// other one comes from after the host was asked.
func (f *Fleet) runCommand(ctx context.Context, h Host, command string, input io.Reader) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, f.config.Timeout)
	defer cancel()
	client, err := f.connectTo(ctx, h)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = client.Close() })
	defer func() {
		stop()
		_ = client.Close()
		_ = client.Wait() // so that its goroutines are gone
	}()
	session, err := client.NewSession()
	if err != nil {
		return nil, &provisioners.Error{Kind: provisioners.KindTransient, Scope: h.Name, Message: "opening a session",
			Err: errors.Join(ctx.Err(), err)}
	}
	output, errs := &head{most: mostOutput}, &head{most: mostErrors}
	session.Stdin, session.Stdout, session.Stderr = input, output, errs
	err = session.Run(command)
	var exit *xssh.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, errors.Join(ctx.Err(), err)
	case errors.As(err, &exit):
		return nil, fmt.Errorf("%w: %w: %s", errFailed, err,
			strings.TrimSpace(strings.ToValidUTF8(errs.kept.String(), "?")))
	case err != nil:
		return nil, err
	case output.cut:
		return nil, fmt.Errorf("the answer is longer than %d bytes", mostOutput)
	}
	return output.kept.Bytes(), nil
}

// head keeps the beginning of what is written and whether there was more.
type head struct {
	kept bytes.Buffer
	most int
	cut  bool
}

// Write never fails, so that a command is not stopped in the middle.
func (h *head) Write(p []byte) (int, error) {
	fits := min(len(p), h.most-h.kept.Len())
	h.cut = h.cut || fits < len(p)
	h.kept.Write(p[:fits])
	return len(p), nil
}
