package daemon

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners/local"
	"github.com/forewarm/forewarm/server"
)

// base is a configuration with nearly every key at a value other than its
// default; DIR, and TENANT for the organization's name, are put in when it is used.
const base = `
listen: 0.0.0.0:18787
open_bind: true
metrics_listen: 127.0.0.1:19464
server: {trusted_proxies: [10.1.0.0/16], public_url: "https://gpu.example", max_connections: 31,
  max_connections_per_address: 32, max_streams_per_key: 2, max_streams_per_organization: 3,
  metrics_listen: "127.0.0.1:19466", peers_listen: 127.0.0.1:0, peers_address: one.example}
pepper: "1:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd"
data_dir: DIR
log: {level: debug, format: json}
deployment: trap-n
organization: {name: trap, max_gpus: 7, speculation_per_day: 3}
timing: {guard: 1s, boot_timeout: 2s, confirm_gone: 3s, stock_out: 4s, check_every: 5s, verify_every: 6s,
  sweep_every: 7s, schedules_ahead: 8s, dead_man: 10h, settle: 20s, orphan_grace: 21s, orphan_apart: 22s,
  observe_every: 23s}
scheduling: {order: arrival, overdue: 25h, preemption: true, min_runtime: 11m, leave_within: 3m, most_preemptions: 4,
  high_priority: admin, near_label: switch,
  submissions: {every: 9s, burst: 90, per_day: 900}, pools: {p1: {min_runtime: 12m}}}
provisioners:
  - kind: sim
    config: {name: cloud, offers: [
      {type: m2, region: r1, model: a100, gpus: 2, memory_mib: 1024, price_per_hour: 1, boot: {p50: 1s, p95: 2s}},
      {type: m2b, region: r1, model: a100, gpus: 2, memory_mib: 1024, price_per_hour: 1, boot: {p50: 1s, p95: 2s}}]}
  - kind: sim
    config: {name: spare, offers: [
      {type: m9, region: r9, model: a100, gpus: 2, memory_mib: 1024, price_per_hour: 1, boot: {p50: 1s, p95: 2s}}]}
  - kind: simcluster
    config: {name: hpc, region: r1, offers: [
      {type: c2, model: h100, gpus: 2, memory_mib: 1024, price_per_hour: 1, boot: {p50: 1s, p95: 2s}, nodes: 3}]}
pools:
  - {name: p1, provisioner: cloud, region: r1, instance_type: m2, model: a100, gpus_per_node: 2, gpu_memory_mib: 1024,
     price_per_node_hour: 1, min_nodes: 1, max_nodes: 2, warm_hold: 11s, idle_release: 12s, max_lease: 13m,
     idle_warn_after: 21m, idle_reclaim_after: 23m,
     max_creates: 14, create_window: 16m,
     alternates: [{provisioner: spare, region: r9, instance_type: m9, price_per_node_hour: 7}]}
  - {name: p9, provisioner: hpc, region: r1, instance_type: c2, model: h100, max_nodes: 3, use: observed,
     holders: [{account: ac1, user: us1, namespace: ns1, queue: qu1, organization: TENANT}],
     default_organization: TENANT}
`

var tenant = regexp.MustCompile(`organization: \{name: (\w+)`)

