package builtin_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/builtin"
)

func strictDecoder(text string) func(any) error {
	return func(v any) error {
		decoder := yaml.NewDecoder(strings.NewReader(text))
		decoder.KnownFields(true)
		return decoder.Decode(v)
	}
}

func testDeps(folder string) builtin.Deps {
	return builtin.Deps{Clock: clock.NewManual(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)), StateDir: folder}
}

func TestFullConfigs(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	cloud, err := builtin.New("sim", strictDecoder(`
name: cloud-1
seed: 42
list_lag: 2s
terminating: 10s
offers:
  - {type: a100-8, region: eu, model: a100-80g, gpus: 8, memory_mib: 81920, price_per_hour: 19.22, min_billing: 1m,
     boot: {p50: 4s, p95: 9s, min: 1s}, stock: 4, out_of_stock: 0.1}
faults:
  - {op: offers, effect: fail_before, times: 1, kind: throttled, retry_after: 3s}
`), testDeps(folder))
	require.NoError(t, err)
	require.Equal(t, "cloud-1", cloud.Name())
	_, err = cloud.Offers(t.Context())
	require.Equal(t, provisioners.KindThrottled, provisioners.KindOf(err))
	offers, err := cloud.Offers(t.Context())
	require.NoError(t, err)
	require.Equal(t, []provisioners.Offer{{
		Type: "a100-8", Region: "eu", Model: "a100-80g", GPUs: 8, MemoryMiB: 81_920, Price: 19_220_000,
		MinBilling: time.Minute,
		Boot:       provisioners.Boot{P50: 4 * time.Second, P95: 9 * time.Second}, Simulated: true,
	}}, offers)

	host, err := builtin.New("local", strictDecoder("{simulate: 2, price_per_hour: 1, model: t4, host_id: h}"),
		testDeps(folder))
	require.NoError(t, err)
	offers, err = host.Offers(t.Context())
	require.NoError(t, err)
	require.Equal(t, money.USD, offers[0].Price)
}

// Every kind works with the least there is to say, under its own name, and
// keeps its state in the folder it is given.
func TestEveryKindKeepsItsState(t *testing.T) {
	t.Parallel()
	keepers := map[string]string{"sim": "{}", "simcluster": "{}", "local": "{simulate: 1}"}
	elsewhere := []string{"aws", "exec", "gcp", "kubernetes", "slurm",
		"ssh"} // their state is first of all their provider's
	require.Len(t, builtin.Kinds, len(keepers)+len(elsewhere), "a new kind needs a line here")
	for kind, config := range keepers {
		require.Contains(t, builtin.Known(), kind)
		folder := t.TempDir()
		var ids []string
		for range 2 {
			provisioner, err := builtin.New(kind, strictDecoder(config), testDeps(folder))
			require.NoError(t, err)
			require.Equal(t, kind, provisioner.Name())
			offers, err := provisioner.Offers(t.Context())
			require.NoError(t, err)
			made, err := provisioner.Create(t.Context(), "token", provisioners.Spec{
				Type: offers[0].Type, Region: offers[0].Region, Owner: "dep", NodeID: "nod_1",
			})
			require.NoError(t, err)
			ids = append(ids, made.ID)
		}
		require.Equal(t, ids[0], ids[1])
		require.FileExists(t, filepath.Join(folder, "provisioner-"+kind+".json"))
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ kind, config, want string }{
		"unknown kind":  {"azure", "{}", "want one of aws, exec, gcp, kubernetes, local, sim, simcluster, slurm, ssh"},
		"unknown key":   {"sim", "{offer: []}", "field offer not found"},
		"unknown key 5": {"simcluster", "{nodes: 3}", "field nodes not found"},
		"bad name 3":    {"simcluster", "{name: ../../x}", "name"},
		"unknown key 2": {"local", "{simulated: 4}", "field simulated not found"},
		"wrong type":    {"local", "{simulate: many}", "cannot unmarshal"},
		"bad price":     {"local", "{price_per_hour: -2}", "price"},
		"bad duration":  {"sim", "{list_lag: soon}", "cannot unmarshal"},
		"bad name":      {"sim", "{name: ../../x}", "name"},
		"no offers":     {"slurm", "{}", "offers"},
		"no command":    {"exec", "{}", "commands.create"},
		"unknown key 3": {"exec", "{command: [x], shell: true}", "field shell not found"},
		"no hosts":      {"ssh", "{}", "hosts: want at least one"},
		"unknown key 4": {"ssh", "{trust_first_use: true}", "field trust_first_use not found"},
		"bad name 2":    {"local", "{name: ../../x, simulate: 1}", "name"},
	} {
		folder := t.TempDir()
		provisioner, err := builtin.New(test.kind, strictDecoder(test.config), testDeps(folder))
		require.ErrorContains(t, err, test.want, name)
		require.True(t, provisioner == nil, "%s: a nil pointer inside an interface", name)
		entries, err := os.ReadDir(folder)
		require.NoError(t, err)
		require.Empty(t, entries)
	}
}
