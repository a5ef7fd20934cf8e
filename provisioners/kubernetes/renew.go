//go:build clouds

package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forewarm/forewarm/provisioners"
)

// Renew moves the time at which the placeholder ends itself. Its kubelet shows it
// the new time within about two minutes, so renew long before the old one.
func (c *Cluster) Renew(ctx context.Context, id string, until time.Time) error {
	if err := provisioners.Ended(ctx); err != nil {
		return err
	}
	k, ok := parseID(id)
	if !ok {
		return notFound(id)
	}
	for range attempts {
		s, err := c.api.readPair(ctx, k)
		switch {
		case err != nil:
			return err
		case s.hasEnded():
			return notFound(id)
		case !s.hasPlaceholder():
			return c.renewReplaced(ctx, k)
		case !isLater(s.pod, until):
			return nil
		}
		err = c.api.prolongPod(ctx, s.pod, until)
		if !apierrors.IsConflict(err) && !isNotFound(err, k.name) {
			return err
		}
	}
	return provisioners.Errorf(provisioners.KindTransient, "machine %s kept changing", id)
}

// renewReplaced finds nothing wrong with a machine that its user's pod holds: no time
// runs for it.
func (c *Cluster) renewReplaced(ctx context.Context, k key) error {
	i, err := c.reconcileRecord(ctx, k)
	if err == nil && i.Phase == provisioners.Terminated {
		return notFound(k.instanceID())
	}
	return err
}

// isLater reports whether until is later than the time that the pod has. A pod
// without one never ends by itself.
func isLater(pod *corev1.Pod, until time.Time) bool {
	has, err := strconv.ParseInt(pod.Annotations[noteExpires], 10, 64)
	return err == nil && until.After(time.Unix(has, 0))
}

// prolongPod changes this very version of the pod, so that of two calls at once the
// later time stays.
func (a api) prolongPod(ctx context.Context, pod *corev1.Pod, until time.Time) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "resourceVersion": pod.ResourceVersion,
		"annotations": map[string]string{noteExpires: formatExpiry(until)},
	}})
	if err != nil {
		return fmt.Errorf("rendering the new end of pod %s: %w", pod.Name, err)
	}
	_, err = a.core.Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err == nil || apierrors.IsConflict(err) || isNotFound(err, pod.Name) {
		return err
	}
	return readError(err, "moving the end of pod %s/%s", pod.Namespace, pod.Name)
}
