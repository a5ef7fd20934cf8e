package obs_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/obs"
)

func TestMetricsCount(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m, err := obs.NewMetrics(registry)
	require.NoError(t, err)

	m.Request("/v1/pools/{id}", "GET", 200, time.Millisecond)
	m.Request("/v1/pools/{id}", "GET", 204, time.Millisecond)
	m.Request("/v1/pools/{id}", "GET", 404, time.Millisecond)
	m.Request("", "BREW", 418, time.Millisecond)
	m.Request("", "BREW-MORE", 0, time.Millisecond)
	m.Task("node.create", "done", time.Second)
	m.Task("node.create", "retry", time.Second)
	m.Dispatch("sent")
	m.Transition(obs.Node, "boot")
	m.Transition(obs.Node, "boot")
	m.Transition(obs.Reservation, "claim")
	m.Transition(obs.Allocation, "activate")
	m.Transition("toaster", "toast")

	require.Equal(t, map[string]float64{
		"forewarm_http_requests_total method=GET route=/v1/pools/{id} status=2xx": 2,
		"forewarm_http_requests_total method=GET route=/v1/pools/{id} status=4xx": 1,
		"forewarm_http_requests_total method=other route=unmatched status=4xx":    1,
		"forewarm_http_requests_total method=other route=unmatched status=other":  1,
		"forewarm_tasks_total kind=node.create outcome=done":                      1,
		"forewarm_tasks_total kind=node.create outcome=retry":                     1,
		"forewarm_queue_dispatch_total outcome=sent":                              1,
		"forewarm_node_transitions_total event=boot":                              2,
		"forewarm_reservation_transitions_total event=claim":                      1,
		"forewarm_allocation_transitions_total event=activate":                    1,
	}, readCounters(t, registry))
}

// readCounters returns every counter by its name and labels.
func readCounters(t *testing.T, g prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := g.Gather()
	require.NoError(t, err)
	all := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if metric.GetCounter() == nil {
				continue
			}
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetName() + "=" + label.GetValue()
			}
			all[name] = metric.GetCounter().GetValue()
		}
	}
	return all
}

// The share of zero-wait starts can be read off one bucket.
func TestWaitHasABucketThatEndsAtZeroWait(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m, err := obs.NewMetrics(registry)
	require.NoError(t, err)
	for _, d := range []time.Duration{0, 5 * time.Second, 5*time.Second + time.Millisecond, time.Hour} {
		m.Wait(d)
	}
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() != "forewarm_allocation_wait_seconds" {
			continue
		}
		for _, bucket := range family.GetMetric()[0].GetHistogram().GetBucket() {
			if bucket.GetUpperBound() == 5 {
				require.EqualValues(t, 2, bucket.GetCumulativeCount())
				return
			}
		}
	}
	t.Fatal("no bucket ends at 5 s")
}

func TestMetricsRegisterOnceBesideTheRuntimes(t *testing.T) {
	t.Parallel()
	registry := obs.NewRegistry()
	_, err := obs.NewMetrics(registry)
	require.NoError(t, err)
	_, err = obs.NewMetrics(registry)
	require.ErrorContains(t, err, "registering metrics")
}

func TestNilMetricsRecordNothing(t *testing.T) {
	t.Parallel()
	var m *obs.Metrics
	require.NotPanics(t, func() {
		m.Request("/", "GET", 200, 0)
		m.Task("k", "done", 0)
		m.Dispatch("sent")
		m.Transition(obs.Node, "boot")
		m.Queue(true)
		m.Wait(time.Second)
	})
}

// A process without a queue does not say that its queue is away.
func TestOnlyWhoHasAQueueShowsIt(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m, err := obs.NewMetrics(registry)
	require.NoError(t, err)
	shown := func() (values []float64) {
		families, err := registry.Gather()
		require.NoError(t, err)
		for _, f := range families {
			if f.GetName() == "forewarm_queue_up" {
				values = append(values, f.GetMetric()[0].GetGauge().GetValue())
			}
		}
		return values
	}
	require.Empty(t, shown())
	m.Queue(true)
	require.Equal(t, []float64{1}, shown())
	m.Queue(false)
	require.Equal(t, []float64{0}, shown())
}
