package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

// A machine that its provider may take back at any moment is looked at soon, and
// what was taken back costs nothing from then on, whenever that is noticed.
func TestAPreemptedMachineIsNotBilledPastItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.look = 10 * time.Second
	w.warmNodes(1)
	taken := w.readNodes(node.Ready)[0]
	w.pass(5 * time.Second)
	end := w.clock.Now()
	w.lost = ledger.Loss{Preempted: true, Ended: end}
	delete(w.up, taken.ID)
	w.pass(10 * time.Second)
	require.Empty(t, w.readNodes(node.Ready), "it is noticed at the next look")
	gone := w.readNodes(node.Gone)
	require.Len(t, gone, 1)
	require.Equal(t, "preempted", gone[0].Reason)
	require.Equal(t, end, gone[0].BilledUntil.UTC())
	told := w.readEvents("node.lost")
	require.Len(t, told, 1)
	require.Contains(t, told[0].Message, "took it back for somebody else; it is not billed after "+
		end.Format(time.RFC3339))
}
