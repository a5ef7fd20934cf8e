package jobs

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/contract/session"
)

// duplex is what a session's stream is for a command of a session: where output goes, and where input
// and signals come from.
type duplex struct {
	*output
	*script
}

// step is something that a command is told, some time after the step before.
type step struct {
	wait    time.Duration
	channel session.Channel
	data    []byte
	limits  bool // its time is over
}

// script is what a command is told, and when. Its times are the kernel's monotonic clock's.
type script struct {
	steps   []step
	exited  <-chan struct{} // the command has
	over    chan struct{}   // closed once nobody asks any more
	limited atomic.Bool     // its time was over before it ended
}

// stepsOf are the steps of an order. The last says that the command cannot even be killed.
func stepsOf(o contract.JobOrder) []step {
	var all []step
	if len(o.Input) > 0 {
		all = append(all, step{channel: session.Stdin, data: o.Input})
	}
	all = append(all, step{channel: session.Close, data: []byte{byte(session.Stdin)}})
	if o.MaxRuntimeSeconds <= 0 {
		return all
	}
	left := time.Duration(o.MaxRuntimeSeconds) * time.Second
	if c := o.Checkpoint; c != nil && c.BeforeSeconds > 0 && c.BeforeSeconds < o.MaxRuntimeSeconds {
		before := time.Duration(c.BeforeSeconds) * time.Second
		all = append(all, step{wait: left - before, channel: session.Signal, data: []byte(c.Signal)})
		left = before
	}
	return append(all, step{wait: left, channel: session.Signal, data: []byte("TERM"), limits: true},
		step{wait: time.Duration(o.GraceSeconds) * time.Second, channel: session.Signal, data: []byte("KILL")},
		step{wait: waits.Kill, channel: session.Result})
}

// Receive implements work.Stream.
func (s *script) Receive() (session.Channel, []byte, error) {
	if len(s.steps) > 0 && s.await(s.steps[0].wait) {
		next := s.steps[0]
		s.steps = s.steps[1:]
		if next.limits {
			s.limited.Store(true)
		}
		if next.channel == session.Result {
			return 0, nil, io.EOF
		}
		return next.channel, next.data, nil
	}
	<-s.over
	return 0, nil, io.EOF
}

// await waits for a step; false: the command has ended before.
func (s *script) await(wait time.Duration) bool {
	select {
	case <-s.exited:
		return false
	default:
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.exited:
		return false
	}
}
