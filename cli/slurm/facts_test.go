package slurm

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/core/coldstart"
	"github.com/forewarm/forewarm/core/money"
)

func TestHostlists(t *testing.T) {
	t.Parallel()
	for list, want := range map[string][]string{
		"c1": {"c1"}, "c1,c3": {"c1", "c3"}, "c[1-3],n1": {"c1", "c2", "c3", "n1"},
		"c[08-10]": {"c08", "c09", "c10"}, "c[1,3-4]": {"c1", "c3", "c4"},
		"r[1-2]n[1-2]": {"r1n1", "r1n2", "r2n1", "r2n2"}, "c[1-2]-gpu": {"c1-gpu", "c2-gpu"}, "": nil,
	} {
		got, err := expandHosts(list)
		require.NoError(t, err, list)
		require.Equal(t, want, got, list)
	}
	for _, list := range []string{"c[1", "c[2-1]", "c[a-b]", "c1]", "c[1-999999]", "c[1-400]x[1-400]", "c[]", "a b"} {
		_, err := expandHosts(list)
		require.ErrorIs(t, err, errHostlist, list)
	}
}

func TestTimeSpans(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"30 sec": 30, "300": 300, "10:00": 600, "01:00:00": 3600,
		"1-02:03:04": 93784} {
		got, finite := settings{"x": text}.seconds("X")
		require.True(t, finite, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "INFINITE", "NONE", "-1", "-1 sec", "UNLIMITED", "99999999999"} {
		_, finite := settings{"x": text}.seconds("x")
		require.False(t, finite, text)
	}
}

func TestGPUsOfANode(t *testing.T) {
	t.Parallel()
	for gres, want := range map[string]struct {
		n     int
		model string
	}{"gpu:a100:4": {4, "a100"}, "gpu:4": {4, ""}, "gpu:a100:2(S:0),gpu:h100:2(S:1)": {4, "a100"}, "gpu": {1, ""},
		"nic:2,gpu:a100_1g.5gb:7": {7, "a100_1g.5gb"}, "": {0, ""}, "gputype:2": {0, ""}, "gpu:a100": {1, "a100"}} {
		n, model := countGPUs(gres)
		require.Equal(t, want.n, n, gres)
		require.Equal(t, want.model, model, gres)
	}
}

func TestGPUsOfAJob(t *testing.T) {
	t.Parallel()
	for tres, want := range map[string]struct {
		n     int
		model string
	}{"cpu=8,gres/gpu=4,gres/gpu:a100=4": {4, "a100"}, "gres/gpu:a100=2,gres/gpu:h100=1": {3, ""}, "cpu=8": {0, ""},
		"gres/gpumem=80G,gres/gpu=1": {1, ""}, "": {0, ""}} {
		n, model, err := gpusOf(tres)
		require.NoError(t, err, tres)
		require.Equal(t, want.n, n, tres)
		require.Equal(t, want.model, model, tres)
	}
	_, _, err := gpusOf("gres/gpu=many")
	require.Error(t, err)
}

func TestReasons(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]coldstart.Hold{"None": coldstart.Unsaid, "Resources": coldstart.Unsaid,
		"Priority": coldstart.Unsaid, "Dependency": coldstart.Dependency, "BeginTime": coldstart.Dependency,
		"JobHeldUser": coldstart.Dependency, "QOSMaxGRESPerUser": coldstart.Limit, "AssocGrpGRES": coldstart.Limit,
		"JobArrayTaskLimit": coldstart.Limit, "Licenses": coldstart.Limit} {
		require.Equal(t, want, holdOf(reason), reason)
	}
}

// cluster is what a cluster says, with one cloud node and one that stays up.
func cluster(change func(*facts)) facts {
	f := facts{version: "slurm 24.11.5", user: "ada", adminLevel: "None", accounted: true,
		config: settings{"suspendprogram": "/s", "resumeprogram": "/r", "suspendtime": "300 sec",
			"suspendexcnodes": "n[1-2]", "accountingstoragetype": "accounting_storage/slurmdbd",
			"accountingstoragetres": "cpu,gres/gpu", "accountingstorageenforce": "associations", "slurmuser": "slurm(64030)"},
		partitions: []settings{{"partitionname": "gpu", "totalnodes": "2"}},
		nodes: []node{{name: "c1", partitions: []string{"gpu"}, states: []string{"idle", "cloud"}, gpus: 4},
			{name: "n1", partitions: []string{"gpu"}, states: []string{"idle"}, gpus: 4}}}
	change(&f)
	return f
}

