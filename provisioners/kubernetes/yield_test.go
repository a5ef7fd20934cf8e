//go:build clouds

package kubernetes_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/kubernetes/apitest"
)

// unschedulable is what the pod's scheduler says of it.
func unschedulable(pod *corev1.Pod) {
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable}}
}

// A placeholder gives way for a pod that cannot preempt it and would find its place there,
// and for no other.
func TestAPlaceholderGivesWay(t *testing.T) {
	t.Parallel()
	never := func(pod *corev1.Pod) { pod.Spec.PreemptionPolicy = new(corev1.PreemptNever) }
	for what, test := range map[string]struct {
		change func(*corev1.Pod)
		gpus   int64
		want   bool
	}{
		"it never preempts":   {never, 8, true},
		"another scheduler's": {func(p *corev1.Pod) { p.Spec.SchedulerName = "volcano" }, 8, true},
		"it ranks below 0":    {func(p *corev1.Pod) { p.Spec.Priority = new(int32(-10)) }, 8, true},
		"Kueue looks for its node": {func(p *corev1.Pod) {
			p.Spec.SchedulingGates = gates("kueue.x-k8s.io/topology")
		}, 8, true},
		"it may preempt": {func(*corev1.Pod) {}, 8, false},
		"it is gated otherwise": {func(p *corev1.Pod) {
			never(p)
			p.Spec.SchedulingGates = gates("example.com/wait")
		}, 8, false},
		"it says that it is a placeholder": {func(pod *corev1.Pod) {
			never(pod)
			pod.Labels["forewarm.dev/role"] = "placeholder"
		}, 8, false},
		"it is too large": {never, 16, false},
		"it is for other nodes": {func(p *corev1.Pod) {
			never(p)
			p.Spec.NodeSelector = map[string]string{"zone": "b"}
		}, 8, false},
	} {
		w := newPlainWorld(t)
		kept := w.warmNode(t, "a")
		w.createPod("team", "x", test.gpus, func(pod *corev1.Pod) { test.change(pod) })
		pod, err := w.core.Pods("team").Get(t.Context(), "x", metav1.GetOptions{})
		require.NoError(t, err)
		unschedulable(pod)
		_, err = w.core.Pods("team").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
		require.NoError(t, err)
		w.keep(t, kept.ID)
		stands := slices.ContainsFunc(w.placeholders(), func(p corev1.Pod) bool { return p.Namespace == "forewarm" })
		require.Equal(t, test.want, !stands, what)
		if !test.want {
			continue
		}
		w.endPods(w.listPods())
		w.keep(t, kept.ID)
		require.Empty(t, w.placeholders(), "%s: it came back before the pod was there", what)
		w.clock.Advance(11 * time.Minute / 2)
		w.keep(t, kept.ID)
		w.clock.Advance(11 * time.Minute / 2)
		w.keep(t, kept.ID)
		require.Len(t, w.placeholders(), 1, "%s: it gives way for ever", what)
	}
}

func gates(name string) []corev1.PodSchedulingGate { return []corev1.PodSchedulingGate{{Name: name}} }

// One pod has one placeholder give way, and takes its node.
func TestOnePlaceholderGivesWay(t *testing.T) {
	t.Parallel()
	w := newPlainWorld(t)
	first, second := w.warmNode(t, "a"), w.warmNode(t, "b")
	w.createPod("team", "x", nodeGPUs, func(pod *corev1.Pod) { pod.Spec.SchedulerName = "volcano" })
	w.keep(t, first.ID, second.ID)
	require.Len(t, w.placeholders(), 2, "its scheduler may only not have looked yet")
	w.clock.Advance(time.Minute)
	for range 3 {
		w.keep(t, first.ID, second.ID)
		require.Len(t, w.placeholders(), 1)
	}
	pod, err := w.core.Pods("team").Get(t.Context(), "x", metav1.GetOptions{})
	require.NoError(t, err)
	for _, address := range []string{first.Address, second.Address} {
		if address != w.placeholders()[0].Spec.NodeName {
			w.bindPod(*pod, address)
			taken := map[string]string{first.Address: first.ID, second.Address: second.ID}[address]
			w.requireKept(t, taken, provisioners.NodeTaken)
		}
	}
	w.keep(t, first.ID, second.ID)
	require.Len(t, w.placeholders(), 1)
}

// However many nodes are kept, a call of Keep looks once at the pods.
func TestKeepLooksOnce(t *testing.T) {
	t.Parallel()
	for _, w := range []*plainWorld{newPlainWorld(t), newBufferWorld(t, bufferVersion)} {
		var ids []string
		for i := range 3 {
			ids = append(ids, w.warmNode(t, fmt.Sprint("n", i)).ID)
		}
		lists := apitest.Use{Verb: "list", Resource: "pods"}
		before := w.server.CountUses(lists)
		w.keep(t, ids...)
		require.Equal(t, before+1, w.server.CountUses(lists))
	}
}
