package cli

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/contract"
)

// While a pool only reconciles everything that shows it says so, a refusal has the
// exit code of a conflict, at once, and leads to where an operator ends it.
func TestAPoolThatOnlyReconcilesSaysSoEverywhere(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	id := w.mustRun("allocate", "--pool", "lab", "--gpus", "4", "--for", "1h", "-o", "name")
	w.mustRun("recovery", "begin", "--reason", "restored the backup of 06:00")
	for _, args := range [][]string{{"status"}, {"pools", "list"}, {"pools", "show", "lab"}} {
		require.Regexp(t, `(?s)lab.* recovering`, w.mustRun(args...), "%v", args)
	}
	var pool contract.Pool
	require.NoError(t, json.Unmarshal([]byte(w.mustRun("pools", "show", "lab", "-o", "json")), &pool))
	require.True(t, pool.Recovering)

	why := w.mustRun("explain", id)
	require.Contains(t, why, "recovering")
	require.Contains(t, why, "the backup of 06:00")
	require.Contains(t, why, "forewarm recovery show")
	require.NotContains(t, why, "Likely")

	before := w.clock.Now()
	_, errs, code := w.runCommand("allocate", "--pool", "lab", "--gpus", "1", "--for", "1h")
	require.Equal(t, exit.Conflict, code)
	require.Regexp(t, `(?m)^Next:  forewarm recovery show`, errs)
	require.Contains(t, errs, "ask an operator")
	require.Less(t, w.clock.Now().Sub(before), time.Second, "nobody waits for a person's decision by asking again")

	var made contract.KeyCreated
	require.NoError(t,
		json.Unmarshal([]byte(w.mustRun("key", "create", "ann", "--role", "member", "-o", "json")), &made))
	w.env["FOREWARM_API_KEY"] = made.Secret
	why = w.mustRun("explain", id)
	require.Contains(t, why, "recovering")
	require.NotContains(t, why, "the backup", "what operators wrote is theirs")
	require.NotContains(t, why, "recovery show")
}