// describeInstallation is what an installation with a configuration does, in words: what it
// stored, and what its parts were told.
func describeInstallation(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "forewarm.yaml")
	text = strings.NewReplacer("DIR", dir+"/data", "TENANT", tenant.FindStringSubmatch(text)[1]).Replace(text)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	f := flags{config: path}
	cfg, err := f.readConfig()
	if err != nil {
		return "refused: " + err.Error()
	}
	a, err := newApp(t.Context(), cfg, "test")
	if err != nil {
		return "refused: " + err.Error()
	}
	defer func() { assert.NoError(t, a.store.Close()) }()
	if _, _, err := a.prepareInstallation(t.Context()); err != nil {
		return "refused: " + err.Error()
	}
	var orgs []ledger.Organization
	var pools []ledger.Pool
	require.NoError(t, a.store.Read(t.Context(), func(r ledger.Reader) (err error) {
		if orgs, err = r.Organizations(ledger.Scope{All: true}, ledger.Page{}); err != nil {
			return err
		}
		pools, err = r.Pools(ledger.Page{})
		return err
	}))
	for i := range pools {
		pools[i].ID, pools[i].CreatedAt = "", time.Time{}
		pools[i].Holders = nameHolders(pools[i].Holders, orgs[0])
	}
	q, err := a.openQueue(t.Context())
	if err != nil {
		return "refused: " + err.Error()
	}
	require.NoError(t, q.Close())
	found, err := filepath.Glob(filepath.Join(dir, "data", "*"))
	require.NoError(t, err)
	minter := a.minter
	minter.Random = zeros{}
	key, _, err := minter.Mint(ledger.Key{Name: "the same for the same pepper"})
	require.NoError(t, err)
	edge, err := cfg.newEdge()
	require.NoError(t, err)
	return strings.ReplaceAll(fmt.Sprintf("%+v %v %s %s %s %T\n%v %s\n%s %+v\n%+v\n%+v\n%+v\n%v\n%x", edge, cfg.Keys,
		strings.Join([]string{cfg.Listen, cfg.peersListen(), cfg.peersAddress(t.Context(), "127.0.0.1:1")}, " "),
		cfg.MetricsListen+" "+cfg.Server.MetricsListen+" "+a.cycles.String(), cfg.Deployment, q,
		a.log.Enabled(t.Context(), slog.LevelDebug), innerHandlerType(a.log.Handler()), orgs[0].Name, orgs[0].Limits,
		pools,
		cfg.ledgerConfig(), cfg.workerConfig(), found, key.Hash), dir, "")
}

// Work is counted in one pool: a file that has two of the same nodes is refused where the
// second one stands.
func TestTwoObservedPoolsOfTheSameNodes(t *testing.T) {
	t.Parallel()
	said := describeInstallation(t, base+
		"  - {name: p10, provisioner: hpc, region: r1, instance_type: c2, model: h100, max_nodes: 3, use: observed}\n")
	require.Contains(t, said, "pools.2.instance_type")
	require.Contains(t, said, "p9 has the c2 of hpc already")
}

// nameHolders puts the organization's name in the place of its id, which is another one
// each time.
func nameHolders(h capacity.Holders, o ledger.Organization) capacity.Holders {
	h.Default = strings.ReplaceAll(h.Default, o.ID, o.Name)
	h.Rules = slices.Clone(h.Rules)
	for i := range h.Rules {
		h.Rules[i].OrganizationID = strings.ReplaceAll(h.Rules[i].OrganizationID, o.ID, o.Name)
	}
	return h
}

// innerHandlerType is the type of the handler that our own two wrap.
func innerHandlerType(h slog.Handler) string {
	return reflect.ValueOf(h).Field(0).Elem().Field(0).Elem().Type().String()
}

