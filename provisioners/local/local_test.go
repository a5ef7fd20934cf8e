package local_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/statefile/statefiletest"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/local"
	"github.com/forewarm/forewarm/provisioners/local/discover"
	"github.com/forewarm/forewarm/provisioners/provisionertest"
)

var start = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// devices is a machine whose GPUs are known, or the reason why they are not.
type devices struct {
	found []capacity.Device
	err   error
}

func (d devices) Devices(context.Context) ([]capacity.Device, error) { return d.found, d.err }

func twoDevices() []capacity.Device {
	return []capacity.Device{
		{UUID: "GPU-1", Index: 0, Model: "NVIDIA H100 80GB HBM3", MemoryMiB: 81_559},
		{UUID: "GPU-2", Index: 1, Model: "NVIDIA H100 80GB HBM3", MemoryMiB: 81_000},
	}
}

func testSpec(node string) provisioners.Spec {
	return provisioners.Spec{Type: local.Type, Owner: "dep", NodeID: node}
}

func openHost(t *testing.T, c local.Config) (*local.Host, *clock.Manual) {
	t.Helper()
	manual := clock.NewManual(start)
	host, err := local.New(c, manual)
	require.NoError(t, err)
	return host, manual
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]local.Config{
		"simulated":  {Simulate: 4, HostID: "host"},
		"discovered": {Source: devices{found: twoDevices()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provisionertest.Run(t, provisionertest.Harness{New: func(t *testing.T) provisionertest.Subject {
				config := config
				config.StateFile = filepath.Join(t.TempDir(), "local.json")
				host, manual := openHost(t, config)
				return provisionertest.Subject{
					Provisioner: host,
					Reopen: func(t *testing.T) provisioners.Provisioner {
						again, err := local.New(config, manual)
						require.NoError(t, err)
						return again
					},
					Spec: provisioners.Spec{Type: local.Type}, Machines: 1,
					Advance:    func(d time.Duration) { manual.Advance(d) },
					BootWithin: time.Second, GoneWithin: time.Second,
				}
			}})
		})
	}
}

func TestOffer(t *testing.T) {
	t.Parallel()
	host, _ := openHost(t, local.Config{Source: devices{found: twoDevices()}, Price: provisioners.Price(3 * money.USD)})
	offers, err := host.Offers(t.Context())
	require.NoError(t, err)
	require.Equal(t, []provisioners.Offer{{
		Type: "local", Region: "local", Model: "NVIDIA H100 80GB HBM3", GPUs: 2, MemoryMiB: 81_000,
		Price: 3 * money.USD,
	}}, offers)

	host, _ = openHost(t, local.Config{Source: devices{found: twoDevices()}, Model: "h100-80g"})
	offers, err = host.Offers(t.Context())
	require.NoError(t, err)
	require.Equal(t, "h100-80g", offers[0].Model)

	odd := twoDevices()
	odd[1].Model = "NVIDIA T4"
	host, _ = openHost(t, local.Config{Source: devices{found: odd}})
	offers, err = host.Offers(t.Context())
	require.NoError(t, err)
	require.Equal(t, "mixed", offers[0].Model)
}

func TestSimulatedGPUsSaySo(t *testing.T) {
	t.Parallel()
	host, _ := openHost(t, local.Config{Simulate: 3})
	offers, err := host.Offers(t.Context())
	require.NoError(t, err)
	require.True(t, offers[0].Simulated)
	require.Contains(t, offers[0].Model, "SIM")
	made, err := host.Create(t.Context(), "token", testSpec("nod_1"))
	require.NoError(t, err)
	require.True(t, made.Simulated)
	require.Len(t, made.Devices, 3)
	require.Contains(t, made.Devices[0].UUID, "GPU-SIM-")
}

func TestNoGPUs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		source devices
		kind   provisioners.Kind
		text   string
	}{
		"no driver": {devices{err: discover.ErrNoDriver}, provisioners.KindBadSpec, "no NVIDIA driver found"},
		"advice":    {devices{err: discover.ErrNoDriver}, provisioners.KindBadSpec, "simulate: 4"},
		"no GPU":    {devices{}, provisioners.KindBadSpec, "simulate: 4"},
		"hiccup":    {devices{err: errors.New("hiccup")}, provisioners.KindTransient, "hiccup"},
	} {
		host, _ := openHost(t, local.Config{Source: test.source})
		_, offersErr := host.Offers(t.Context())
		_, createErr := host.Create(t.Context(), "token", testSpec("nod_1"))
		for _, err := range []error{offersErr, createErr} {
			require.Equal(t, test.kind, provisioners.KindOf(err), name)
			require.ErrorContains(t, err, test.text, name)
		}
		list, err := host.List(t.Context(), "dep")
		require.NoError(t, err)
		require.Empty(t, list.Instances)
	}
}

