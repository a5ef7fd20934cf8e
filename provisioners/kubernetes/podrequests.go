//go:build clouds

package kubernetes

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// podRequest is how much of the resource the scheduler books for the pod. Sidecars, which
// are initial containers that stay, count beside the containers; another initial container
// runs before those, beside the sidecars that stand before it. What the pod asks for as a
// whole takes the place of all that, and the overhead of its runtime comes on top.
func podRequest(pod *corev1.Pod, name corev1.ResourceName) resource.Quantity {
	var together, sidecars, largest resource.Quantity
	for _, container := range pod.Spec.Containers {
		together.Add(container.Resources.Requests[name])
	}
	for _, container := range pod.Spec.InitContainers {
		asks := container.Resources.Requests[name].DeepCopy()
		if isSidecar(container) {
			sidecars.Add(asks)
			asks = sidecars.DeepCopy()
		} else {
			asks.Add(sidecars)
		}
		if asks.Cmp(largest) > 0 {
			largest = asks
		}
	}
	together.Add(sidecars)
	if largest.Cmp(together) > 0 {
		together = largest
	}
	if pod.Spec.Resources != nil {
		if whole, says := pod.Spec.Resources.Requests[name]; says {
			together = whole.DeepCopy()
		}
	}
	together.Add(pod.Spec.Overhead[name])
	return together
}

func isSidecar(container corev1.Container) bool {
	return container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