// zeros is no chance at all.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// changes has another value for each key of the file. A change must be seen in
// what the installation does, or be refused.
var changes = map[string]struct{ was, is string }{
	"listen":                              {"0.0.0.0:18787", "0.0.0.0:18788"},
	"data_dir":                            {"data_dir: DIR", "data_dir: DIR/below"},
	"database":                            {"log:", "database: nosuch://x\nlog:"},
	"redis":                               {"log:", "redis: redis://127.0.0.1:1/0\nlog:"},
	"pepper":                              {"cdcd", "abab"},
	"keys.default_life":                   {"log:", "keys: {default_life: 7h}\nlog:"},
	"metrics_listen":                      {"metrics_listen: 127.0.0.1:19464", "metrics_listen: 127.0.0.1:19465"},
	"open_bind":                           {"open_bind: true", "open_bind: false"},
	"tenants_see_nodes":                   {"log:", "tenants_see_nodes: true\nlog:"},
	"cycle_records.folder":                {"log:", "cycle_records: {folder: /nowhere/cycles}\nlog:"},
	"cycle_records.keep_mib":              {"log:", "cycle_records: {keep_mib: -1}\nlog:"},
	"await_daemons":                       {"log:", "await_daemons: false\nlog:"},
	"server.trusted_proxies":              {"10.1.0.0/16", "10.2.0.0/16"},
	"server.metrics_listen":               {"127.0.0.1:19466", "127.0.0.1:19467"},
	"server.public_url":                   {"https://gpu.example", "http://gpu.example"},
	"server.download_dir":                 {"server: {", "server: {download_dir: DIR, "},
	"server.peers_listen":                 {"127.0.0.1:0,", "127.0.0.2:0,"},
	"server.peers_address":                {"peers_address: one.example", "peers_address: two.example"},
	"server.max_connections":              {"max_connections: 31", "max_connections: 33"},
	"server.max_connections_per_address":  {"max_connections_per_address: 32", "max_connections_per_address: 34"},
	"server.max_streams_per_key":          {"max_streams_per_key: 2", "max_streams_per_key: 1"},
	"server.max_streams_per_organization": {"max_streams_per_organization: 3", "max_streams_per_organization: 4"},
	"server.compat":                       {"server: {", "server: {compat: false, "},
	"log.level":                           {"level: debug", "level: error"},
	"log.format":                          {"format: json", "format: text"},
	"deployment":                          {"deployment: trap-n", "deployment: trap-m"},
	"organization.name":                   {"name: trap", "name: other"},
	"organization.max_gpus":               {"max_gpus: 7", "max_gpus: 8"},
	"organization.speculation_per_day":    {"speculation_per_day: 3", "speculation_per_day: 4"},
	"timing.guard":                        {"guard: 1s", "guard: 9s"},
	"timing.boot_timeout":                 {"boot_timeout: 2s", "boot_timeout: 9s"},
	"timing.confirm_gone":                 {"confirm_gone: 3s", "confirm_gone: 9s"},
	"timing.stock_out":                    {"stock_out: 4s", "stock_out: 9s"},
	"timing.check_every":                  {"check_every: 5s", "check_every: 9s"},
	"timing.verify_every":                 {"verify_every: 6s", "verify_every: 9s"},
	"timing.sweep_every":                  {"sweep_every: 7s", "sweep_every: 9s"},
	"timing.dead_man":                     {"dead_man: 10h", "dead_man: 9h"},
	"timing.observe_every":                {"observe_every: 23s", "observe_every: 9s"},
	"timing.settle":                       {"settle: 20s", "settle: 9s"},
	"timing.orphan_grace":                 {"orphan_grace: 21s", "orphan_grace: 9s"},
	"timing.orphan_apart":                 {"orphan_apart: 22s", "orphan_apart: 9s"},
	"timing.schedules_ahead":              {"schedules_ahead: 8s", "schedules_ahead: 9s"},
	"provisioners.kind":                   {"kind: sim", "kind: other"},
	"provisioners.config":                 {"p95: 2s}}]", "p95: 3s}}], nonsense: 1"},
	"pools.name":                          {"name: p1", "name: p2"},
	"pools.provisioner":                   {"provisioner: cloud", "provisioner: other"},
	"pools.region": {"{name: p1, provisioner: cloud, region: r1",
		"{name: p1, provisioner: cloud, region: r2"},
	"pools.instance_type": {"instance_type: m2", "instance_type: m2b"},
	"pools.model":         {"instance_type: m2, model: a100", "instance_type: m2, model: h100"},
	"pools.gpus_per_node": {"gpus_per_node: 2", "gpus_per_node: 3"},
	"pools.shares_per_gpu": {"gpus_per_node: 2, gpu_memory_mib: 1024",
		"gpus_per_node: 4, shares_per_gpu: 2, gpu_memory_mib: 512"},
	"pools.gpu_memory_mib":                 {"gpu_memory_mib: 1024", "gpu_memory_mib: 2048"},
	"pools.price_per_node_hour":            {"price_per_node_hour: 1", "price_per_node_hour: 2"},
	"pools.alternates.provisioner":         {"{provisioner: spare, region: r9", "{provisioner: other, region: r9"},
	"pools.alternates.region":              {"{provisioner: spare, region: r9", "{provisioner: spare, region: r8"},
	"pools.alternates.instance_type":       {"instance_type: m9", "instance_type: m8"},
	"pools.alternates.price_per_node_hour": {"price_per_node_hour: 7", "price_per_node_hour: 8"},
	"pools.min_nodes":                      {"min_nodes: 1", "min_nodes: 2"},
	"pools.max_nodes":                      {"max_nodes: 2", "max_nodes: 3"},
	"pools.warm_hold":                      {"warm_hold: 11s", "warm_hold: 19s"},
	"pools.idle_release":                   {"idle_release: 12s", "idle_release: 19s"},
	"pools.max_creates":                    {"max_creates: 14", "max_creates: 15"},
	"pools.create_window":                  {"create_window: 16m", "create_window: 17m"},
	"pools.max_lease":                      {"max_lease: 13m", "max_lease: 19m"},
	"pools.idle_warn_after":                {"idle_warn_after: 21m", "idle_warn_after: 22m"},
	"pools.idle_reclaim_after":             {"idle_reclaim_after: 23m", "idle_reclaim_after: 24m"},
	"pools.isolation":                      {"max_lease: 13m", "max_lease: 13m, isolation: devices"},
	"pools.min_driver":                     {"max_lease: 13m", "max_lease: 13m, min_driver: 535.104"},
	"pools.labels":                         {"max_lease: 13m", "max_lease: 13m, labels: {disk: nvme}"},
	"pools.taints":                         {"max_lease: 13m", "max_lease: 13m, taints: [licensed]"},
	"pools.access":                         {"max_lease: 13m", "max_lease: 13m, access: devices"},
	"pools.use":                            {"use: observed", "use: reserved"},
	"pools.holders.account":                {"account: ac1", "account: ac2"},
	"pools.holders.user":                   {"user: us1", "user: us2"},
	"pools.holders.namespace":              {"namespace: ns1", "namespace: ns2"},
	"pools.holders.queue":                  {"queue: qu1", "queue: qu2"},
	"pools.holders.organization":           {"organization: TENANT}]", "organization: nobody}]"},
	"pools.default_organization":           {"default_organization: TENANT", "default_organization: nobody"},
}

