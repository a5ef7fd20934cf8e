package place_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent/place"
	"github.com/forewarm/forewarm/contract"
)

// Room beside other work takes the place of GPUs that would be promised now, if a job of the
// usual size fits into it. Times to come and idle nodes do not count.
func TestUseRoom(t *testing.T) {
	t.Parallel()
	shared := func(free, nodes int) contract.SharedNodes { return contract.SharedNodes{FreeGPUs: free, Nodes: nodes} }
	for name, tc := range map[string]struct {
		shared []contract.SharedNodes
		job    float64
		kept   []int
		want   []int
		why    string
	}{
		"nothing free": {nil, 1, []int{3, 2}, []int{3, 2}, "why"},
		"enough": {[]contract.SharedNodes{shared(3, 1)}, 1.5, []int{3, 2}, []int{0, 2},
			"why; 1 node is up with 3 GPUs free: none is added"},
		"more than enough": {[]contract.SharedNodes{shared(3, 2)}, 1, []int{3}, []int{0},
			"why; 2 nodes are up with 6 GPUs free: none is added"},
		"some": {[]contract.SharedNodes{shared(1, 1)}, 1, []int{6}, []int{5},
			"why; 1 node is up with 1 GPU free: 5 of the GPUs are added"},
		"too small for a job": {[]contract.SharedNodes{shared(1, 4), shared(2, 1)}, 2, []int{6}, []int{4},
			"why; 1 node is up with 2 GPUs free: 4 of the GPUs are added"},
		"a gang":          {[]contract.SharedNodes{shared(3, 4)}, 8, []int{8}, []int{8}, "why"},
		"nothing is held": {[]contract.SharedNodes{shared(3, 1)}, 1, []int{0, 2}, []int{0, 2}, "why"},
	} {
		choices := choicesKeeping(tc.kept...)
		choices[0].Why = "why"
		var got []int
		choices = place.UseRoom(choices, contract.PoolRoom{IdleNodes: 3, Shared: tc.shared}, tc.job)
		for _, c := range choices {
			got = append(got, c.GPUs)
		}
		require.Equal(t, tc.want, got, name)
		require.Equal(t, tc.why, choices[0].Why, name)
	}
	require.Empty(t, place.UseRoom(nil, contract.PoolRoom{Shared: []contract.SharedNodes{shared(3, 1)}}, 1))
}
