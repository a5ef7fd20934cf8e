package tether_test

import (
	"bytes"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/contract/session/tether"
	"github.com/forewarm/forewarm/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

// pair is a session with both ends, whose connection breaks again and again.
type pair struct {
	near, far *tether.Tether
	lost      chan struct{}
	missed    atomic.Bool // by the near one
}

func newPair(keeps bool) *pair {
	p := &pair{lost: make(chan struct{}, 2)}
	lost := func(error) {
		select {
		case p.lost <- struct{}{}:
		default:
		}
	}
	p.near = tether.New(tether.Config{Keeps: keeps, Lost: func(cause error) {
		p.missed.Store(true)
		lost(cause)
	}})
	p.far = tether.New(tether.Config{Keeps: keeps, Lost: lost})
	return p
}

// frail is a line that breaks after so many messages were sent.
type frail struct {
	*session.Line
	mu   *sync.Mutex
	left *int
}

func (f frail) Send(c session.Channel, data []byte) error {
	f.mu.Lock()
	*f.left--
	over := *f.left < 0
	f.mu.Unlock()
	if over {
		f.Close()
		return net.ErrClosed
	}
	return f.Line.Send(c, data)
}

// connect connects both ends, as a holder does that comes back: each end is told first what the other has.
func (p *pair) connect(t require.TestingT, messages int) {
	a, b := net.Pipe()
	mu, left := &sync.Mutex{}, &messages
	require.NoError(t, p.far.Attach(frail{session.NewLine(b), mu, left}, p.near.Taken()))
	require.NoError(t, p.near.Attach(frail{session.NewLine(a), mu, left}, p.far.Taken()))
}

func (p *pair) end() {
	p.near.End(net.ErrClosed)
	p.far.End(net.ErrClosed)
}

// receiveAll takes so many messages.
func receiveAll(t require.TestingT, from *tether.Tether, count int) []string {
	var all []string
	for range count {
		c, data, err := from.Receive()
		require.NoError(t, err)
		all = append(all, fmt.Sprint(c, " ", string(data)))
	}
	return all
}

// Whatever breaks and whenever: each end has what the other sent, in its order, once.
func TestNothingIsLostOrDoubled(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(true)
		defer p.end()
		breaks := rapid.SliceOfN(rapid.IntRange(0, 40), 0, 12).Draw(t, "messages until it breaks")
		counts := [2]int{rapid.IntRange(0, 60).Draw(t, "there"), rapid.IntRange(0, 60).Draw(t, "back")}
		size := rapid.SampledFrom([]int{1, 100, session.MostData}).Draw(t, "bytes of a message")
		var sent, got [2][]string
		var all sync.WaitGroup
		ends := [2]*tether.Tether{p.near, p.far}
		for i, from := range ends {
			for n := range counts[i] {
				sent[i] = append(sent[i], fmt.Sprint(session.Stdout, " ", string(text(n, size))))
			}
			all.Go(func() {
				for n := range counts[i] {
					_ = from.Send(session.Stdout, text(n, size)) // what is missing is seen below
				}
			})
			all.Go(func() { got[i] = receiveAll(t, ends[1-i], counts[i]) })
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			all.Wait()
		}()
		for next, over := append(breaks, 1<<20), false; !over; next = next[1:] {
			p.connect(t, next[0])
			if len(next) == 1 {
				<-done
				break
			}
			for range 2 { // both ends notice
				select {
				case <-p.lost:
				case <-done:
					over = true
				}
			}
		}
		require.Equal(t, sent, got)
	})
}

func text(n, size int) []byte {
	return append(fmt.Appendf(nil, "%d ", n), bytes.Repeat([]byte("x"), max(0, size-4))...)
}

// An end holds up whoever sends more than is taken, whether or not there is a connection.
func TestWhatIsOnItsWayIsBounded(t *testing.T) {
	t.Parallel()
	for _, connected := range []bool{true, false} {
		p := newPair(true)
		if connected {
			p.connect(t, 1<<20)
		}
		sent := make(chan int, 1)
		go func() {
			n := 0
			for p.near.Send(session.Stdin, make([]byte, session.MostData)) == nil {
				n++
			}
			sent <- n
		}()
		if connected { // it goes on once something is taken
			receiveAll(t, p.far, 3*session.MostKept/session.MostData)
		}
		select {
		case <-sent:
			t.Fatal("nothing holds it up")
		default:
		}
		p.end()
		most := session.MostKept / session.MostData
		if connected {
			most *= 5
		}
		require.LessOrEqual(t, <-sent, most)
	}
}

// An end that does not acknowledge, as an older one, is sent all the same.
func TestAnEndThatDoesNotAcknowledge(t *testing.T) {
	t.Parallel()
	p := newPair(true)
	defer p.end()
	a, b := net.Pipe()
	require.NoError(t, p.near.Attach(session.NewLine(a), 0))
	older := session.NewLine(b)
	go func() {
		for range 3 * session.MostKept / session.MostData {
			_ = p.near.Send(session.Stdin, make([]byte, session.MostData))
		}
		_ = p.near.Send(session.Signal, []byte("INT"))
	}()
	received := 0
	for c := session.Stdin; c != session.Signal; {
		var data []byte
		var err error
		c, data, err = older.Receive()
		require.NoError(t, err)
		if c == session.Stdin {
			received += len(data)
		}
		if received == session.MostKept/session.MostData*session.MostData { // it can send no more
			require.False(t, p.near.Acknowledged())
			p.near.Forgo()
		}
	}
	require.Equal(t, 3*session.MostKept, received)
}

// Once the result has come, a connection that ends is not missed, and the other end has been told before.
func TestTheResultIsTheLast(t *testing.T) {
	t.Parallel()
	p := newPair(true)
	defer p.end()
	p.connect(t, 1<<20)
	require.NoError(t, p.far.Send(session.Result, session.End{ExitCode: 3}.Encode()))
	p.far.Flush()
	p.far.End(net.ErrClosed)
	p.near.AwaitLoss()
	require.True(t, p.near.HasResult())
	require.Equal(t, []string{`3 {"exit_code":3}`}, receiveAll(t, p.near, 1))
	require.False(t, p.missed.Load()) // the far one may miss it between what it was told and its end
}

// What an end cannot have been sent it has not taken.
func TestAWrongCountIsRefused(t *testing.T) {
	t.Parallel()
	p := newPair(true)
	defer p.end()
	require.NoError(t, p.near.Send(session.Stdin, []byte("x")))
	require.ErrorIs(t, p.near.Attach(nil, 2), session.ErrMessage)
	a, b := net.Pipe()
	require.NoError(t, p.near.Attach(session.NewLine(a), 0))
	line := session.NewLine(b)
	for range 2 {
		_, _, err := line.Receive()
		require.NoError(t, err)
	}
	require.NoError(t, line.Send(session.Ack, session.EncodeCount(2)))
	<-p.lost
}
