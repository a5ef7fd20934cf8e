package hold

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// The words of a bound, beside an amount for each GPU.
const (
	ByShare   = "share"  // as much as its GPUs are of the node's
	ByWeight  = "weight" // processors: by its share, and more while nobody else wants it
	Unbounded = "none"
)

// Bounds are how much of a machine's memory and processors the work of a hold may have.
type Bounds struct {
	Memory  string // ByShare, Unbounded, or a size for each GPU, such as 100GiB; empty: ByShare
	CPUs    string // ByWeight, ByShare, Unbounded, or a number for each GPU; empty: ByWeight
	Reserve string // memory that no hold gets, as a size; empty: a twentieth, between 512 MiB and 16 GiB
}

// Check reports what is wrong with the bounds.
func (b Bounds) Check() error {
	_, err := b.parse()
	return err
}

// bound is an amount for each GPU, or by the share where it is 0.
type bound struct {
	none, weighted bool
	each           float64
}

// bounds are Bounds as numbers.
type bounds struct {
	memory, cpus bound
	reserve      int64 // less than 0: the usual
}

func (b Bounds) parse() (out bounds, err error) {
	out.reserve = -1
	switch b.Memory {
	case "", ByShare:
	case Unbounded:
		out.memory.none = true
	default:
		n, err := parseSize(b.Memory)
		if err != nil || n == 0 {
			return out, fmt.Errorf("hold_memory: %q: must be share, none or a size for each GPU, such as 100GiB", b.Memory)
		}
		out.memory.each = float64(n)
	}
	switch b.CPUs {
	case "", ByWeight:
		out.cpus.weighted = true
	case ByShare:
	case Unbounded:
		out.cpus.none = true
	default:
		out.cpus.each, err = strconv.ParseFloat(b.CPUs, 64)
		if err != nil || !(out.cpus.each >= 0.01 && out.cpus.each <= 10000) {
			return out, fmt.Errorf("hold_cpus: %q: must be weight, share, none or a number for each GPU, such as 16", b.CPUs)
		}
	}
	if b.Reserve != "" {
		if out.reserve, err = parseSize(b.Reserve); err != nil {
			return out, fmt.Errorf("memory_reserve: %q: must be a size, such as 4GiB", b.Reserve)
		}
	}
	return out, nil
}

// parseSize reads a number of bytes, such as 4GiB.
func parseSize(text string) (int64, error) {
	factor := int64(1)
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if number, ok := strings.CutSuffix(text, unit); ok {
			text, factor = number, 1<<(10*(i+1))
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/factor {
		return 0, errors.New("no size")
	}
	return n * factor, nil
}

// share is what the work of a hold may have, as its cgroup says it.
type share struct {
	Memory int64 `json:"memory,omitempty"`    // bytes; 0: no bound
	Weight int   `json:"weight,omitempty"`    // of its processes against other holds'; 0: the usual
	MilliC int64 `json:"cpu_milli,omitempty"` // thousandths of a processor; 0: no bound
}

// machine is what there is to share.
type machine struct {
	memory int64 // bytes that holds may have in all
	cpus   int
}

const (
	leastReserve = 512 << 20
	mostReserve  = 16 << 30
	// leastMemory is what a hold gets in any case: less, and nothing starts.
	leastMemory = 64 << 20
	// weightOfGPU is what the kernel gives a cgroup that asks for nothing.
	weightOfGPU = 100
	mostWeight  = 10000
)

// newMachine is this machine, as far as the cgroup at which its cgroups begin may have it.
func newMachine(mount string, reserve int64) machine {
	m := machine{memory: memoryOf("/proc/meminfo"), cpus: runtime.NumCPU()}
	if most, ok := readNumber(mount, "memory.max"); ok { // not in the root of all
		m.memory = min(m.memory, most)
	}
	if reserve < 0 {
		reserve = min(max(m.memory/20, leastReserve), mostReserve)
	}
	m.memory = max(m.memory-reserve, m.memory/2)
	return m
}

// memoryOf is how many bytes of memory the kernel says that the machine has.
func memoryOf(file string) int64 {
	text, _ := os.ReadFile(file) //nolint:gosec // the kernel's
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "MemTotal:" {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n << 10
		}
	}
	return 0
}

// share is that of a hold with such shares of the GPUs of the node. Where it is not known how many
// GPUs there are, it may have all.
func (b bounds) share(m machine, of Shares, there int) share {
	held, part := min(float64(of.Held)/float64(of.PerGPU), float64(there)), 1.0
	if held > 0 {
		part = held / float64(there)
	} else {
		held = 1
	}
	var s share
	if !b.memory.none {
		s.Memory = int64(part * float64(m.memory))
		if b.memory.each > 0 {
			s.Memory = min(int64(b.memory.each*held), m.memory)
		}
		s.Memory = max(s.Memory, leastMemory) &^ 4095
	}
	if b.cpus.none {
		return s
	}
	s.Weight = max(1, min(int(weightOfGPU*held), mostWeight))
	switch {
	case b.cpus.each > 0:
		s.MilliC = max(int64(b.cpus.each*held*1000), 10)
	case !b.cpus.weighted:
		s.MilliC = max(int64(part*float64(m.cpus)*1000), 10)
	}
	return s
}

