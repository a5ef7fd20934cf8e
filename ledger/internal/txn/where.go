package txn

import (
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/placement"
)

// RequestOf is what a job asks of its nodes.
func RequestOf(j job.Job) placement.Request {
	return placement.Request{Shape: j.Shape, Labels: placement.NewTerms(j.Where.Constraints...),
		Prefers: placement.NewTerms(j.Where.Prefers...), Tolerates: placement.NewSet(j.Where.Tolerates...)}
}

// MayUse reports whether a job may run on a node of a pool, by what operators say of both and the job of its nodes.
func MayUse(j job.Job, p capacity.Pool, n node.Node) bool {
	if j.StaysOff(n.ID) {
		return false
	}
	if len(j.Where.Constraints)+len(n.Taints)+len(p.Taints) == 0 {
		return true
	}
	return RequestOf(j).Allows(placement.NewSet(n.LabelWords(p)...), placement.NewSet(n.AllTaints(p)...))
}

// MayBoot reports whether a job may run on a node that is made for it: it has the pool's labels and taints alone.
func MayBoot(j job.Job, p capacity.Pool) bool { return MayUse(j, p, node.Node{}) }
