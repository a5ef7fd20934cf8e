//go:build clouds

package kubernetes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// hastyGrace is how long, in seconds, work waits for its placeholder at most. It ends at
	// once when it is told to; 0 would let the API server forget it before its GPUs are
	// free.
	hastyGrace = 1
	nodeName   = "metadata.name"
)

// newKeeper is the placeholder that keeps the node, or has one booted. A pod that is bound
// to a node by name makes no autoscaler boot another. One that is to have a node booted
// names none, for Karpenter boots nothing for pods that do: that it is the only
// placeholder on its node is enough.
func (c Config) newKeeper(s *stored, offer Offer, node *corev1.Node, until time.Time) *corev1.Pod {
	pod := c.newPlaceholder(s, offer, until)
	pod.Annotations[noteRecord] = string(s.object.UID)
	pod.Spec.TerminationGracePeriodSeconds = pointerTo[int64](hastyGrace)
	// Its kubelet ends it then although its container has never run, and so could not end
	// itself. Keep makes it again.
	pod.Spec.ActiveDeadlineSeconds = pointerTo(int64((mostKeep + c.KeepFor).Seconds()))
	if node != nil {
		pod.Spec.Affinity = boundAffinity(pod.Spec.Affinity, node.Name)
		return pod
	}
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	pod.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey:   corev1.LabelHostname,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{labelRole: rolePlaceholder}},
		}},
	}
	return pod
}

// boundTo is the name of the only node that the placeholder may be on; empty for any.
func boundTo(pod *corev1.Pod) string {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil ||
		pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, term := range pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == nodeName && field.Operator == corev1.NodeSelectorOpIn && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}

// boundAffinity adds the only node that will do to the offer's own conditions.
func boundAffinity(affinity *corev1.Affinity, node string) *corev1.Affinity {
	if affinity == nil {
		affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{}},
			},
		}}
	}
	affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields =
		[]corev1.NodeSelectorRequirement{{Key: nodeName, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}
	return affinity
}

// bufferTemplate is the shape of one node of a buffer.
func (c Config) bufferTemplate(offer Offer) corev1.PodTemplateSpec {
	pod := c.newPlaceholder(&stored{object: &corev1.ConfigMap{}}, offer, time.Time{})
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{labelManager: manager, labelType: offer.Type}},
		Spec:       pod.Spec,
	}
}
