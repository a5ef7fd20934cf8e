//go:build clouds

package kubernetes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/kubernetes"
	"github.com/forewarm/forewarm/provisioners/kubernetes/apitest"
	"github.com/forewarm/forewarm/provisioners/provisionertest"
)

const bufferVersion = "autoscaling.x-k8s.io/v1beta1"

// newBufferWorld has an autoscaler that knows CapacityBuffers, and controllers that end
// their guards.
func newBufferWorld(t *testing.T, version string, adjust ...func(*kubernetes.Config)) *plainWorld {
	t.Helper()
	w := newPlainWorld(t, append(adjust, func(c *kubernetes.Config) { c.WarmWith = kubernetes.WarmBuffer })...)
	w.server.Define("capacitybuffers", "CapacityBuffer", version)
	w.plain.buffered = func() (replicas int64) {
		w.endGuards(t, version)
		for _, buffer := range w.buffers(t, version) {
			count, _, _ := unstructured.NestedInt64(buffer.Object, "spec", "replicas")
			replicas += count
		}
		return replicas
	}
	return w
}

// advanceSlowly lets controllers look meanwhile, as one acts on what another has done.
func (w *plainWorld) advanceSlowly(d time.Duration) {
	for d > 0 {
		step := min(d, 2*time.Minute)
		w.advanceClock(step)
		d -= step
	}
}

