package contract

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Access is how the holder of an allocation gets to its GPUs. It is a secret of the
// holder: events and lists do not contain it.
type Access struct {
	Policy string       `json:"policy" enum:"shell,devices"`
	Nodes  []NodeAccess `json:"nodes" nullable:"false" doc:"By rank."`
}

// NodeAccess is one node of an allocation, as its holder uses it. Where the pool's
// policy is devices, only the node's id, its rank, its devices and its environment are
// there.
type NodeAccess struct {
	NodeID      string            `json:"node_id"`
	Rank        int               `json:"rank" doc:"From 0; the order stays while the allocation lasts."`
	Kind        string            `json:"kind,omitempty" enum:"ssh,slurm,kubernetes,local,sim"`
	Address     string            `json:"address,omitempty" doc:"Its host."`
	Port        int               `json:"port,omitempty" doc:"Of ssh; left out: ssh's own default."`
	User        string            `json:"user,omitempty" doc:"Of ssh; left out: ssh's own default."`
	Way         string            `json:"way,omitempty"`
	GPUIndices  []int             `json:"gpu_indices" nullable:"false" doc:"In the order of the UUIDs."`
	GPUUUIDs    []string          `json:"gpu_uuids" nullable:"false"`
	Shares      *GPUShares        `json:"shares,omitempty" doc:"Left out: it has its GPUs alone."`
	Shell       string            `json:"shell,omitempty" doc:"A line that opens a shell there."`
	Command     []string          `json:"command,omitempty" nullable:"false"`
	Environment map[string]string `json:"environment"`
	Simulated   bool              `json:"simulated,omitempty" doc:"Its GPUs are not real."`
	Daemon      string            `json:"daemon,omitempty" enum:"online,silent"`
	Isolation   string            `json:"isolation,omitempty" enum:"devices,user,environment"`
	Barred      bool              `json:"barred,omitempty"`
}

// GPUShares is what a holder has of GPUs that it shares with others.
type GPUShares struct {
	Held      int `json:"held" doc:"On this node."`
	PerGPU    int `json:"per_gpu" doc:"Of one GPU, with those of others."`
	MemoryMiB int `json:"memory_mib" doc:"Of a GPU, for one share: nothing keeps its holder from taking more."`
}

// TakesSessions reports whether commands can be run on the node through its daemon.
func (n NodeAccess) TakesSessions() bool {
	return n.Daemon == DaemonOnline && n.Isolation != "" && !n.Barred
}

// The policies of access of a pool.
const (
	AccessShell   = "shell"
	AccessDevices = "devices"
)

// The kinds of way into a node.
const (
	WaySSH        = "ssh"
	WaySlurm      = "slurm"
	WayKubernetes = "kubernetes"
	WayLocal      = "local"
	WaySimulated  = "sim"
)

// accessTags are the rests of tags that are too long for their lines.
var accessTags = tags{
	"Access.Policy": `doc:"Of the pool. shell: nodes are named with a way in; devices: only the indices and UUIDs of ` +
		`the GPUs."`,
	"NodeAccess.Daemon": `doc:"Whether the node's daemon reports. Commands can be run through one that is online and ` +
		`has an isolation. Left out ` +
		`where none ever called home, and where the pool's policy is devices."`,
	"NodeAccess.Isolation": isolationTag,
	"NodeAccess.Barred": `doc:"Another organization's work is there, and the node would not keep yours apart from it as ` +
		`well as its pool asks: nothing of yours begins there before that has ended."`,
	"NodeAccess.Kind": `doc:"How it is entered. local: it is the machine of the server; sim: it is simulated, and ` +
		`nothing can be entered. Left out where no way in is known."`,
	"NodeAccess.Way": `doc:"All of the way in as one URI, such as ssh://ubuntu@10.0.0.7 or slurm://c1?job=42."`,
	"NodeAccess.Command": `doc:"The words that a command is put after, to run it there. Behind ssh a shell reads ` +
		`the command; the other ways hand it on as it is. Left out where there is no way in."`,
	"NodeAccess.Environment": `doc:"What work there needs to find its GPUs and the other nodes: CUDA_VISIBLE_DEVICES, ` +
		`NVIDIA_VISIBLE_DEVICES, FOREWARM_ALLOCATION, NODE_RANK, NNODES, NPROC_PER_NODE (GPUs here), WORLD_SIZE (GPUs ` +
		`in all), MASTER_ADDR (where known) and MASTER_PORT (20000 to 29999, by the allocation)."`,
}

// Environ is the environment of the node of a rank, as K=V by name, ready to follow
// os.Environ in the Env of an exec.Cmd. It is nil where the allocation has no such
// node, or was read without its access.
func (a Allocation) Environ(rank int) []string {
	if a.Access == nil || rank < 0 || rank >= len(a.Access.Nodes) {
		return nil
	}
	env := a.Access.Nodes[rank].Environment
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}

// environment are the variables that an allocation sets.
var environment = []string{"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "FOREWARM_ALLOCATION", "NODE_RANK",
	"NNODES", "NPROC_PER_NODE", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
	"FOREWARM_GPU_SHARES", "FOREWARM_SHARES_PER_GPU", "FOREWARM_SHARE_MEMORY_MIB"}

// CheckEnvironment refuses an environment with which a server would run something of its own
// where it is used: PATH, for one, would decide what runs.
func (n NodeAccess) CheckEnvironment() error {
	for _, name := range slices.Sorted(maps.Keys(n.Environment)) {
		if !slices.Contains(environment, name) || strings.ContainsAny(n.Environment[name], "\x00\n\r") {
			return fmt.Errorf("the server sent a variable that allocations do not set: %q", name)
		}
	}
	return nil
}
