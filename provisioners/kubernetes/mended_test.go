//go:build clouds

package kubernetes_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forewarm/forewarm/provisioners"
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
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "team", Value: "other", Effect: corev1.TaintEffectNoSchedule})
	})
	node := w.requireKept(t, kept.ID, provisioners.NodeUnavailable)
	require.Equal(t, nodeGPUs, node.GPUs)
	require.Contains(t, node.Message, "serves no offer")
}
