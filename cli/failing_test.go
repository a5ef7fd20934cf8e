package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/sim"
)

// A provisioner that fails again and again is told of where people look: the
// pool's state, the node, explain, once in the journal; and no time is promised.
func TestAProviderThatFailsAgainAndAgainIsSeen(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	require.NoError(t,
		w.cloud.Inject(sim.Fault{Op: sim.OpCreate, Effect: sim.FailBefore, Kind: provisioners.KindTransient,
			Times: 20}))
	id := w.mustRun("allocate", "--pool", "lab", "--gpus", "4", "--for", "1h", "-o", "name")
	w.passTime(2 * time.Minute)
	nodeID := strings.Fields(w.mustRun("nodes", "list", "-o", "name"))[0]

	require.Regexp(t, `lab.* failing`, w.mustRun("status"))
	require.Regexp(t, `lab.* failing`, w.mustRun("pools", "list"))
	shown := w.mustRun("pools", "show", "lab")
	require.Regexp(t, `LAST FAILURE +[0-9]+ in a row, last .*: .*transient`, shown)
	require.Regexp(t, `LAST FAILURE +[0-9]+ in a row, last .*: .*transient`, w.mustRun("nodes", "show", nodeID))
	why := w.mustRun("explain", id)
	require.Contains(t, why, "provider_failing")
	require.Contains(t, why, "times in a row")
	require.NotContains(t, why, "Likely", "nobody knows when it works again")
	require.Equal(t, 1, strings.Count(w.mustRun("events", "--last", "500"), "node.failing"),
		"once, and not for each attempt")

	var made contract.KeyCreated
	require.NoError(t,
		json.Unmarshal([]byte(w.mustRun("key", "create", "ann", "--role", "member", "-o", "json")), &made))
	w.env["FOREWARM_API_KEY"] = made.Secret
	why = w.mustRun("explain", id)
	require.Contains(t, why, "its provider refuses: ask an operator")
	for _, text := range []string{why, w.mustRun("nodes", "show", nodeID), w.mustRun("pools", "show", "lab"),
		w.mustRun("events", "--last", "500")} {
		require.NotContains(t, text, "transient", "what providers say is the operators'")
	}

	w.env["FOREWARM_API_KEY"] = w.secret
	w.cloud.ClearFaults(sim.OpCreate)
	w.passTime(6 * time.Minute)
	require.Regexp(t, `lab.* ok`, w.mustRun("pools", "list"))
	require.Contains(t, w.mustRun("events", "--last", "500"), "node.works_again")
}
