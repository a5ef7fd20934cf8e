//go:build clouds

package kubernetes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/forewarm/forewarm/provisioners"
)

// canServe reports whether the node, when empty, has what the offer asks for.
func (o Offer) canServe(node *corev1.Node) bool {
	if o.gpusOf(node) < o.GPUs || !labels.SelectorFromSet(o.NodeSelector).Matches(labels.Set(node.Labels)) {
		return false
	}
	for _, match := range o.NodeAffinity {
		if !match.holds(node.Labels) {
			return false
		}
	}
	return !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule && !passing(t) && !o.tolerates(t)
	})
}

// gpusOf is how many GPUs of the offer's kind the node has, or is known to have had.
func (o Offer) gpusOf(node *corev1.Node) int {
	name := corev1.ResourceName(o.Resource)
	has, works := node.Status.Capacity[name], node.Status.Allocatable[name]
	return int(max(has.Value(), works.Value()))
}

var selectors = map[string]selection.Operator{
	"In": selection.In, "NotIn": selection.NotIn, "Exists": selection.Exists, "DoesNotExist": selection.DoesNotExist,
	"Gt": selection.GreaterThan, "Lt": selection.LessThan,
}

// holds reports whether a node with the labels meets the condition.
func (m Match) holds(of map[string]string) bool {
	requirement, err := labels.NewRequirement(m.Key, selectors[m.Operator], m.Values)
	return err == nil && requirement.Matches(labels.Set(of))
}

func (o Offer) tolerates(taint corev1.Taint) bool {
	return slices.ContainsFunc(o.podTolerations(), func(t corev1.Toleration) bool {
		return (t.Effect == "" || t.Effect == taint.Effect) && (t.Key == "" || t.Key == taint.Key) &&
			(t.Operator == corev1.TolerationOpExists || t.Value == taint.Value)
	})
}

// passing reports a taint that says how the node is, and not whom it is for.
func passing(taint corev1.Taint) bool {
	return strings.HasPrefix(taint.Key, "node.kubernetes.io/") ||
		strings.HasPrefix(taint.Key, "node.cloudprovider.kubernetes.io/") ||
		taint.Key == "karpenter.sh/unregistered" || slices.Contains(endTaints, taint.Key)
}

// typesOf are the types of the offers that the node can serve, sorted.
func (c Config) typesOf(node *corev1.Node) []string {
	var types []string
	for _, offer := range c.Offers {
		if offer.canServe(node) && !slices.Contains(types, offer.Type) {
			types = append(types, offer.Type)
		}
	}
	slices.Sort(types)
	return types
}

// nodeUse is what runs on a node, beside our own.
type nodeUse struct {
	pods int // of others, but for those that every node runs
	gpus int // of those
	own  int // placeholders
	// load is what all pods request but ours, those of DaemonSets included.
	load corev1.ResourceList
}

func (u *nodeUse) add(p podView) {
	if p.own {
		u.own++
		return
	}
	if u.load == nil {
		u.load = corev1.ResourceList{}
	}
	for name, amount := range p.load {
		sum := u.load[name]
		sum.Add(amount)
		u.load[name] = sum
	}
	if !p.everywhere {
		u.pods++
		u.gpus += p.gpus
	}
}

// leavesRoom reports whether a pod of the offer's shape finds its place beside the load.
// Pods without GPUs, of which any node may have some, matter only where it does not.
func (u nodeUse) leavesRoom(node *corev1.Node, offer Offer) bool {
	if u.gpus > 0 {
		return false
	}
	for name, amount := range offer.Requests {
		has, known := node.Status.Allocatable[corev1.ResourceName(name)]
		has.Sub(u.load[corev1.ResourceName(name)])
		if known && has.Cmp(resource.MustParse(amount)) < 0 { // Validate has read it
			return false
		}
	}
	return true
}

// portState is what the node does, with what an operator must know of it.
func (e *eyes) portState(node *corev1.Node, use nodeUse) (provisioners.NodeState, string) {
	sick := unwellCondition(node)
	age := e.now().Sub(node.CreationTimestamp.Time)
	switch {
	case node.DeletionTimestamp != nil || e.goingTaint(node) != "":
		return provisioners.NodePoweringDown, ""
	case sick != nil && age < e.config().PendingTimeout:
		return provisioners.NodePoweringUp, ""
	case sick != nil:
		return provisioners.NodeUnavailable, fmt.Sprintf("node %s: condition %s is %s: %s; see kubectl describe node %s",
			node.Name, sick.Type, sick.Status, sick.Message, node.Name)
	case node.Spec.Unschedulable:
		return provisioners.NodeUnavailable, fmt.Sprintf("node %s is cordoned; it is brought back with: "+
			"kubectl uncordon %s",
			node.Name, node.Name)
	case !e.hasGPUs(node) && age < e.config().PendingTimeout:
		return provisioners.NodePoweringUp, ""
	case !e.hasGPUs(node):
		return provisioners.NodeUnavailable, fmt.Sprintf("the device plugin of node %s stands by fewer GPUs than it has",
			node.Name)
	case e.isTaken(node, use):
		return provisioners.NodeTaken, ""
	}
	return provisioners.NodeIdle, ""
}

// isTaken reports whether none of the offers that the node can serve finds its place.
func (e *eyes) isTaken(node *corev1.Node, use nodeUse) bool {
	return use.pods > 0 && !slices.ContainsFunc(e.config().Offers, func(offer Offer) bool {
		return offer.canServe(node) && use.leavesRoom(node, offer)
	})
}

// hasGPUs reports whether the device plugin stands by what one of the offers needs.
func (e *eyes) hasGPUs(node *corev1.Node) bool {
	return slices.ContainsFunc(e.config().Offers, func(offer Offer) bool {
		works := node.Status.Allocatable[corev1.ResourceName(offer.Resource)]
		return offer.canServe(node) && int(works.Value()) >= offer.GPUs
	})
}

// goingTaint is the taint by which the node's end was announced; empty for none.
func (e *eyes) goingTaint(node *corev1.Node) string {
	for _, taint := range node.Spec.Taints {
		if slices.Contains(endTaints, taint.Key) || slices.Contains(e.config().InterruptionTaints, taint.Key) {
			return taint.Key
		}
	}
	return ""
}

// portNode renders a node that can serve the types.
func (e *eyes) portNode(node *corev1.Node, types []string, use nodeUse, keeper string) provisioners.ObservedNode {
	state, message := e.portState(node, use)
	out := provisioners.ObservedNode{Name: node.Name, InstanceID: keeper, Types: types, State: state, Message: message}
	for _, offer := range e.config().Offers {
		if offer.canServe(node) {
			out.GPUs = max(out.GPUs, offer.gpusOf(node))
		}
	}
	if state != provisioners.NodeIdle {
		out.GPUsTaken = min(use.gpus, out.GPUs)
	}
	return out
}

// freshness orders nodes: those that came last first, which the autoscaler would leave
// idle for longest.
func freshness(a, b *corev1.Node) int {
	return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
}
