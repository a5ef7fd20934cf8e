package report_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/node/gpu"
)

// faulty is a source whose first GPU gives an error when it is told to.
type faulty struct {
	gpu.Simulated
	fault bool
}

func (s *faulty) Look(ctx context.Context) (gpu.Reading, error) {
	r, err := s.Simulated.Look(ctx)
	if s.fault {
		r.Events = []gpu.Event{{UUID: r.Look.GPUs[0].UUID, Code: 31, Count: 1}}
	}
	return r, err
}

// A daemon looks and reports as often as it is told to; what is news is told at once, and whoever hurries it is heard.
func TestLooksAndReportsHaveTheirRates(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	source := &faulty{Simulated: gpu.Simulated{Seed: "x", Count: 1, MemoryMiB: 1000}}
	d.lookEvery, d.reportEvery, d.source = 2*time.Second, 7*time.Second, source
	r, err := d.start("token")
	require.NoError(t, err)
	told := func(steps int) int {
		for range steps {
			require.Equal(t, 2*time.Second, d.mustStep(r))
		}
		return len(d.server.beats)
	}
	require.Equal(t, 1, told(4), "looks at 0, 2, 4 and 6 s")
	require.Equal(t, 2, told(1), "the first one after 7 s is told")
	source.fault = true
	require.Equal(t, 3, told(1), "an XID is told at once")
	source.fault = false
	require.Equal(t, 3, told(1))
	r.Hurry()
	require.Equal(t, 4, told(1))
	require.Equal(t, begin.Add(14*time.Second), d.server.beats[3].SentAt)
}
