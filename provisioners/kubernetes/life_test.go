//go:build clouds

package kubernetes_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/kubernetes"
	"github.com/forewarm/forewarm/provisioners/kubernetes/apitest"
)

func (w *world) testSpec() provisioners.Spec {
	spec := ofA100
	spec.Owner, spec.NodeID = "dep", "nod_1"
	return spec
}

func (w *world) createInstance(t *testing.T) provisioners.Instance {
	t.Helper()
	made, err := w.Create(t.Context(), "token", w.testSpec())
	require.NoError(t, err)
	return made
}

// createRunning is a machine that runs.
func (w *world) createRunning(t *testing.T) provisioners.Instance {
	t.Helper()
	made := w.createInstance(t)
	w.advanceClock(2 * time.Minute)
	return w.requirePhase(t, made.ID, provisioners.Running)
}

func (w *world) requirePhase(t *testing.T, id string, want provisioners.Phase) provisioners.Instance {
	t.Helper()
	got, err := w.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, want, got.Phase, "%+v", got)
	return got
}

func (w *world) listInstances(t *testing.T) []provisioners.Instance {
	t.Helper()
	list, err := w.List(t.Context(), "dep")
	require.NoError(t, err)
	require.True(t, list.Complete)
	return list.Instances
}

func podName(id string) string { return strings.Split(id, "/")[1] }

// removePlaceholder removes the placeholder as an eviction does, behind the adapter's back.
func (w *world) removePlaceholder(t *testing.T, id string) {
	t.Helper()
	require.NoError(t, w.core.Pods("forewarm").Delete(t.Context(), podName(id),
		metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
}

func TestThePlaceholder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *kubernetes.Config) {
		offer := &c.Offers[0]
		offer.NodeSelector = map[string]string{"pool": "gpu"}
		offer.NodeAffinity = []kubernetes.Match{{Key: "zone", Operator: "In", Values: []string{"a", "b"}}}
		offer.Tolerations = []kubernetes.Toleration{{Key: "spot", Operator: "Exists", Effect: "NoSchedule"}}
		offer.Requests = map[string]string{"cpu": "90"}
		offer.RuntimeClass = "nvidia"
		c.ImagePullSecrets = []string{"registry"}
	})
	made := w.createInstance(t)
	require.Equal(t, provisioners.Booting, made.Phase)
	pod, err := w.core.Pods("forewarm").Get(t.Context(), podName(made.ID), metav1.GetOptions{})
	require.NoError(t, err)
	spec := pod.Spec
	require.Equal(t, "forewarm-placeholder", spec.PriorityClassName)
	require.Equal(t, map[string]string{"pool": "gpu"}, spec.NodeSelector)
	terms := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	require.Equal(t, "zone", terms[0].MatchExpressions[0].Key)
	require.Contains(t, spec.Tolerations, corev1.Toleration{Key: "nvidia.com/gpu", Operator: "Exists",
		Effect: "NoSchedule"})
	require.Contains(t, spec.Tolerations, corev1.Toleration{Key: "spot", Operator: "Exists", Effect: "NoSchedule"})
	require.Equal(t, "nvidia", *spec.RuntimeClassName)
	require.Equal(t, "registry", spec.ImagePullSecrets[0].Name)
	limit := spec.Containers[0].Resources.Limits[gpus]
	require.Equal(t, int64(8), limit.Value())
	require.Equal(t, "90", spec.Containers[0].Resources.Requests.Cpu().String())
	require.Equal(t, "32Mi", spec.Containers[0].Resources.Requests.Memory().String())
	require.False(t, *spec.AutomountServiceAccountToken)
	require.Equal(t, "false", pod.Annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"])
	require.Equal(t, "true", pod.Annotations["karpenter.sh/do-not-disrupt"])
	require.Equal(t, "nod_1", pod.Labels["forewarm.dev/node"])
	require.Empty(t, pod.Finalizers, "a finalizer would make kubectl drain wait for us")
}

func TestAMachineThatRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *kubernetes.Config) { c.Address = kubernetes.AddressInternalIP })
	got := w.createRunning(t)
	require.Equal(t, "10.0.0.1", nodeOf(got))
	require.Equal(t, start, got.CreatedAt)
	require.Equal(t, 81_920, got.Devices[7].MemoryMiB)
	require.Equal(t, "a100-80g", got.Devices[7].Model)
	require.Contains(t, got.Devices[7].UUID, "node-1-")
	require.Nil(t, got.Notice)
	require.Equal(t, []provisioners.Instance{got}, w.listInstances(t))

	w.clock.Advance(time.Hour)
	require.NoError(t, w.Delete(t.Context(), got.ID))
	w.requirePhase(t, got.ID, provisioners.Terminating)
	w.advanceClock(10 * time.Second)
	over := w.requirePhase(t, got.ID, provisioners.Terminated)
	require.Equal(t, w.clock.Now().Add(-5*time.Second), over.EndedAt, "the pod's own deletion time")
	require.Equal(t, over, w.listInstances(t)[0])
}

