package simcluster_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners/simcluster"
)

func TestMistakesNameTheirField(t *testing.T) {
	t.Parallel()
	usual := simcluster.Work{Job: simcluster.Job{Name: "nightly", Length: time.Hour}, Every: time.Hour}
	for want, spoil := range map[string]func(*simcluster.Config){
		"name":                           func(c *simcluster.Config) { c.Name = "../x" },
		"suspend_time: -1s is negative":  func(c *simcluster.Config) { c.SuspendTime = -time.Second },
		"offers: want at least one":      func(c *simcluster.Config) { c.Offers = []simcluster.Offer{} },
		"offers[1].type: \"gpu-4\" is t": func(c *simcluster.Config) { c.Offers[1].Type = "gpu-4" },
		"offers[0].type: is empty":       func(c *simcluster.Config) { c.Offers[0].Type = "" },
		"offers[0].model: is empty":      func(c *simcluster.Config) { c.Offers[0].Model = "" },
		"offers[0].gpus: 0":              func(c *simcluster.Config) { c.Offers[0].GPUs = 0 },
		"offers[0].memory_mib: -1":       func(c *simcluster.Config) { c.Offers[0].MemoryMiB = -1 },
		"offers[0].price_per_hour: -1":   func(c *simcluster.Config) { c.Offers[0].Price = -1 },
		"offers[0].nodes: 0":             func(c *simcluster.Config) { c.Offers[0].Nodes = 0 },
		"offers[0].boot: want 0 < p50":   func(c *simcluster.Config) { c.Offers[0].Boot.P95 = time.Second },
		"work[1].name: \"nightly\" is t": func(c *simcluster.Config) { c.Work = append(c.Work, c.Work[0]) },
		"work[0].name \"\"":              func(c *simcluster.Config) { c.Work[0].Name = "" },
		"work[0].every: 0s":              func(c *simcluster.Config) { c.Work[0].Every = 0 },
		"work[0].at: 1h0m0s":             func(c *simcluster.Config) { c.Work[0].At = time.Hour },
		"work[0].jitter: 1h0m0s":         func(c *simcluster.Config) { c.Work[0].Jitter = time.Hour },
		"work[0].type: no offer":         func(c *simcluster.Config) { c.Work[0].Type = "other" },
		"work[0].nodes: 4":               func(c *simcluster.Config) { c.Work[0].Nodes = 4 },
		"work[0].gpus: 5":                func(c *simcluster.Config) { c.Work[0].GPUs = 5 },
		"work[0].gpus: 1, and cpu_only":  func(c *simcluster.Config) { c.Work[0].GPUs, c.Work[0].CPUOnly = 1, true },
		"work[0].length: 0s":             func(c *simcluster.Config) { c.Work[0].Length = 0 },
	} {
		c := testConfig()
		c.Work = []simcluster.Work{usual}
		require.NoError(t, c.WithDefaults().Validate())
		if spoil(&c); strings.HasPrefix(want, "offers") {
			c.Work = nil // which would suffer from it
		}
		_, err := simcluster.New(c, clock.NewManual(start))
		require.ErrorContains(t, err, want)
		require.Equal(t, 1, strings.Count(err.Error(), "\n")+1, "one mistake is told once: %v", err)
	}
	_, err := openLab(t, testConfig()).Submit(simcluster.Job{Name: "x", Nodes: 9, Length: time.Hour})
	require.ErrorContains(t, err, "nodes: 9")
}
