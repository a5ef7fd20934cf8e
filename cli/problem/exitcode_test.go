package problem

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/contract"
)

// Only what is the server's own trouble, or too much at once, fails without a
// code of its own.
func TestEveryProblemHasAnExitCode(t *testing.T) {
	t.Parallel()
	for _, p := range contract.Catalogue {
		code := exitOf(contract.NewProblem(p.Code, ""))
		switch p.Status {
		case 406, 408, 421, 429, 500, 503, 504, 507:
			require.Equal(t, exit.Failed, code, p.Code)
		default:
			require.NotEqual(t, exit.Failed, code, p.Code)
		}
	}
	require.Equal(t, exit.NoCapacity, exitOf(contract.NewProblem(contract.CodeCapacityExhausted, "")))
	require.Equal(t, exit.Conflict, exitOf(contract.NewProblem(contract.CodeIdempotencyKeyReused, "")))
}
