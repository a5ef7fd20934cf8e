package place

import (
	"fmt"

	"github.com/forewarm/forewarm/contract"
)

// UseRoom takes off what statistics chose for now the GPUs that are free beside other work, on
// nodes of an observed pool that are up: the cluster's scheduler puts work there before it boots
// a node, and a promise would be of a node more. Such a node counts if a job of the usual
// size, jobGPUs, fits on it, so a gang is left its whole nodes. Idle nodes do not count:
// the promise is what keeps them up. What is chosen for later stays, as nobody knows what will be
// free then.
func UseRoom(choices []Choice, room contract.PoolRoom, jobGPUs float64) []Choice {
	nodes, free := roomFor(room, jobGPUs)
	if len(choices) == 0 || choices[0].GPUs == 0 || free == 0 {
		return choices
	}
	now := &choices[0]
	now.GPUs = max(0, now.GPUs-free)
	now.Why += "; " + describeRoom(nodes, free, now.GPUs)
	return choices
}

// roomFor adds up the room that a job of so many GPUs fits into.
func roomFor(room contract.PoolRoom, jobGPUs float64) (nodes, free int) {
	for _, s := range room.Shared {
		if float64(s.FreeGPUs) >= jobGPUs {
			nodes, free = nodes+s.Nodes, free+s.Nodes*s.FreeGPUs
		}
	}
	return nodes, free
}

func describeRoom(nodes, free, left int) string {
	up, gpus, added := "nodes are", "GPUs", "none is added"
	if nodes == 1 {
		up = "node is"
	}
	if free == 1 {
		gpus = "GPU"
	}
	if left > 0 {
		added = fmt.Sprintf("%d of the GPUs are added", left)
	}
	return fmt.Sprintf("%d %s up with %d %s free: %s", nodes, up, free, gpus, added)
}
