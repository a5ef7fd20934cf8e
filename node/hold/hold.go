// Package hold gives each allocation that has work on a node a place of its own there: a
// folder, and where the daemon may do that, a user and a cgroup that nobody else has. When
// the hold ends, it ends what runs there, removes what is left, and reads back that
// nothing is.
//
// What is known of holds is in a file, written before anything is done, so that a daemon that
// begins again ends what an earlier one began.
package hold

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/node/devicefilter"
	"github.com/forewarm/forewarm/node/launch"
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
	Mark        string   // the one of these by which its processes are found
	Launcher    launch.Launcher
}

// How well a node keeps a holder from others' work.
const (
	// OwnDevices says that it is as with OwnUser, and that the work of a holder can open no
	// GPU but its own.
	OwnDevices = "devices"
	// OwnUser says that the work of each holder has a user of its own: it cannot touch the
	// files and processes of others. It is told its GPUs, and could use others.
	OwnUser = "user"
	// EnvironmentOnly says that the work of all holders has the daemon's user, and is told
	// its GPUs: for people who trust each other.
	EnvironmentOnly = "environment"
)

// Config is what a keeper works with.
type Config struct {
	Dir   string // of the places; others pass through it, and cannot list it
	Book  string // the file with what is known of holds
	Clock clock.Clock
	Log   *slog.Logger
	Grace time.Duration // after TERM, until KILL; 0: ten seconds
	// Launcher starts what runs as the user of a hold.
	Launcher launch.Launcher
}

// grace is how long work has to end by itself.
const grace = 10 * time.Second

// Keeper keeps the places of a node's holds. It is safe for concurrent use.
type Keeper struct {
	Config
	ownUsers bool
	cgroups  string // the folder in which cgroups are made; empty: none are
	changed  chan struct{}
	work     sync.WaitGroup

	filters bool // GPUs that are not a hold's can be kept from it

	mu     sync.Mutex
	looked bool
	book   book
	gpus   map[string]int             // memory in use of each GPU at the last look, in MiB
	minors map[string]int             // of each GPU: N of /dev/nvidiaN
	begins map[string]*sync.WaitGroup // of each hold: what is being started there
}

// NewKeeper returns a keeper of what the book says, and finds out how well it can keep
// holders apart.
func NewKeeper(cfg Config) (*Keeper, error) {
	if cfg.Grace == 0 {
		cfg.Grace = grace
	}
	err := os.MkdirAll(cfg.Dir, 0o711) //nolint:gosec // holders have to get to their own folders
	if err == nil {
		err = os.Chmod(cfg.Dir, 0o711) //nolint:gosec // as above
	}
	if err != nil {
		return nil, fmt.Errorf("making the folder of holds: %w", err)
	}
	k := &Keeper{Config: cfg, changed: make(chan struct{}, 1), gpus: map[string]int{},
		minors: map[string]int{}, begins: map[string]*sync.WaitGroup{}}
	if k.book, err = readBook(cfg.Book); err != nil {
		return nil, err
	}
	if k.ownUsers = canSwitchUser(cfg.Dir); k.ownUsers {
		if err := boundProcesses(); err != nil {
			return nil, fmt.Errorf("bounding the processes of holds: %w", err)
		}
	}
	k.cgroups = findCgroups()
	k.filters = k.ownUsers && k.cgroups != "" && canFilter(k.cgroups, cfg.Dir)
	return k, nil
}

// Looked reports whether the GPUs have been looked at: before, nobody knows which devices a
// hold may open.
func (k *Keeper) Looked() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.looked
}

// Isolation says how well this node keeps a holder from others' work.
func (k *Keeper) Isolation() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.filters && len(k.minors) > 0:
		return OwnDevices
	case k.ownUsers:
		return OwnUser
	}
	return EnvironmentOnly
}

// isolation says how well a hold is kept from others.
func (r *record) isolation() string {
	switch {
	case r.Filtered:
		return OwnDevices
	case r.OwnUser:
		return OwnUser
	}
	return EnvironmentOnly
}

// allocationID is what an id may look like: it becomes the name of a folder.
var allocationID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// ErrEnded says that a hold has ended here, and is not opened again.
var ErrEnded = errors.New("the allocation has ended on this node")

