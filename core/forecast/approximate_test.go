package forecast

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestApproximationsAreRightToSixDigits(t *testing.T) {
	t.Parallel()
	for x := 1e-9; x < 1e6; x *= 1.0007 {
		require.InDelta(t, math.Log2(x), log2(x), 4e-6, "the logarithm of %g", x)
	}
	for n := -40; n < 40; n++ {
		require.Equal(t, float32(n), log2(math.Ldexp(1, n)), "no power of two falls below its step")
	}
	for x := -990.0; x < 990; x += 0.0137 {
		require.InEpsilon(t, math.Exp2(x), exp2(x), 2e-9, "two to the power of %g", x)
	}
	for _, z := range []float32{-3e38, -90, -4, 0, 0.5, 17, 3e38} {
		require.InDelta(t, 1/(1+math.Exp(-float64(z))), logistic(z), 1e-7, "odds of %g", z)
	}
	require.Equal(t, 1.0, exp2(0))
}
