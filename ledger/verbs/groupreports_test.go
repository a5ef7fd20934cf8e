package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

// claimCreates has the pool's four nodes asked for, and claims the tasks that make
// their machines.
func (w *world) claimCreates() (tasks []ledger.Task) {
	w.Helper()
	w.mustAllocate(w.newPerson("ann"), 8)
	for len(tasks) < 4 {
		due, err := w.ledger.Dispatch(w.Context(), 100, time.Minute)
		require.NoError(w, err)
		require.NotEmpty(w, due)
		for _, task := range due {
			task, err = w.ledger.ClaimTask(w.Context(), task.ID, task.Attempt, time.Hour)
			require.NoError(w, err)
			if task.Kind == ledger.TaskCreateNode {
				tasks = append(tasks, task)
				continue
			}
			require.NoError(w, w.handleTask(task))
		}
	}
	return tasks
}

func guardOf(t ledger.Task) ledger.Guard { return ledger.Guard{TaskID: t.ID, Fence: t.Fence} }

// What workers report of nodes is committed together, and with what people book.
func TestReportsOfNodesShareATransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tasks := w.claimCreates()
	l, g := w.gatedLedger()
	bob := w.newPerson("bob")
	errs := sendTogether(l, g, 5, func(i int) error {
		if i == 4 {
			_, err := l.Reserve(t.Context(), bob, ledger.ReserveRequest{Pool: "lab", GPUs: 1, Window: dayWindow(7)})
			return err
		}
		_, err := l.BeginCreate(t.Context(), guardOf(tasks[i]), tasks[i].Subject)
		return err
	})
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Equal(t, 2, g.transactions, "the one that was at work, and one for all")
	require.Len(t, w.readNodes(node.Provisioning), 4)
	require.Len(t, w.liveOf("key of bob"), 1)
}

// A worker that was given up reports late: its report fails, the others' do not.
func TestALateReportHarmsNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tasks := w.claimCreates()
	l, g := w.gatedLedger()
	for _, task := range tasks {
		_, err := l.BeginCreate(t.Context(), guardOf(task), task.Subject)
		require.NoError(t, err)
	}
	errs := sendTogether(l, g, 4, func(i int) error {
		guard := guardOf(tasks[i])
		if i == 1 {
			guard.Fence--
		}
		return l.ReportCreated(t.Context(), guard, tasks[i].Subject, ledger.Instance{ProviderID: tasks[i].Subject})
	})
	for i, err := range errs {
		if i == 1 {
			require.ErrorIs(t, err, ledger.ErrFenced)
		} else {
			require.NoError(t, err)
		}
	}
	require.Len(t, w.readNodes(node.Booting), 3)
	require.Len(t, w.readNodes(node.Provisioning), 1, "nothing of the late report stays")
}
