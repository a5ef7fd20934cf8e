package sessions

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/client/session"
	wire "github.com/forewarm/forewarm/contract/session"
)

// What is refused because too much is open is tried again: nothing else shows what is open.
func TestWhoFindsNoPlaceTriesAgain(t *testing.T) {
	t.Parallel()
	next := func(reason string) []string {
		err := explain(at{id: "alc_1"}, &session.EndError{End: wire.End{Code: wire.Refused, Reason: reason}})
		var e *exit.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, exit.Conflict, e.Code)
		require.Equal(t, reason, e.Message)
		return e.Next
	}
	require.Equal(t, []string{"forewarm exec alc_1"}, next("as many as it may: "+wire.AwaitPlace+", and try again"))
	require.Equal(t, []string{"forewarm allocations show alc_1"}, next("the key may not enter any more"))
}
