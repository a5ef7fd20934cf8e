// Package hold gives each allocation that has work on a node a place of its own there: a
// folder, and where the daemon may do that, a user and a cgroup that nobody else has. When
// the hold ends, it clears the place.
package hold

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Hold is what the holder of an allocation may use on this node.
type Hold struct {
	AllocationID string
	GPUUUIDs     []string
	GPUIndices   []int             // in the order of the UUIDs
	Environment  map[string]string // what work needs to find its GPUs and the other nodes
}

// Place is where the work of a hold runs.
type Place struct {
	UID, GID    uint32
	OwnUser     bool     // no other hold has this user, so that it is to be switched to
	Home        string   // a folder of the hold's alone
	Cgroup      string   // the folder of a cgroup v2 for the work; empty: none
	Environment []string // K=V, by name; what it names, a command must not change
}

// How well a node keeps a holder from other holders' GPUs.
const (
	// EnvironmentOnly says that work is told its GPUs, and could use others.
	EnvironmentOnly = "environment"
)

// Keeper keeps the places of a node's holds. It is safe for concurrent use.
type Keeper struct {
	dir string

	mu     sync.Mutex
	places map[string]Place // by allocation
}

// NewKeeper returns a keeper that makes places in a folder, which it makes if it is not there.
func NewKeeper(dir string) (*Keeper, error) {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, fmt.Errorf("making the folder of holds: %w", err)
	}
	return &Keeper{dir: dir, places: map[string]Place{}}, nil
}

// Isolation says how well this node keeps a holder from other holders' GPUs.
func (k *Keeper) Isolation() string { return EnvironmentOnly }

// allocationID is what an id may look like: it becomes the name of a folder.
var allocationID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// Open returns the place of a hold, and makes it if there is none. It may be called again.
func (k *Keeper) Open(h Hold) (Place, error) {
	if !allocationID.MatchString(h.AllocationID) {
		return Place{}, fmt.Errorf("opening a hold: %q is no id of an allocation", h.AllocationID)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if p, ok := k.places[h.AllocationID]; ok {
		p.Environment = environmentOf(h)
		return p, nil
	}
	p := Place{UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), //nolint:gosec // the kernel's are 32 bits
		Home: filepath.Join(k.dir, h.AllocationID), Environment: environmentOf(h)}
	if err := os.MkdirAll(p.Home, 0o700); err != nil {
		return Place{}, fmt.Errorf("opening the hold of allocation %s: %w", h.AllocationID, err)
	}
	k.places[h.AllocationID] = p
	return p, nil
}

// environmentOf is what the work of a hold finds: its GPUs always, by UUID.
func environmentOf(h Hold) []string {
	env := maps.Clone(h.Environment)
	if env == nil {
		env = map[string]string{}
	}
	uuids := strings.Join(h.GPUUUIDs, ",")
	env["CUDA_VISIBLE_DEVICES"], env["NVIDIA_VISIBLE_DEVICES"] = uuids, uuids
	env["FOREWARM_ALLOCATION"] = h.AllocationID
	indices := make([]string, len(h.GPUIndices))
	for i, n := range h.GPUIndices {
		indices[i] = strconv.Itoa(n)
	}
	env["FOREWARM_GPU_INDICES"] = strings.Join(indices, ",")
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}
