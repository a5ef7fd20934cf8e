package forecast

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// An expectation that was worked out for all bins is what is read off one bin's chances, second by second.
func TestExpectationsAreReadOffTheChances(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := Outlook{bins: 1}
		for k := range knots {
			o.chances[0][k] = float32(rapid.Float64Range(0, 1).Draw(t, "chance"))
		}
		o.enforceOrder()
		from := rapid.IntRange(0, 3000).Draw(t, "from")
		to := rapid.IntRange(0, 3000).Draw(t, "to")
		within := chanceWithin(float64(to))
		require.InDelta(t, o.chanceWithin(0, float64(to)), within.of(&o.chances[0]), 1e-9)

		idle := 0.0
		for at := from; at < to; at++ { // knots are at full seconds, so the middle of each is its mean
			idle += 1 - o.chanceWithin(0, float64(at)+0.5)
		}
		e := idleTime(float64(from), float64(to))
		require.InDelta(t, idle, e.of(&o.chances[0]), 1e-6, "from %d to %d", from, to)
	})
}
