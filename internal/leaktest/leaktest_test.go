package leaktest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// leaving is a run of tests that leaves a goroutine, which ends after a while.
type leaving struct{ code int }

func (l leaving) Run() int {
	ends := time.After(time.Second) // longer than goleak waits
	go func() { <-ends }()
	return l.code
}

func TestGoroutinesThatEndAreWaitedFor(t *testing.T) {
	require.Zero(t, patient{TestingM: leaving{}}.Run())
	require.NoError(t, goleak.Find())
	require.Equal(t, 2, patient{TestingM: leaving{2}}.Run(), "what has failed is not looked at")
}
