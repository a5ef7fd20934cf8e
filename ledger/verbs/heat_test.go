package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

// measure has a daemon report the temperature of its node's hottest GPU.
func (l *lookedAt) measure(celsius int) {
	l.w.Helper()
	_, err := l.w.ledger.RecordBeat(l.w.Context(), l.daemon, ledger.Beat{BootID: "boot", Epoch: 1, Look: []byte("{}"),
		Celsius: celsius})
	require.NoError(l.w, err)
	l.w.doDueWork()
}

func (w *world) nodeOnSlot(slot int) (found node.Node) {
	w.Helper()
	for _, n := range w.readNodes(node.Ready) {
		if n.Slot == slot {
			found = n
		}
	}
	return found
}

func TestJobsStayOffHotNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.warmNodes(4)
	nodes := w.readNodes(node.Ready)
	var daemons []*lookedAt
	for _, n := range nodes {
		daemons = append(daemons, w.lookAt(n.ID))
	}
	for _, d := range daemons {
		d.measure(90)
	}
	until := w.nodeOnSlot(0).Heat.HotUntil
	require.Equal(t, w.clock.Now().Add(5*time.Minute).Truncate(time.Second), until.Truncate(time.Second))
	waits := w.submit(ann, jobOf(1, nil))
	w.doDueWork()
	require.Equal(t, job.Pending, w.readJob(waits.ID).State())
	require.Equal(t, ledger.WaitsForGPUs, w.queue()[0].Code)
	why, err := w.ledger.ExplainJob(t.Context(), ann, waits.ID)
	require.NoError(t, err)
	var heat ledger.Blocker
	for _, b := range why.Blockers {
		if b.Code == "heat" {
			heat = b
		}
	}
	require.Equal(t, "No job starts on 4 nodes of its pool: too hot.", heat.Message)
	require.Contains(t, heat.Evidence[0], "90 °C, until ")
	require.Equal(t, until, heat.ClearsAt.P50)
	of, err := w.ledger.ExplainNode(t.Context(), operator, nodes[0].ID)
	require.NoError(t, err)
	require.Contains(t, of.Summary, "too hot (90 °C): jobs start elsewhere until")

	w.pass(time.Minute)
	for range 4 {
		for i, d := range daemons {
			if i == 2 {
				d.measure(90)
			} else {
				d.measure(70) // it was too hot until now, so its five minutes begin with the first
			}
		}
		w.pass(90 * time.Second)
	}
	require.Equal(t, job.Scheduled, w.readJob(waits.ID).State(), "time alone starts it once a node has cooled down")
	require.NotEqual(t, []int{nodes[2].Slot}, w.slotsOf(waits.ID))
}

func TestWarmNodesComeLast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.warmNodes(4)
	nodes := w.readNodes(node.Ready)
	for i, n := range nodes {
		w.lookAt(n.ID).measure([]int{75, 75, 75, 40}[i])
	}
	first := w.submit(ann, jobOf(2, nil))
	w.doDueWork()
	require.Equal(t, []int{nodes[3].Slot}, w.slotsOf(first.ID))
	second := w.submit(ann, jobOf(1, nil))
	w.doDueWork()
	require.Equal(t, job.Scheduled, w.readJob(second.ID).State(), "a warm one will do")
	liked := w.label(nodes[1], ledger.NodeChange{Labels: map[string]string{"disk": "nvme"}})
	third := w.submit(ann, jobOf(1, where(job.Where{Prefers: []string{"disk"}})))
	w.doDueWork()
	require.Equal(t, []int{liked.Slot}, w.slotsOf(third.ID), "what a job prefers goes before")
}

func TestAReservationIsNotKeptFromItsJobByHeat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.warmNodes(4)
	nodes := w.readNodes(node.Ready)
	r := w.reserveHour(ann, 0, 2)
	for _, n := range nodes {
		w.lookAt(n.ID).measure(88)
	}
	j := w.submit(ann, jobOf(0, func(c *ledger.JobCommand) { c.Job.Reservation, c.Job.MaxRuntime = r.ID, 0 }))
	w.doDueWork()
	require.Equal(t, job.Scheduled, w.readJob(j.ID).State())
}
