package access

import (
	"strconv"
	"strings"
)

// Ports of rendezvous: the one of an allocation is in [FirstPort, FirstPort+Ports),
// below the ports that Linux gives to outgoing connections.
const (
	FirstPort = 20_000
	Ports     = 10_000
)

// Seat is one node of an allocation, as the work on it sees itself.
type Seat struct {
	Allocation string
	Kind       Kind
	Rank       int      // of the node, from 0
	Nodes      int      // in all
	GPUs       int      // in all
	UUIDs      []string // of the GPUs here
	Indices    []int    // of the same GPUs, in the same order
	Master     string   // the host of rank 0; empty where nobody knows it
	Simulated  bool     // its GPUs are not real
	// SharesPerGPU, where it is more than 1, is how many holders a GPU may have; Shares is how many of those are this
	// one's here, and ShareMemory what each is meant to use of the GPU's memory, in MiB.
	SharesPerGPU, Shares, ShareMemory int
}

// Environment is what work needs to find its own GPUs and the other nodes, by the names
// that CUDA, NVIDIA's container runtime, torchrun and launchers like it read.
func (s Seat) Environment() map[string]string {
	env := map[string]string{
		"FOREWARM_ALLOCATION": s.Allocation,
		"NODE_RANK":           strconv.Itoa(s.Rank),
		"NNODES":              strconv.Itoa(s.Nodes),
		"NPROC_PER_NODE":      strconv.Itoa(len(s.UUIDs)),
		"WORLD_SIZE":          strconv.Itoa(s.GPUs),
		"MASTER_PORT":         strconv.Itoa(Port(s.Allocation)),
	}
	if devices := s.devices(); devices != "" {
		env["CUDA_VISIBLE_DEVICES"], env["NVIDIA_VISIBLE_DEVICES"] = devices, devices
	}
	if s.SharesPerGPU > 1 {
		env["FOREWARM_GPU_SHARES"], env["FOREWARM_SHARES_PER_GPU"] = strconv.Itoa(s.Shares), strconv.Itoa(s.SharesPerGPU)
		env["FOREWARM_SHARE_MEMORY_MIB"] = strconv.Itoa(s.ShareMemory)
	}
	switch {
	case s.Nodes == 1:
		env["MASTER_ADDR"] = "127.0.0.1"
	case s.Master != "":
		env["MASTER_ADDR"] = s.Master
	}
	return env
}

// devices names the GPUs: by UUID, which means the same in every cgroup and container.
// Where nobody has asked the driver for UUIDs they are made up, and CUDA would find
// nothing under them: the indices stand in, but not in a job of Slurm, which counts its
// own devices from 0 and names them itself.
func (s Seat) devices() string {
	if s.Simulated || allReal(s.UUIDs) {
		return strings.Join(s.UUIDs, ",")
	}
	if s.Kind == Slurm {
		return ""
	}
	texts := make([]string, len(s.Indices))
	for i, n := range s.Indices {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ",")
}

// allReal reports whether all are UUIDs as NVIDIA's driver writes them.
func allReal(uuids []string) bool {
	for _, u := range uuids {
		if !isRealUUID(u) {
			return false
		}
	}
	return len(uuids) > 0
}

func isRealUUID(u string) bool {
	rest, isGPU := strings.CutPrefix(u, "GPU-")
	if !isGPU {
		rest, isGPU = strings.CutPrefix(u, "MIG-")
	}
	parts := strings.Split(rest, "-")
	if !isGPU || len(parts) != 5 {
		return false
	}
	for i, length := range []int{8, 4, 4, 4, 12} {
		if len(parts[i]) != length || !consistsOf(parts[i], isHex) {
			return false
		}
	}
	return true
}

func isHex(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

// Port is the port at which the nodes of an allocation meet. It follows from the id
// alone, so that all nodes know it and two allocations seldom share one.
func Port(allocation string) int {
	const offset, prime = 2166136261, 16777619 // FNV-1a
	h := uint32(offset)
	for i := range len(allocation) {
		h = (h ^ uint32(allocation[i])) * prime
	}
	return FirstPort + int(h%Ports)
}
