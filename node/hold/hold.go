// Package hold gives each allocation that has work on a node a place of its own there: a
// folder, and where the daemon may do that, a user and a cgroup that nobody else has. When
// the hold ends, it ends what runs there, removes what is left, and reads back that
// nothing is.
//
// What is known of holds is in a file, written before anything is done, so that a daemon that
// begins again ends what an earlier one began.
package hold

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/node/container"
	"github.com/forewarm/forewarm/node/launch"
)

// Hold is what the holder of an allocation may use on this node.
type Hold struct {
	AllocationID string
	GPUUUIDs     []string
	GPUIndices   []int             // in the order of the UUIDs
	Shares       Shares            // of those GPUs
	Environment  map[string]string // what work needs to find its GPUs and the other nodes
	Containers   bool              // it may have some
	Lease        time.Duration     // until it is over; 0: that is not known
}

// Place is where the work of a hold runs.
type Place struct {
	UID, GID    uint32
	OwnUser     bool     // no other hold has this user, so that it is to be switched to
	Home        string   // a folder of the hold's alone
	Cgroup      string   // the folder of a cgroup v2 for the work; empty: none
	JobCgroups  string   // in which each job gets one that counts its memory; empty: none does
	Environment []string // K=V, by name; what it names, a command must not change
	Mark        string   // the one of these by which its processes are found
	Launcher    launch.Launcher
	Alone       bool `json:"-"` // whoever starts its work does nothing else: see launch.Launcher.StartAlone
}

// Config is what a keeper works with.
type Config struct {
	Dir   string // of the places; others pass through it, and cannot list it
	Book  string // the file with what is known of holds
	Clock clock.Clock
	// BootID names this boot of the machine, and Booted is when that was by the Clock.
	BootID string
	Booted time.Time
	Log    *slog.Logger
	Grace  time.Duration // after TERM, until KILL; 0: ten seconds
	// Launcher starts what runs as the user of a hold.
	Launcher launch.Launcher
	Bounds   Bounds
	// Containers is what runs containers here, as far as it is there.
	Containers container.Config
	// Metadata lets work ask the cloud's services that tell a machine about itself.
	Metadata bool
	// Cleaner cleans the GPUs of holds that have ended; nil: nothing is done on them.
	Cleaner GPUCleaner
}

// GPUCleaner cleans GPUs that nothing uses any more of whoever had them.
type GPUCleaner interface {
	// Clean says what was done. The error says that they are not clean. It may take a minute.
	Clean(ctx context.Context, uuids []string) (said string, err error)
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

	filters   bool // GPUs that are not a hold's can be kept from it
	metadata  metadataFilter
	runtime   container.Runtime
	bounds    bounds
	machine   machine
	unbounded string // why memory and processors of holds are not bounded; empty: they are

	mu     sync.Mutex
	looked bool
	book   book
	over   overList
	gpus   map[string]int             // memory in use of each GPU at the last look, in MiB
	opens  map[string]deviceNumbers   // what is to be opened of each GPU
	count  int                        // of the GPUs, the most that were seen
	begins map[string]*sync.WaitGroup // of each hold: what is being started there
	ends   map[string]chan struct{}   // of holds that EndNow ends: closed once nothing is left of them
	told   map[string]bool            // of which Cleaned has told
	again  map[string]bool            // of holds that are ending: they are to look once more, see hasLeft
	leases leases
	due    []due               // to be cleared
	scrubs map[string][]string // by hold that has ended: its GPUs, while they are cleaned
	// clearing says that somebody looks after what is due.
	clearing bool
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
		opens: map[string]deviceNumbers{}, begins: map[string]*sync.WaitGroup{},
		ends: map[string]chan struct{}{}, told: map[string]bool{}, scrubs: map[string][]string{}, again: map[string]bool{},
		leases: leases{cfg.BootID, cfg.Booted, map[string]time.Time{}}}
	if k.bounds, err = cfg.Bounds.parse(); err != nil {
		return nil, err
	}
	if k.book, k.over, err = readBooks(cfg.Book, cfg.Clock.Now()); err != nil {
		return nil, err
	}
	k.leases.resume(k.book, k.Clock.Now())
	if k.ownUsers = canSwitchUser(cfg.Dir); k.ownUsers {
		if err := boundWork(); err != nil {
			return nil, fmt.Errorf("bounding the work of holds: %w", err)
		}
	}
	if k.cgroups, err = k.findCgroups(); err != nil {
		k.unbounded = clip(err.Error())
	}
	if k.runtime, err = container.Find(cfg.Containers, k.ownUsers); err != nil {
		return nil, fmt.Errorf("looking for what runs containers: %w", err)
	}
	k.filters = k.ownUsers && k.cgroups != "" && canFilter(k.cgroups, cfg.Dir)
	k.metadata.Filter, k.metadata.missing = filterMetadata(k.cgroups)
	if k.metadata.missing != nil && !cfg.Metadata {
		cfg.Log.Warn("holders' work reaches the cloud's metadata, and with it what the machine's role may do",
			"why", k.metadata.missing)
	}
	return k, nil
}

// readBooks reads what is known of holds, and which of them are over.
func readBooks(path string, now time.Time) (b book, over overList, err error) {
	if b, err = readBook(path); err != nil {
		return b, over, err
	}
	if over, err = readOver(path+".over", now); err != nil || len(b.Over) == 0 {
		return b, over, err
	}
	maps.Copy(over.at, b.Over)
	b.Over = nil
	return b, over, over.rewrite(now)
}

// Looked reports whether the GPUs have been looked at: before, nobody knows which devices a
// hold may open.
func (k *Keeper) Looked() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.looked
}

