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

// A record that somebody has damaged is named, and stops neither the mark nor the others.
func TestADamagedRecord(t *testing.T) {
	t.Parallel()
	w := newBufferWorld(t, bufferVersion)
	damaged, sound := w.warmNode(t, "a"), w.warmNode(t, "b")
	records := w.core.ConfigMaps("forewarm")
	record, err := records.Get(t.Context(), podName(damaged.ID), metav1.GetOptions{})
	require.NoError(t, err)
	record.Data = map[string]string{"machine.json": "{"}
	_, err = records.Update(t.Context(), record, metav1.UpdateOptions{})
	require.NoError(t, err)
	before := w.lookPast(t, "", record.Name)
	w.submit(t, wholeNode)
	require.NotEqual(t, before.Mark, w.lookPast(t, before.Mark, record.Name).Mark)
	w.keep(t, sound.ID)
}

// lookPast is a look that is not complete, for a reason with the words.
func (w *plainWorld) lookPast(t *testing.T, since provisioners.Mark, words string) provisioners.Observation {
	t.Helper()
	seen, err := w.Observe(t.Context(), since)
	require.NoError(t, err)
	require.False(t, seen.Complete)
	require.Contains(t, seen.Gap, words)
	return seen
}

// A mark from the future is of another cluster, or of one that was restored from a copy.
func TestAMarkFromTheFuture(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	_, err := w.Observe(t.Context(), "kube1-999999999999")
	require.ErrorIs(t, err, provisioners.ErrForeignMark)
	require.Equal(t, provisioners.KindBadSpec, provisioners.KindOf(err))
}

// A placeholder that is to have a node booted names none, for Karpenter boots nothing for
// pods that do.
func TestABootNamesNoNode(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	w.warmNode(t, "a")
	booting := w.askNode(t, "b")
	for _, pod := range w.placeholders() {
		if pod.Name == podName(booting.ID) {
			require.Nil(t, pod.Spec.Affinity.NodeAffinity)
			require.NotNil(t, pod.Spec.Affinity.PodAntiAffinity)
		}
	}
}

// A kept node that no offer is served by any more is still shown.
func TestAKeptNodeThatServesNothing(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	kept := w.warmNode(t, "a")
	w.updateNode(kept.Address, func(n *corev1.Node) {
		others := corev1.Taint{Key: "team", Value: "other", Effect: corev1.TaintEffectNoSchedule}
		n.Spec.Taints = append(n.Spec.Taints, others)
	})
	node := w.requireKept(t, kept.ID, provisioners.NodeUnavailable)
	require.Equal(t, nodeGPUs, node.GPUs)
	require.Contains(t, node.Message, "serves no offer")
}

// A placeholder whose Create was cut off before its record is left as it is.
func TestKeepLeavesAHalfMadeKeeping(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	w.addPlainNode()
	w.server.Inject(denyFault("update", "configmaps"))
	_, err := w.Observed.Create(t.Context(), "b", made2spec())
	require.Error(t, err)
	before := w.placeholders()[0].Annotations["forewarm.dev/expires-at"]
	list, err := w.Observed.List(t.Context(), "dep")
	require.NoError(t, err)
	require.Len(t, list.Instances, 1)
	w.clock.Advance(time.Minute)
	w.keep(t, list.Instances[0].ID)
	require.GreaterOrEqual(t, w.placeholders()[0].Annotations["forewarm.dev/expires-at"], before)
}

// A cluster that has the kind of CapacityBuffers and nobody who acts on them is served by
// placeholders.
func TestABufferThatNobodyServes(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t, func(c *kubernetes.Config) { c.WarmWith = kubernetes.WarmAuto })
	w.server.Define("capacitybuffers", "CapacityBuffer", bufferVersion)
	made := w.askNode(t, "a")
	require.Empty(t, w.placeholders())
	require.Len(t, w.buffers(t, bufferVersion), 1)
	w.advanceClock(2 * time.Minute)
	_, err := w.Observed.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Len(t, w.placeholders(), 1)
	require.Empty(t, w.buffers(t, bufferVersion))
	w.askNode(t, "b")
	require.Len(t, w.placeholders(), 2, "it was forgotten")
}

// A placeholder that is on its node and never runs would hold it for ever: its keeping ends,
// and says why.
func TestAPlaceholderThatNeverRuns(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	kept := w.warmNode(t, "a")
	pod := w.placeholders()[0]
	require.NotNil(t, pod.Spec.ActiveDeadlineSeconds)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
	_, err := w.core.Pods(pod.Namespace).UpdateStatus(t.Context(), &pod, metav1.UpdateOptions{})
	require.NoError(t, err)
	w.clock.Advance(6 * time.Minute / 2)
	w.keep(t, kept.ID)
	w.clock.Advance(6 * time.Minute / 2)
	got, err := w.Observed.Get(t.Context(), kept.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Terminated, got.Phase)
	require.Contains(t, got.Notice.Message, "ImagePullBackOff")
	require.Empty(t, w.placeholders())
}
