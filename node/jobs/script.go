package jobs

import (
	"io"
	"slices"
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
	stops   bool // it was told to end
}

// script is what a command is told, and when. Its times are the kernel's monotonic clock's.
type script struct {
	steps   []step
	stop    <-chan contract.JobStop // receives once if it is to end earlier
	exited  <-chan struct{}         // the command has
	over    chan struct{}           // closed once nobody asks any more
	limited atomic.Bool             // its time was over before it ended
	stopped atomic.Bool             // it was told to end before it did
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
		all = append(all, step{wait: left - before, channel: signalTo(c.LeaderOnly), data: []byte(c.Signal)})
		left = before
	}
	return append(all, step{wait: left, channel: session.Signal, data: []byte("TERM"), limits: true},
		step{wait: time.Duration(o.GraceSeconds) * time.Second, channel: session.Signal, data: []byte("KILL")},
		step{wait: waits.Kill, channel: session.Result})
}

// signalTo is the channel of a signal to the command's first process alone, or to all of its process group.
func signalTo(leaderOnly bool) session.Channel {
	if leaderOnly {
		return session.Leader
	}
	return session.Signal
}

// Receive implements work.Stream.
func (s *script) Receive() (session.Channel, []byte, error) {
	for {
		switch s.await() {
		case hasEnded:
			<-s.over
			return 0, nil, io.EOF
		case toldToEnd:
			continue
		}
		next := s.steps[0]
		s.steps = s.steps[1:]
		if next.limits {
			s.limited.Store(true)
			s.stop = nil // it is ending
		}
		if next.stops {
			s.stopped.Store(true)
		}
		if next.channel == session.Result {
			return 0, nil, io.EOF
		}
		return next.channel, next.data, nil
	}
}

// event is what a script waits for.
type event int

const (
	isDue     event = iota // its next step is
	toldToEnd              // its steps are others now
	hasEnded               // the command has, so that there is nobody to tell
)

// await waits for what comes first.
func (s *script) await() event {
	select {
	case <-s.exited:
		return hasEnded
	default:
	}
	var due <-chan time.Time // without steps, none ever is
	if len(s.steps) > 0 {
		timer := time.NewTimer(s.steps[0].wait)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
		return isDue
	case told := <-s.stop:
		s.steps, s.stop = append(inputOf(s.steps), stepsToStop(told)...), nil
		return toldToEnd
	case <-s.exited:
		return hasEnded
	}
}

// inputOf are the steps that give a command its input.
func inputOf(steps []step) []step {
	return slices.DeleteFunc(slices.Clone(steps), func(s step) bool {
		return s.channel != session.Stdin && s.channel != session.Close
	})
}
