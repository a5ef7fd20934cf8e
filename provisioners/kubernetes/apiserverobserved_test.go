//go:build clouds && envtest

package kubernetes_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/kubernetes"
	"github.com/forewarm/forewarm/provisioners/provisionertest"
)

// realPlainWorld is a namespace of its own, with its own users in it and its own nodes, and
// an observer with the rights of rbac-observe.yaml. Observers see all namespaces, and so
// each other's pods: the GPUs of each are a resource of their own.
func realPlainWorld(t *testing.T, adjust ...func(*kubernetes.Config)) *plainWorld {
	t.Helper()
	admin, namespace := adminConfig(t), fmt.Sprintf("o%d-", worlds.Add(1))
	namespace += strings.ToLower(fmt.Sprintf("%x", time.Now().UnixNano()))
	for _, manifest := range []string{"placeholders.yaml", "rbac-observe.yaml", "testdata/capacitybuffers.yaml",
		"testdata/workloads.yaml"} {
		applyManifest(t, admin, manifest, namespace)
	}
	core, err := corev1client.NewForConfig(admin)
	require.NoError(t, err)
	w := &plainWorld{namespace: namespace, world: &world{clock: clock.NewManual(time.Now())}}
	w.hands = hands{t: t, scope: namespace, core: core, jobs: realJobsOf(t, admin), clock: w.clock, boot: time.Minute,
		doom: map[string]time.Time{}}
	w.config = testConfig(os.Getenv("FOREWARM_TEST_KUBERNETES_USER"))
	w.config.Namespace, w.device = namespace, corev1.ResourceName(namespace+".example.com/gpu")
	w.observe(t, func(c *kubernetes.Config) {
		for i := range c.Offers {
			c.Offers[i].Resource = string(w.device)
		}
	})
	for _, by := range adjust {
		by(&w.config)
	}
	w.open(t)
	require.Eventually(t, func() bool { // the server's own memory of rights, and of kinds, is a moment old
		_, err := w.Observe(context.Background(), "")
		list, failed := w.Observed.List(context.Background(), "dep")
		return err == nil && failed == nil && list.Complete && w.servesCustom(t)
	}, time.Minute, 100*time.Millisecond)
	w.open(t)
	return w
}

// servesCustom reports whether the server serves the kinds that were defined.
func (w *plainWorld) servesCustom(t *testing.T) bool {
	for _, kind := range []schema.GroupVersionResource{realBuffers, realWorkloads} {
		_, err := w.realCustom(t, kind).List(context.Background(), metav1.ListOptions{})
		if err != nil {
			return false
		}
	}
	return true
}

var (
	realBuffers = schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1beta1",
		Resource: "capacitybuffers"}
	realWorkloads = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "workloads"}
	realJobs      = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
)

func (w *plainWorld) realCustom(t *testing.T, kind schema.GroupVersionResource) dynamic.ResourceInterface {
	t.Helper()
	open, err := dynamic.NewForConfig(adminConfig(t))
	require.NoError(t, err)
	return open.Resource(kind).Namespace(w.namespace)
}

func TestObserverOnARealAPIServer(t *testing.T) {
	t.Parallel()
	provisionertest.RunObserver(t, provisionertest.ObserverHarness{
		New: func(t *testing.T) provisionertest.ObserverSubject {
			s := realPlainWorld(t).observerSubject(t)
			s.TruncateQueue, s.Throttle, s.Beats = nil, nil, nil
			// The server forgets changes when etcd compacts, which no test can ask for.
			s.Forget = func() {}
			s.Histories = 2
			return s
		},
	})
}

func TestObservedContractOnARealAPIServer(t *testing.T) {
	t.Parallel()
	provisionertest.Run(t, provisionertest.Harness{New: func(t *testing.T) provisionertest.Subject {
		w := realPlainWorld(t, func(c *kubernetes.Config) { c.KeepFor = 24 * time.Hour })
		w.plain.idle, w.room = 0, 12
		s := w.contractSubject(t)
		s.TimeOutCreate, s.TimeOutDelete, s.TruncateList, s.FailCreate = nil, nil, nil, nil
		s.FailDelete, s.Throttle, s.LagList = nil, nil, nil
		s.Histories = 3
		return s
	}})
}

// Pods that were deleted between two looks are told by a real watch, and none twice.
func TestRealWatchTellsOfDeletedPods(t *testing.T) {
	t.Parallel()
	w := realPlainWorld(t)
	w.warmNode(t, "a")
	mark := w.look(t, "").Mark
	const pods = 30
	for range pods {
		handle := w.submit(t, provisionertest.PlainWork{GPUs: 1, Nodes: 1})
		require.True(t, w.runs(t, handle))
		for _, pod := range w.podsOf(t, handle) {
			w.killPod(pod)
		}
	}
	seen := w.look(t, mark)
	require.Len(t, seen.Work, pods)
	for _, work := range seen.Work {
		require.False(t, work.StartedAt.IsZero())
		require.False(t, work.EndedAt.IsZero())
	}
	require.Empty(t, w.look(t, seen.Mark).Work)
}

// What the API server checks of the buffer, its shape and its guard, it finds right; the
// guard's deadline can be moved.
func TestRealBuffer(t *testing.T) {
	t.Parallel()
	w := realPlainWorld(t, func(c *kubernetes.Config) { c.WarmWith = kubernetes.WarmBuffer })
	made := w.askNode(t, "a")
	only := func(kind schema.GroupVersionResource) unstructured.Unstructured {
		list, err := w.realCustom(t, kind).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, list.Items, 1)
		return list.Items[0]
	}
	count, _, err := unstructured.NestedInt64(only(realBuffers).Object, "spec", "replicas")
	require.NoError(t, err)
	require.Equal(t, int64(1), count)
	before, _, _ := unstructured.NestedInt64(only(realJobs).Object, "spec", "activeDeadlineSeconds")
	w.addPlainNode()
	w.clock.Advance(3 * time.Minute)
	w.keep(t, made.ID)
	after, _, _ := unstructured.NestedInt64(only(realJobs).Object, "spec", "activeDeadlineSeconds")
	require.Greater(t, after, before)
	got, err := w.Observed.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Running, got.Phase)
	require.NoError(t, w.Observed.Delete(t.Context(), made.ID))
	list, err := w.realCustom(t, realBuffers).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, list.Items)
}

func TestRealKueue(t *testing.T) {
	t.Parallel()
	w := realPlainWorld(t)
	w.addPlainNode()
	uid := w.createPod(w.namespace, "queued", 1, func(pod *corev1.Pod) {
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
	})
	require.Equal(t, provisioners.WaitLimits, w.look(t, "").Work[0].Waiting)
	admitted := w.clock.Now()
	workload := newWorkload("kueue.x-k8s.io/v1beta2", "one",
		metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "queued", UID: uid})
	workload.SetNamespace(w.namespace)
	made, err := w.realCustom(t, realWorkloads).Create(t.Context(), workload, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, unstructured.SetNestedSlice(made.Object,
		[]any{condition("Admitted", "True", "Admitted", admitted)}, "status", "conditions"))
	_, err = w.realCustom(t, realWorkloads).UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
	require.NoError(t, err)
	work := w.look(t, "").Work[0]
	require.Equal(t, "gpu-queue", work.Queue)
	require.Equal(t, admitted.Unix(), work.EligibleAt.Unix())
}
