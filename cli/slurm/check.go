package slurm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/money"
)

// check is what a cluster is, as far as keeping its nodes warm goes.
type check struct {
	Cluster     string      `json:"cluster"`
	Version     string      `json:"version"`
	User        string      `json:"user"`
	AdminLevel  string      `json:"admin_level"` // administrator, operator, none or unknown
	Power       power       `json:"power"`
	Partitions  []partition `json:"gpu_partitions"`
	PrivateData []string    `json:"private_data"`
	Accounting  accounting  `json:"accounting"`
	Preemption  preemption  `json:"preemption"`
	Placement   placement   `json:"placement"`
	Way         way         `json:"way"`
	Missing     []missing   `json:"missing"`
}

// power is the cluster's power saving. Times are seconds; nil is never.
type power struct {
	Saving         bool   `json:"saving"` // whether it has the programs for it
	SuspendTime    *int64 `json:"suspend_time"`
	SuspendTimeout *int64 `json:"suspend_timeout"`
	ResumeTimeout  *int64 `json:"resume_timeout"`
	ExcludedNodes  string `json:"suspend_exc_nodes"`
	ExcludedParts  string `json:"suspend_exc_parts"`
}

// partition is one that has GPUs, or nodes that are hidden.
type partition struct {
	Name        string   `json:"name"`
	State       string   `json:"state"`
	Nodes       int      `json:"gpu_nodes"`
	GPUs        []string `json:"gpus_per_node"` // such as 4 × a100
	Cloud       int      `json:"cloud"`         // nodes of state CLOUD
	PowersDown  []string `json:"powers_down"`   // nodes
	StaysUp     []string `json:"stays_up"`
	Dark        int      `json:"without_power"` // now
	Broken      []string `json:"down"`
	Hidden      int      `json:"hidden"` // nodes that Slurm does not show
	SuspendTime *int64   `json:"suspend_time"`
	Tier        string   `json:"priority_tier"`
	PreemptMode string   `json:"preempt_mode"`
	// Beats is how many heartbeats keep one node warm for an hour, and Cost what the
	// node costs in that time; nil is not known.
	Beats *int64          `json:"heartbeats_per_node_hour"`
	Cost  *contract.Money `json:"cost_per_node_hour"`
}

type accounting struct {
	Type    string `json:"type"`
	Answers bool   `json:"answers"`
	Why     string `json:"why,omitempty"` // it does not
	GPUs    bool   `json:"counts_gpus"`
	// Checked says that Slurm lets nobody name an account that is not theirs.
	Checked bool `json:"checks_accounts"`
}

type preemption struct {
	Type string `json:"type"`
	Mode string `json:"mode"`
}

type placement struct {
	Selects    string `json:"select_type"`
	Parameters string `json:"select_type_parameters"`
	Topology   string `json:"topology"`
}

// way is how nodes would be kept warm.
type way struct {
	Name string   `json:"name"` // heartbeats, power_up or none
	Why  []string `json:"why"`
}

// The ways.
const (
	byHeartbeats = "heartbeats"
	byPowerUp    = "power_up"
	byNothing    = "none"
)

// missing is a right or setting that is not there, and the line that mends it.
type missing struct {
	What     string `json:"what"`
	Needed   bool   `json:"needed"` // or only better
	In       string `json:"in"`     // where the line goes: slurm.conf, or a shell
	Line     string `json:"line"`
	Meanings string `json:"means"`
}

