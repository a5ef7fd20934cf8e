package forecast

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// playPairs plays two jobs of two minutes each hour, six minutes apart. The real fleet holds nothing: the first one
// waits for a boot, so that the second one finds it running, and waits for its GPU.
func playPairs(t *testing.T, areWaitsKnown bool) *Shadows {
	class, err := NewOnlineModel(BuiltIn()).Tenant("a")
	require.NoError(t, err)
	s := NewExperts().Class(class)
	look := func(now int64) {
		o := class.Observe(now)
		s.Hold(now, &o, dear, 0, MaxHeld)
	}
	end := func(at, submitted, started int64) {
		if !areWaitsKnown {
			started = submitted
		}
		require.NoError(t, class.End(at, 1, submitted, started))
		look(at)
	}
	for hour := range int64(20) {
		at := origin + 3600*hour
		for _, second := range []int64{at, at + 360} {
			require.NoError(t, class.Submit(second, 1))
			look(second)
		}
		end(at+420, at, at+300)
		end(at+540, at+360, at+420)
		for now := class.Next(at + 540); now < at+3600; now = class.Next(now) {
			look(now)
		}
	}
	return s
}

// A fleet that keeps a GPU from hour to hour would never have had two jobs at a time.
func TestAFleetThatKeepsIsNotToldOfWaitsItWouldNotHaveHad(t *testing.T) {
	t.Parallel()
	known, unknown := playPairs(t, true), playPairs(t, false)
	require.Less(t, known.state.Fleets[keep1].Cost, 0.6*unknown.state.Fleets[keep1].Cost)
	require.InEpsilon(t, unknown.state.Fleets[nothing].Cost, known.state.Fleets[nothing].Cost, 0.01,
		"it lets each job wait, as the real one")
	for i := range known.state.Fleets {
		require.Zero(t, known.state.Fleets[i].Demand, "rule %d", i)
	}
	require.Empty(t, known.state.Jobs)
}

// Of equal jobs of one second, those that waited are not taken for those that did not.
func TestEqualJobsAreTakenForEachOtherOnce(t *testing.T) {
	t.Parallel()
	s := NewExperts().Class(&Tenant{fleet: NewOnlineModel(Prior{})})
	s.state.At = origin
	s.state.Fleets[keep1].Units = 2
	for range 4 {
		s.apply(change{At: origin, GPUs: 1})
	}
	const early, late = whereItDidNotWait, whereItWaited
	for _, in := range []where{early, early, everywhere, late, everywhere, late} {
		s.apply(change{At: origin + 100, Submitted: origin, GPUs: -1, In: in})
	}
	for i := range s.state.Fleets {
		require.Zero(t, s.state.Fleets[i].Demand, "rule %d", i)
	}
	require.Empty(t, s.state.Jobs)
}
