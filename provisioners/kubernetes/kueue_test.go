//go:build clouds

package kubernetes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/forewarm/forewarm/provisioners"
)

// custom speaks to the fake server of kinds that are not built in.
func (w *plainWorld) custom(t *testing.T, version, resource string) dynamic.NamespaceableResourceInterface {
	t.Helper()
	open, err := dynamic.NewForConfig(&rest.Config{Host: w.url, QPS: -1, UserAgent: "hands"})
	require.NoError(t, err)
	group, err := schema.ParseGroupVersion(version)
	require.NoError(t, err)
	return open.Resource(group.WithResource(resource))
}

// newWorkload is what Kueue makes for a job, or for a pod, in a LocalQueue.
func newWorkload(version, name string, owner metav1.OwnerReference, conditions ...any) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version, "kind": "Workload",
		"spec":   map[string]any{"queueName": "gpu-queue"},
		"status": map[string]any{"conditions": conditions},
	}}
	made.SetNamespace("team")
	made.SetName(name)
	made.SetOwnerReferences([]metav1.OwnerReference{owner})
	return made
}

func condition(kind, status, reason string, at time.Time) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": "",
		"lastTransitionTime": at.UTC().Format(time.RFC3339)}
}

// A pod that Kueue has not admitted waits for its quota, and could begin from when it was.
func TestKueue(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1beta2"} {
		w := newPlainWorld(t)
		w.server.Define("workloads", "Workload", version)
		kueue := w.custom(t, version, "workloads").Namespace("team")
		w.warmNode(t, "a")
		uid := w.createPod("team", "queued", nodeGPUs, func(pod *corev1.Pod) {
			pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
		})
		owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "queued", UID: uid}
		require.Equal(t, provisioners.WaitLimits, w.look(t, "").Work[0].Waiting, "its gate says so")
		_, err := kueue.Create(t.Context(), newWorkload(version, "one", owner,
			condition("Evicted", "True", "Preempted", w.clock.Now())), metav1.CreateOptions{})
		require.NoError(t, err)
		require.Equal(t, provisioners.WaitPriority, w.look(t, "").Work[0].Waiting)

		w.advanceClock(time.Minute)
		admitted := w.clock.Now()
		require.NoError(t, kueue.Delete(t.Context(), "one", metav1.DeleteOptions{}))
		_, err = kueue.Create(t.Context(), newWorkload(version, "one", owner,
			condition("Admitted", "True", "Admitted", admitted)), metav1.CreateOptions{})
		require.NoError(t, err)
		pod, err := w.core.Pods("team").Get(t.Context(), "queued", metav1.GetOptions{})
		require.NoError(t, err)
		pod.Spec.SchedulingGates = nil
		_, err = w.core.Pods("team").Update(t.Context(), pod, metav1.UpdateOptions{})
		require.NoError(t, err)
		w.runControllers()
		w.advanceClock(time.Second)
		work := w.look(t, "").Work[0]
		require.Equal(t, "gpu-queue", work.Queue)
		require.True(t, admitted.Equal(work.EligibleAt))
		wait, started := work.Wait()
		require.True(t, started)
		require.Zero(t, wait, "the wait for admission was counted")
	}
}

// The pods of a job that Kueue admits as one begin as one.
func TestAGangOfKueue(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	version := "kueue.x-k8s.io/v1beta2"
	w.server.Define("workloads", "Workload", version)
	w.warmNode(t, "a")
	job := metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "job-1"}
	_, err := w.custom(t, version, "workloads").Namespace("team").Create(t.Context(),
		newWorkload(version, "train", job, condition("Admitted", "True", "Admitted", w.clock.Now())),
		metav1.CreateOptions{})
	require.NoError(t, err)
	for _, name := range []string{"train-0", "train-1"} {
		w.createPod("team", name, nodeGPUs, func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{job}
		})
	}
	w.runControllers()
	w.advanceClock(time.Second)
	for _, work := range w.look(t, "").Work {
		require.Equal(t, provisioners.WaitBoot, work.Waiting)
	}
	w.advanceClock(w.boot)
	for _, work := range w.look(t, "").Work {
		wait, started := work.Wait()
		require.True(t, started)
		require.GreaterOrEqual(t, wait, w.boot)
	}
}

// Workloads that may not be read hide no work: only since when it may start is not known.
func TestKueueWithoutTheRight(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	w.server.Define("workloads", "Workload", "kueue.x-k8s.io/v1alpha1")
	w.look(t, "")
	w = newPlainWorld(t)
	w.server.Define("workloads", "Workload", "kueue.x-k8s.io/v1beta2")
	w.server.Inject(denyFault("list", "workloads"))
	w.submit(t, wholeNode)
	seen, err := w.Observe(t.Context(), "")
	require.NoError(t, err)
	require.False(t, seen.Complete)
	require.Contains(t, seen.Gap, "Workloads of Kueue")
	require.Len(t, seen.Work, 1)
}
