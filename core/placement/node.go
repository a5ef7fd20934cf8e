package placement

import (
	"cmp"
	"math/bits"
	"slices"
	"time"
)

// Kind is what nodes have in common that are alike to every request.
type Kind struct {
	Pool, Model string
	GPUs        int // of a node, at most 64
	MemoryMiB   int // of one GPU
	Labels      Set
	Taints      Set
	Shared      bool // several jobs may share a GPU, each with a part of its memory and time
	OneTenant   bool // only one tenant's work may be there at a time
}

// Condition is what changes about a node while it stays what it is.
type Condition struct {
	Drained  bool      // takes no new work
	Celsius  int       // of its hottest GPU; 0: not known
	HotUntil time.Time // takes no new work until then, after it was too hot
	Cold     bool      // it has to be booted first, and comes after the others
}

// Node is one machine.
type Node struct {
	ID    string
	Group string // nodes of one group are near each other
	Kind
	Condition
}

// mostGPUs is how many GPUs a node can have: each is a bit of a word.
const mostGPUs = 64

// instant is nanoseconds since 1970: what is compared in inner loops.
type instant = int64

// node is a machine with what is on it.
type node struct {
	Node
	kind     *kind
	at       int    // its index within the kind
	group    int    // the index of its group there
	busy     uint64 // devices that somebody holds
	holds    []hold // by end
	promises []promise
	loads    []load // of each device, where the kind is shared
	listed   listing
}

// listing is where the index has a node: usable with so many GPUs free, usable with
// promises, or nowhere.
type listing struct {
	usable, promised bool
	warm, free       int
}

type hold struct {
	id      string
	devices uint64
	until   instant
	part    Part
	company Company
}

type promise struct {
	id          string
	gpus        int
	device      uint64 // that is shared with who is there then; 0: none
	from, until instant
	company     Company
}

// load is how much of a shared device is in use.
type load struct {
	Part
	jobs int
}

func (n *node) free() int { return n.GPUs - bits.OnesCount64(n.busy) }

// addHold keeps holds in the order of their ends.
func (n *node) addHold(h hold) {
	at, _ := slices.BinarySearchFunc(n.holds, h, func(a, b hold) int {
		return cmp.Or(cmp.Compare(a.until, b.until), cmp.Compare(a.id, b.id))
	})
	n.holds = slices.Insert(n.holds, at, h)
	n.busy |= h.devices
}

// dropHold forgets what id holds, and frees the devices that nobody else shares.
func (n *node) dropHold(id string) {
	n.holds = slices.DeleteFunc(n.holds, func(h hold) bool { return h.id == id })
	n.busy = 0
	for _, h := range n.holds {
		n.busy |= h.devices
	}
}

// freeAt is how many GPUs are free at t, with now at most t. What should have ended
// before now and did not is expected to end right after it.
func (n *node) freeAt(t, now instant) int {
	free := n.GPUs - bits.OnesCount64(n.busyAt(t, now))
	for _, p := range n.promises {
		if p.from <= t && t < p.until && !n.isSharedAt(p.device, t, now) {
			free -= p.gpus
		}
	}
	return free
}

func (n *node) busyAt(t, now instant) uint64 {
	if t <= now {
		return n.busy
	}
	var busy uint64
	for i := len(n.holds) - 1; i >= 0 && n.holds[i].until > t; i-- {
		busy |= n.holds[i].devices
	}
	return busy
}

// isSharedAt reports whether somebody holds a part of the device at t, so that a promise of another
// part of it takes no further GPU.
func (n *node) isSharedAt(device uint64, t, now instant) bool {
	return device != 0 && slices.ContainsFunc(n.holds, func(h hold) bool {
		return h.devices == device && h.part != (Part{}) && (t <= now || h.until > t)
	})
}

// freeDuring is how many GPUs are free all the time from an instant until another: the
// number falls only where a promise begins.
func (n *node) freeDuring(from, until, now instant) int {
	least := n.freeAt(from, now)
	for _, p := range n.promises {
		if from < p.from && p.from < until {
			least = min(least, n.freeAt(p.from, now))
		}
	}
	return least
}

// earliest is the first instant, now at the earliest, from which g GPUs are free for so
// long, and nobody is there with whom they may not be shared: now, or an end of something.
func (n *node) earliest(g int, length, now instant, c Company) instant {
	from := max(now, n.coolAt())
	isOpen := func(t instant) bool {
		until := later(t, length)
		return n.freeDuring(t, until, now) >= g && !n.shunsDuring(c, t, until, now)
	}
	if isOpen(from) {
		return from
	}
	best := never
	try := func(t instant) {
		if t = max(t, from+1); t < best && isOpen(t) {
			best = t
		}
	}
	for _, h := range n.holds {
		try(h.until)
		if best < never && len(n.promises) == 0 {
			break
		}
	}
	for _, p := range n.promises {
		try(p.until)
	}
	return best
}

func (n *node) coolAt() instant {
	if n.HotUntil.IsZero() {
		return 0
	}
	return n.HotUntil.UnixNano()
}

// never is later than every instant.
const never instant = 1<<63 - 1

// later is t and a length, at most never.
func later(t, length instant) instant {
	if length > never-t {
		return never
	}
	return t + length
}