// The control plane believes what List shows, so a machine that vanished without
// anybody asking about it may not come back through a late duplicate.
func TestAVanishedMachineStaysGone(t *testing.T) {
	t.Parallel()
	for what, look := range map[string]func(*world, string){
		"nobody looked": func(*world, string) {},
		"Get looked":    func(w *world, id string) { w.requirePhase(t, id, provisioners.Terminated) },
		"List looked": func(w *world, _ string) {
			require.Equal(t, provisioners.Terminated,
				w.listInstances(t)[0].Phase)
		},
		"it was deleted": func(w *world, id string) {
			require.NoError(t, w.Delete(t.Context(), id))
		},
	} {
		w := newWorld(t)
		made := w.createInstance(t)
		w.removePlaceholder(t, made.ID)
		look(w, made.ID)
		again := w.createInstance(t)
		require.Equal(t, made.ID, again.ID, what)
		require.Equal(t, provisioners.Terminated, again.Phase, what)
		require.Zero(t, again.EndedAt, "%s: nobody can say when it was", what)
		require.Empty(t, w.listPods(), what)
	}
}

// A process that dies between the pod and the record leaves a pod that the next
// call finds by its name.
func TestACreateThatDiedIsTakenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.Inject(apitest.Fault{On: usesOf("update", "configmaps"), Refuse: serverUnavailable()})
	_, err := w.Create(t.Context(), "token", w.testSpec())
	require.Equal(t, provisioners.KindUnknown, provisioners.KindOf(err))
	listed := w.listInstances(t)
	require.Len(t, listed, 1)
	require.Equal(t, provisioners.Booting, listed[0].Phase)
	again := w.createInstance(t)
	require.Equal(t, listed[0], again)
}

// A late duplicate that got past the record before the machine's end makes its
// pod after it, sees the record again, and takes the pod back.
func TestALateDuplicateTakesItsPodBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.Inject(apitest.Fault{On: usesOf("create", "pods"), Refuse: serverUnavailable()})
	_, err := w.Create(t.Context(), "token", w.testSpec())
	require.Equal(t, provisioners.KindUnknown, provisioners.KindOf(err))
	slow := newGate(t, w, http.MethodPost, "/pods")
	done := make(chan provisioners.Instance)
	go func() {
		made, err := slow.Create(context.Background(), "token", w.testSpec())
		if err != nil {
			panic(err)
		}
		done <- made
	}()
	slow.awaitCaller() // it has read the record, and is about to make the pod
	made := w.createInstance(t)
	require.NoError(t, w.Delete(t.Context(), made.ID))
	w.requirePhase(t, made.ID, provisioners.Terminated)
	slow.letPass()
	late := <-done
	require.Equal(t, made.ID, late.ID)
	require.Equal(t, provisioners.Terminated, late.Phase)
	require.Empty(t, w.listPods())
}

// A pod that such a duplicate could not take back, because it died, is listed
// and can be deleted.
func TestAStrayIsSweptLikeAnyMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.createInstance(t)
	pod, err := w.core.Pods("forewarm").Get(t.Context(), podName(made.ID), metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, w.Delete(t.Context(), made.ID))
	pod.ResourceVersion, pod.UID = "", ""
	_, err = w.core.Pods("forewarm").Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	listed := w.listInstances(t)
	require.Equal(t, made.ID, listed[0].ID)
	require.Equal(t, provisioners.Booting, listed[0].Phase, "it stands, and says so")
	require.NoError(t, w.Delete(t.Context(), listed[0].ID))
	require.Empty(t, w.listPods())
	w.requirePhase(t, made.ID, provisioners.Terminated)
}

func TestAMachineWhoseNodeDoesNotComeIsGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.boot, w.room = time.Hour, 0 // the autoscaler says nothing
	made := w.createInstance(t)
	w.advanceClock(20*time.Minute - time.Second)
	w.requirePhase(t, made.ID, provisioners.Booting)
	w.advanceClock(time.Second)
	over := w.requirePhase(t, made.ID, provisioners.Terminated)
	require.Contains(t, over.Notice.Message, "no node in 20m0s")
	require.Equal(t, w.clock.Now(), over.EndedAt)
	require.Empty(t, w.listPods(), "its placeholder would boot a node for nobody")

	spec := w.testSpec()
	spec.NodeID = "nod_2"
	_, err := w.Create(t.Context(), "token-2", spec)
	require.Equal(t, provisioners.KindCapacity, provisioners.KindOf(err))
	require.ErrorContains(t, err, "r1/a100-8")
	w.advanceClock(3 * time.Minute)
	_, err = w.Create(t.Context(), "token-2", spec)
	require.NoError(t, err, "the memory of a stock-out ends")
}

