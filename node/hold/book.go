package hold

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/internal/statefile"
	"github.com/forewarm/forewarm/node/container"
)

// The phases of a hold.
const (
	open    = "open"
	ending  = "ending"  // what runs is being ended, and what is left removed
	cleared = "cleared" // its GPUs have yet to be read back
	ended   = "ended"   // with a proof, or a problem
)

// record is what is known of a hold.
type record struct {
	Phase   string `json:"phase"`
	UID     uint32 `json:"uid"`
	GID     uint32 `json:"gid"`
	OwnUser bool   `json:"own_user,omitempty"`
	Home    string `json:"home"`
	Cgroup  string `json:"cgroup,omitempty"`
	Minors  []int  `json:"minors,omitempty"` // of its GPUs: N of /dev/nvidiaN
	// Capabilities are N of the /dev/nvidia-caps/nvidia-capN of its MIG devices.
	Capabilities []int          `json:"capabilities,omitempty"`
	Filtered     bool           `json:"filtered,omitempty"`    // its cgroup opens no GPUs but those
	NoMetadata   bool           `json:"no_metadata,omitempty"` // its cgroup does not reach the cloud's metadata
	Share        *share         `json:"share,omitempty"`       // nil: its memory and processors are not bounded
	GPUs         []string       `json:"gpus"`                  // UUIDs
	Indices      []int          `json:"indices,omitempty"`     // of the GPUs on the node, in that order
	Floor        map[string]int `json:"floor,omitempty"`       // memory of the GPUs that was in use before it, in MiB
	// Done says that what it was for has ended by itself: what is left of that has no time to end.
	Done bool `json:"done,omitempty"`
	// Lease is until when it may be here; nil: that is not known.
	Lease *lease `json:"lease,omitempty"`
	// Lapsed says that the node ended it by itself, as its lease was over.
	Lapsed bool `json:"lapsed,omitempty"`
	// SharesGPUs says that others may be on its GPUs at the same time.
	SharesGPUs bool `json:"shares_gpus,omitempty"`
	// Containers is what runs its containers; nil: it has none.
	Containers *container.Runtime `json:"containers,omitempty"`
	OpenedAt   time.Time          `json:"opened_at"`
	Cleared    time.Time          `json:"cleared_at,omitzero"`
	// Scrubbed says that what it left on its GPUs is cleaned.
	Scrubbed bool   `json:"scrubbed,omitempty"`
	Problem  string `json:"problem,omitempty"`
	Proof    string `json:"proof,omitempty"`
}

// book is the file with what is known of holds, as its journal continues it.
type book struct {
	// Number is one more each time that the book is written, as its journal says which one it continues.
	Number    int64              `json:"number,omitempty"`
	FirstUser uint32             `json:"first_user"` // that it handed out, or would
	NextUser  uint32             `json:"next_user"`
	Holds     map[string]*record `json:"holds"` // by allocation
	// Over is where an earlier version kept its overList.
	Over map[string]time.Time `json:"over,omitempty"`

	journal journal
}

// Users of holds are numbers that no system hands out, and none is used twice as long as the
// book is there.
const (
	firstUser = httpx.FirstHolder
	lastUser  = httpx.LastHolder + 1
)

// isHolder reports whether a user is of those for holds, of this daemon's or of another one's on the machine.
func isHolder(uid uint32) bool { return uid >= firstUser && uid < lastUser }

// readBook reads the book, or begins one. The first user is chosen by chance, so that neither an
// earlier book that was lost nor another daemon of the machine has the same.
func readBook(path string) (book, error) {
	var b book
	if _, err := statefile.ReadKnown(path, &b); err != nil {
		return b, err
	}
	if b.Holds == nil {
		b.Holds = map[string]*record{}
	}
	if err := b.applyJournal(path); err != nil {
		return b, err
	}
	if !isHolder(b.NextUser) {
		b.NextUser = firstUser + rand.Uint32N(lastUser-firstUser) //nolint:gosec // it is no secret
	}
	if b.FirstUser == 0 { // nobody has had one, or the book is from before it was written down
		b.FirstUser = b.NextUser
		for _, r := range b.Holds {
			if isHolder(r.UID) {
				b.FirstUser = min(b.FirstUser, r.UID)
			}
		}
	}
	return b, nil
}

// CheckBook reports why this program cannot go on with what a book says of holds.
func CheckBook(path string) error {
	_, err := readBook(path)
	return err
}

// handedOut reports whether a user was taken from the book.
func (b *book) handedOut(uid uint32) bool {
	const all = lastUser - firstUser // it begins anew after the last one
	return isHolder(uid) && (uid+all-b.FirstUser)%all < (b.NextUser+all-b.FirstUser)%all
}

func (b *book) takeUser() uint32 {
	uid := b.NextUser
	if b.NextUser++; b.NextUser >= lastUser {
		b.NextUser = firstUser
	}
	return uid
}

// canSwitchUser reports whether the daemon may give folders and processes other users.
func canSwitchUser(dir string) bool {
	if os.Getuid() != 0 || !hasCapabilities(capChown, capKill, capSetGID, capSetUID) {
		return false
	}
	probe, err := os.MkdirTemp(dir, "probe-")
	if err != nil {
		return false
	}
	defer func() { _ = os.Remove(probe) }()
	return os.Chown(probe, firstUser, firstUser) == nil // in a user namespace it may have no such user
}

// Capabilities by their numbers (capabilities(7)).
const (
	capChown  = 0
	capKill   = 5
	capSetGID = 6
	capSetUID = 7
)

func hasCapabilities(all ...int) bool {
	status, err := os.Open("/proc/self/status")
	if err != nil {
		return false
	}
	defer func() { _ = status.Close() }()
	for lines := bufio.NewScanner(status); lines.Scan(); {
		text, ok := strings.CutPrefix(lines.Text(), "CapEff:")
		if !ok {
			continue
		}
		effective, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
		for _, c := range all {
			if err != nil || effective&(1<<c) == 0 {
				return false
			}
		}
		return true
	}
	return false
}

// findCgroups returns the folder in which the daemon can make cgroups, or nothing. Where the error is
// not nil, memory and processors of holds are not bounded there, and it says why.
func (k *Keeper) findCgroups() (dir string, unbounded error) {
	mount := cgroupMount()
	if mount == "" || os.Getuid() != 0 {
		return "", errors.New("the daemon is not root, or the machine has no cgroup v2")
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(own)) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok || strings.Contains(path, "..") {
			continue
		}
		if dir, k.machine, unbounded = k.bounds.bindAll(mount, path); unbounded == nil {
			return dir, nil
		}
		dir := filepath.Join(mount, path, holdsFolder)
		if os.MkdirAll(dir, 0o755) == nil { //nolint:gosec // the kernel's files there have modes of their own
			if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil {
				return dir, unbounded
			}
		}
	}
	return "", errors.Join(unbounded, errors.New("no cgroup can be made"))
}

// cgroupMount is where the cgroups of version 2 are.
func cgroupMount() string {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup2" {
			return f[1]
		}
	}
	return ""
}

// describe is a place in the log.
func (r *record) describe() string {
	return fmt.Sprintf("user %d, %s", r.UID, r.Home)
}
