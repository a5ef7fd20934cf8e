package obs_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/obs"
)

// A counter whose labels are known is there before its first event.
func TestKnownCountersStartAtZero(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m, err := obs.NewMetrics(registry)
	require.NoError(t, err)
	m.ShowFromStart(map[string][]string{obs.Reservation: {"booked", "failed"}, "toaster": {"toast"}},
		[]string{"creation_capped"})
	m.Transition(obs.Reservation, "booked")
	require.Equal(t, map[string]float64{
		"forewarm_reservation_transitions_total event=booked":              1,
		"forewarm_reservation_transitions_total event=failed":              0,
		"forewarm_node_requests_withheld_total reason=creation_capped":     0,
		"forewarm_requests_forwarded_total outcome=" + obs.ForwardAnswered: 0,
		"forewarm_requests_forwarded_total outcome=" + obs.ForwardLost:     0,
	}, readCounters(t, registry))
}
