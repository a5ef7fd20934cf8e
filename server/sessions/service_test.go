package sessions

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	forewarmv1 "github.com/forewarm/forewarm/contract/proto/forewarm/v1"
	"github.com/forewarm/forewarm/contract/session"
)

// silent is the stream of a node from which a few messages come, and then nothing, until the
// handler ends it.
type silent struct {
	serveStream
	comes <-chan string
	ended <-chan struct{}
}

func (s silent) Receive() (*forewarmv1.ServeRequest, error) {
	select {
	case data := <-s.comes:
		return &forewarmv1.ServeRequest{Frame: &forewarmv1.Frame{Channel: uint32(session.Stdout), Data: []byte(data)}}, nil
	case <-s.ended:
		return nil, io.ErrUnexpectedEOF
	}
}

// A session whose node is silent ends; one whose user is slow does not.
func TestASilentNodeIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		comes := make(chan string, 1)
		c := &carrier{closed: make(chan struct{})}
		c.stream = silent{comes: comes, ended: c.closed}
		for range 3 {
			time.Sleep(2 * SignWithin) // nobody waits for the node
			comes <- "word"
			_, data, err := c.Receive()
			require.NoError(t, err)
			require.Equal(t, "word", string(data))
		}
		from := time.Now()
		_, _, err := c.Receive()
		require.Error(t, err)
		require.Equal(t, SignWithin, time.Since(from))
	})
}
