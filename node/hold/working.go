package hold

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Working returns the GPUs of those holds of which a process runs: by UUID, the index of each on the node, or -1 where
// that is not known. Where a hold has no cgroup, its processes are those that began with its environment: it looks at
// those of the whole machine once.
func (k *Keeper) Working() map[string]int {
	gpus := map[string]int{}
	marked := map[string]map[string]int{} // the GPUs of holds without a cgroup, by their mark
	k.mu.Lock()
	for id, r := range k.book.Holds {
		switch {
		case r.Phase != open && r.Phase != ending:
		case r.Cgroup == "":
			marked[markOf(id)] = r.indexed()
		case isPopulated(r.Cgroup):
			maps.Copy(gpus, r.indexed())
		}
	}
	k.mu.Unlock()
	if len(marked) > 0 {
		addMarked(gpus, marked)
	}
	return gpus
}

// indexed returns the GPUs of a hold with their indices, as Working does.
func (r *record) indexed() map[string]int {
	gpus := map[string]int{}
	for i, uuid := range r.GPUs {
		gpus[uuid] = -1
		if i < len(r.Indices) {
			gpus[uuid] = r.Indices[i]
		}
	}
	return gpus
}

// isPopulated reports whether the kernel says that a process is in a cgroup, or in one below it.
func isPopulated(cgroup string) bool {
	text, err := os.ReadFile(filepath.Join(cgroup, "cgroup.events")) //nolint:gosec // the kernel's file
	return err == nil && slices.Contains(strings.Split(string(text), "\n"), "populated 1")
}

// addMarked adds the GPUs of those marks that a process has in its environment.
func addMarked(gpus map[string]int, marked map[string]map[string]int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
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
				maps.Copy(gpus, its)
				delete(marked, word)
			}
		}
	}
}
