package obs_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/obs"
)

// What a loop says again and again is written once in a while, with how often it was not.
func TestTheSameErrorIsWrittenOnceInAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := obs.NewLogger(&out, obs.Config{})
		count := func() int { return strings.Count(out.String(), "\n") }
		fail := func(what string) { log.ErrorContext(t.Context(), "step failed", "error", errors.New(what)) }
		for range 20 * 60 { // a minute
			fail("no room")
			time.Sleep(50 * time.Millisecond)
		}
		require.Equal(t, 2, count(), out.String())
		require.Contains(t, out.String(), "repeated=599")

		out.Reset()
		fail("another")
		log.Error("step failed", "error", errors.New("another"), "pool", "lab")
		log.With("part", "reaper").Error("step failed", "error", errors.New("another"))
		log.WithGroup("g").Error("step failed", "error", errors.New("another"))
		log.Warn("step failed", "error", errors.New("another"))
		require.Equal(t, 5, count(), "something of each is another")
		require.NotContains(t, out.String(), "repeated")

		out.Reset()
		for range 3 {
			log.Info("the same")
		}
		require.Equal(t, 3, count(), "what is no fault is written")

		out.Reset()
		for i := range 2500 {
			log.Warn("many", "number", fmt.Sprint(i))
		}
		require.Equal(t, 2500, count())
	})
}
