package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/core/scheduler"
)

// drawRecord has a scheduler of a world's state decide, some of which cannot be carried out.
func drawRecord(t *rapid.T, w *world) scheduler.Record {
	s, err := scheduler.Restore(w.policy, w.s.Snapshot())
	require.NoError(t, err)
	node := rapid.SampledFrom(w.s.Snapshot().Nodes).Draw(t, "node").ID
	until := w.now.Add(time.Duration(rapid.IntRange(1, 9).Draw(t, "until")) * time.Hour)
	if rapid.Bool().Draw(t, "booked") {
		require.True(t, s.Book(placement.Promised{ID: "booked", From: w.now, Until: until,
			Spots: placement.Placement{{Node: node, GPUs: rapid.IntRange(1, 4).Draw(t, "GPUs")}}}))
	}
	if rapid.Bool().Draw(t, "reserved") {
		s.Reserve(scheduler.Reserved{ID: "r", For: reservation.Claimants{ForJobs: reservation.OrganizationJobs,
			Maker: reservation.Submitter{OrganizationID: "a"}}, Until: until,
			Spots: placement.Placement{{Node: node, GPUs: rapid.IntRange(1, 4).Draw(t, "left")}}})
	}
	r := scheduler.Record{Version: scheduler.RecordVersion, Pool: "lab", Now: w.now, Policy: w.policy,
		State: s.Snapshot()}
	for range rapid.IntRange(1, 3).Draw(t, "rounds") {
		round := scheduler.Round{Decision: s.Cycle(w.now)}
		for _, start := range round.Starts {
			if rapid.IntRange(0, 2).Draw(t, "refused") == 0 {
				scheduler.Refuse(s, &round.PutBack, start.Job, w.now)
			}
		}
		if all := s.Snapshot().Waiting; len(all) > 0 && len(round.PutBack.Refused) > 0 {
			scheduler.LeaveOut(s, &round.PutBack, rapid.SampledFrom(all).Draw(t, "left out").ID)
		}
		r.Rounds = append(r.Rounds, round)
	}
	var ends []string
	for _, is := range s.Snapshot().Running {
		ends = append(ends, is.ID)
	}
	scheduler.NextTurns(s, &r, w.now, ends)
	return r
}

// Whatever is decided in whatever world, also by rounds of which parts were refused, can be decided again from what is
// recorded, byte for byte; and what was changed in a record is noticed.
func TestEveryCycleCanBeReplayed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.broken = true
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			w.step(t)
			r := drawRecord(t, w)
			text, err := r.Encode()
			require.NoError(t, err)
			back, err := scheduler.DecodeRecord(text)
			require.NoError(t, err)
			again, err := scheduler.Replay(back, back.Policy)
			require.NoError(t, err)
			require.Empty(t, again.Difference)
			require.LessOrEqual(t, len(r.State.Waiting), len(again.Order), "whoever waits has a turn")
			twice, err := back.Encode()
			require.NoError(t, err)
			require.Equal(t, string(text), string(twice))
			if starts := back.Rounds[0].Starts; len(starts) > 0 {
				starts[0].Job = "another"
				again, err = scheduler.Replay(back, back.Policy)
				require.NoError(t, err)
				require.Contains(t, again.Difference, "starts")
			}
			w.cycle(t)
		}
	})
}

func TestWhatIsNoRecordIsRefused(t *testing.T) {
	t.Parallel()
	var version *scheduler.VersionError
	_, err := scheduler.DecodeRecord([]byte(fmt.Sprintf(`{"Version":%d,"Moon":1}`, scheduler.RecordVersion+1)))
	require.ErrorAs(t, err, &version)
	require.ErrorContains(t, err, "newer")
	for text, why := range map[string]string{
		`{}`: "no version", `[]`: "decoding", `{"Version":1,"Moon":1}`: "Moon", ``: "decoding",
	} {
		_, err := scheduler.DecodeRecord([]byte(text))
		require.ErrorContains(t, err, why)
	}
	r := scheduler.Record{Version: scheduler.RecordVersion, State: scheduler.Snapshot{
		Running: []scheduler.Running{{Job: scheduler.Job{ID: "a"}}}}}
	_, err = scheduler.Replay(r, r.Policy)
	require.ErrorContains(t, err, "restoring", "a state that cannot be")
}

// A record says who waits in which order, and what another policy would have decided.
func TestARecordSaysWhoIsNextAndWhatAnotherPolicyDecides(t *testing.T) {
	t.Parallel()
	r := scheduler.Record{Version: scheduler.RecordVersion, Now: noon, Policy: scheduler.Default(),
		State: scheduler.Snapshot{Nodes: []placement.Node{{ID: "n", Kind: placement.Kind{GPUs: 1}}}}}
	long := scheduler.Job{ID: "long", Tenant: "a", Eligible: noon.Add(-2 * time.Hour), MaxRuntime: 48 * time.Hour,
		Predicted: 48 * time.Hour,
		Request:   placement.Request{Shape: capacity.Shape{Nodes: 1, PerNode: 1}}}
	short := long
	short.ID, short.Eligible, short.Predicted = "short", noon.Add(-time.Hour), time.Minute
	r.State.Waiting = []scheduler.Job{long, short}
	s, err := scheduler.Restore(r.Policy, r.State)
	require.NoError(t, err)
	r.Rounds = []scheduler.Round{{Decision: s.Cycle(noon)}}
	again, err := scheduler.Replay(r, r.Policy)
	require.NoError(t, err)
	require.Empty(t, again.Difference)
	require.Equal(t, "short", again.Order[0].ID)
	require.Equal(t, time.Hour, again.Order[0].Waited)
	by := r.Policy
	by.Order = scheduler.Arrival
	again, err = scheduler.Replay(r, by)
	require.NoError(t, err)
	require.Contains(t, again.Difference, "starts")
	require.Equal(t, "long", again.Rounds[0].Starts[0].Job)
	require.True(t, r.Decides())
}
