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
	w.pool()
	require.NoError(t,
		w.cloud.Inject(sim.Fault{Op: sim.OpCreate, Effect: sim.FailBefore, Kind: provisioners.KindTransient,
			Times: 20}))
	id := w.must("allocate", "--pool", "lab", "--gpus", "4", "--for", "1h", "-o", "name")
	w.live(2 * time.Minute)
	nodeID := strings.Fields(w.must("nodes", "list", "-o", "name"))[0]

	require.Regexp(t, `lab.* failing`, w.must("status"))
	require.Regexp(t, `lab.* failing`, w.must("pools", "list"))
	shown := w.must("pools", "show", "lab")
	require.Regexp(t, `LAST FAILURE +[0-9]+ in a row, last .*: .*transient`, shown)
	require.Regexp(t, `LAST FAILURE +[0-9]+ in a row, last .*: .*transient`, w.must("nodes", "show", nodeID))
	why := w.must("explain", id)
	require.Contains(t, why, "provider_failing")
	require.Contains(t, why, "times in a row")
	require.NotContains(t, why, "Likely", "nobody knows when it works again")
	require.Equal(t, 1, strings.Count(w.must("events", "--last", "500"), "node.failing"),
		"once, and not for each attempt")

	var made contract.KeyCreated
	require.NoError(t, json.Unmarshal([]byte(w.must("key", "create", "ann", "--role", "member", "-o", "json")), &made))
	w.env["FOREWARM_API_KEY"] = made.Secret
	why = w.must("explain", id)
	require.Contains(t, why, "its provider refuses: ask an operator")
	for _, text := range []string{why, w.must("nodes", "show", nodeID), w.must("pools", "show", "lab"),
		w.must("events", "--last", "500")} {
		require.NotContains(t, text, "transient", "what providers say is the operators'")
	}

	w.env["FOREWARM_API_KEY"] = w.secret
	w.cloud.Mend(sim.OpCreate)
	w.live(6 * time.Minute)
	require.Regexp(t, `lab.* ok`, w.must("pools", "list"))
	require.Contains(t, w.must("events", "--last", "500"), "node.works_again")
}
