//go:build clouds

package kubernetes_test

import (
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var jobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}

// livingGuards are the Jobs that are there, once those at their deadline are removed, and
// those whose record is gone.
func (h *hands) livingGuards() map[types.UID]bool {
	list, err := h.jobs.Namespace(h.scope).List(h.t.Context(), metav1.ListOptions{})
	require.NoError(h.t, err)
	guards := map[types.UID]bool{}
	for _, job := range list.Items {
		if h.runsOn(job) {
			guards[job.GetUID()] = true
			continue
		}
		err := h.jobs.Namespace(job.GetNamespace()).Delete(h.t.Context(), job.GetName(),
			metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
		if !apierrors.IsNotFound(err) {
			require.NoError(h.t, err)
		}
	}
	return guards
}

func (h *hands) runsOn(job unstructured.Unstructured) bool {
	parallel, found, _ := unstructured.NestedInt64(job.Object, "spec", "parallelism")
	require.True(h.t, found && parallel == 0, "a guard would run something")
	for _, owner := range job.GetOwnerReferences() {
		object, err := h.core.ConfigMaps(job.GetNamespace()).Get(h.t.Context(), owner.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && object.UID != owner.UID {
			return false
		}
	}
	seconds, _, _ := unstructured.NestedInt64(job.Object, "spec", "activeDeadlineSeconds")
	return h.clock.Now().Before(job.GetCreationTimestamp().Add(time.Duration(seconds) * time.Second))
}