// The autoscaler refuses one node group and then brings a node of another.
func TestALaterYesOfTheAutoscalerCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.room = 0
	made := w.createInstance(t)
	w.advanceClock(90 * time.Second)
	pod := w.listPods()[0]
	_, err := w.core.Events("forewarm").Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "forewarm", Name: "yes"},
		InvolvedObject: corev1.ObjectReference{UID: pod.UID},
		Reason:         "TriggeredScaleUp", LastTimestamp: metav1.NewTime(w.clock.Now()),
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	w.requirePhase(t, made.ID, provisioners.Booting)
}

// A give-up whose pod could not be removed is finished by the next Get.
func TestAGivenUpPlaceholderIsRemovedInTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.boot, w.room = time.Hour, 0
	made := w.createInstance(t)
	w.advanceClock(21 * time.Minute)
	w.server.Inject(apitest.Fault{On: usesOf("delete", "pods"), Refuse: serverUnavailable()})
	_, err := w.Get(t.Context(), made.ID)
	require.Equal(t, provisioners.KindTransient, provisioners.KindOf(err))
	require.Len(t, w.listPods(), 1)
	w.requirePhase(t, made.ID, provisioners.Terminated)
	require.Empty(t, w.listPods())
}

func TestRecordsAreForgottenAfterDays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.createInstance(t)
	require.NoError(t, w.Delete(t.Context(), made.ID))
	w.server.Inject(apitest.Fault{On: usesOf("create", "pods"), Refuse: quotaRefusal()})
	spec := w.testSpec()
	spec.NodeID = "nod_2"
	_, err := w.Create(t.Context(), "token-2", spec)
	require.Equal(t, provisioners.KindQuota, provisioners.KindOf(err))
	w.clock.Advance(47 * time.Hour)
	require.Len(t, w.listInstances(t), 1)
	require.Equal(t, provisioners.Terminated, w.createInstance(t).Phase)
	w.clock.Advance(2 * time.Hour)
	w.listInstances(t)
	records, err := w.core.ConfigMaps("forewarm").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, records.Items)
	_, err = w.Get(t.Context(), made.ID)
	require.Equal(t, provisioners.KindNotFound, provisioners.KindOf(err))
}

// Whoever deletes a record by hand ends its machine, by the cluster's own
// garbage collector; until then it is found by its pod.
func TestAMachineWithoutItsRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.createRunning(t)
	require.NoError(t, w.core.ConfigMaps("forewarm").Delete(t.Context(), podName(made.ID), metav1.DeleteOptions{}))
	w.requirePhase(t, made.ID, provisioners.Booting)
	require.Equal(t, made.ID, w.listInstances(t)[0].ID)
	_, err := w.Create(t.Context(), "token", w.testSpec())
	require.Equal(t, provisioners.KindUnknown, provisioners.KindOf(err), "%v", err)
	w.runControllers()
	_, err = w.Get(t.Context(), made.ID)
	require.Equal(t, provisioners.KindNotFound, provisioners.KindOf(err))
}

func TestADamagedRecordIsNotAnEmptyOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.createInstance(t)
	object, err := w.core.ConfigMaps("forewarm").Get(t.Context(), podName(made.ID), metav1.GetOptions{})
	require.NoError(t, err)
	object.Data = map[string]string{"machine.json": "{"}
	_, err = w.core.ConfigMaps("forewarm").Update(t.Context(), object, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = w.Get(t.Context(), made.ID)
	require.Equal(t, provisioners.KindTransient, provisioners.KindOf(err))
	_, err = w.Create(t.Context(), "token", w.testSpec())
	require.Equal(t, provisioners.KindTransient, provisioners.KindOf(err))
	list, err := w.List(t.Context(), "dep")
	require.NoError(t, err)
	require.False(t, list.Complete)
}

func TestLongListsAreReadToTheirEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const many = 501 // more than a page
	for i := range many {
		_, err := w.core.Pods("forewarm").Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name:        fmt.Sprint("forewarm-", i),
			Labels:      map[string]string{"forewarm.dev/owner": "dep", "forewarm.dev/role": "placeholder"},
			Annotations: map[string]string{"forewarm.dev/token": "t"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x",
				UID: types.UID(fmt.Sprint("u-", i))}},
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	require.Len(t, w.listInstances(t), many)
}
