package scheduler_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/core/scheduler"
)

// BenchmarkClaims measures a cycle over 10,000 jobs of 20 people, who have reserved all of 500 nodes.
func BenchmarkClaims(b *testing.B) {
	from := scheduler.Snapshot{}
	for i := range 500 {
		id := fmt.Sprint("n", i)
		from.Nodes = append(from.Nodes, placement.Node{ID: id, Kind: placement.Kind{GPUs: 8}})
		from.Reserved = append(from.Reserved, reserved(fmt.Sprint("r", i), id, 8, 4, madeBy(fmt.Sprint("u", i%20))))
	}
	for i := range 10_000 {
		from.Waiting = append(from.Waiting, want(fmt.Sprint("j", i), 8, 1, by(fmt.Sprint("u", i%20))))
	}
	for b.Loop() {
		b.StopTimer()
		s, err := scheduler.Restore(scheduler.Policy{}, from)
		require.NoError(b, err)
		b.StartTimer()
		require.Len(b, s.Cycle(noon).Starts, 500)
	}
}
