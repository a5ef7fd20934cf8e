package server_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// A daemon has ended, cleaned up and forgotten what a restored database takes for active: it is asked, and the
// allocation ends, instead of being refused each session and paid for until its lease is over.
func TestWhatEndedSinceTheBackupEnds(t *testing.T) {
	s := newSite(t)
	_, _, err := s.exec("root", "true")
	require.NoError(t, err)
	s.holds.End([]string{s.held.ID})
	require.Eventually(t, func() bool {
		s.holds.Look(contract.NodeLook{Source: "simulated"}, time.Now())
		return len(s.holds.Cleaned()) > 0
	}, time.Minute, time.Millisecond)
	s.holds.End(nil)
	_, _, err = s.exec("root", "true")
	require.ErrorContains(t, err, "the allocation has ended on this node")

	beat := func(over []string) contract.HeartbeatAnswer {
		s.clock.Advance(time.Minute)
		s.seq++
		return s.sendBeat("daemon", s.on, s.beat(s.on, 1, s.seq, "healthy", func(b *contract.Heartbeat) {
			b.OverHolds = over
		}))
	}
	asked := beat(nil).UnlistedHolds
	require.Equal(t, []string{s.held.ID}, asked)
	require.Empty(t, beat(s.holds.Over(asked)).UnlistedHolds)
	is := ask[contract.Allocation](s.world, "root", http.MethodGet, "/v1/allocations/"+s.held.ID, "")
	require.Equal(t, []string{"released", "over_on_node"}, []string{is.State, is.Reason})
}

// So does a job that its daemon has reported, and does not have any more.
func TestAJobThatEndedSinceTheBackupIsLost(t *testing.T) {
	f := newJobFleet(t)
	j := f.submit("root", `{"pool":"lab","gpus":1,"command":["true"],"max_runtime_seconds":3600,
		"retries":{"lost":0,"failed":0}}`)[0]
	f.schedule()
	o, node := f.order()
	require.Empty(t, f.report(node, contract.JobReport{JobKey: o.JobKey, State: contract.JobRankRunning}).UnlistedJobs)
	require.Equal(t, []contract.JobKey{o.JobKey}, f.report(node).UnlistedJobs)
	f.seq++
	f.sendBeat([]string{"daemon0", "daemon1"}[node], node, f.beat(node, 1, f.seq, "healthy", func(b *contract.Heartbeat) {
		b.GoneJobs = []contract.JobKey{o.JobKey}
	}))
	is := f.job(j.ID)
	require.Equal(t, []string{"failed", "node_lost"}, []string{is.State, is.Reason})
}
