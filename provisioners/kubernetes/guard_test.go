//go:build clouds

package kubernetes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/kubernetes"
)

// A placeholder that never gets a node has no kubelet that could end it: when nobody keeps
// it any more, its guard does, and no machine is made for it later.
func TestAPendingPlaceholderOfADeadControlPlane(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	w.boot = 10 * time.Hour
	made := w.askNode(t, "a")
	for range 5 {
		w.advanceClock(2 * time.Minute)
		w.keep(t, made.ID)
	}
	require.Len(t, w.placeholders(), 1)
	require.Empty(t, w.placeholders()[0].Spec.NodeName)
	w.advanceClock(20*time.Minute + keptFor - 2*time.Minute)
	require.Len(t, w.placeholders(), 1, "it was ended while it may be kept")
	w.advanceClock(4 * time.Minute)
	require.Empty(t, w.listPods())
	w.boot = time.Minute
	w.advanceClock(time.Hour)
	require.Empty(t, w.listNodes())
	require.Empty(t, w.livingGuards())
}

// What is kept for long is not ended by its guard, and leaves none behind.
func TestAGuardIsKept(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	kept := w.warmNode(t, "a")
	pod := w.placeholders()[0]
	for range 30 {
		w.keep(t, kept.ID)
		w.advanceClock(2 * time.Minute)
	}
	require.Equal(t, pod.UID, w.placeholders()[0].UID)
	require.NoError(t, w.Observed.Delete(t.Context(), kept.ID))
	list, err := w.jobs.Namespace("forewarm").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, list.Items)
}

// A guard that Kueue suspends would never end anything: it is refused, and nothing is made.
func TestASuspendedGuard(t *testing.T) {
	t.Parallel()
	for _, w := range []*plainWorld{newPlainWorld(t), newBufferWorld(t, bufferVersion)} {
		w.server.SuspendJobs()
		_, err := w.Observed.Create(t.Context(), "b", made2spec())
		require.Equal(t, provisioners.KindBadSpec, provisioners.KindOf(err))
		require.ErrorContains(t, err, "have Kueue leave out that namespace")
		require.Empty(t, w.listPods())
		require.Empty(t, w.livingGuards())
		list, err := w.Observed.List(t.Context(), "dep")
		require.NoError(t, err)
		require.Empty(t, list.Instances)
	}
}

// A class that work does not outrank is refused, and its placeholder removed.
func TestAClassThatOutranksWork(t *testing.T) {
	t.Parallel()
	for _, value := range []int32{0, 1000} {
		w := newPlainWorld(t)
		name := w.addPlainNode()
		w.server.SetPriority(value)
		_, err := w.Observed.Create(t.Context(), "b", made2spec())
		require.Equal(t, provisioners.KindBadSpec, provisioners.KindOf(err))
		require.ErrorContains(t, err, "PriorityClass forewarm-placeholder has the value")
		require.Empty(t, w.placeholders())
		w.server.SetPriority(-5)
		require.Equal(t, name, w.askNode(t, "a").Address, "its node was not given back")
	}
}

// Pods without GPUs take a node from a buffer only where its shape no longer fits beside
// them.
func TestABufferBesideWorkWithoutGPUs(t *testing.T) {
	t.Parallel()
	for cpu, replicas := range map[string]int64{"100m": 1, "10": 0} {
		w := newBufferWorld(t, bufferVersion)
		kept := w.warmNode(t, "a")
		w.createPod("team", "web", 0, func(pod *corev1.Pod) {
			pod.Spec.NodeName = kept.Address
			pod.Spec.Containers[0].Resources.Requests = resources(corev1.ResourceCPU, cpu)
		})
		w.runControllers()
		w.keep(t, kept.ID)
		w.requireReplicas(t, replicas)
	}
}

// Labels alone make no pod a placeholder: whoever writes them in a namespace of their own
// has work like all others.
func TestAForgedPlaceholder(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	kept := w.warmNode(t, "a")
	forged := w.placeholders()[0]
	for _, namespace := range []string{"team", "other"} {
		w.createPod(namespace, "forged", 4, func(pod *corev1.Pod) {
			pod.Labels, pod.Annotations = forged.Labels, forged.Annotations
			pod.Spec.PriorityClassName, pod.Spec.NodeName = forged.Spec.PriorityClassName, kept.Address
			pod.OwnerReferences = forged.OwnerReferences
			pod.OwnerReferences[0].Name = "forged"
		})
	}
	require.Len(t, w.look(t, "").Work, 2)
	w.requireKept(t, kept.ID, provisioners.NodeTaken)
	w.config.PlaceholderNamespaces = []string{"other"}
	w.open(t)
	require.Len(t, w.look(t, "").Work, 1)
}

func TestPlaceholderNamespaces(t *testing.T) {
	t.Parallel()
	config := testConfig("x").WithDefaults()
	config.PlaceholderNamespaces = []string{"other"}
	require.ErrorContains(t, config.Validate(), "placeholder_namespaces")
	config.Use = kubernetes.UseObserved
	config = config.WithDefaults()
	config.PlaceholderNamespaces = []string{"Not a name"}
	require.ErrorContains(t, config.Validate(), "placeholder_namespaces[0]")
}
