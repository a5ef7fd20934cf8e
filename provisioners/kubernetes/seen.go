//go:build clouds

package kubernetes

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forewarm/forewarm/core/access"
	"github.com/forewarm/forewarm/provisioners"
)

// seen is what was read of one machine. Nothing in this file asks the cluster:
// it says what the things that were read mean.
type seen struct {
	key    key
	record *stored     // nil: none, or one that another machine has
	pod    *corev1.Pod // nil: none, or one that another machine has
	node   *corev1.Node
	// nodeGone says that the node of the machine was asked for and is not there.
	nodeGone bool
	// work says that a pod of the machine's user has the placeholder's place.
	work bool
	// refusal is why no node will come for the placeholder; empty while one may.
	refusal string
	// unserved says that no controller acts on the buffer that is to warm the node.
	unserved bool
	devices  []device // as the probe said just now
	address  string   // of the node
}

func (s seen) isEmpty() bool { return s.record == nil && s.pod == nil }

// isAbandoned reports a placeholder that the adapter itself has to remove.
func (s seen) isAbandoned() bool { return s.record != nil && s.record.GivenUp && s.hasPlaceholder() }

func (s seen) hasEnded() bool { return s.record != nil && s.record.Ended }

// hasPlaceholder reports whether the placeholder is there to stay.
func (s seen) hasPlaceholder() bool {
	return s.pod != nil && s.pod.DeletionTimestamp == nil && !podFinished(s.pod)
}

func podFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// isLateDuplicate reports a pod that was made after the machine had already had one: a
// late duplicate of its Create died before it could take it back.
func (s seen) isLateDuplicate() bool {
	return s.pod != nil && s.record != nil && s.record.PodUID != "" && s.record.PodUID != s.pod.UID
}

// awaitsPlaceholder reports a record whose placeholder was never seen: its Create was
// refused, has died, or has not got there yet. It is no machine.
func (s seen) awaitsPlaceholder() bool {
	return s.record != nil && s.pod == nil && s.record.PodUID == "" && !s.record.Ended
}

// isForgettable reports a record that nobody has to know any more.
func (s seen) isForgettable(now time.Time) bool {
	if s.awaitsPlaceholder() {
		return now.Sub(s.record.object.CreationTimestamp.Time) > remembered
	}
	return s.record.Ended && now.After(s.record.ForgetAt)
}

// holdsNode reports whether the machine still has its node, or waits for one.
func (s seen) holdsNode() bool { return s.hasPlaceholder() || s.work && !s.hasEnded() }

// nextRecord is what the record should say, and whether that differs from what it
// says. Only a record changes; a pod without one has nothing to remember.
func (s seen) nextRecord(now time.Time) (record, bool) {
	if s.record == nil {
		return record{}, false
	}
	r := s.record.record
	switch {
	case r.Ended:
		return s.noteDeletion(r)
	case s.isLateDuplicate():
		return r.ended(time.Time{}, now, "its placeholder had vanished").giveUp(), true
	case s.hasPlaceholder() && s.refusal != "":
		return r.ended(now, now, s.refusal).giveUp(), true
	case s.isUsable():
		r.Place = &place{Node: s.node.Name, UID: s.node.UID, Address: s.address}
		r.Devices = s.devices
		return r, true
	case s.holdsNode():
		return r, false
	case s.pod == nil:
		return r.ended(r.EndedAt, now, "its placeholder vanished: evicted, preempted, or its node is gone"), true
	case podFinished(s.pod):
		return r.ended(finishedAt(s.pod), now, "its placeholder finished: "+finishedWhy(s.pod)), true
	}
	return s.noteDeletion(r)
}

// noteDeletion notes the API server's own time of the end, which is known while the pod
// is on its way out and lost with it.
func (s seen) noteDeletion(r record) (record, bool) {
	if s.pod == nil || s.pod.DeletionTimestamp == nil || r.EndedAt.Equal(s.pod.DeletionTimestamp.Time) {
		return r, false
	}
	r.EndedAt = s.pod.DeletionTimestamp.UTC()
	return r, true
}

// isUsable reports whether the machine can be used for the first time.
func (s seen) isUsable() bool {
	return s.record.Place == nil && s.hasPlaceholder() && s.pod.Status.Phase == corev1.PodRunning &&
		containersRunning(s.pod) &&
		s.node != nil && unwellCondition(s.node) == nil && allocatableGPUs(s.node,
		s.record.Want) >= s.record.Want.GPUs &&
		len(s.devices) > 0
}

func containersRunning(pod *corev1.Pod) bool {
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Running == nil {
			return false
		}
	}
	return len(pod.Status.ContainerStatuses) > 0
}

// allocatableGPUs is how many GPUs the node's device plugin stands by.
func allocatableGPUs(node *corev1.Node, w want) int {
	quantity := node.Status.Allocatable[corev1.ResourceName(w.Resource)]
	return int(quantity.Value())
}

