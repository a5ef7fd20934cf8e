package hold

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Working returns the GPUs of those holds of which a process runs. Where a hold has no cgroup, its processes are those
// that began with its environment: it looks at those of the whole machine once.
func (k *Keeper) Working() []string {
	var gpus []string
	marked := map[string][]string{} // the GPUs of holds without a cgroup, by their mark
	k.mu.Lock()
	for id, r := range k.book.Holds {
		switch {
		case r.Phase != open && r.Phase != ending:
		case r.Cgroup == "":
			marked[markOf(id)] = r.GPUs
		case isPopulated(r.Cgroup):
			gpus = append(gpus, r.GPUs...)
		}
	}
	k.mu.Unlock()
	if len(marked) > 0 {
		gpus = append(gpus, gpusOfMarked(marked)...)
	}
	slices.Sort(gpus)
	return gpus
}

// isPopulated reports whether the kernel says that a process is in a cgroup, or in one below it.
func isPopulated(cgroup string) bool {
	text, err := os.ReadFile(filepath.Join(cgroup, "cgroup.events")) //nolint:gosec // the kernel's file
	return err == nil && slices.Contains(strings.Split(string(text), "\n"), "populated 1")
}

// gpusOfMarked are the GPUs of marks that a process has in its environment.
func gpusOfMarked(marked map[string][]string) (gpus []string) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		environment, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err != nil {
			continue
		}
		for word := range strings.SplitSeq(string(environment), "\x00") {
			if its, known := marked[word]; known {
				gpus = append(gpus, its...)
				delete(marked, word)
			}
		}
	}
	return gpus
}
