//go:build clouds

package kubernetes

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forewarm/forewarm/provisioners"
)

const (
	// topologyGate is that of pods for which Kueue looks for free nodes.
	topologyGate = kueueGroup + "/topology"
	// quietFor is after how long a pod counts as waiting whose scheduler says nothing of it.
	quietFor = 30 * time.Second
	// yieldFor bounds for how long placeholders give way for one pod: what keeps it may be
	// something else.
	yieldFor = 10 * time.Minute
)

// blockedPod is what counts of a pod that no placeholder makes way for by itself.
type blockedPod struct {
	selector    map[string]string
	required    *corev1.NodeSelector // nil: none
	tolerations []corev1.Toleration
	asks        corev1.ResourceList
	says        bool // its scheduler, or Kueue, has said that it waits for a place
}

// viewBlocked is nil for a pod for which the scheduler may end a placeholder, and for what
// says that it is one itself: installations that do not know each other would take turns.
func viewBlocked(pod *corev1.Pod) *blockedPod {
	if pod.Labels[labelRole] == rolePlaceholder {
		return nil
	}
	spec := pod.Spec
	foreign := spec.SchedulerName != "" && spec.SchedulerName != corev1.DefaultSchedulerName
	never := spec.PreemptionPolicy != nil && *spec.PreemptionPolicy == corev1.PreemptNever ||
		spec.Priority != nil && *spec.Priority < 0
	gated := len(spec.SchedulingGates) == 1 && spec.SchedulingGates[0].Name == topologyGate
	if !foreign && !never && !gated || len(spec.SchedulingGates) > 0 && !gated {
		return nil
	}
	b := &blockedPod{selector: spec.NodeSelector, tolerations: spec.Tolerations, asks: corev1.ResourceList{}}
	b.says = gated || slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
	})
	if !b.says && !foreign {
		return nil
	}
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		b.required = spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	for _, container := range slices.Concat(spec.Containers, spec.InitContainers) {
		for name := range container.Resources.Requests {
			b.asks[name] = podRequest(pod, name)
		}
	}
	return b
}

// admits reports whether the pod may be on the node, as far as names, labels and taints go.
func (b *blockedPod) admits(node *corev1.Node) bool {
	if !labels.SelectorFromSet(b.selector).Matches(labels.Set(node.Labels)) {
		return false
	}
	if b.required != nil && !slices.ContainsFunc(b.required.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool {
		return termHolds(t, node)
	}) {
		return false
	}
	bears := Offer{}
	for _, t := range b.tolerations {
		bears.Tolerations = append(bears.Tolerations,
			Toleration{Key: t.Key, Operator: string(t.Operator), Value: t.Value, Effect: string(t.Effect)})
	}
	return !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule && !bears.tolerates(t)
	})
}

func termHolds(term corev1.NodeSelectorTerm, node *corev1.Node) bool {
	for _, e := range term.MatchExpressions {
		if !(Match{e.Key, string(e.Operator), e.Values}).holds(node.Labels) {
			return false
		}
	}
	for _, e := range term.MatchFields {
		if e.Key != nodeName || !(Match{e.Key, string(e.Operator), e.Values}).holds(map[string]string{nodeName: node.Name}) {
			return false
		}
	}
	return len(term.MatchExpressions)+len(term.MatchFields) > 0
}

// takeFrom takes what the pod asks for from what is free. It is false, and takes nothing,
// where that is not enough.
func (b *blockedPod) takeFrom(free corev1.ResourceList) bool {
	for name, amount := range b.asks {
		if has := free[name]; has.Cmp(amount) < 0 {
			return false
		}
	}
	for name, amount := range b.asks {
		has := free[name].DeepCopy()
		has.Sub(amount)
		free[name] = has
	}
	return true
}

// keepLook is the one look at the cluster that a call of Keep has. It is made when it is
// first needed.
type keepLook struct {
	eyes *eyes
	made bool
	view clusterView
	err  error
	// yielded are the nodes whose placeholders are in the way of pods that could be there.
	yielded map[types.UID]bool
}

func (l *keepLook) get(ctx context.Context) (clusterView, error) {
	if !l.made {
		l.made = true
		if l.view, l.err = l.eyes.lookAround(ctx); l.err == nil {
			l.yielded = l.eyes.yieldedNodes(l.view)
		}
	}
	return l.view, l.err
}

// yields reports whether the placeholder of the node is to give way.
func (l *keepLook) yields(ctx context.Context, node types.UID) (bool, error) {
	_, err := l.get(ctx)
	return l.yielded[node], err
}

// yieldedNodes gives each pod that waits, and cannot preempt, one kept and idle node on which
// it finds its place: one that has no placeholder now, where there is one.
func (e *eyes) yieldedNodes(v clusterView) map[types.UID]bool {
	type candidate struct {
		node *corev1.Node
		free corev1.ResourceList
	}
	var open, closed []candidate
	for i := range v.nodes {
		node, use := &v.nodes[i], v.useOf(v.nodes[i].Name)
		keeper := e.keeperOf(v, node.UID)
		if state, _ := e.portState(node, use); keeper == nil || keeper.Way != WarmPlaceholder ||
			state != provisioners.NodeIdle {
			continue
		}
		c := candidate{node, node.Status.Allocatable.DeepCopy()}
		for name, amount := range use.load {
			left := c.free[name]
			left.Sub(amount)
			c.free[name] = left
		}
		if use.own == 0 {
			open = append(open, c)
		} else {
			closed = append(closed, c)
		}
	}
	yielded := map[types.UID]bool{}
	for _, p := range e.blockedPods(v) {
		for _, c := range slices.Concat(open, closed) {
			if p.blocked.admits(c.node) && p.blocked.takeFrom(c.free) {
				yielded[c.node.UID] = true
				break
			}
		}
	}
	return yielded
}

// blockedPods are the pods to give way for, the oldest first. It forgets those that wait no
// more.
func (e *eyes) blockedPods(v clusterView) []podView {
	now := e.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	since, blocked := map[types.UID]time.Time{}, []podView(nil)
	for _, p := range v.pods {
		if p.blocked == nil || p.node != "" || p.finished || p.nominated != "" ||
			!p.blocked.says && now.Sub(p.created) < quietFor {
			continue
		}
		if since[p.uid] = e.yielding[p.uid]; since[p.uid].IsZero() {
			since[p.uid] = now
		}
		if now.Sub(since[p.uid]) < yieldFor {
			blocked = append(blocked, p)
		}
	}
	e.yielding = since
	slices.SortStableFunc(blocked, func(a, b podView) int { return a.created.Compare(b.created) })
	return blocked
}
