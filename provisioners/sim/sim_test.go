package sim_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/statefile/statefiletest"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/provisionertest"
	"github.com/forewarm/forewarm/provisioners/sim"
)

var start = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

func testOffer() sim.Offer {
	return sim.Offer{
		Type: "a100-8", Region: "sim-1", Model: "a100-80g", GPUs: 8, MemoryMiB: 81_920,
		Price: provisioners.Price(36 * money.USD), MinBilling: time.Minute,
		Boot:   sim.Boot{P50: 4 * time.Minute, P95: 9 * time.Minute, Min: 2 * time.Minute},
		Notice: 30 * time.Second,
	}
}

func otherOffer() sim.Offer {
	o := testOffer()
	o.Type, o.GPUs = "a100-4", 4
	return o
}

func testConfig() sim.Config {
	return sim.Config{Name: "sim", Seed: 7, Offers: []sim.Offer{testOffer(), otherOffer()}}
}

func testSpec(node string) provisioners.Spec {
	return provisioners.Spec{Type: "a100-8", Region: "sim-1", Owner: "dep", NodeID: node}
}

func openCloud(t testing.TB, c sim.Config) (*sim.Cloud, *clock.Manual) {
	t.Helper()
	manual := clock.NewManual(start)
	cloud, err := sim.New(c, manual)
	require.NoError(t, err)
	return cloud, manual
}

func createInstance(t testing.TB, cloud *sim.Cloud, n int) provisioners.Instance {
	t.Helper()
	instance, err := cloud.Create(t.Context(), fmt.Sprint("token-", n), testSpec(fmt.Sprint("nod_", n)))
	require.NoError(t, err)
	return instance
}

func injectFault(t testing.TB, cloud *sim.Cloud, fault sim.Fault) {
	t.Helper()
	fault.Times = max(1, fault.Times)
	require.NoError(t, cloud.Inject(fault))
}

func TestConformance(t *testing.T) {
	t.Parallel()
	provisionertest.Run(t, provisionertest.Harness{New: func(t *testing.T) provisionertest.Subject {
		c := testConfig()
		c.StateFile = filepath.Join(t.TempDir(), "sim.json")
		cloud, manual := openCloud(t, c)
		hook := func(op sim.Op, effect sim.Effect) func() {
			return func() { injectFault(t, cloud, sim.Fault{Op: op, Effect: effect}) }
		}
		failure := func(op sim.Op, kind provisioners.Kind) func() {
			return func() { injectFault(t, cloud, sim.Fault{Op: op, Effect: sim.FailBefore, Kind: kind}) }
		}
		return provisionertest.Subject{
			Provisioner: cloud,
			Reopen: func(t *testing.T) provisioners.Provisioner {
				again, err := sim.New(c, manual)
				require.NoError(t, err)
				cloud = again
				return again
			},
			Spec: testSpec(""), OtherSpec: provisioners.Spec{Type: "a100-4", Region: "sim-1"}, Machines: 100,
			Advance:    func(d time.Duration) { manual.Advance(d) },
			BootWithin: 2 * time.Hour, GoneWithin: time.Minute,
			TimeOutCreate: hook(sim.OpCreate, sim.ExecuteAndTimeout),
			TimeOutDelete: hook(sim.OpDelete, sim.ExecuteAndTimeout),
			TruncateList:  hook(sim.OpList, sim.Truncate),
			RunOut:        failure(sim.OpCreate, provisioners.KindCapacity),
			FailCreate:    failure(sim.OpCreate, provisioners.KindTransient),
			FailDelete:    failure(sim.OpDelete, provisioners.KindTransient),
			IgnoreDelete:  hook(sim.OpDelete, sim.Ignore),
			Throttle:      func(calls int) { throttleCalls(t, cloud, calls) },
			LagList:       func(lag time.Duration) { cloud.SetListLag(lag) },
			Reclaim:       func(id string) { require.NoError(t, cloud.Reclaim(id)) },
			Now:           manual.Now,
			Foreign: func() func() bool {
				foreign, err := cloud.Create(t.Context(), "theirs",
					provisioners.Spec{Type: "a100-8", Owner: "theirs", NodeID: "nod_1"})
				require.NoError(t, err)
				return func() bool {
					i, err := cloud.Get(t.Context(), foreign.ID)
					return err == nil && i.Phase != provisioners.Terminating && i.Phase != provisioners.Terminated
				}
			},
		}
	}})
}

// throttleCalls makes each kind of call fail that often; 0 takes back what is left.
func throttleCalls(t *testing.T, cloud *sim.Cloud, calls int) {
	t.Helper()
	for _, op := range []sim.Op{sim.OpCreate, sim.OpGet, sim.OpList, sim.OpDelete} {
		if calls == 0 {
			cloud.ClearFaults(op)
			continue
		}
		injectFault(t, cloud, sim.Fault{Op: op, Effect: sim.FailBefore, Kind: provisioners.KindThrottled, Times: calls})
	}
}

