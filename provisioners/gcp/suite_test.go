//go:build clouds

package gcp_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/gcp"
	"github.com/forewarm/forewarm/provisioners/gcp/gcetest"
	"github.com/forewarm/forewarm/provisioners/provisionertest"
)

var start = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

const zone, otherZone = "us-central1-a", "europe-west4-b"

// world is the fake cloud behind a real HTTP server, and the real adapter and
// library in front of it.
type world struct {
	cloud  *gcetest.Cloud
	clock  *clock.Manual
	config gcp.Config
	server *httptest.Server
	*gcp.Cloud
}

func newWorld(t *testing.T, changes ...func(*gcetest.Config, *gcp.Config)) *world {
	t.Helper()
	w := &world{clock: clock.NewManual(start)}
	fake := gcetest.Config{
		Project: "acme-gpus", Zones: []string{zone, otherZone}, PageSize: 2,
		Types: map[string]gcetest.Type{
			"a3-highgpu-8g": {GPUs: 8, GPU: "NVIDIA H100 80GB HBM3", MemoryMiB: 81_559, Price: 88 * money.USD,
				Spot: 36 * money.USD},
			"g2-standard-4": {GPUs: 1, GPU: "NVIDIA L4", MemoryMiB: 23_034, Price: 720_000, Spot: 288_000},
		},
	}
	w.config = gcp.Config{
		Project: "acme-gpus", Image: "projects/acme-gpus/global/images/family/cuda",
		StateFile: filepath.Join(t.TempDir(), "gcp.json"),
		Offers: []gcp.Offer{
			{Type: "h100-8-spot", MachineType: "a3-highgpu-8g", Zone: zone, Market: gcp.Spot, Model: "h100-80g",
				GPUs: 8, MemoryMiB: 81_559, Price: provisioners.Price(36 * money.USD)},
			{Type: "h100-8", MachineType: "a3-highgpu-8g", Zone: zone, Model: "h100-80g", GPUs: 8, MemoryMiB: 81_559,
				Price: provisioners.Price(88 * money.USD)},
			{Type: "L4 small", MachineType: "g2-standard-4", Zone: otherZone, Model: "l4", GPUs: 1, MemoryMiB: 23_034,
				Price: 720_000},
		},
	}
	for _, change := range changes {
		change(&fake, &w.config)
	}
	w.cloud = gcetest.New(fake, w.clock)
	w.server = httptest.NewServer(w.cloud)
	t.Cleanup(w.server.Close)
	w.config.Endpoint = w.server.URL
	w.reopenCloud(t)
	return w
}

func (w *world) reopenCloud(t *testing.T) provisioners.Provisioner {
	t.Helper()
	again, err := gcp.New(w.config, w.clock)
	require.NoError(t, err)
	w.Cloud = again
	return again
}

// splitID splits a machine's id.
func splitID(id string) (zone, name string) {
	parts := strings.Split(id, "/")
	return parts[0], parts[1]
}

func TestSuite(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*gcetest.Config, *gcp.Config){
		"usual": func(*gcetest.Config, *gcp.Config) {},
		// The state file alone knows what was.
		"operations that are forgotten at once": func(f *gcetest.Config, c *gcp.Config) {
			f.OperationMemory,
				c.Probe = 1, gcp.NoProbe
		},
		// The operations alone know what was.
		"no state file": func(_ *gcetest.Config, c *gcp.Config) { c.StateFile = "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provisionertest.Run(t, provisionertest.Harness{New: func(t *testing.T) provisionertest.Subject {
				s := suiteSubject(t, newWorld(t, change))
				if name != "usual" {
					s.Histories = 5 // each is a thousand requests over HTTP
				}
				return s
			}})
		})
	}
}

func suiteSubject(t *testing.T, w *world) provisionertest.Subject {
	hook := func(fault gcetest.Fault) func() { return func() { w.cloud.Inject(fault) } }
	return provisionertest.Subject{
		Provisioner: w.Cloud,
		Reopen:      w.reopenCloud,
		Spec:        provisioners.Spec{Type: "h100-8-spot", Region: zone},
		OtherSpec:   provisioners.Spec{Type: "L4 small", Region: otherZone},
		Machines:    100,
		Advance:     func(d time.Duration) { w.clock.Advance(d) },
		BootWithin:  5 * time.Minute, GoneWithin: time.Minute,
		TimeOutCreate: hook(gcetest.Fault{Call: gcetest.Insert, Effect: gcetest.Break}),
		TimeOutDelete: hook(gcetest.Fault{Call: gcetest.Delete, Effect: gcetest.Break}),
		TruncateList:  hook(gcetest.Fault{Call: gcetest.AggregatedList, Effect: gcetest.Partial}),
		RunOut:        func() { w.cloud.SetStock("a3-highgpu-8g", 0) },
		FailCreate:    hook(gcetest.Fault{Call: gcetest.Insert, Effect: gcetest.Fail, Reason: "INTERNAL_ERROR"}),
		FailDelete: hook(gcetest.Fault{Call: gcetest.Delete, Effect: gcetest.Refuse,
			Status: http.StatusServiceUnavailable, Reason: "backendError"}),
		IgnoreDelete: hook(gcetest.Fault{Call: gcetest.Delete, Effect: gcetest.Ignore}),
		Throttle:     w.cloud.Throttle,
		LagList:      w.cloud.SetListLag,
		Foreign:      func() func() bool { return w.cloud.AddForeign(zone, "their-node", "a3-highgpu-8g") },
		Reclaim:      func(id string) { w.cloud.Preempt(splitID(id)) },
		Now:          w.clock.Now,
	}
}
