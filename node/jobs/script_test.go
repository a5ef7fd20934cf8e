package jobs

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/contract/session"
)

// What a command is told when its time is over, and when: its input at once, its checkpoint as long before the end as
// it asks for, TERM at the end, and KILL after its grace.
func TestWhenACommandIsToldThatItsTimeIsOver(t *testing.T) {
	type told struct {
		after   time.Duration
		channel session.Channel
		data    string
	}
	limited := contract.JobOrder{Input: []byte("input"), MaxRuntimeSeconds: 3600, GraceSeconds: 20}
	saves, leader, late := limited, limited, limited
	saves.Checkpoint = &contract.JobCheckpoint{Signal: "USR1", BeforeSeconds: 600}
	leader.Checkpoint = &contract.JobCheckpoint{Signal: "USR1", BeforeSeconds: 600, LeaderOnly: true}
	late.Checkpoint = &contract.JobCheckpoint{Signal: "USR1", BeforeSeconds: 3600} // there is no time before it
	input := []told{{0, session.Stdin, "input"}, {0, session.Close, "\x00"}}
	over := []told{{time.Hour, session.Signal, "TERM"}, {time.Hour + 20*time.Second, session.Signal, "KILL"}}
	for name, c := range map[string]struct {
		order  contract.JobOrder
		before []told
	}{
		"no checkpoint":        {limited, nil},
		"a checkpoint":         {saves, []told{{50 * time.Minute, session.Signal, "USR1"}}},
		"one of the leader":    {leader, []told{{50 * time.Minute, session.Leader, "USR1"}}},
		"one that is too late": {late, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: stepsOf(c.order), exited: make(chan struct{})}
				from := time.Now()
				for _, want := range append(append(input[:2:2], c.before...), over...) {
					channel, data, err := s.Receive()
					require.NoError(t, err)
					require.Equal(t, want, told{time.Since(from), channel, string(data)})
				}
				_, _, err := s.Receive()
				require.ErrorIs(t, err, io.EOF, "it cannot even be killed")
				require.Equal(t, over[1].after+waits.Kill, time.Since(from))
				require.True(t, s.limited.Load())
			})
		})
	}
}