// The sampled boot times have the configured quantiles: within 5 % for 4,000
// machines, and no boot is shorter than the minimum.
func TestBootTimesFollowTheDistribution(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Offers[0].Boot.Min = 0
	cloud, manual := openCloud(t, c)
	const machines = 4000
	for n := range machines {
		createInstance(t, cloud, n)
	}
	var boots []time.Duration
	for waited := time.Duration(0); len(boots) < machines && waited < 2*time.Hour; waited += 5 * time.Second {
		list, err := cloud.List(t.Context(), "dep")
		require.NoError(t, err)
		for _, instance := range list.Instances {
			if instance.Phase == provisioners.Running {
				boots = append(boots, waited)
				require.NoError(t, cloud.Delete(t.Context(), instance.ID))
			}
		}
		manual.Advance(5 * time.Second)
	}
	require.Len(t, boots, machines)
	slices.Sort(boots)
	near := func(want, got time.Duration) {
		require.InEpsilon(t, want.Seconds(), got.Seconds(), 0.05, "want %v, got %v", want, got)
	}
	near(4*time.Minute, boots[machines/2])
	near(9*time.Minute, boots[machines*95/100])
}

func TestShortestBoot(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Offers[0].Boot = sim.Boot{P50: time.Second, P95: 2 * time.Second, Min: time.Minute}
	cloud, manual := openCloud(t, c)
	made := createInstance(t, cloud, 1)
	manual.Advance(time.Minute - time.Microsecond)
	got, err := cloud.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Booting, got.Phase)
	manual.Advance(time.Microsecond)
	got, err = cloud.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Running, got.Phase)
	require.Len(t, got.Devices, 8)
	offers, err := cloud.Offers(t.Context())
	require.NoError(t, err)
	require.Equal(t, time.Minute, offers[0].Boot.P50, "the prior knows the minimum")
}

// The same seed and calls give the same cloud, another seed another one.
func TestDeterminism(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) string {
		c := testConfig()
		c.Seed, c.Offers[0].OutOfStock = seed, 0.3
		cloud, manual := openCloud(t, c)
		var story string
		for n := range 100 {
			_, err := cloud.Create(t.Context(), fmt.Sprint(n), testSpec(fmt.Sprint(n)))
			list, listErr := cloud.List(t.Context(), "dep")
			require.NoError(t, listErr)
			story += fmt.Sprint(err, list, "\n")
			manual.Advance(time.Minute)
		}
		return story
	}
	require.Equal(t, run(1), run(1))
	require.NotEqual(t, run(1), run(2))
}

func TestStockLimit(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Offers[0].Stock = 2
	cloud, manual := openCloud(t, c)
	first := createInstance(t, cloud, 1)
	createInstance(t, cloud, 2)
	full := func() error {
		_, err := cloud.Create(t.Context(), "token-3", testSpec("nod_3"))
		return err
	}
	require.Equal(t, provisioners.KindCapacity, provisioners.KindOf(full()))
	createInstance(t, cloud, 1) // a repeat needs no stock
	require.NoError(t, cloud.Delete(t.Context(), first.ID))
	require.Error(t, full(), "a machine on its way out still takes stock")
	manual.Advance(30 * time.Second)
	require.NoError(t, full())
	_, err := cloud.Create(t.Context(), "token-4", provisioners.Spec{Type: "a100-4", Owner: "dep", NodeID: "nod_4"})
	require.NoError(t, err, "another type has its own stock")
}

func TestStockOutsLastForTheirWindow(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Offers[0].OutOfStock = 0.25
	cloud, manual := openCloud(t, c)
	const windows = 1000
	out := 0
	for n := range windows {
		_, first := cloud.Create(t.Context(), fmt.Sprint("a", n), testSpec("nod"))
		manual.Advance(9 * time.Minute)
		_, second := cloud.Create(t.Context(), fmt.Sprint("b", n), testSpec("nod"))
		manual.Advance(time.Minute)
		require.Equal(t, first == nil, second == nil, "stock changed inside a window")
		if first != nil {
			require.Equal(t, provisioners.KindCapacity, provisioners.KindOf(first))
			out++
		}
	}
	require.InDelta(t, 0.25, float64(out)/windows, 0.05)
}