func newCheckCommand(a *app.App) *cobra.Command {
	var r reach
	c := &cobra.Command{
		Use: "check", Short: "See how nodes of a Slurm cluster can be kept warm, what is missing, and what it costs",
		Args: flags.NoArgs,
		Long: `Asks a Slurm cluster what it is, and changes nothing: scontrol show, sacctmgr show and sacct, as any user may.
It submits no job, not even as a test. Run it as the user that Forewarm is to run as.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			price, err := r.parsePrice(cmd)
			if err != nil {
				return err
			}
			cluster, err := r.open(a, cmd)
			if err != nil {
				return err
			}
			f, err := readFacts(cmd.Context(), cluster)
			if err != nil {
				return askError(cmd, err)
			}
			got := newCheck(f, prices{given: price, offers: cluster.Offers})
			return output.Text(a, cmd, got.Cluster, got, got.write)
		},
	}
	r.bind(c)
	return c
}

// prices say what a node of a partition costs an hour.
type prices struct {
	given  money.MicroUSD
	offers []app.SlurmOffer
}

// ofNode is the price of a node with so many GPUs: the given one, else that of the
// partition's offers, in the proportion of the GPUs. Offers that differ say nothing.
func (p prices) ofNode(partition string, gpus int) (money.MicroUSD, bool) {
	if p.given > 0 {
		return p.given, true
	}
	found := money.MicroUSD(0)
	for _, o := range p.offers {
		if o.Partition != partition || o.Price == 0 || o.GPUs == 0 {
			continue
		}
		price := o.Price * money.MicroUSD(gpus) / money.MicroUSD(o.GPUs)
		if found != 0 && found != price {
			return 0, false
		}
		found = price
	}
	return found, found > 0
}

func newCheck(f facts, p prices) check {
	c := check{
		Cluster: cmp.Or(f.config.get("ClusterName"), "slurm"), Version: f.version, User: f.user,
		AdminLevel: f.adminOf(), Power: f.power(), PrivateData: f.config.words("PrivateData"),
		Accounting: f.accountingOf(),
		Preemption: preemption{Type: f.config.get("PreemptType"), Mode: f.config.get("PreemptMode")},
		Placement: placement{Selects: f.config.get("SelectType"), Parameters: f.config.get("SelectTypeParameters"),
			Topology: f.config.get("TopologyPlugin")},
	}
	for _, s := range f.partitions {
		if one := f.partitionOf(s, p); one.Nodes+one.Hidden > 0 {
			c.Partitions = append(c.Partitions, one)
		}
	}
	c.Way = c.chooseWay(f)
	c.Missing = c.findMissing(f)
	c.fillLists()
	return c
}

// fillLists makes lists without anything empty ones, as JSON has them.
func (c *check) fillLists() {
	c.Partitions, c.PrivateData, c.Missing = listed(c.Partitions), listed(c.PrivateData), listed(c.Missing)
	c.Way.Why = listed(c.Way.Why)
	for i := range c.Partitions {
		p := &c.Partitions[i]
		for _, list := range []*[]string{&p.GPUs, &p.PowersDown, &p.StaysUp, &p.Broken} {
			*list = listed(*list)
		}
	}
}

func listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// adminOf is the user's level. Slurm's own user and root need none.
func (f facts) adminOf() string {
	owner, _, _ := strings.Cut(f.config.get("SlurmUser"), "(")
	if f.user == "root" || f.user == owner {
		return "administrator"
	}
	switch strings.ToLower(f.adminLevel) {
	case "":
		if cmp.Or(f.config.get("AccountingStorageType"), accountingNone) == accountingNone {
			return "none" // without accounting there are no levels
		}
		return "unknown"
	case "administrator", "admin":
		return "administrator"
	case "operator":
		return "operator"
	default:
		return "none"
	}
}

const accountingNone = "accounting_storage/none"

func (f facts) power() power {
	return power{Saving: f.powerSaving(), SuspendTime: f.secondsOf("SuspendTime"),
		SuspendTimeout: f.secondsOf("SuspendTimeout"), ResumeTimeout: f.secondsOf("ResumeTimeout"),
		ExcludedNodes: f.config.get("SuspendExcNodes"), ExcludedParts: f.config.get("SuspendExcParts")}
}

func (f facts) secondsOf(key string) *int64 {
	if n, finite := f.config.seconds(key); finite {
		return &n
	}
	return nil
}

func (f facts) accountingOf() accounting {
	a := accounting{Type: cmp.Or(f.config.get("AccountingStorageType"), accountingNone), Answers: f.accounting == nil,
		GPUs: slices.Contains(f.config.words("AccountingStorageTRES"), "gres/gpu"), Checked: f.checksAccounts()}
	if f.accounting != nil {
		a.Why = f.accounting.Error()
	}
	return a
}

// checksAccounts reports whether Slurm refuses accounts that a user does not have. All
// that AccountingStorageEnforce can say implies it, but for nojobs and nosteps.
func (f facts) checksAccounts() bool {
	return f.config.get("AccountingStorageType") != "" && f.config.get("AccountingStorageType") != accountingNone &&
		slices.ContainsFunc(f.config.words("AccountingStorageEnforce"), func(word string) bool {
			return slices.Contains([]string{"associations", "limits", "qos", "safe", "wckeys", "all"}, word)
		})
}

// partitionOf describes the GPU nodes of a partition.
func (f facts) partitionOf(s settings, p prices) partition {
	one := partition{Name: s.get("PartitionName"), State: s.get("State"), Hidden: f.hiddenNodes(s),
		Tier: s.get("PriorityTier"), PreemptMode: s.get("PreemptMode")}
	gpus := 0
	for _, n := range f.nodes {
		if n.gpus == 0 || !slices.Contains(n.partitions, one.Name) {
			continue
		}
		one.addNode(f, n)
		gpus = max(gpus, n.gpus)
	}
	if s, finite := f.config.seconds("SuspendTime"); one.SuspendTime == nil && one.Hidden > 0 && finite {
		one.SuspendTime = &s // what is hidden has powered down
	}
	if one.SuspendTime != nil {
		beats := beatsPerHour(*one.SuspendTime)
		one.Beats = &beats
	}
	if price, known := p.ofNode(one.Name, gpus); known && (gpus > 0 || p.given > 0) {
		one.Cost = &contract.Money{Amount: price.Decimal(), Currency: contract.Currency}
	}
	return one
}

func (p *partition) addNode(f facts, n node) {
	p.Nodes++
	if kind := fmt.Sprintf("%d × %s", n.gpus, cmp.Or(n.model, "gpu")); !slices.Contains(p.GPUs, kind) {
		p.GPUs = append(p.GPUs, kind)
	}
	if n.is("cloud") {
		p.Cloud++
	}
	if n.isDark() {
		p.Dark++
	}
	if n.is("down") {
		p.Broken = append(p.Broken, n.name)
	}
	seconds, down := f.suspendTime(n)
	if !down {
		p.StaysUp = append(p.StaysUp, n.name)
		return
	}
	p.PowersDown = append(p.PowersDown, n.name)
	if p.SuspendTime == nil || seconds < *p.SuspendTime {
		p.SuspendTime = &seconds
	}
}

// beatEvery is how often a heartbeat is due, in seconds: in time for two more
// before the node would be powered down.
func beatEvery(suspend int64) int64 { return max(1, suspend/3) }

// beatsPerHour is how many heartbeats keep a node warm for an hour.
func beatsPerHour(suspend int64) int64 { return (3600 + beatEvery(suspend) - 1) / beatEvery(suspend) }
