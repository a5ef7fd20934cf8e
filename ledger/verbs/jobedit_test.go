package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/ledger"
)

// What a job may not be submitted with it cannot be edited to have, in the same words: neither by whom the caps are of,
// nor for them by others, nor by them for others.
func TestAnEditIsBoundedAsASubmissionIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	capped := ann
	made, err := w.ledger.CreateKey(t.Context(), operator, ledger.Key{ID: "key_capped", Name: "capped",
		OrganizationID: ann.OrganizationID, Kind: ledger.PersonKey, Role: ledger.Member, Hash: []byte{2},
		Caps: quota.Caps{MaxGPUs: 8, MaxPerDay: 1000 * money.USD, MaxLead: time.Hour, MaxWindow: 2 * time.Hour}})
	require.NoError(t, err)
	capped.KeyID, capped.Caps = made.ID, made.Caps
	long := 3 * time.Hour
	_, want := w.ledger.SubmitJobs(t.Context(), capped, jobOf(1, func(c *ledger.JobCommand) { c.Job.MaxRuntime = long }))
	var refused *ledger.RefusedError
	require.ErrorAs(t, want, &refused)

	anns, theirs := w.submit(ann, jobOf(1, nil)), w.submit(capped, jobOf(1, nil))
	for name, c := range map[string]struct {
		who ledger.Actor
		job job.Job
	}{"one's own": {capped, theirs}, "by another": {ann, theirs}, "by an operator": {operator, theirs},
		"another's": {capped, anns}} {
		_, err := w.ledger.EditJob(t.Context(), c.who, c.job.ID, 1, ledger.JobEdit{MaxRuntime: &long})
		require.ErrorAs(t, err, &refused, name)
		require.EqualError(t, err, want.Error(), name)
		require.Equal(t, time.Hour, w.readJob(c.job.ID).MaxRuntime, name)
	}
	array := w.submitArray(capped, 0, nil, 1, 2, 3)
	_, err = w.ledger.EditJobs(t.Context(), ann, ledger.JobSet{ArrayID: array[0].Array.ID},
		ledger.JobEdit{MaxRuntime: &long})
	require.EqualError(t, err, want.Error())
	short := 90 * time.Minute
	_, err = w.ledger.EditJob(t.Context(), capped, theirs.ID, 1, ledger.JobEdit{MaxRuntime: &short})
	require.NoError(t, err)
	_, err = w.ledger.EditJob(t.Context(), ann, anns.ID, 1, ledger.JobEdit{MaxRuntime: &long})
	require.NoError(t, err)
}