// stuckFor is how long a placeholder may be on its node without running. Its image is
// small, and its node is up.
const stuckFor = 5 * time.Minute

// stuckReason says why a placeholder does not run that should have for long; empty for
// any other.
func (s seen) stuckReason(now time.Time) string {
	if !s.hasPlaceholder() || s.pod.Spec.NodeName == "" || s.node == nil || unwellCondition(s.node) != nil ||
		containersRunning(s.pod) {
		return ""
	}
	since, why := s.pod.CreationTimestamp.Time, s.pod.Status.Reason
	for _, condition := range s.pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionTrue {
			since = condition.LastTransitionTime.Time
		}
	}
	for _, status := range s.pod.Status.ContainerStatuses {
		if status.RestartCount > 0 || status.LastTerminationState.Terminated != nil {
			return "" // it has run, and does again
		}
		if waiting := status.State.Waiting; waiting != nil {
			why = waiting.Reason
		}
	}
	if now.Sub(since) < stuckFor {
		return ""
	}
	return fmt.Sprintf("its placeholder is on node %s and does not run: %s; see kubectl describe pod -n %s %s",
		s.pod.Spec.NodeName, cmp.Or(why, "its kubelet says nothing of it"), s.pod.Namespace, s.pod.Name)
}

// portInstance renders the machine. s is as it is after next has nothing to add.
func (s seen) portInstance() provisioners.Instance {
	i := provisioners.Instance{ID: s.key.instanceID(), Phase: s.portPhase()}
	if s.pod != nil {
		i.Token, i.Owner, i.NodeID = s.pod.Annotations[noteToken], s.pod.Labels[labelOwner], s.pod.Labels[labelNode]
		i.Type, i.CreatedAt = s.pod.Labels[labelType], s.pod.CreationTimestamp.UTC()
	}
	if s.record == nil {
		return i
	}
	r := s.record
	i.Token, i.Owner, i.NodeID, i.Type = r.Token, r.Spec.Owner, r.Spec.NodeID, r.Spec.Type
	switch {
	case !r.CreatedAt.IsZero():
		i.CreatedAt = r.CreatedAt
	case s.pod == nil:
		i.CreatedAt = r.object.CreationTimestamp.UTC()
	}
	switch i.Phase {
	case provisioners.Running:
		i.Address, i.Devices = s.wayIn().String(), r.portDevices()
	case provisioners.Terminated:
		i.EndedAt = r.EndedAt
	}
	return i
}

// wayIn leads into the placeholder. Work that takes its place is its owner's own pod.
func (s seen) wayIn() access.Address {
	return access.Address{Kind: access.Kubernetes, Namespace: s.key.namespace, Pod: s.key.name,
		Container: holdContainer, Host: s.record.Place.Address}
}

func (s seen) portPhase() provisioners.Phase {
	switch {
	case s.holdsNode() && s.record != nil && s.record.Place != nil:
		return provisioners.Running
	case s.holdsNode():
		return provisioners.Booting
	case s.pod != nil && !podFinished(s.pod):
		return provisioners.Terminating
	default:
		return provisioners.Terminated
	}
}

// takesOver reports whether a pod of the machine's user has, or is about to get,
// the node that the placeholder held. The scheduler promises the node to a pod
// that preempts, in older versions only after it has ended the placeholder.
func (s seen) takesOver(pod *corev1.Pod) bool {
	switch {
	case podFinished(pod) || pod.Labels[labelRole] == rolePlaceholder || s.record.Place == nil:
		return false
	case pod.Spec.NodeName != "":
		return pod.Spec.NodeName == s.record.Place.Node
	case s.pod != nil && !podFinished(s.pod):
		return true
	}
	return pod.Status.NominatedNodeName == s.record.Place.Node
}

// isPlaceholderOf reports whether the pod is the placeholder of the record with the uid.
func isPlaceholderOf(pod *corev1.Pod, uid types.UID) bool {
	return pod.Labels[labelRole] == rolePlaceholder && uid != "" && recordOf(pod) == uid
}

// recordOf is the uid of the record of a placeholder: what owns it, or what its guard
// guards.
func recordOf(pod *corev1.Pod) types.UID {
	for _, owner := range pod.OwnerReferences {
		switch {
		case owner.Kind == "ConfigMap":
			return owner.UID
		case owner.Kind == "Job" && owner.Name == pod.Name:
			return types.UID(pod.Annotations[noteRecord])
		}
	}
	return ""
}

func finishedAt(pod *corev1.Pod) (last time.Time) {
	for _, status := range pod.Status.ContainerStatuses {
		if ended := status.State.Terminated; ended != nil && ended.FinishedAt.After(last) {
			last = ended.FinishedAt.UTC()
		}
	}
	return last
}

func finishedWhy(pod *corev1.Pod) string {
	if pod.Status.Phase == corev1.PodSucceeded {
		return "its time was over"
	}
	return pod.Status.Reason + " " + pod.Status.Message
}
