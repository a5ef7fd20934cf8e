package jobs

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/node/hold"
)

// cgroup is an attempt's own, in which its memory is counted; empty: it has none.
type cgroup string

// makeCgroup makes that of an attempt. When its memory is full, the kernel ends all of it: a job of which
// one process is missing often waits for ever.
func makeCgroup(place hold.Place, key contract.JobKey) (cgroup, error) {
	if place.JobCgroups == "" {
		return "", nil
	}
	dir := filepath.Join(place.JobCgroups, "job-"+nameOf(key))
	err := os.Mkdir(dir, 0o755) //nolint:gosec // the kernel's files there have modes of their own
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "memory.oom.group"), []byte("1"), 0) //nolint:gosec // the kernel's file
	}
	if err != nil {
		return "", fmt.Errorf("making a cgroup for the job: %w", err)
	}
	return cgroup(dir), nil
}

// remove removes it, unless processes are left in it: then the end of the hold does.
func (c cgroup) remove() {
	if c != "" {
		_ = syscall.Rmdir(string(c))
	}
}

// killedForMemory reports whether the kernel ended processes of it because memory was full, and whose
// that was.
func (c cgroup) killedForMemory() (reason string, killed bool) {
	if c == "" || c.count("memory.events", "oom_kill") == 0 {
		return "", false
	}
	above := cgroup(filepath.Dir(string(c)))
	most, bounded := above.number("memory.max")
	if !bounded || above.count("memory.events", "oom") == 0 {
		return "its node had no memory left, and the kernel ended it", true
	}
	return fmt.Sprintf("it needed more than the %s of memory that its allocation has on this node", sizeText(most)), true
}

// peak is the most memory that was in use in it at once, in bytes; 0: it is not known.
func (c cgroup) peak() int64 {
	if c == "" {
		return 0
	}
	n, _ := c.number("memory.peak") // Linux 5.19
	return n
}

func (c cgroup) number(file string) (int64, bool) {
	text, err := os.ReadFile(filepath.Join(string(c), file)) //nolint:gosec // the kernel's file
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// count is what a file with a name and a number in each line says of a name.
func (c cgroup) count(file, name string) int64 {
	text, _ := os.ReadFile(filepath.Join(string(c), file)) //nolint:gosec // the kernel's file
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == name {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n
		}
	}
	return 0
}

func sizeText(bytes int64) string {
	if bytes < 10<<30 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}
