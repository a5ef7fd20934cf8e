//go:build clouds

package kubernetes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// mostAvoided bounds how many nodes a placeholder names that it must not be put on.
	mostAvoided = 100
	// hastyGrace is how long, in seconds, work waits for its placeholder at most. It ends at
	// once when it is told to; 0 would let the API server forget it before its GPUs are
	// free.
	hastyGrace = 1
	nodeName   = "metadata.name"
)

// newKeeper is the placeholder that keeps the node, or has one booted that is none of
// those to avoid. A pod that is bound to a node by name makes no autoscaler boot another.
func (c Config) newKeeper(s *stored, offer Offer, node *corev1.Node, avoid []string, until time.Time) *corev1.Pod {
	pod := c.newPlaceholder(s, offer, until)
	pod.Spec.TerminationGracePeriodSeconds = pointerTo[int64](hastyGrace)
	var fields []corev1.NodeSelectorRequirement
	if node != nil {
		fields = []corev1.NodeSelectorRequirement{requireName(corev1.NodeSelectorOpIn, node.Name)}
	} else {
		for _, name := range avoid {
			fields = append(fields, requireName(corev1.NodeSelectorOpNotIn, name))
		}
	}
	pod.Spec.Affinity = withFields(pod.Spec.Affinity, fields)
	return pod
}

func requireName(operator corev1.NodeSelectorOperator, name string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: nodeName, Operator: operator, Values: []string{name}}
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

// withFields adds the conditions to the offer's own, all of which must hold.
func withFields(affinity *corev1.Affinity, fields []corev1.NodeSelectorRequirement) *corev1.Affinity {
	if len(fields) == 0 {
		return affinity
	}
	if affinity == nil {
		affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{}},
			},
		}}
	}
	affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields = fields
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
