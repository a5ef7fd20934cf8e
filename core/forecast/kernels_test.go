package forecast

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What the processor's own code does, and what Go does, are the same numbers.
func TestKernelsGiveTheSameNumbersAsGo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rows, wide, spare := rapid.IntRange(0, 5).Draw(t, "rows"), rapid.IntRange(0, 60).Draw(t, "wide"),
			rapid.IntRange(0, 3).Draw(t, "spare")
		draw := splitmix(rapid.Uint64().Draw(t, "seed"))
		x, weights := draw.floats(wide), draw.floats(rows*(wide+spare))
		got, want := make([]float32, rows), make([]float32, rows)
		multiplyRows(got, weights, x, wide+spare)
		multiplyRowsInGo(want, weights, x, wide+spare)
		require.Equal(t, want, got)

		w, squares, steps := draw.floats(wide), draw.sizes(wide), draw.sizes(wide)
		w2, squares2, e := clone(w), clone(squares), draw.float()
		stepRow(w, squares, steps, x, e)
		stepRowInGo(w2, squares2, steps, x, e)
		require.Equal(t, w2, w)
		require.Equal(t, squares2, squares)
	})
}

func TestKernelsOfSlotsGiveTheSameNumbersAsGo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.SliceOfN(rapid.Uint32Range(0, 9), 0, 20).Draw(t, "at") // the same place may come twice
		for i := range at {
			at[i] *= slot
		}
		draw := splitmix(rapid.Uint64().Draw(t, "seed"))
		table, squares := draw.floats(10*slot), draw.sizes(10*slot)
		var sums, sums2, errors [slot]float32
		copy(sums[:], draw.floats(slot))
		copy(errors[:], draw.floats(slot))
		sums2 = sums
		addSlots(&sums, table, at)
		addSlotsInGo(&sums2, table, at)
		require.Equal(t, sums2, sums)

		table2, squares2, rate := clone(table), clone(squares), draw.float()
		stepSlots(table, squares, at, &errors, rate)
		stepSlotsInGo(table2, squares2, at, &errors, rate)
		require.Equal(t, table2, table)
		require.Equal(t, squares2, squares)
	})
}

// float is from -2 up to 2, with a few zeros.
func (s *splitmix) float() float32 { return float32(max(0, s.nextFloat()*1.1-0.1)*4 - 2) }

func (s *splitmix) floats(n int) []float32 {
	all := make([]float32, n)
	for i := range all {
		all[i] = s.float()
	}
	return all
}

// sizes are floats that are not negative.
func (s *splitmix) sizes(n int) []float32 {
	all := s.floats(n)
	for i, x := range all {
		all[i] = max(x, -x)
	}
	return all
}

func clone(x []float32) []float32 { return append([]float32{}, x...) }

func TestChancesOfLogOdds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var odds, got, want [slot]float32
		for k := range odds {
			odds[k] = rapid.Float32Range(-200, 200).Draw(t, "odds")
		}
		logistics(&got, &odds)
		logisticsInGo(&want, &odds)
		require.Equal(t, want, got)
		for k, z := range odds {
			require.InDelta(t, logistic(z), got[k], 3e-7, "odds of %v", z)
		}
		logistics(&odds, &odds)
		require.Equal(t, want, odds, "in place")
	})
}
