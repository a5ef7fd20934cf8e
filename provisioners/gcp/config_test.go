//go:build clouds

package gcp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/gcp"
	"github.com/forewarm/forewarm/provisioners/gcp/gcetest"
)

// The examples of the documentation are read as a configuration is.
func TestExamplesOfTheDocumentation(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/provisioners/gcp.md")
	require.NoError(t, err)
	examples := strings.Split(string(page), "```yaml\n")[1:]
	require.Len(t, examples, 2)
	var found []gcp.Config
	for _, example := range examples {
		text, _, _ := strings.Cut(example, "```")
		var file struct {
			Provisioners []struct {
				Kind   string
				Config gcp.Config
			}
			Pools []any
		}
		decoder := yaml.NewDecoder(strings.NewReader(text))
		decoder.KnownFields(true)
		require.NoError(t, decoder.Decode(&file))
		for _, e := range file.Provisioners {
			require.Equal(t, "gcp", e.Kind)
			found = append(found, e.Config)
		}
	}
	require.Len(t, found, 2)
	for _, config := range found {
		_, err := gcp.New(config, clock.NewManual(start))
		require.NoError(t, err)
	}
	require.Equal(t, time.Date(2026, 3, 16, 8, 30, 0, 0, time.UTC), found[1].Offers[3].Until)
}

// Every key is in the table.
func TestDocumentationHasEveryKey(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/provisioners/gcp.md")
	require.NoError(t, err)
	all, err := yaml.Marshal(gcp.Config{Offers: []gcp.Offer{{}}})
	require.NoError(t, err)
	for _, line := range strings.Split(string(all), "\n") {
		key, _, _ := strings.Cut(strings.Trim(line, " -"), ":")
		require.Contains(t, string(page), key)
	}
}

func TestConfigMistakesAreNamed(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(*gcp.Config){
		"name":                func(c *gcp.Config) { c.Name = "Not A Name" },
		"project":             func(c *gcp.Config) { c.Project = "x" },
		"endpoint":            func(c *gcp.Config) { c.Endpoint = "http://compute.example.com" },
		"endpoint: want":      func(c *gcp.Config) { c.Endpoint = "https://user:secret@compute.example.com" },
		"image":               func(c *gcp.Config) { c.Image = "cuda" },
		"disk_gib":            func(c *gcp.Config) { c.DiskGiB = 5 },
		"disk_type":           func(c *gcp.Config) { c.DiskType = "PD" },
		"network":             func(c *gcp.Config) { c.Network = "a b" },
		"subnetwork":          func(c *gcp.Config) { c.Subnetwork = "?" },
		"service_account":     func(c *gcp.Config) { c.ServiceAccount = "node" },
		"probe":               func(c *gcp.Config) { c.Probe = "ping" },
		"operation_wait":      func(c *gcp.Config) { c.OperationWait = time.Hour },
		"request_timeout":     func(c *gcp.Config) { c.RequestTimeout = 1 },
		"tags[0]":             func(c *gcp.Config) { c.Tags = []string{"A"} },
		"startup_script_file": func(c *gcp.Config) { c.StartupScriptFile = "no-such-file" },
		"at least one":        func(c *gcp.Config) { c.Offers = nil },
		"there twice":         func(c *gcp.Config) { c.Offers[1] = c.Offers[0] },
		"offers[0]: type":     func(c *gcp.Config) { c.Offers[0].Type = "" },
		"machine_type":        func(c *gcp.Config) { c.Offers[0].MachineType = "A3" },
		"zone":                func(c *gcp.Config) { c.Offers[0].Zone = "us-central1" },
		"model":               func(c *gcp.Config) { c.Offers[0].Model = "" },
		"gpus":                func(c *gcp.Config) { c.Offers[0].GPUs = 0 },
		"memory_mib":          func(c *gcp.Config) { c.Offers[0].MemoryMiB = -1 },
		"price_per_hour":      func(c *gcp.Config) { c.Offers[0].Price = -1 },
		"min_billing":         func(c *gcp.Config) { c.Offers[0].MinBilling = -1 },
		"boot":                func(c *gcp.Config) { c.Offers[0].Boot.P95 = 1 },
		"accelerator_count":   func(c *gcp.Config) { c.Offers[0].AcceleratorCount = 1 },
		"accelerator_type": func(c *gcp.Config) {
			c.Offers[0].AcceleratorType, c.Offers[0].AcceleratorCount = "T4",
				8
		},
		"market":            func(c *gcp.Config) { c.Offers[0].Market = "auction" },
		"reservation":       func(c *gcp.Config) { c.Offers[0].Reservation = "r" },
		"reservation_bound": func(c *gcp.Config) { c.Offers[0].ReservationBound = true },
		"until":             func(c *gcp.Config) { c.Offers[0].From, c.Offers[0].Until = start, start },
	} {
		w := newWorld(t)
		spoil(&w.config)
		_, err := gcp.New(w.config, w.clock)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secret")
	}
	_, err := gcp.New(gcp.Config{Project: "x", Image: "y", Probe: "z"}, clock.NewManual(start))
	for _, field := range []string{"project", "image", "probe", "offers"} {
		require.ErrorContains(t, err, field, "every mistake at once")
	}
	for _, endpoint := range []string{"https://compute.example.com", "http://localhost:1",
		"http://[::1]:1/compute/v1"} {
		w := newWorld(t)
		w.config.Endpoint = endpoint
		w.reopenCloud(t)
	}
}

// A type in several zones needs the zone: the next call could mean another.
func TestRegionMayBeLeftOutOnlyIfThereIsOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *gcetest.Config, c *gcp.Config) {
		second := c.Offers[0]
		second.Zone = otherZone
		c.Offers = append(c.Offers, second)
	})
	_, err := w.Create(t.Context(), "token-1", testSpec("h100-8-spot", ""))
	require.Equal(t, provisioners.KindBadSpec, provisioners.KindOf(err))
	made, err := w.Create(t.Context(), "token-1", testSpec("h100-8", ""))
	require.NoError(t, err)
	again, err := w.Create(t.Context(), "token-1", testSpec("h100-8", zone))
	require.NoError(t, err)
	require.Equal(t, made.ID, again.ID)
}

func TestOperatorsScriptIsHandedOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.StartupScriptFile = filepath.Join(t.TempDir(), "setup.sh")
	require.NoError(t, os.WriteFile(w.config.StartupScriptFile, []byte("#!/bin/sh\ninstall-driver\n"), 0o600))
	w.reopenCloud(t)
	made := w.createInstance(t, "token-1")
	require.Equal(t, "#!/bin/sh\ninstall-driver\n", w.metadataOf(t, made.ID)["forewarm-startup-script"])
	require.NoError(t, os.WriteFile(w.config.StartupScriptFile, make([]byte, 256<<10+1), 0o600))
	_, err := gcp.New(w.config, w.clock)
	require.ErrorContains(t, err, "startup_script_file")
}
