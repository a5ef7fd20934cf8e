package placement

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"time"
)

// Policy is how placement weighs heat and load.
type Policy struct {
	WarmFrom   int           // °C from which a node is taken after cooler ones; 0: 75
	HotFrom    int           // °C from which a node takes no new work; 0: 85
	CoolDown   time.Duration // for so long after it was last hot; 0: 5 minutes
	LoadLimit  int           // of a shared GPU, in thousandths; 0: 850
	MemoryLoad int           // what memory counts for in a load, in thousandths, time for the rest; 0: 700
}

func (p Policy) withDefaults() Policy {
	p.WarmFrom = cmp.Or(p.WarmFrom, 75)
	p.HotFrom = cmp.Or(p.HotFrom, 85)
	p.CoolDown = cmp.Or(p.CoolDown, 5*time.Minute)
	p.LoadLimit = cmp.Or(p.LoadLimit, 850)
	p.MemoryLoad = cmp.Or(p.MemoryLoad, 700)
	return p
}

// Spot is some GPUs of one node.
type Spot struct {
	Node    string
	GPUs    int
	Devices uint64 // a bit for each device; 0 where no device is chosen yet
}

// Placement is where a job runs: its spots, in the order of its ranks.
type Placement []Spot

// Holding is what somebody holds.
type Holding struct {
	ID    string
	Spots Placement
	Part  Part // of the one device, if it is shared
	Until time.Time
	Company
}

// Promised is a start in the future that nothing may delay. Devices are chosen when it begins, but for
// the one that a part is going to share with others.
type Promised struct {
	ID          string
	Spots       Placement
	From, Until time.Time
	Company
}

// Cluster keeps what is on each node. It is made by New.
type Cluster struct {
	policy   Policy
	kinds    []*kind // sorted
	nodes    map[string]*node
	holdings map[string]Holding
	promises map[string]Promised
	matching map[Request][]*kind
	hot      []*node // by the end of their cooling down
}

// errGPUs and errDuplicate say what is wrong with a node.
var (
	errGPUs      = errors.New("a node has between 1 and 64 GPUs")
	errDuplicate = errors.New("there is a node of this id already")
)

// New returns a cluster of these nodes, on which nothing is.
func New(p Policy, nodes []Node) (*Cluster, error) {
	c := &Cluster{policy: p.withDefaults(), nodes: map[string]*node{}, holdings: map[string]Holding{},
		promises: map[string]Promised{}}
	return c, c.Add(nodes...)
}

// Add adds nodes. After an error none has been added.
func (c *Cluster) Add(nodes ...Node) error {
	seen := map[string]bool{}
	for _, n := range nodes {
		if n.GPUs < 1 || n.GPUs > mostGPUs {
			return fmt.Errorf("adding node %q: %w", n.ID, errGPUs)
		}
		if _, known := c.nodes[n.ID]; known || seen[n.ID] {
			return fmt.Errorf("adding node %q: %w", n.ID, errDuplicate)
		}
		seen[n.ID] = true
	}
	touched := map[*kind]bool{}
	for _, x := range nodes {
		k := c.kindOf(x.Kind)
		n := &node{Node: x}
		if k.Shared {
			n.loads = make([]load, k.GPUs)
		}
		k.nodes, c.nodes[x.ID], touched[k] = append(k.nodes, n), n, true
	}
	for _, k := range c.kinds {
		if touched[k] {
			k.rebuild()
			for _, n := range k.nodes {
				c.refresh(n)
			}
		}
	}
	c.rememberHot()
	c.matching = map[Request][]*kind{}
	return nil
}

func (c *Cluster) kindOf(x Kind) *kind {
	at, found := slices.BinarySearchFunc(c.kinds, x, func(k *kind, x Kind) int { return compareKinds(k.Kind, x) })
	if !found {
		c.kinds = slices.Insert(c.kinds, at, &kind{Kind: x})
	}
	return c.kinds[at]
}

// SetCondition notes what is new about a node, and keeps new work away from one that
// is too hot until it has cooled down. It returns false for an unknown node.
func (c *Cluster) SetCondition(id string, x Condition, now time.Time) bool {
	n, known := c.nodes[id]
	if !known {
		return false
	}
	if x.HotUntil.IsZero() {
		x.HotUntil = n.HotUntil
	}
	if x.Celsius >= c.policy.HotFrom {
		x.HotUntil = now.Add(c.policy.CoolDown)
	}
	n.Condition = x
	c.rememberHot()
	c.Advance(now)
	c.refresh(n)
	return true
}

// Condition returns the condition of a node; false for an unknown one.
func (c *Cluster) Condition(id string) (Condition, bool) {
	n, known := c.nodes[id]
	if !known {
		return Condition{}, false
	}
	return n.Condition, true
}