// Trap n: every key of the file has an effect, and every effect has a key here.
func TestTrapNEveryKeyCounts(t *testing.T) {
	t.Parallel()
	before := describeInstallation(t, base)
	require.NotContains(t, before, "refused")
	require.Equal(t, before, describeInstallation(t, base), "the same configuration does the same")
	keys := leafKeys(reflect.TypeFor[Config](), "")
	changes := maps.Clone(changes)
	maps.Copy(changes, schedulingChanges)
	for key := range changes {
		assert.Contains(t, keys, key, "an entry without a key")
	}
	for _, key := range keys {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			c, ok := changes[key]
			require.True(t, ok, "a key that nothing proves to have an effect: add it to changes")
			require.Contains(t, base, c.was)
			assert.NotEqual(t, before, describeInstallation(t, strings.Replace(base, c.was, c.is, 1)))
		})
	}
}

func TestTheEdgeIsChecked(t *testing.T) {
	t.Parallel()
	for was, is := range map[string]string{
		"10.1.0.0/16": "10.1.0.0/99", "https://gpu.example": "gpu.example",
		`"https://gpu.example"`: `"https://gpu.example/below"`,
	} {
		require.Contains(t, describeInstallation(t, strings.Replace(base, was, is, 1)), "forewarm.yaml:5:")
	}
}

func TestIsolationsAreChecked(t *testing.T) {
	t.Parallel()
	said := describeInstallation(t, strings.Replace(base, "max_lease: 13m", "max_lease: 13m, isolation: some", 1))
	require.Contains(t, said, "write devices, user or environment")
}

func TestDriversAreChecked(t *testing.T) {
	t.Parallel()
	said := describeInstallation(t, strings.Replace(base, "max_lease: 13m", "max_lease: 13m, min_driver: newest", 1))
	require.Contains(t, said, `min_driver: is "newest"`)
	require.Contains(t, said, "write the version of a driver")
}

