//go:build clouds

package kubernetes_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// plainHands are scheduler and autoscaler of a cluster with users of its own: pods of
// theirs preempt placeholders, nodes come for pods that find no place, and go when they
// have been empty for a while.
type plainHands struct {
	idle      time.Duration           // how long a node stays empty; 0: for ever
	triggered map[types.UID]time.Time // by pod: since when a node boots for it
	emptyFrom map[string]time.Time    // by node
	buffered  func() (replicas int64) // of the CapacityBuffers; nil: there are none
	chunks    map[int64]time.Time     // by number: since when a node boots for a replica
}

func newPlainHands() *plainHands {
	return &plainHands{triggered: map[types.UID]time.Time{}, emptyFrom: map[string]time.Time{},
		chunks: map[int64]time.Time{}}
}

const (
	nodeGPUs = 8
	nodeCPUs = "96"
)

// amountsOf is what a pod requests of GPUs and processors.
func (h *hands) amountsOf(pod corev1.Pod) [2]int64 {
	requests := pod.Spec.Containers[0].Resources.Requests
	devices, cpu := requests[h.gpu()], requests[corev1.ResourceCPU]
	return [2]int64{devices.Value(), cpu.MilliValue()}
}

func (h *hands) serveUsers(pods []corev1.Pod) (moved bool) {
	if h.scaleDown(pods) {
		return true
	}
	nodes := h.listNodes()
	for _, pod := range pods {
		if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || hasFinished(pod) ||
			len(pod.Spec.SchedulingGates) > 0 {
			continue
		}
		if node := h.fitting(pod, pods, nodes, func(corev1.Pod) bool { return false }); node != "" {
			delete(h.plain.triggered, pod.UID)
			h.bindPod(pod, node)
			return true
		}
		makesWay, moved := h.preempt(pod, pods, nodes)
		if moved || !makesWay && (h.sayUnschedulable(pod) || h.scaleUp(pod, nodes)) {
			return true
		}
	}
	return h.fillBuffers(pods, nodes)
}

// fitting is the first node on which the pod finds its place, without those that may go.
func (h *hands) fitting(pod corev1.Pod, pods []corev1.Pod, nodes []corev1.Node, mayGo func(corev1.Pod) bool) string {
	for _, node := range nodes {
		if node.Spec.Unschedulable || !isMeant(pod, node.Name) || unready(node) {
			continue
		}
		devices, cpu := node.Status.Allocatable[h.gpu()], node.Status.Allocatable[corev1.ResourceCPU]
		left, wants := [2]int64{devices.Value(), cpu.MilliValue()}, h.amountsOf(pod)
		for _, other := range pods {
			if other.Spec.NodeName == node.Name && !hasFinished(other) && !mayGo(other) {
				left[0], left[1] = left[0]-h.amountsOf(other)[0], left[1]-h.amountsOf(other)[1]
			}
		}
		if left[0] >= wants[0] && left[1] >= wants[1] {
			return node.Name
		}
	}
	return ""
}

func unready(node corev1.Node) bool {
	return !slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// isMeant reports whether what the pod says of names allows the node.
func isMeant(pod corev1.Pod, node string) bool {
	if host := pod.Spec.NodeSelector[corev1.LabelHostname]; host != "" && host != node {
		return false
	}
	for _, field := range fieldsOf(pod) {
		if (field.Operator == corev1.NodeSelectorOpIn) != (field.Values[0] == node) {
			return false
		}
	}
	return true
}

func fieldsOf(pod corev1.Pod) []corev1.NodeSelectorRequirement {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return nil
	}
	return pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields
}

func isBound(pod corev1.Pod) bool {
	return slices.ContainsFunc(fieldsOf(pod), func(f corev1.NodeSelectorRequirement) bool {
		return f.Operator == corev1.NodeSelectorOpIn
	})
}

// preempt ends the lower pods of a node on which the pod would then find its place.
func (h *hands) preempt(pod corev1.Pod, pods []corev1.Pod, nodes []corev1.Node) (makesWay, moved bool) {
	if podPriority(pod) < 0 { // its class never preempts
		return false, false
	}
	lower := func(other corev1.Pod) bool { return podPriority(other) < podPriority(pod) }
	node := h.fitting(pod, pods, nodes, lower)
	if node == "" {
		return false, h.takeBack(pod)
	}
	if moved = pod.Status.NominatedNodeName != node; moved {
		pod.Status.NominatedNodeName = node
		_, err := h.core.Pods(pod.Namespace).UpdateStatus(h.t.Context(), &pod, metav1.UpdateOptions{})
		require.NoError(h.t, err)
	}
	for _, victim := range pods {
		if victim.Spec.NodeName == node && lower(victim) && victim.DeletionTimestamp == nil && !hasFinished(victim) {
			require.NoError(h.t, h.core.Pods(victim.Namespace).Delete(h.t.Context(), victim.Name, metav1.DeleteOptions{}))
			moved = true
		}
	}
	return true, moved
}

