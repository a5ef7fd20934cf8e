package report_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// startedJobs are the attempts that a daemon has: the control plane orders none.
type startedJobs map[contract.JobKey]bool

func (startedJobs) Reports() []contract.JobReport                                { return nil }
func (startedJobs) Heed(_ []contract.JobOrder, _ []contract.JobKey, _ time.Time) {}
func (startedJobs) Stop(_ []contract.JobStop)                                    {}
func (s startedJobs) Gone(keys []contract.JobKey) (all []contract.JobKey) {
	for _, key := range keys {
		if !s[key] {
			all = append(all, key)
		}
	}
	return all
}

// A daemon that is asked says with its next report what of that is over, also if it was started anew since that ended.
// It says so once, whether or not the report arrives.
func TestADaemonSaysWhatIsOver(t *testing.T) {
	t.Parallel()
	h := newHolder(t)
	runs, ended := contract.JobKey{JobID: "job_1", Attempt: 2}, contract.JobKey{JobID: "job_1", Attempt: 1}
	ask := func() (answered []contract.Heartbeat) {
		h.Jobs = startedJobs{runs: true}
		h.server.said.UnlistedHolds = []string{held, "alc_unknown"}
		h.server.said.UnlistedJobs = []contract.JobKey{runs, ended}
		require.Less(t, h.wait(), time.Second, "a job waits for the answer")
		h.server.said.UnlistedHolds, h.server.said.UnlistedJobs = nil, nil
		h.server.beats = nil
		h.wait()
		h.wait()
		return h.server.beats
	}
	said := ask()
	require.Empty(t, said[0].OverHolds, "one is open, of the other one it knows nothing")
	require.Equal(t, []contract.JobKey{ended}, said[0].GoneJobs)
	require.Empty(t, said[1].GoneJobs)

	h.server.said = contract.HeartbeatAnswer{Ended: []string{held}}
	for proved := false; !proved; {
		h.wait()
		proved = len(h.server.beats[len(h.server.beats)-1].Cleaned) > 0
	}
	h.server.said = contract.HeartbeatAnswer{}
	for len(h.holds.Cleaned()) > 0 {
		h.wait()
	}
	h.again()
	said = ask()
	require.Equal(t, []string{held}, said[0].OverHolds)
	require.Empty(t, said[1].OverHolds)
}
