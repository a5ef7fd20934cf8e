//go:build clouds

package kubernetes_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/forewarm/forewarm/provisioners"
)

// container asks for GPUs and processors.
func container(name, devices, cpu string) corev1.Container {
	asks := corev1.ResourceList{gpus: resource.MustParse(devices), corev1.ResourceCPU: resource.MustParse(cpu)}
	return corev1.Container{Name: name, Image: "x", Resources: corev1.ResourceRequirements{Requests: asks}}
}

func sidecar(name, devices, cpu string) corev1.Container {
	c := container(name, devices, cpu)
	c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	return c
}

// A pod asks for what the scheduler books for it, which its containers alone do not say.
func TestWhatAPodAsksFor(t *testing.T) {
	t.Parallel()
	work := []corev1.Container{container("a", "1", "1"), container("b", "1", "1")}
	for what, test := range map[string]struct {
		spec corev1.PodSpec
		gpus int
	}{
		"containers": {corev1.PodSpec{Containers: work}, 2},
		"a large initial container": {corev1.PodSpec{Containers: work,
			InitContainers: []corev1.Container{container("i", "5", "1")}}, 5},
		"a sidecar beside the containers": {corev1.PodSpec{Containers: work,
			InitContainers: []corev1.Container{sidecar("s", "1", "1")}}, 3},
		"an initial container beside the sidecar before it": {corev1.PodSpec{Containers: work,
			InitContainers: []corev1.Container{sidecar("s", "1", "1"), container("i", "5", "1")}}, 6},
		"an initial container before the sidecar": {corev1.PodSpec{Containers: work,
			InitContainers: []corev1.Container{container("i", "5", "1"), sidecar("s", "1", "1")}}, 5},
		"overhead": {corev1.PodSpec{Containers: work,
			Overhead: corev1.ResourceList{gpus: resource.MustParse("1")}}, 3},
	} {
		w := newPlainWorld(t)
		name := w.addPlainNode()
		w.createPod("team", "x", 0, func(pod *corev1.Pod) {
			test.spec.NodeName = name
			pod.Spec = test.spec
		})
		seen := w.look(t, "")
		require.Len(t, seen.Work, 1, what)
		require.Equal(t, test.gpus, seen.Work[0].GPUs, what)
		require.Equal(t, test.gpus, seen.Nodes[0].GPUsTaken, what)
	}
}

// So it is with what an offer's shape asks for beside GPUs: of 96 processors a pod of the
// shape needs 90.
func TestWhatAPodWithoutGPUsAsksFor(t *testing.T) {
	t.Parallel()
	for what, spec := range map[string]corev1.PodSpec{
		"a sidecar":            {InitContainers: []corev1.Container{sidecar("s", "0", "10")}},
		"an initial container": {InitContainers: []corev1.Container{container("i", "0", "10")}},
		"overhead":             {Overhead: resources(corev1.ResourceCPU, "10")},
		"the pod as a whole":   {Resources: &corev1.ResourceRequirements{Requests: resources(corev1.ResourceCPU, "10")}},
	} {
		w := newPlainWorld(t)
		name := w.addPlainNode()
		w.createPod("team", "x", 0, func(pod *corev1.Pod) {
			spec.Containers, spec.NodeName = []corev1.Container{container("a", "0", "100m")}, name
			pod.Spec = spec
		})
		require.Equal(t, provisioners.NodeTaken, w.look(t, "").Nodes[0].State, what)
	}
}