// A machine that is in use stays known when its driver breaks later.
func TestAdoptedMachineOutlivesItsDriver(t *testing.T) {
	t.Parallel()
	config := local.Config{Source: devices{found: twoDevices()}, StateFile: filepath.Join(t.TempDir(), "local.json")}
	host, manual := openHost(t, config)
	made, err := host.Create(t.Context(), "token", testSpec("nod_1"))
	require.NoError(t, err)
	config.Source = devices{err: discover.ErrNoDriver}
	host, err = local.New(config, manual)
	require.NoError(t, err)
	got, err := host.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, made, got)
	require.NoError(t, host.Delete(t.Context(), made.ID))
}

func TestTokensAreForgottenAfterADay(t *testing.T) {
	t.Parallel()
	host, manual := openHost(t, local.Config{Simulate: 1})
	made, err := host.Create(t.Context(), "token-1", testSpec("nod_1"))
	require.NoError(t, err)
	require.NoError(t, host.Delete(t.Context(), made.ID))
	manual.Advance(24 * time.Hour)
	again, err := host.Create(t.Context(), "token-1", testSpec("nod_1"))
	require.NoError(t, err)
	require.Equal(t, provisioners.Terminated, again.Phase)
	manual.Advance(time.Second)
	other, err := host.Create(t.Context(), "token-2", testSpec("nod_2"))
	require.NoError(t, err)
	require.NoError(t, host.Delete(t.Context(), other.ID))
	again, err = host.Create(t.Context(), "token-1", testSpec("nod_1"))
	require.NoError(t, err)
	require.Equal(t, provisioners.Running, again.Phase)
	require.NotEqual(t, made.ID, again.ID)
}

func TestUnsavedAdoptionIsNotConfirmed(t *testing.T) {
	t.Parallel()
	config := local.Config{Simulate: 1, StateFile: filepath.Join(t.TempDir(), "local.json")}
	host, _ := openHost(t, config)
	unblock := statefiletest.Block(t, config.StateFile)
	_, err := host.Create(t.Context(), "token", testSpec("nod_1"))
	require.Equal(t, provisioners.KindUnknown, provisioners.KindOf(err), "%v", err)
	unblock()
	made, err := host.Create(t.Context(), "token", testSpec("nod_1"))
	require.NoError(t, err)
	statefiletest.Block(t, config.StateFile)
	require.Equal(t, provisioners.KindUnknown, provisioners.KindOf(host.Delete(t.Context(), made.ID)))
	_, err = host.Get(t.Context(), made.ID)
	require.NoError(t, err, "a machine whose end was not saved is still there")
}

func TestDamagedStateIsAnError(t *testing.T) {
	t.Parallel()
	config := local.Config{Simulate: 1, StateFile: filepath.Join(t.TempDir(), "local.json")}
	for _, text := range []string{
		"", "{", `{"Version":2,"Adoptions":[]}`, `{"Version":1,"Adoptions":[{"ID":"x"}]}`,
		`{"Version":1,"Adoptions":[{"ID":"x","Token":"t","Born":"2026-01-01T00:00:00Z"},` +
			`{"ID":"y","Token":"u","Born":"2026-01-01T00:00:00Z"}]}`,
	} {
		require.NoError(t, os.WriteFile(config.StateFile, []byte(text), 0o600))
		_, err := local.New(config, clock.NewManual(start))
		require.ErrorContains(t, err, config.StateFile, text)
	}
}

func TestConfigMistakesAreNamed(t *testing.T) {
	t.Parallel()
	for want, config := range map[string]local.Config{
		"name":                 {Name: "Not A Name"},
		"simulate":             {Simulate: -1},
		"1024":                 {Simulate: 1025},
		"simulated_memory_mib": {SimulatedMemoryMiB: -1},
		"price_per_hour":       {Price: -1},
	} {
		_, err := local.New(config, clock.NewManual(start))
		require.ErrorContains(t, err, want)
	}
	_, err := local.New(local.Config{}, clock.NewManual(start))
	require.NoError(t, err, "the zero config works")
}