func checkOf(change func(*facts)) check { return newCheck(cluster(change), prices{}) }

func TestWays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*facts)
		way    string
	}{
		"ordinary":   {func(*facts) {}, byHeartbeats},
		"operator":   {func(f *facts) { f.adminLevel = "Operator" }, byHeartbeats},
		"unknown":    {func(f *facts) { f.adminLevel = "" }, byHeartbeats},
		"admin":      {func(f *facts) { f.adminLevel = "Administrator" }, byPowerUp},
		"slurm":      {func(f *facts) { f.user = "slurm" }, byPowerUp},
		"infinite":   {func(f *facts) { f.config["suspendtime"] = "INFINITE" }, byNothing},
		"no program": {func(f *facts) { f.config["resumeprogram"] = "" }, byNothing},
		"excluded":   {func(f *facts) { f.config["suspendexcparts"] = "gpu" }, byNothing},
		"no gpus":    {func(f *facts) { f.nodes[0].gpus, f.nodes[1].gpus = 0, 0 }, byNothing},
		"hidden":     {func(f *facts) { f.nodes = f.nodes[1:] }, byHeartbeats},
	} {
		require.Equal(t, c.way, checkOf(c.change).Way.Name, name)
	}
}

// A partition's own SuspendTime goes before the cluster's, and the longest of a
// node's partitions counts.
func TestSuspendTimesOfPartitions(t *testing.T) {
	t.Parallel()
	f := cluster(func(f *facts) {
		f.partitions = []settings{{"partitionname": "gpu", "suspendtime": "60"}, {"partitionname": "big",
			"suspendtime": "120"}, {"partitionname": "always", "suspendtime": "INFINITE"}}
	})
	for want, in := range map[int64][]string{60: {"gpu"}, 120: {"gpu", "big"}, 300: {"other"}} {
		got, down := f.suspendTime(node{name: "c1", partitions: in})
		require.True(t, down)
		require.Equal(t, want, got)
	}
	_, down := f.suspendTime(node{name: "c1", partitions: []string{"gpu", "always"}})
	require.False(t, down)
	a, err := f.assumptions()
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"c1": 60, "n1": coldstart.Never}, a.NodeSuspendTime)
}

func TestMissing(t *testing.T) {
	t.Parallel()
	lines := func(change func(*facts)) []string {
		var all []string
		for _, m := range checkOf(change).Missing {
			all = append(all, m.Line)
		}
		return all
	}
	const admin = "sacctmgr modify user name=ada set adminlevel=Administrator"
	require.Equal(t, []string{admin}, lines(func(*facts) {}))
	require.Equal(t, []string{"PrivateData=jobs,cloud", "sacctmgr modify user name=ada set adminlevel=Operator", admin},
		lines(func(f *facts) { f.config["privatedata"], f.nodes = "jobs", f.nodes[1:] }))
	require.Equal(t, []string{"AccountingStorageTRES=gres/gpu", admin},
		lines(func(f *facts) { f.config["accountingstoragetres"] = "cpu" }))
	require.Equal(t, []string{"systemctl status slurmdbd"}, lines(func(f *facts) { f.accounting = errors.New("down") }))
	require.Equal(t, []string{"sacctmgr add user name=ada account=ACCOUNT", admin}, lines(func(f *facts) {
		f.config["accountingstorageenforce"], f.accounted = "associations,limits", false
	}))
	for enforce, line := range map[string]string{"": "AccountingStorageEnforce=associations",
		"nojobs": "AccountingStorageEnforce=nojobs,associations"} {
		require.Equal(t, []string{admin, line}, lines(func(f *facts) { f.config["accountingstorageenforce"] = enforce }))
	}
	for _, enforce := range []string{"limits", "associations,safe", "qos"} {
		require.Equal(t, []string{admin}, lines(func(f *facts) { f.config["accountingstorageenforce"] = enforce }))
	}
	require.Equal(t, []string{"SuspendTime=300", admin}, lines(func(f *facts) { f.config["suspendtime"] = "20 sec" }))
	require.Equal(t, []string{"scontrol update nodename=c1 state=resume", admin},
		lines(func(f *facts) { f.nodes[0].states = []string{"down", "cloud"} }))
}

