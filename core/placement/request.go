// Package placement finds where jobs fit on nodes, now or at the earliest instant, and
// keeps what is held and what is promised.
//
// A Cluster is an index, not a snapshot: it is told of every change, and answers in time
// that grows with the logarithm of the number of nodes. Nodes that are alike are a kind.
// A kind keeps a bit for each node in the set of those that have as many free GPUs, so
// that the tightest node that fits is the first bit of the first set that is not empty.
// Sets are ordered by topology group and id; answers do not depend on the order in which
// the cluster was told of its nodes.
//
// A promise is a start in the future on nodes that are named. What is placed afterwards
// has to leave its GPUs free in time, so no promise ever moves because of another job:
// that is conservative backfill. Ends are the latest ones that are allowed, never
// predictions.
package placement

import (
	"slices"
	"strings"

	"github.com/forewarm/forewarm/core/capacity"
)

// Set is a set of words, such as labels "zone=a" or taints. It is a value: two are equal
// when they hold the same. Only NewSet makes one.
type Set string

// NewSet returns the set of these words. A line break within a word separates two.
func NewSet(words ...string) Set {
	all := strings.Split(strings.Join(words, "\n"), "\n")
	slices.Sort(all)
	all = slices.Compact(all)
	return Set(strings.Join(slices.DeleteFunc(all, func(w string) bool { return w == "" }), "\n"))
}

// Words returns what is in the set, sorted.
func (s Set) Words() []string {
	if s == "" {
		return nil
	}
	return strings.Split(string(s), "\n")
}

// Covers returns how many words of o are in the set, or are terms that its labels meet, and whether all are.
func (s Set) Covers(o Set) (n int, all bool) {
	if o == "" {
		return 0, true
	}
	mine, theirs := s.Words(), o.Words()
	for _, w := range theirs {
		if meets(mine, w) {
			n++
		}
	}
	return n, n == len(theirs)
}

// Nearness is how close the nodes of a gang have to be to each other.
type Nearness int

// How near nodes are to be.
const (
	Anywhere Nearness = iota
	PreferOneGroup
	RequireOneGroup
)

// Part is a share of one GPU.
type Part struct {
	MemoryMiB int
	Compute   int // of the GPU's time, in thousandths
}

// Request is all that decides where a job fits. It is comparable: two jobs with equal
// requests fit in the same places, so that the refusal of one is that of the other.
type Request struct {
	Pool      string // empty: any
	Model     string // of the GPUs; empty: any
	MemoryMiB int    // at least so much on each GPU
	Shape     capacity.Shape
	Part      Part // not zero: a share of one GPU instead of the shape
	Labels    Set  // a node needs all of them: labels, and terms
	Prefers   Set  // nodes with more of them are taken first
	Tolerates Set  // taints that do not keep it away
	Near      Nearness
	Company   Company
}

// Allows reports whether the request can be met by a node with these labels and taints.
func (r Request) Allows(labels, taints Set) bool {
	_, labelled := labels.Covers(r.Labels)
	_, tolerated := r.Tolerates.Covers(taints)
	return labelled && tolerated
}

// isPart reports whether the request is for a share of a GPU.
func (r Request) isPart() bool { return r.Part != Part{} }

// Valid reports whether the request can be met by any cluster at all.
func (r Request) Valid() bool {
	if !r.isPart() {
		return r.Shape.Valid()
	}
	return r.Part.MemoryMiB >= 0 && r.Part.Compute >= 0 && r.Part.Compute <= whole
}

// shape is what the request takes of nodes: a share of a GPU at most a whole one.
func (r Request) shape() capacity.Shape {
	if r.isPart() {
		return capacity.Shape{Nodes: 1, PerNode: 1}
	}
	return r.Shape
}

// GPUs returns for how many GPUs the request counts.
func (r Request) GPUs() int { return r.shape().GPUs() }

// whole is a whole GPU's time, in thousandths.
const whole = 1000