// Runtime is what runs containers here; the zero value: nothing does.
func (k *Keeper) Runtime() container.Runtime { return k.runtime }

// Unbounded says why the memory and the processors of a holder's work are not bounded; empty: they are.
func (k *Keeper) Unbounded() string { return k.unbounded }

// IsName reports whether an id of the control plane may become the name of a folder: up to 64 letters, digits, hyphens
// and underscores, the first of them a letter or a digit. It is no regular expression, as launchers, which start with
// each command, would compile that.
func IsName(id string) bool {
	for i := range len(id) {
		c := id[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && (i == 0 || c != '_' && c != '-') {
			return false
		}
	}
	return len(id) > 0 && len(id) <= 64
}

// ErrEnded says that a hold has ended here, and is not opened again.
var ErrEnded = errors.New("the allocation has ended on this node")

// Open returns the place of a hold, and makes it if there is none. It may be called again.
func (k *Keeper) Open(h Hold) (Place, error) {
	if !IsName(h.AllocationID) {
		return Place{}, fmt.Errorf("opening a hold: %q is no id of an allocation", h.AllocationID)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	r, ok := k.book.Holds[h.AllocationID]
	if k.over.has(h.AllocationID) || ok && r.Phase != open {
		return Place{}, fmt.Errorf("opening the hold of allocation %s: %w", h.AllocationID, ErrEnded)
	}
	if !ok {
		r = &record{Phase: open, GPUs: h.GPUUUIDs, Indices: h.GPUIndices, OpenedAt: k.Clock.Now(), Floor: map[string]int{},
			SharesGPUs: h.Shares.areParts(),
			UID:        uint32(os.Getuid()), GID: uint32(os.Getgid()), //nolint:gosec // the kernel's are 32 bits
			Home: filepath.Join(k.Dir, h.AllocationID)}
		for _, uuid := range h.GPUUUIDs {
			if used, ok := k.book.floorOf(uuid, k.gpus); ok {
				r.Floor[uuid] = used
			}
		}
		if k.ownUsers {
			r.UID, r.OwnUser = k.book.takeUser(), true
			r.GID = r.UID
		}
		if k.cgroups != "" {
			r.Cgroup = cgroupOf(k.cgroups, h.AllocationID, r.UID)
			if k.unbounded == "" {
				of := k.bounds.share(k.machine, h.Shares.orWhole(len(h.GPUUUIDs)), k.count)
				r.Share = &of
			}
		}
		k.findDevices(r)
		r.NoMetadata = r.Cgroup != "" && !k.Metadata && k.metadata.missing == nil
		k.book.Holds[h.AllocationID] = r
		if h.Lease > 0 {
			k.leases.keep(h.AllocationID, r, r.OpenedAt.Add(h.Lease))
		}
		if err := k.book.write(k.Book); err != nil {
			delete(k.leases.ends, h.AllocationID)
			delete(k.book.Holds, h.AllocationID)
			return Place{}, fmt.Errorf("opening the hold of allocation %s: %w", h.AllocationID, err)
		}
	}
	if h.Containers && r.Containers == nil && k.runtime.Name != "" {
		found := k.runtime
		r.Containers = &found
		if err := k.book.write(k.Book); err != nil {
			r.Containers = nil
			return Place{}, fmt.Errorf("opening the hold of allocation %s: %w", h.AllocationID, err)
		}
	}
	if err := r.make(k.metadata); err != nil {
		return Place{}, fmt.Errorf("opening the hold of allocation %s: %w", h.AllocationID, err)
	}
	p := Place{UID: r.UID, GID: r.GID, OwnUser: r.OwnUser, Home: r.Home, Cgroup: r.Cgroup,
		Environment: environmentOf(h, r), Mark: markOf(h.AllocationID), Launcher: k.Launcher}
	if r.Share != nil {
		p.Cgroup, p.JobCgroups = filepath.Join(r.Cgroup, sessionsLeaf), r.Cgroup
	}
	return p, nil
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

// cgroupOf is where the cgroup of a hold is, in the folder of all.
func cgroupOf(all, allocationID string, user uint32) string {
	return filepath.Join(all, fmt.Sprintf("%s-%d", allocationID, user))
}

// make makes the folder and the cgroup of a place, where they are missing.
func (r *record) make(metadata metadataFilter) error {
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
	made := err == nil
	if errors.Is(err, os.ErrExist) {
		err = nil
	}
	if err == nil { // a daemon that ended in between has made one without filters
		if err = r.filter(metadata); err != nil && made {
			err = errors.Join(err, os.Remove(r.Cgroup))
		}
	}
	if err == nil && r.Share != nil {
		err = r.Share.bind(r.Cgroup)
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

// GPUs returns the GPUs of all holds that are known, also of those that have ended.
func (k *Keeper) GPUs() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []string
	for _, r := range k.book.Holds {
		all = append(all, r.GPUs...)
	}
	return all
}

// Taken returns the GPUs of holds that somebody has, or of which it is not proved yet that nothing is left on them.
func (k *Keeper) Taken() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []string
	for _, r := range k.book.Holds {
		if r.Phase != ended || r.Problem != "" {
			all = append(all, r.GPUs...)
		}
	}
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
func environmentOf(h Hold, r *record) []string {
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
	env["FOREWARM_GPU_INDICES"], env["FOREWARM_ISOLATION"] = strings.Join(indices, ","), r.isolation()
	if r.Share != nil {
		r.Share.environment(env)
	}
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}

// markVariable marks the processes of a hold where it has no user and no cgroup of its own.
const markVariable = "FOREWARM_ALLOCATION"

func markOf(allocationID string) string { return markVariable + "=" + allocationID }
