package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
)

// After a restore a daemon may run what is newer than the backup, and have run what waits in it: nothing of that is
// started, ended or forgotten before an operator confirms.
func TestJobsOfAPoolThatOnlyReconciles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.warmNodes(2)
	daemon := w.joinedDaemons()[0]
	known := w.submit(ann, jobOf(2, nil))
	w.doDueWork()
	waits := w.submit(ann, jobOf(8, nil))
	_, err := w.ledger.BeginRecovery(t.Context(), operator, "", "a backup was restored")
	require.NoError(t, err)
	said := ledger.NodeReport{Isolation: capacity.IsolationUser, Holds: []string{"alc_newer"},
		Jobs: []ledger.JobReport{{JobID: "job_newer", Attempt: 1}}}
	require.Zero(t, w.settle(daemon, said))
	w.pass(10 * time.Minute)
	require.Zero(t, w.settle(daemon, said))
	require.Equal(t, job.Scheduled, w.readJob(known.ID).State(), "nobody gives it up")
	why, err := w.ledger.ExplainJob(t.Context(), ann, waits.ID)
	require.NoError(t, err)
	require.Equal(t, ledger.CodeRecovering, why.Blockers[len(why.Blockers)-1].Code)
	require.Contains(t, why.Summary, "When it starts cannot be said: nothing starts in its pool before an operator ")
	require.Empty(t, why.Next)

	_, err = w.ledger.EndRecovery(t.Context(), operator)
	require.NoError(t, err)
	told := w.settle(daemon, said)
	require.Equal(t, []ledger.JobAttempt{{JobID: "job_newer", Attempt: 1}}, told.Forget)
	require.Equal(t, []string{"alc_newer"}, told.Ended)
}