// rememberHot lists the nodes that cool down, the first to be cool first.
func (c *Cluster) rememberHot() {
	c.hot = c.hot[:0]
	for _, n := range c.nodes {
		if !n.HotUntil.IsZero() {
			c.hot = append(c.hot, n)
		}
	}
	slices.SortFunc(c.hot, func(a, b *node) int {
		return cmp.Or(a.HotUntil.Compare(b.HotUntil), cmp.Compare(a.ID, b.ID))
	})
}

// Advance makes usable again what has cooled down by now.
func (c *Cluster) Advance(now time.Time) {
	for len(c.hot) > 0 && !c.hot[0].HotUntil.After(now) {
		n := c.hot[0]
		c.hot, n.HotUntil = c.hot[1:], time.Time{}
		c.refresh(n)
	}
}

// refresh brings the index up to date with a node.
func (c *Cluster) refresh(n *node) {
	l := listing{usable: !n.Drained && n.HotUntil.IsZero(), promised: len(n.promises) > 0}
	if l.usable {
		l.free = n.free()
		if n.Celsius >= c.policy.WarmFrom || n.Cold {
			l.warm = 1
		}
	}
	n.kind.list(n, l)
	c.refreshDevices(n)
}

// Take gives the spots to id until the latest instant at which it may still hold them,
// and returns them with their devices. The spots come from Find.
func (c *Cluster) Take(id string, r Request, spots Placement, until time.Time) Placement {
	taken := slices.Clone(spots)
	for i, s := range taken {
		if s.Devices == 0 {
			taken[i].Devices = lowestBits(^c.nodes[s.Node].busy, s.GPUs)
		}
	}
	c.Restore(Holding{ID: id, Spots: taken, Part: r.Part, Until: until, Company: r.Company})
	return taken
}

// lowestBits returns the n lowest bits that are set in w.
func lowestBits(w uint64, n int) uint64 {
	var got uint64
	for range n {
		bit := w & -w
		got |= bit
		w &^= bit
	}
	return got
}

// Restore gives back what Release has returned, or what a snapshot says.
func (c *Cluster) Restore(h Holding) {
	c.holdings[h.ID] = h
	for _, s := range h.Spots {
		n := c.nodes[s.Node]
		n.addHold(hold{h.ID, s.Devices, h.Until.UnixNano(), h.Part, h.Company})
		if h.Part != (Part{}) {
			n.loads[bits.TrailingZeros64(s.Devices)].add(h.Part, 1)
		}
		c.refresh(n)
	}
}

// Release frees what id holds, and returns it; false if it holds nothing.
func (c *Cluster) Release(id string) (Holding, bool) {
	h, ok := c.holdings[id]
	delete(c.holdings, id)
	for _, s := range h.Spots {
		n := c.nodes[s.Node]
		n.dropHold(id)
		if h.Part != (Part{}) {
			n.loads[bits.TrailingZeros64(s.Devices)].add(h.Part, -1)
		}
		c.refresh(n)
	}
	return h, ok
}

// EndBy changes until when id may hold what it holds.
func (c *Cluster) EndBy(id string, until time.Time) {
	if h, ok := c.Release(id); ok {
		h.Until = until
		c.Restore(h)
	}
}

// Promise keeps the spots free for id from an instant until another.
func (c *Cluster) Promise(p Promised) {
	c.Withdraw(p.ID)
	c.promises[p.ID] = p
	for _, s := range p.Spots {
		n := c.nodes[s.Node]
		n.promises = append(n.promises, promise{p.ID, s.GPUs, s.Devices, p.From.UnixNano(),
			p.Until.UnixNano(), p.Company})
		c.refresh(n)
	}
}

// Withdraw takes a promise back, and returns it; false if there is none.
func (c *Cluster) Withdraw(id string) (Promised, bool) {
	p, ok := c.promises[id]
	delete(c.promises, id)
	for _, s := range p.Spots {
		n := c.nodes[s.Node]
		n.promises = slices.DeleteFunc(n.promises, func(x promise) bool { return x.id == id })
		c.refresh(n)
	}
	return p, ok
}

// CanTake reports whether a request could be put on these spots, whole GPUs of nodes that are known, from now until an
// instant: the nodes are such as it asks for, take work, and have so many GPUs free, also of what is promised, and
// nobody is there with whom it may not share a node.
func (c *Cluster) CanTake(r Request, spots Placement, now, until time.Time) bool {
	from, to := now.UnixNano(), until.UnixNano()
	for _, s := range spots {
		n, known := c.nodes[s.Node]
		if !known || r.isPart() || n.Drained || !n.HotUntil.IsZero() || !r.Allows(n.Labels, n.Taints) {
			return false
		}
		if n.freeDuring(from, to, from) < s.GPUs || n.shunsDuring(r.Company, from, to, from) {
			return false
		}
	}
	return true
}