func TestTheEdgeFromTheEnvironment(t *testing.T) {
	t.Setenv("FOREWARM_TRUSTED_PROXIES", "127.0.0.1, 10.0.0.0/8")
	t.Setenv("FOREWARM_PUBLIC_URL", "https://GPU.example:8443")
	handed := filepath.Join(t.TempDir(), nodeAMD64)
	require.NoError(t, os.WriteFile(handed, nil, 0o600))
	t.Setenv("FOREWARM_DOWNLOAD_DIR", filepath.Dir(handed))
	cfg, err := loadConfig("")
	require.NoError(t, err)
	e, err := cfg.newEdge()
	require.NoError(t, err)
	require.True(t, e.proxies.Trust(netip.MustParseAddr("10.9.9.9")))
	require.False(t, e.proxies.Trust(netip.MustParseAddr("192.0.2.1")))
	var told server.Config
	e.configureServer(&told)
	require.Equal(t, []string{"gpu.example"}, told.Hosts)
	require.Equal(t, "https://GPU.example:8443", told.PublicURL)
	require.True(t, told.PublicTLS)
	require.True(t, told.Compat)
	require.Equal(t, map[string]string{nodeAMD64: handed}, told.Downloads)
	require.Equal(t, 1024, told.OpenPerAddress)
	require.Equal(t, server.StreamLimits{PerKey: 64, PerOrganization: 512, All: 4096}, told.Streams)
	require.Equal(t, server.StreamLimits{PerKey: 5, PerOrganization: 10, All: 20},
		Server{MaxConnections: 40, MaxStreamsPerKey: 64, MaxStreamsPerOrganization: -1}.streamLimits())
	require.Equal(t, server.StreamLimits{PerKey: 64},
		Server{MaxConnections: -1, MaxStreamsPerKey: 64, MaxStreamsPerOrganization: -1}.streamLimits())
	none, err := defaultConfig().newEdge()
	require.NoError(t, err)
	require.False(t, none.proxies.Trust(netip.MustParseAddr("127.0.0.1")), "by default nobody is believed")
}

// leafKeys names the keys of a configuration that have no keys below them.
func leafKeys(t reflect.Type, at string) []string {
	var keys []string
	for f := range t.Fields() {
		name := f.Tag.Get("yaml")
		if !f.IsExported() {
			continue
		}
		kind := f.Type
		if kind.Kind() == reflect.Slice {
			kind = kind.Elem()
		}
		switch {
		case kind.Kind() == reflect.Struct && kind != reflect.TypeFor[yaml.Node]() &&
			kind != reflect.TypeFor[obs.Secret]():
			below := at + name + "."
			if name == ",inline" {
				below = at
			}
			keys = append(keys, leafKeys(kind, below)...)
		default:
			keys = append(keys, at+name)
		}
	}
	return keys
}

// TestTrapNEveryFlagCounts holds the flags of each command against what they
// change.
func TestTrapNEveryFlagCounts(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"config": true, "data-dir": true, "listen": true, "demo": true, "wait-for-database": true,
		"shared-user": true}
	for _, cmd := range Commands("test", nil) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			assert.True(t, known[f.Name], "--%s of %s: prove below that it counts", f.Name, cmd.Name())
		})
		assert.NotNil(t, cmd.Flags().Lookup("config"), cmd.Name())
	}
	var f flags
	cmd := &cobra.Command{}
	f.addFlags(cmd)
	f.addListen(cmd)
	f.addWait(cmd, forever)
	require.NoError(t,
		cmd.ParseFlags([]string{"--data-dir", "/somewhere", "--listen", "127.0.0.1:1", "--wait-for-database", "7s"}))
	cfg, err := f.readConfig()
	require.NoError(t, err)
	assert.Equal(t, "/somewhere", cfg.DataDir)
	assert.Equal(t, "127.0.0.1:1", cfg.Listen)
	assert.Equal(t, patience(7*time.Second), cfg.wait)
	f.config = filepath.Join(t.TempDir(), "none.yaml")
	_, err = f.readConfig()
	require.ErrorContains(t, err, "does not exist")
	for _, shared := range []bool{true, false} {
		var here Config
		require.NoError(t, here.declareLocal(t.Context(), newTerminal(io.Discard), shared))
		var config local.Config
		require.NoError(t, here.Provisioners[0].Config.Decode(&config))
		assert.Equal(t, shared, config.SharedUser)
	}
}
