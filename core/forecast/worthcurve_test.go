package forecast

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// addUpLevels is bestLevel, level by level.
func addUpLevels(held, limit int, keep, boot *worthCurve) (level int, most float64) {
	sum := 0.0
	for l := 1; l <= min(limit, topLevel); l++ {
		c, b := keep, binOf(l)
		if l > held {
			if c = boot; held > keep.top() {
				break
			}
		}
		if b < c.bins {
			sum += c.saving[b] - c.holding[b] - c.slope(b)*float64(l-firstLevel[b])
		}
		if sum > most+1e-9 {
			level, most = l, sum
		}
	}
	return level, most
}

func TestTheBestLevelIsThatOfAllLevels(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) *worthCurve {
			c := &worthCurve{bins: rapid.IntRange(0, bins).Draw(t, name+" bins")}
			for b := range c.bins {
				c.saving[b] = float64(rapid.IntRange(0, 50).Draw(t, name+" saving"))
				c.holding[b] = float64(rapid.IntRange(0, 50).Draw(t, name+" holding"))
			}
			return c
		}
		keep, boot := draw("keep"), draw("boot")
		held, limit := rapid.IntRange(0, 600).Draw(t, "held"), rapid.IntRange(0, topLevel).Draw(t, "limit")
		want, most := addUpLevels(held, limit, keep, boot)
		require.Equal(t, want, bestLevel(held, limit, keep, boot))
		if want <= held {
			saving, holding := keep.sumsUpTo(want)
			require.InDelta(t, most, saving-holding, 1e-6)
		}
	})
}
