package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/plan"
)

// Whatever is decided in whatever history can be decided again from what is
// stored, byte for byte; a record that was tampered with cannot.
func TestEveryDecisionCanBeReplayed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		h := newHistory(r)
		for range rapid.IntRange(1, 10).Draw(r, "happenings") {
			h.actOutside()
			h.planUntilSettled(func(result plan.Result) {
				for _, a := range result.Actions {
					checkReplay(r, a)
				}
			})
			h.now = h.now.Add(h.drawMinutes("step", 0, 30))
		}
	})
}

func checkReplay(r *rapid.T, a plan.Action) {
	text, err := a.Record().Encode()
	require.NoError(r, err)
	back, err := plan.DecodeRecord(text)
	require.NoError(r, err)
	same, diff := plan.Replay(back)
	require.True(r, same, "%s: %s", text, diff)
	again, err := back.Encode()
	require.NoError(r, err)
	require.Equal(r, string(text), string(again))
	back.Outcome.Reason = "because"
	same, diff = plan.Replay(back)
	require.False(r, same)
	require.Contains(r, diff, "because")
}

func TestARecordOfOtherRulesIsNotReplayed(t *testing.T) {
	t.Parallel()
	same, diff := plan.Replay(plan.Record{Version: plan.RecordVersion + 1, Kind: plan.BootNode})
	require.False(t, same)
	require.Contains(t, diff, "version")
	_, err := plan.DecodeRecord([]byte(`{"version":1,"kind":"boot_node","facts":{"moon":"full"}}`))
	require.ErrorContains(t, err, "moon")
	does, _ := plan.Judge("launch_rocket", plan.Facts{})
	require.False(t, does)
}