// A list without anything is one, for those who read JSON.
func TestEmptyLists(t *testing.T) {
	t.Parallel()
	for _, change := range []func(*facts){func(f *facts) { f.adminLevel = "Administrator" },
		func(f *facts) { f.nodes, f.partitions = nil, nil }, func(f *facts) { f.nodes = f.nodes[1:] }} {
		text, err := json.Marshal(checkOf(change))
		require.NoError(t, err)
		for _, list := range []string{"gpu_partitions", "private_data", "gpus_per_node", "powers_down", "stays_up", "down",
			"why", "missing"} {
			require.NotContains(t, string(text), `"`+list+`":null`)
		}
	}
}

// A heartbeat is due three times within the time after which a node goes down.
func TestBeats(t *testing.T) {
	t.Parallel()
	require.Equal(t, int64(36), beatsPerHour(300))
	require.Equal(t, int64(6), beatsPerHour(1800))
	rapid.Check(t, func(t *rapid.T) {
		suspend := rapid.Int64Range(3, 100_000).Draw(t, "suspend")
		require.LessOrEqual(t, 3*beatEvery(suspend), suspend)
		require.GreaterOrEqual(t, beatsPerHour(suspend)*beatEvery(suspend), int64(3600))
	})
}

func TestPrices(t *testing.T) {
	t.Parallel()
	p := prices{offers: []app.SlurmOffer{{Partition: "gpu", GPUs: 2, Price: 8 * money.USD}, {Partition: "gpu", GPUs: 4,
		Price: 16 * money.USD}, {Partition: "odd", GPUs: 1, Price: 1}, {Partition: "odd", GPUs: 1, Price: 2}}}
	price, known := p.ofNode("gpu", 8)
	require.True(t, known)
	require.Equal(t, 32*money.USD, price)
	_, known = p.ofNode("odd", 8)
	require.False(t, known, "offers that differ say nothing")
	_, known = p.ofNode("cpu", 8)
	require.False(t, known, "and unknown is not nothing")
	for text, want := range map[string]money.MicroUSD{"32.77": 32_770_000, "$1": 1_000_000, "0.000001": 1} {
		got, err := readDollars(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "0", "-1", "1e3", "1.0000001", "1000001", ".5", "99999999999999"} {
		_, err := readDollars(text)
		require.Error(t, err, text)
	}
}

// The manual has the line that saves a history, and every line that mends
// something.
func TestTheManualSaysWhatTheCheckSays(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/slurm.md")
	require.NoError(t, err)
	text := strings.Join(strings.Fields(strings.ReplaceAll(string(page), "\\\n", " ")), " ")
	require.Contains(t, text, sacctLine)
	all := slices.Concat(
		checkOf(func(f *facts) { f.config["accountingstoragetype"] = "" }).Missing,
		checkOf(func(f *facts) {
			f.config["accountingstoragetres"], f.config["suspendtime"] = "cpu", "20"
			f.config["accountingstorageenforce"], f.accounted = "associations", false
			f.nodes[0].states = []string{"down"}
		}).Missing,
		checkOf(func(f *facts) { f.config["accountingstorageenforce"] = "" }).Missing)
	require.Len(t, all, 9)
	for _, m := range all {
		line := strings.NewReplacer("name=ada", "name=…", "=ACCOUNT", "=…", "nodename=c1", "nodename=…").Replace(m.Line)
		if !strings.Contains(line, "adminlevel=Administrator") { // which is never needed
			require.Contains(t, text, line)
		}
	}
}

// A replay that is far from what happened says so.
func TestThePoorFitOfAReplay(t *testing.T) {
	t.Parallel()
	report := func(seen, replayed int) shownReport {
		return shownReport{Starts: startCounts{Boot: shownWaits{Starts: seen}},
			Policies: []shownPolicy{{Waits: shownWaits{Starts: replayed}}}}
	}
	require.Empty(t, report(100, 115).replayDoubt())
	require.Empty(t, report(1, 2).replayDoubt())
	require.Empty(t, shownReport{}.replayDoubt())
	require.Contains(t, report(100, 50).replayDoubt()[0], "with nothing changed 50 starts wait for a boot, and not 100")
	require.Len(t, report(100, 150).replayDoubt(), 1)
}