// A machine is shown for a while after its end, then it is unknown; its token
// stays known for a day, and its cost for ever.
func TestForgetting(t *testing.T) {
	t.Parallel()
	cloud, manual := openCloud(t, testConfig())
	made := createInstance(t, cloud, 1)
	manual.Advance(30 * time.Minute)
	require.NoError(t, cloud.Delete(t.Context(), made.ID))
	manual.Advance(30*time.Second + 10*time.Minute - time.Second)
	got, err := cloud.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Terminated, got.Phase)
	manual.Advance(time.Second)
	_, err = cloud.Get(t.Context(), made.ID)
	require.Equal(t, provisioners.KindNotFound, provisioners.KindOf(err))
	require.Equal(t, provisioners.Terminated, createInstance(t, cloud, 1).Phase)
	bill := cloud.Bill(manual.Now())
	require.Len(t, bill.Lines, 1)

	manual.Advance(24 * time.Hour)
	require.NotEqual(t, made.ID, createInstance(t, cloud, 1).ID)
	after := cloud.Bill(manual.Now())
	require.Equal(t, bill.Total, after.Settled)
	require.Equal(t, 2, after.Total.Machines)
}

func TestDamagedStateIsAnError(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.StateFile = filepath.Join(t.TempDir(), "sim.json")
	cloud, manual := openCloud(t, c)
	createInstance(t, cloud, 1)
	whole, err := os.ReadFile(c.StateFile)
	require.NoError(t, err)
	for name, text := range map[string]string{
		"cut":           string(whole[:len(whole)/2]),
		"empty":         "",
		"other version": `{"Version":2,"Machines":null,"Settled":{"Machines":0,"Billed":0,"Cost":0}}`,
		"null machine":  `{"Version":1,"Machines":[null],"Settled":{"Machines":0,"Billed":0,"Cost":0}}`,
	} {
		require.NoError(t, os.WriteFile(c.StateFile, []byte(text), 0o600))
		_, err := sim.New(c, manual)
		require.ErrorContains(t, err, c.StateFile, name)
	}
}

// A change that could not be saved is not confirmed, also not by the repeat,
// until it is saved.
func TestUnsavedMachineIsNotConfirmed(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.StateFile = filepath.Join(t.TempDir(), "sim.json")
	cloud, manual := openCloud(t, c)
	unblock := statefiletest.Block(t, c.StateFile)
	for range 2 {
		_, err := cloud.Create(t.Context(), "token-1", testSpec("nod_1"))
		require.Equal(t, provisioners.KindUnknown, provisioners.KindOf(err), "%v", err)
	}
	unblock()
	made := createInstance(t, cloud, 1)
	again, err := sim.New(c, manual)
	require.NoError(t, err)
	got, err := again.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, made.ID, got.ID)
}

func TestConfigMistakesAreNamed(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(*sim.Config){
		"name":           func(c *sim.Config) { c.Name = "Not A Name" },
		"list_lag":       func(c *sim.Config) { c.ListLag = -1 },
		"terminating":    func(c *sim.Config) { c.Terminating = -1 },
		"remembered":     func(c *sim.Config) { c.Remembered = -1 },
		"stock_window":   func(c *sim.Config) { c.StockWindow = -1 },
		"at least one":   func(c *sim.Config) { c.Offers = []sim.Offer{} },
		"twice":          func(c *sim.Config) { c.Offers[1] = c.Offers[0] },
		"gpus":           func(c *sim.Config) { c.Offers[0].GPUs = 0 },
		"type":           func(c *sim.Config) { c.Offers[0].Type = "" },
		"memory_mib":     func(c *sim.Config) { c.Offers[0].MemoryMiB = -1 },
		"price_per_hour": func(c *sim.Config) { c.Offers[0].Price = -1 },
		"min_billing":    func(c *sim.Config) { c.Offers[0].MinBilling = -1 },
		"stock:":         func(c *sim.Config) { c.Offers[0].Stock = -1 },
		"out_of_stock":   func(c *sim.Config) { c.Offers[0].OutOfStock = math.NaN() },
		"boot":           func(c *sim.Config) { c.Offers[0].Boot.P95 = 1 },
		"faults[0]": func(c *sim.Config) {
			c.Faults = []sim.Fault{{Op: sim.OpGet, Effect: sim.Truncate,
				Times: 1}}
		},
	} {
		c := testConfig()
		spoil(&c)
		_, err := sim.New(c, clock.NewManual(start))
		require.ErrorContains(t, err, want)
	}
	_, err := sim.New(sim.Config{}, clock.NewManual(start))
	require.NoError(t, err, "the zero config works")
}

// A replay makes very many machines; the price of a call must not grow with
// the number there ever were.
func BenchmarkLife(b *testing.B) {
	cloud, manual := openCloud(b, testConfig())
	for n := 0; b.Loop(); n++ {
		made := createInstance(b, cloud, n)
		manual.Advance(10 * time.Minute)
		_ = cloud.Delete(b.Context(), made.ID)
		_, _ = cloud.List(b.Context(), "dep")
	}
}