func (w *plainWorld) buffers(t *testing.T, version string) []unstructured.Unstructured {
	list, err := w.custom(t, version, "capacitybuffers").List(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	return list.Items
}

// endGuards is the job controller, and the garbage collector after it.
func (w *plainWorld) endGuards(t *testing.T, version string) {
	jobs, buffers := w.custom(t, "batch/v1", "jobs"), w.custom(t, version, "capacitybuffers")
	list, err := jobs.List(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	guards := map[string]bool{}
	for _, job := range list.Items {
		seconds, _, _ := unstructured.NestedInt64(job.Object, "spec", "activeDeadlineSeconds")
		parallel, found, _ := unstructured.NestedInt64(job.Object, "spec", "parallelism")
		require.True(t, found && parallel == 0, "a guard would run something")
		end := job.GetCreationTimestamp().Add(time.Duration(seconds) * time.Second)
		if w.clock.Now().Before(end) {
			guards[string(job.GetUID())] = true
			continue
		}
		require.NoError(t, jobs.Namespace(job.GetNamespace()).Delete(context.Background(), job.GetName(),
			metav1.DeleteOptions{}))
	}
	for _, buffer := range w.buffers(t, version) {
		if !guards[string(buffer.GetOwnerReferences()[0].UID)] {
			require.NoError(t, buffers.Namespace(buffer.GetNamespace()).Delete(context.Background(), buffer.GetName(),
				metav1.DeleteOptions{}))
		}
	}
}

func (w *plainWorld) requireReplicas(t *testing.T, want int64) {
	t.Helper()
	buffers := w.buffers(t, bufferVersion)
	require.Len(t, buffers, 1)
	count, _, err := unstructured.NestedInt64(buffers[0].Object, "spec", "replicas")
	require.NoError(t, err)
	require.Equal(t, want, count)
}

// The suites, with an autoscaler that keeps what a CapacityBuffer says.
func TestBufferConformance(t *testing.T) {
	t.Parallel()
	provisionertest.RunObserver(t, provisionertest.ObserverHarness{
		New: func(t *testing.T) provisionertest.ObserverSubject {
			w := newBufferWorld(t, bufferVersion)
			s := w.observerSubject(t)
			s.SuspendWithin += 20 * time.Minute // the guard's, which also waits for nodes
			s.BreakBoot = nil                   // an autoscaler says no of a pod, not of a replica
			s.Advance = w.advanceSlowly
			return s
		},
	})
}

// A claim lowers the replicas, or the autoscaler would boot another node; the end of the
// work raises them, while the node is promised.
func TestABufferIsSized(t *testing.T) {
	t.Parallel()
	w := newBufferWorld(t, bufferVersion)
	first := w.askNode(t, "a")
	require.Equal(t, provisioners.Booting, first.Phase)
	w.requireReplicas(t, 1)
	second := w.askNode(t, "b")
	w.requireReplicas(t, 2)
	w.awaitBoot()
	for _, id := range []string{first.ID, second.ID} {
		got, err := w.Observed.Get(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, provisioners.Running, got.Phase)
	}
	require.Empty(t, w.listPods(), "a placeholder stands beside the buffer")
	handle := w.submit(t, wholeNode)
	require.True(t, w.runs(t, handle))
	w.keep(t, first.ID, second.ID)
	w.requireReplicas(t, 1)
	w.advanceClock(2 * w.boot)
	require.Len(t, w.listNodes(), 2)
	w.finish(t, handle)
	w.keep(t, first.ID, second.ID)
	w.requireReplicas(t, 2)
	require.NoError(t, w.Observed.Delete(t.Context(), first.ID))
	w.requireReplicas(t, 1)
	require.NoError(t, w.Observed.Delete(t.Context(), second.ID))
	require.Empty(t, w.buffers(t, bufferVersion))
}

// Nobody has to be alive for a buffer to end.
func TestABufferThatNobodyKeeps(t *testing.T) {
	t.Parallel()
	w := newBufferWorld(t, "autoscaling.x-k8s.io/v1alpha1")
	kept := w.askNode(t, "a")
	w.awaitBoot()
	for range 30 {
		w.keep(t, kept.ID)
		w.advanceClock(2 * time.Minute)
	}
	require.Len(t, w.listNodes(), 1)
	require.Less(t, w.server.CountUses(apitest.Use{Verb: "patch", Group: "batch", Resource: "jobs"}), 40)
	w.advanceClock(keptFor + 21*time.Minute)
	require.Empty(t, w.buffers(t, "autoscaling.x-k8s.io/v1alpha1"))
	w.advanceClock(emptyFor)
	require.Empty(t, w.listNodes())
}

func TestWhatWarms(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t, func(c *kubernetes.Config) { c.WarmWith = kubernetes.WarmBuffer })
	_, err := w.Observed.Create(t.Context(), "a", made2spec())
	require.Equal(t, provisioners.KindBadSpec, provisioners.KindOf(err))
	require.ErrorContains(t, err, "no CapacityBuffer")
	w = newPlainWorld(t, func(c *kubernetes.Config) { c.WarmWith = kubernetes.WarmAuto })
	w.server.Define("capacitybuffers", "CapacityBuffer", "autoscaling.x-k8s.io/v9")
	w.askNode(t, "a")
	require.Len(t, w.placeholders(), 1, "another version than those that are known was used")

	w = newBufferWorld(t, bufferVersion)
	w.server.Inject(denyFault("create", "capacitybuffers"))
	_, err = w.Observed.Create(t.Context(), "b", made2spec())
	require.Equal(t, provisioners.KindDenied, provisioners.KindOf(err))
	list, err := w.Observed.List(t.Context(), "dep")
	require.NoError(t, err)
	require.Empty(t, list.Instances)
	w.askNode(t, "a")
	w.requireReplicas(t, 1)
}

// A buffer that brings no node is given up, with the autoscaler's own words.
func TestABufferThatBringsNothing(t *testing.T) {
	t.Parallel()
	for _, words := range []string{"", "the buffer is above the quota"} {
		w := newBufferWorld(t, bufferVersion)
		w.room = 0
		made := w.askNode(t, "a")
		if words != "" {
			buffer := w.buffers(t, bufferVersion)[0]
			require.NoError(t, unstructured.SetNestedSlice(buffer.Object, []any{map[string]any{
				"type": "ReadyForProvisioning", "status": "False", "message": words}}, "status", "conditions"))
			_, err := w.custom(t, bufferVersion, "capacitybuffers").Namespace(buffer.GetNamespace()).UpdateStatus(t.Context(),
				&buffer, metav1.UpdateOptions{})
			require.NoError(t, err)
		}
		for range 10 {
			require.NoError(t, w.Keep(t.Context(), []string{made.ID}))
			w.advanceClock(2 * time.Minute)
		}
		got, err := w.Observed.Get(t.Context(), made.ID)
		require.NoError(t, err)
		require.Equal(t, provisioners.Terminated, got.Phase)
		require.Contains(t, got.Notice.Message, "no node in 20m0s")
		if words == "" {
			words = "warm_with: placeholder"
		}
		require.Contains(t, got.Notice.Message, words)
	}
}
