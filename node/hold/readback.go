package hold

import (
	"fmt"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/contract"
)

// readings are what a look says of the GPUs of a hold, each of which is one of these or not seen.
type readings struct {
	free   int  // nothing of the hold is left there
	shared int  // others have work there, from which the hold's could not be told: its processes have ended
	proved bool // all that can be read of those that are free was read
}

// readBack returns what a look says of the GPUs of a hold, or why they are not free.
func (k *Keeper) readBack(look contract.NodeLook, r *record) (said, busy string) {
	if look.Source == "simulated" {
		return "simulated GPUs", ""
	}
	seen := readings{proved: true}
	for _, uuid := range r.GPUs {
		floor, known := r.Floor[uuid]
		i := slices.IndexFunc(look.GPUs, func(g contract.LookGPU) bool { return g.UUID == uuid })
		if i < 0 && known && look.Problem == "" {
			return "", "GPU " + uuid + ", which was here when it began, is not seen any more"
		}
		if i < 0 {
			continue
		}
		g := look.GPUs[i]
		switch {
		case g.Lost:
			return "", "GPU " + uuid + " is lost"
		case k.book.othersOn(uuid, r) > 0:
			seen.shared++
			continue
		case g.Processes == nil && g.MemoryUsedMiB == nil:
			return "", "of GPU " + uuid + " nothing can be read: " + look.Problem
		case g.Processes != nil && *g.Processes > 0:
			return "", fmt.Sprintf("%d processes are on GPU %s", *g.Processes, uuid)
		case known && g.MemoryUsedMiB != nil && *g.MemoryUsedMiB > floor+slack:
			return "", fmt.Sprintf("%d MiB of GPU %s are in use, and %d were before", *g.MemoryUsedMiB, uuid, floor)
		}
		seen.free++
		seen.proved = seen.proved && known && g.Processes != nil && g.MemoryUsedMiB != nil
	}
	return seen.tell(len(r.GPUs), look)
}

// tell puts the readings of so many GPUs into words.
func (s readings) tell(gpus int, look contract.NodeLook) (said, busy string) {
	var all []string
	if s.shared > 0 {
		all = append(all, "others go on with their work on "+counted(s.shared, "GPU", "GPUs"))
	}
	switch complete := s.free+s.shared == gpus; {
	case gpus == 0:
		return "it had nothing here", ""
	case complete && s.free > 0 && s.proved:
		all = append(all, fmt.Sprintf("no process on %s, memory as before", counted(s.free, "GPU", "GPUs")))
	case complete && s.free > 0:
		all = append(all, fmt.Sprintf("nothing is seen on %s, of which not all can be read", counted(s.free, "GPU", "GPUs")))
	case !complete && look.Problem != "" && s.free+s.shared == 0:
		return "", "its GPUs cannot be read: " + look.Problem
	case !complete:
		all = append(all, fmt.Sprintf("this daemon sees %d of its %d GPUs", s.free+s.shared, gpus))
	}
	return strings.Join(all, "; "), ""
}