// takeBack takes the promise of a node back that another pod got.
func (h *hands) takeBack(pod corev1.Pod) bool {
	if pod.Status.NominatedNodeName == "" {
		return false
	}
	pod.Status.NominatedNodeName = ""
	_, err := h.core.Pods(pod.Namespace).UpdateStatus(h.t.Context(), &pod, metav1.UpdateOptions{})
	require.NoError(h.t, err)
	return true
}

// sayUnschedulable is the scheduler's word, said once.
func (h *hands) sayUnschedulable(pod corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return false
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled,
		Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0 nodes are available",
		LastTransitionTime: metav1.NewTime(h.clock.Now())})
	_, err := h.core.Pods(pod.Namespace).UpdateStatus(h.t.Context(), &pod, metav1.UpdateOptions{})
	require.NoError(h.t, err)
	return true
}

// scaleUp boots a node for the pod, or says that it will not.
func (h *hands) scaleUp(pod corev1.Pod, nodes []corev1.Node) bool {
	p := h.plain
	since, boots := p.triggered[pod.UID]
	switch {
	case isBound(pod) || pod.Status.NominatedNodeName != "": // no new node would have that name
		return false
	case !boots && len(nodes)+len(p.triggered)+len(p.chunks) < h.room:
		p.triggered[pod.UID] = h.clock.Now()
		h.sayOf(pod, "TriggeredScaleUp", "pod triggered scale-up")
		return true
	case !boots:
		return h.sayOf(pod, "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached")
	case h.room == 0: // it was said that one comes, and it did not
		delete(p.triggered, pod.UID)
		return true
	case h.clock.Now().Sub(since) < h.boot:
		return false
	}
	delete(p.triggered, pod.UID)
	h.addPlainNode()
	return true
}

func (h *hands) sayOf(pod corev1.Pod, reason, message string) bool {
	_, err := h.core.Events(pod.Namespace).Create(h.t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name + "." + fmt.Sprintf("%x", reason[:3])},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Reason:         reason, Message: message, Type: corev1.EventTypeNormal,
		LastTimestamp: metav1.NewTime(h.clock.Now()),
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return false
	}
	require.NoError(h.t, err)
	return true
}

func (h *hands) addPlainNode() string {
	h.made++
	name := fmt.Sprint(h.scope, "node-", h.made)
	amount := corev1.ResourceList{h.gpu(): *resource.NewQuantity(nodeGPUs, resource.DecimalSI),
		corev1.ResourceCPU: resource.MustParse(nodeCPUs)}
	labels := map[string]string{corev1.LabelHostname: name, "scope": h.scope}
	_, err := h.core.Nodes().Create(h.t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status: corev1.NodeStatus{Capacity: amount, Allocatable: amount,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}, metav1.CreateOptions{})
	require.NoError(h.t, err)
	return name
}

// scaleDown removes the nodes that have been empty for long enough.
func (h *hands) scaleDown(pods []corev1.Pod) (moved bool) {
	p := h.plain
	if p.idle == 0 {
		return false
	}
	spare := h.spare()
	for _, node := range h.listNodes() {
		busy, last := false, time.Time{}
		for _, pod := range pods {
			if pod.Spec.NodeName != node.Name {
				continue
			}
			busy = busy || !hasFinished(pod)
			for _, status := range pod.Status.ContainerStatuses {
				if over := status.State.Terminated; over != nil && over.FinishedAt.After(last) {
					last = over.FinishedAt.Time
				}
			}
		}
		if !busy && spare > 0 { // a replica of a buffer has its place there
			busy, spare = true, spare-1
		}
		_, empty := p.emptyFrom[node.Name]
		switch {
		case busy:
			delete(p.emptyFrom, node.Name)
		case !empty && last.IsZero():
			p.emptyFrom[node.Name] = h.clock.Now()
		case !empty:
			p.emptyFrom[node.Name] = last
		}
		if since := p.emptyFrom[node.Name]; !busy && h.clock.Now().Sub(since) >= p.idle {
			delete(p.emptyFrom, node.Name)
			h.doom[node.Name], moved = h.clock.Now(), true
		}
	}
	return moved
}

// spare is how many empty nodes the CapacityBuffers want.
func (h *hands) spare() int64 {
	if h.plain.buffered == nil {
		return 0
	}
	return h.plain.buffered()
}

// fillBuffers boots nodes for the replicas that find no place.
func (h *hands) fillBuffers(pods []corev1.Pod, nodes []corev1.Node) bool {
	p, missing := h.plain, h.spare()
	for _, node := range nodes {
		if !slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
			return pod.Spec.NodeName == node.Name && !hasFinished(pod)
		}) {
			missing--
		}
	}
	for number := range p.chunks {
		if number >= missing {
			delete(p.chunks, number)
		}
	}
	for number := missing - 1; number >= 0; number-- {
		since, boots := p.chunks[number]
		switch {
		case !boots && len(nodes)+len(p.triggered)+len(p.chunks) < h.room:
			p.chunks[number] = h.clock.Now()
		case boots && h.clock.Now().Sub(since) >= h.boot:
			delete(p.chunks, number)
			h.addPlainNode()
			return true
		}
	}
	return false
}
