package audit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/internal/invariants"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/test/chaos/audit"
)

func nodeAfter(t *testing.T, id, reason string, events ...node.Event) node.Node {
	t.Helper()
	n := node.New(id, "pool", 0, 1, dawn)
	for i, e := range events {
		why := ""
		if i == len(events)-1 {
			why = reason
		}
		var err error
		n, err = n.Apply(e, why, dawn)
		require.NoError(t, err)
	}
	return n
}

// Ready nodes, and quarantined ones of which it is said why, withhold nothing. All else does.
func TestWhatIsWithheldIsFound(t *testing.T) {
	t.Parallel()
	ready := []node.Event{node.Provision, node.Boot, node.BecomeReady}
	quarantined := append(ready, node.Quarantine)
	pool := func(change func(*ledger.PoolState)) audit.Rows {
		p := ledger.PoolState{Nodes: []node.Node{nodeAfter(t, "nod_1", "", ready...),
			nodeAfter(t, "nod_2", "not_clean", quarantined...)}}
		p.Pool.Name = "bare"
		change(&p)
		return audit.Rows{Rows: invariants.Rows{Pools: []ledger.PoolState{{}, p}}}
	}
	for want, change := range map[string]func(*ledger.PoolState){
		"": func(*ledger.PoolState) {},
		"node nod_3 is quarantined ()": func(p *ledger.PoolState) {
			p.Nodes = append(p.Nodes, nodeAfter(t, "nod_3", "", quarantined...))
		},
		"node nod_3 is booting (x)": func(p *ledger.PoolState) {
			p.Nodes = append(p.Nodes, nodeAfter(t, "nod_3", "x", ready[:2]...))
		},
		"what alc_1 gave back at 06:00:00.000 is being cleaned: " +
			`proofs are awaited from ["nod_1"]`: func(p *ledger.PoolState) {
			p.Pool.Learned.Cleaning = []learned.Cleaning{{ID: "alc_1", Since: dawn, Await: []string{"nod_1"}}}
		},
		"allocation alc_2 is active": func(p *ledger.PoolState) {
			p.Allocations = []allocation.Allocation{heldAllocation(t, "alc_2", "a", allocation.Activate)}
		},
	} {
		found := pool(change).Withheld("bare")
		if want == "" {
			require.Empty(t, found)
			continue
		}
		require.Equal(t, []string{want}, found)
	}
	require.Equal(t, []string{"there is no pool other"}, pool(func(*ledger.PoolState) {}).Withheld("other"))
}
