package capacity

import "fmt"

// Shape is a request for GPUs: PerNode GPUs on each of Nodes different nodes, and
// Short fewer on the last of them. The order of a booking's slots says which node
// is the last.
type Shape struct {
	Nodes   int
	PerNode int
	Short   int `json:",omitzero"` // below PerNode; 0 of an equal shape, and of one node
}

// GPUs returns the number of GPUs in the shape.
func (s Shape) GPUs() int { return s.Nodes*s.PerNode - s.Short }

// On returns the number of GPUs on the i-th node, counted from 0.
func (s Shape) On(i int) int {
	if i == s.Nodes-1 {
		return s.PerNode - s.Short
	}
	return s.PerNode
}

// Least returns the number of GPUs on the node that has the fewest.
func (s Shape) Least() int { return s.PerNode - s.Short }

// Full returns how many of the nodes have all PerNode GPUs.
func (s Shape) Full() int {
	if s.Short > 0 {
		return s.Nodes - 1
	}
	return s.Nodes
}

// Valid reports whether there is a GPU on each of its nodes, and only the last of
// several has fewer than the others.
func (s Shape) Valid() bool {
	return s.Nodes > 0 && s.PerNode > 0 && s.Short >= 0 && s.Short < s.PerNode && (s.Short == 0 || s.Nodes > 1)
}

// String renders the shape, for example "2×8", or "2×8+3" with one more node on
// which there are three.
func (s Shape) String() string {
	if s.Short > 0 {
		return fmt.Sprintf("%d×%d+%d", s.Full(), s.PerNode, s.Least())
	}
	return fmt.Sprintf("%d×%d", s.Nodes, s.PerNode)
}

// Layout is how GPUs are to lie on nodes, where that matters to who asks.
type Layout struct {
	Nodes   int  `json:",omitzero"` // on so many nodes; 0: as few as can be
	PerNode int  `json:",omitzero"` // so many on each, of which the last may have fewer; 0: what Nodes or the pool gives
	Even    bool `json:",omitzero"` // as many on each node as on any other
}

// Shape lays n GPUs out on nodes of perNode GPUs; 0 GPUs are all that Nodes and
// PerNode together name. It returns false when there is no such shape, whatever
// the pool's size. One that asks for more of a node than perNode is returned: no
// such pool could hold it.
func (l Layout) Shape(n, perNode int) (Shape, bool) {
	if n == 0 {
		n = l.Nodes * l.PerNode
	}
	if n <= 0 || perNode <= 0 || l.Nodes < 0 || l.PerNode < 0 {
		return Shape{}, false
	}
	var s Shape
	switch {
	case l.Nodes > 0:
		s = Shape{Nodes: l.Nodes, PerNode: l.PerNode}
		if s.PerNode == 0 {
			s.PerNode = parts(n, l.Nodes)
		}
	case l.PerNode > 0:
		s = Shape{Nodes: parts(n, l.PerNode), PerNode: min(n, l.PerNode)}
	default:
		s = packShape(n, perNode, l.Even)
	}
	s.Short = s.Nodes*s.PerNode - n
	return s, s.Valid() && (s.Short == 0 || !l.Even)
}

// packShape is the fewest nodes that n GPUs need, in equal parts if they allow it or
// even asks for it.
func packShape(n, perNode int, even bool) Shape {
	nodes := parts(n, perNode)
	if n%nodes != 0 && !even {
		return Shape{Nodes: nodes, PerNode: perNode}
	}
	for n%nodes != 0 {
		nodes++
	}
	return Shape{Nodes: nodes, PerNode: n / nodes}
}

// parts is how many parts of at most size n has.
func parts(n, size int) int { return (n-1)/size + 1 }
