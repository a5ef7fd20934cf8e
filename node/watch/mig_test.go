package watch_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/health"
	"github.com/forewarm/forewarm/node/gpu"
	"github.com/forewarm/forewarm/node/watch"
)

// What befalls a GPU befalls all that it is divided into, and it alone.
func TestTheHealthOfMIGDevices(t *testing.T) {
	t.Parallel()
	divided := twoGPUs()
	divided.Look.GPUs = append(divided.Look.GPUs[1:],
		contract.LookGPU{UUID: "MIG-1", Parent: "GPU-a", PCI: "0000:3b:00", Index: 1},
		contract.LookGPU{UUID: "MIG-2", Parent: "GPU-a", PCI: "0000:3b:00", Index: 2})
	source := &scripted{reading: twoGPUs()}
	w := watch.New(source, nil, health.Policy{}, watch.Memory{}.For("boot"))
	w.Look(t.Context(), begin)
	source.reading = divided
	look := w.Look(t.Context(), begin.Add(10*time.Second))
	require.Equal(t, map[string]string{"GPU-b": "healthy", "MIG-1": "healthy", "MIG-2": "healthy"}, healths(look),
		"a GPU that is divided is not lost")

	source.reading.Events = []gpu.Event{{UUID: "GPU-a", Code: 79, Count: 1}}
	w.Look(t.Context(), begin.Add(20*time.Second))
	look = w.Look(t.Context(), begin.Add(40*time.Second))
	require.Equal(t, map[string]string{"GPU-b": "healthy", "MIG-1": "unhealthy", "MIG-2": "unhealthy"}, healths(look))
	require.NotEmpty(t, look.GPUs[2].Evidence)

	source.reading.Events, source.reading.Look.GPUs = nil, divided.Look.GPUs[:1]
	look = w.Look(t.Context(), begin.Add(60*time.Second))
	require.Equal(t, map[string]string{"GPU-b": "healthy", "MIG-1": "unhealthy", "MIG-2": "unhealthy"}, healths(look))
	require.True(t, look.GPUs[1].Lost, "nothing of that GPU is seen any more")
}