// Open returns the place of a hold, and makes it if there is none. It may be called again.
func (k *Keeper) Open(h Hold) (Place, error) {
	if !allocationID.MatchString(h.AllocationID) {
		return Place{}, fmt.Errorf("opening a hold: %q is no id of an allocation", h.AllocationID)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	r, ok := k.book.Holds[h.AllocationID]
	if _, over := k.book.Over[h.AllocationID]; over || ok && r.Phase != open {
		return Place{}, fmt.Errorf("opening the hold of allocation %s: %w", h.AllocationID, ErrEnded)
	}
	if !ok {
		r = &record{Phase: open, GPUs: h.GPUUUIDs, OpenedAt: k.Clock.Now(), Floor: map[string]int{},
			UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), //nolint:gosec // the kernel's are 32 bits
			Home: filepath.Join(k.Dir, h.AllocationID)}
		for _, uuid := range h.GPUUUIDs {
			if used, ok := k.gpus[uuid]; ok {
				r.Floor[uuid] = used
			}
		}
		if k.ownUsers {
			r.UID, r.OwnUser = k.book.takeUser(), true
			r.GID = r.UID
		}
		if k.cgroups != "" {
			r.Cgroup = k.cgroupOf(h.AllocationID, r.UID)
		}
		r.Minors, r.Filtered = k.minorsOf(h.GPUUUIDs)
		k.book.Holds[h.AllocationID] = r
		if err := k.book.write(k.Book); err != nil {
			delete(k.book.Holds, h.AllocationID)
			return Place{}, fmt.Errorf("opening the hold of allocation %s: %w", h.AllocationID, err)
		}
	}
	if err := r.make(); err != nil {
		return Place{}, fmt.Errorf("opening the hold of allocation %s: %w", h.AllocationID, err)
	}
	return Place{UID: r.UID, GID: r.GID, OwnUser: r.OwnUser, Home: r.Home, Cgroup: r.Cgroup,
		Environment: environmentOf(h, r.isolation()), Mark: markOf(h.AllocationID), Launcher: k.Launcher}, nil
}

// Begin has an end of the hold wait until began is called, so that what is started in its
// place in between is ended with it. ErrEnded says that nothing may be started there.
func (k *Keeper) Begin(allocationID string) (began func(), err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r, ok := k.book.Holds[allocationID]; !ok || r.Phase != open {
		return nil, fmt.Errorf("starting work of allocation %s: %w", allocationID, ErrEnded)
	}
	all := k.begins[allocationID]
	if all == nil {
		all = &sync.WaitGroup{}
		k.begins[allocationID] = all
	}
	all.Add(1)
	return all.Done, nil
}

// cgroupOf is where the cgroup of a hold is.
func (k *Keeper) cgroupOf(allocationID string, user uint32) string {
	return filepath.Join(k.cgroups, fmt.Sprintf("%s-%d", allocationID, user))
}

// minorsOf are the numbers of GPUs, if they can be kept from others' work: all are known, and
// the kernel can filter.
func (k *Keeper) minorsOf(uuids []string) (minors []int, ok bool) {
	for _, uuid := range uuids {
		minor, known := k.minors[uuid]
		if !known {
			return nil, false
		}
		minors = append(minors, minor)
	}
	return minors, k.filters && len(minors) > 0
}

// make makes the folder and the cgroup of a place, where they are missing.
func (r *record) make() error {
	if err := os.Mkdir(r.Home, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if r.OwnUser {
		if err := os.Chown(r.Home, int(r.UID), int(r.GID)); err != nil {
			return err
		}
	}
	if r.Cgroup == "" {
		return nil
	}
	err := os.Mkdir(r.Cgroup, 0o755) //nolint:gosec // the kernel's files there have modes of their own
	switch {
	case errors.Is(err, os.ErrExist):
		return nil // with its filter, if it is to have one
	case err == nil && r.Filtered:
		if err = devicefilter.Attach(r.Cgroup, r.Minors); err != nil {
			err = errors.Join(err, os.Remove(r.Cgroup))
		}
	}
	return err
}

// List returns the allocations that have a place here.
func (k *Keeper) List() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []string
	for id, r := range k.book.Holds {
		if r.Phase == open {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return all
}

// Changed receives when there is something to tell of holds.
func (k *Keeper) Changed() <-chan struct{} { return k.changed }

func (k *Keeper) tell() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// environmentOf is what the work of a hold finds: its GPUs always, by UUID.
func environmentOf(h Hold, isolation string) []string {
	env := maps.Clone(h.Environment)
	if env == nil {
		env = map[string]string{}
	}
	uuids := strings.Join(h.GPUUUIDs, ",")
	env["CUDA_VISIBLE_DEVICES"], env["NVIDIA_VISIBLE_DEVICES"] = uuids, uuids
	env[markVariable] = h.AllocationID
	indices := make([]string, len(h.GPUIndices))
	for i, n := range h.GPUIndices {
		indices[i] = strconv.Itoa(n)
	}
	env["FOREWARM_GPU_INDICES"], env["FOREWARM_ISOLATION"] = strings.Join(indices, ","), isolation
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}

// markVariable marks the processes of a hold where it has no user and no cgroup of its own.
const markVariable = "FOREWARM_ALLOCATION"

func markOf(allocationID string) string { return markVariable + "=" + allocationID }
