//go:build clouds

package kubernetes

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podView is what counts of a pod. A list of all pods of a cluster is kept as these: a
// pod has ten kilobytes, and most of them are its user's own words.
type podView struct {
	uid             types.UID
	namespace       string
	version         uint64 // of the object; 0: not known
	node            string
	own, everywhere bool
	load            corev1.ResourceList // of what offers request
	resource        string              // of the offers' that it asks for
	gpus            int
	fits            []int // the offers that it could be served by, as far as it says itself

	created, scheduled, ended time.Time
	finished                  bool
	gates                     []string
	unschedulable             bool
	nominated                 string
	group                     string // of its gang; empty: it is alone
	workload                  string // of Kueue, as the pod says itself
	owners                    []types.UID
	blocked                   *blockedPod // nil: placeholders make way for it
}

// viewPod takes what counts.
func (c Config) viewPod(pod *corev1.Pod) podView {
	v := podView{
		uid: pod.UID, namespace: pod.Namespace, node: pod.Spec.NodeName, own: c.isPlaceholder(pod),
		everywhere: everyNodes(pod), created: pod.CreationTimestamp.UTC(), finished: podFinished(pod),
		nominated: pod.Status.NominatedNodeName, group: gangOf(pod), workload: pod.Annotations[kueueWorkload],
	}
	if pod.Spec.NodeName == "" {
		v.blocked = viewBlocked(pod)
	}
	v.version, _ = strconv.ParseUint(pod.ResourceVersion, 10, 64)
	c.viewRequests(&v, pod)
	for _, gate := range pod.Spec.SchedulingGates {
		v.gates = append(v.gates, gate.Name)
	}
	for _, owner := range pod.OwnerReferences {
		v.owners = append(v.owners, owner.UID)
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type != corev1.PodScheduled {
			continue
		}
		v.unschedulable = condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable
		if condition.Status == corev1.ConditionTrue {
			v.scheduled = condition.LastTransitionTime.UTC()
		}
	}
	if v.node != "" && v.scheduled.IsZero() { // somebody has bound it who is no scheduler
		v.scheduled = v.created
		if pod.Status.StartTime != nil {
			v.scheduled = pod.Status.StartTime.UTC()
		}
	}
	if v.finished {
		v.ended = finishedAt(pod)
	}
	return v
}

// isPlaceholder reports a pod of ours, or of another installation: it is in a namespace in
// which only we make pods, belongs to a record there, and ranks below all real work. What
// it says by labels alone, anybody could say in a namespace of their own.
func (c Config) isPlaceholder(pod *corev1.Pod) bool {
	return (pod.Namespace == c.Namespace || slices.Contains(c.PlaceholderNamespaces, pod.Namespace)) &&
		pod.Labels[labelRole] == rolePlaceholder && pod.Labels[labelManager] == manager && recordOf(pod) != "" &&
		pod.Spec.Priority != nil && *pod.Spec.Priority < 0
}

// viewRequests takes what the pod asks for, and whom that makes it a pod for.
func (c Config) viewRequests(v *podView, pod *corev1.Pod) {
	for i, offer := range c.Offers {
		name := corev1.ResourceName(offer.Resource)
		asks := podRequest(pod, name)
		if gpus := int(asks.Value()); gpus > 0 && (v.resource == "" || v.resource == offer.Resource) {
			v.resource, v.gpus = offer.Resource, gpus
			if gpus <= offer.GPUs && offer.admits(pod) {
				v.fits = append(v.fits, i)
			}
		}
		for asked := range offer.Requests {
			name := corev1.ResourceName(asked)
			if _, known := v.load[name]; known {
				continue
			}
			if v.load == nil {
				v.load = corev1.ResourceList{}
			}
			v.load[name] = podRequest(pod, name)
		}
	}
}

// admits reports whether nodes of the offer are not ruled out by the pod's own selector.
func (o Offer) admits(pod *corev1.Pod) bool {
	for key, value := range o.NodeSelector {
		if wants, has := pod.Spec.NodeSelector[key]; has && wants != value {
			return false
		}
	}
	return true
}

// The marks by which those that start pods together say so, on each of them.
var (
	gangLabels = []string{"kueue.x-k8s.io/pod-group-name", "scheduling.x-k8s.io/pod-group",
		"leaderworkerset.sigs.k8s.io/group-key"}
	gangNotes = []string{"scheduling.k8s.io/group-name"} // Volcano
)

// gangOf is what the pods that start together have in common.
func gangOf(pod *corev1.Pod) string {
	for _, key := range gangLabels {
		if name := pod.Labels[key]; name != "" {
			return strings.Join([]string{pod.Namespace, key, name}, "/")
		}
	}
	for _, key := range gangNotes {
		if name := pod.Annotations[key]; name != "" {
			return strings.Join([]string{pod.Namespace, key, name}, "/")
		}
	}
	return ""
}

// isWork reports whether it is a pod of the cluster's users that has asked for GPUs.
func (v podView) isWork() bool { return v.gpus > 0 && !v.own && !v.everywhere }

// holdsNode reports whether it takes part of a node.
func (v podView) holdsNode() bool { return v.node != "" && !v.finished }

// isGatedBy reports whether a gate of the name, or one that begins with it, is closed.
func (v podView) isGatedBy(prefix string) bool {
	return slices.ContainsFunc(v.gates, func(gate string) bool { return strings.HasPrefix(gate, prefix) })
}