// The leaf of a hold's cgroup in which the work of its sessions is. The kernel has no processes in a
// cgroup whose children it counts.
const sessionsLeaf = "sessions"

// bind has the kernel bound what is in a hold's cgroup, and makes the leaf of its sessions. It may be
// repeated.
func (s share) bind(cgroup string) error {
	files := [][2]string{{"cgroup.subtree_control", "+memory"}}
	if s.Memory > 0 {
		files = append(files, [2]string{"memory.max", strconv.FormatInt(s.Memory, 10)},
			[2]string{"memory.swap.max", "0"}) // what is swapped out is the machine's load all the same
	}
	if s.Weight > 0 {
		files = append(files, [2]string{"cpu.weight", strconv.Itoa(s.Weight)})
	}
	if s.MilliC > 0 {
		files = append(files, [2]string{"cpu.max", fmt.Sprintf("%d 100000", s.MilliC*100)})
	}
	for _, f := range files {
		err := setFile(cgroup, f[0], f[1])
		if err != nil && (f[0] != "memory.swap.max" || !errors.Is(err, os.ErrNotExist)) { // there may be no swap
			return fmt.Errorf("bounding the work of the hold: %w", err)
		}
	}
	err := os.Mkdir(filepath.Join(cgroup, sessionsLeaf), 0o755) //nolint:gosec // the kernel's files have their own modes
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	return err
}

// environment tells the work of a hold what it may have.
func (s share) environment(env map[string]string) {
	if s.Memory > 0 {
		env["FOREWARM_MEMORY_BYTES"] = strconv.FormatInt(s.Memory, 10)
	}
	if s.MilliC > 0 {
		env["FOREWARM_CPUS"] = strconv.FormatFloat(float64(s.MilliC)/1000, 'f', -1, 64)
	}
}

// setFile writes to one of the kernel's files of a cgroup, which it never makes.
func setFile(cgroup, file, value string) error {
	f, err := os.OpenFile(filepath.Join(cgroup, file), os.O_WRONLY, 0) //nolint:gosec // the kernel's file
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// readNumber reads one of the kernel's files of a cgroup; false: there is none, or no bound.
func readNumber(cgroup, file string) (int64, bool) {
	text, err := os.ReadFile(filepath.Join(cgroup, file)) //nolint:gosec // the kernel's file
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// holdsFolder is the cgroup in which those of holds are.
const holdsFolder = "forewarm-holds"

// bindAll has the kernel bound holds one by one, and all together: below the root of the machine's
// cgroups, as the daemon's own cgroup has the daemon in it. It returns the folder, or why not.
func (b bounds) bindAll(mount, own string) (dir string, m machine, err error) {
	if b.memory.none && b.cpus.none {
		return "", m, errors.New("hold_memory and hold_cpus say so")
	}
	if !leadsTheMachine(own) {
		return "", m, fmt.Errorf("the daemon is in the cgroup %s, which somebody else divides", own)
	}
	dir, m = filepath.Join(mount, holdsFolder), newMachine(mount, b.reserve)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the kernel's files there have modes of their own
		return "", m, err
	}
	most := "max"
	if !b.memory.none {
		most = strconv.FormatInt(m.memory&^4095, 10)
	}
	for _, f := range [][3]string{{mount, "cgroup.subtree_control", "+memory +cpu"},
		{dir, "cgroup.subtree_control", "+memory +cpu"}, {dir, "memory.max", most}} {
		if err := setFile(f[0], f[1], f[2]); err != nil {
			_ = syscall.Rmdir(dir)
			return "", m, explainUnbounded(err, f[0])
		}
	}
	return dir, m, nil
}

// leadsTheMachine reports whether a process in a cgroup may divide the machine: it is a unit's or a
// login's, and not in a part that a batch system, for example, gave to one of its jobs.
func leadsTheMachine(own string) bool {
	name := filepath.Base(own)
	return own == "/" || strings.HasSuffix(name, ".service") ||
		strings.HasPrefix(name, "session-") && strings.HasSuffix(name, ".scope")
}

func explainUnbounded(err error, cgroup string) error {
	switch {
	case errors.Is(err, syscall.EBUSY):
		return fmt.Errorf("processes are in the cgroup %s itself, as in most containers", cgroup)
	case errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENOENT):
		return fmt.Errorf("the kernel does not count memory and processors by cgroup v2 in %s", cgroup)
	case errors.Is(err, syscall.EROFS), errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%s cannot be written", cgroup)
	}
	return err
}
