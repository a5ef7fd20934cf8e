//go:build clouds

package kubernetes

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forewarm/forewarm/provisioners"
)

// Delete writes the end into the record, then removes the placeholder. What else
// runs on the node is not touched: the node goes when the cluster's autoscaler
// finds nothing on it.
func (c *Cluster) Delete(ctx context.Context, id string) error {
	if err := provisioners.Ended(ctx); err != nil {
		return err
	}
	k, ok := parseID(id)
	if !ok {
		return nil
	}
	s, err := c.recordEnd(ctx, k)
	if err != nil {
		return err
	}
	// What only makes the end tidier must not hold it up.
	tidying := c.api.deleteRequest(ctx, s)
	if s.pod == nil || s.pod.DeletionTimestamp != nil {
		return tidying
	}
	tidying = errors.Join(tidying, c.cordonNode(ctx, s))
	return errors.Join(c.api.deletePod(ctx, s.pod), tidying)
}

// recordEnd returns the machine with its end written down.
func (c *Cluster) recordEnd(ctx context.Context, k key) (seen, error) {
	for range attempts {
		s, err := c.api.readPair(ctx, k)
		if err != nil || s.record == nil || s.hasEnded() {
			return s, err
		}
		now := c.clock.Now()
		at := now
		if s.pod == nil { // gone before, nobody knows when
			at = s.record.EndedAt
		}
		err = c.api.updateRecord(ctx, s.record, s.record.ended(at, now, "it was deleted"))
		if !errors.Is(err, errChanged) {
			return s, err
		}
	}
	return seen{}, provisioners.Errorf(provisioners.KindTransient, "machine %s kept changing", k.instanceID())
}

// cordonNode keeps others off a node that is empty but for our placeholder, until
// the autoscaler takes it.
func (c *Cluster) cordonNode(ctx context.Context, s seen) error {
	if !c.config.CordonOnDelete || s.record == nil || s.record.Place == nil {
		return nil
	}
	node := s.record.Place.Node
	free, err := c.api.onlyOurs(ctx, s, node)
	if err != nil || !free {
		return err
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q},"spec":{"unschedulable":true}}`, s.record.Place.UID)
	_, err = c.api.core.Nodes().Patch(ctx, node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil && !isNotFound(err, node) && !apierrors.IsConflict(err) {
		return readError(err, "cordoning node %s", node)
	}
	return nil
}

// onlyOurs reports whether the node carries nothing that anybody would miss:
// this machine's placeholder, and what every node runs.
func (a api) onlyOurs(ctx context.Context, s seen, node string) (bool, error) {
	pods, complete, err := readPages("", func(options metav1.ListOptions) ([]corev1.Pod, string, error) {
		options.FieldSelector = "spec.nodeName=" + node
		page, err := a.core.Pods(metav1.NamespaceAll).List(ctx, options)
		return page.Items, page.Continue, err
	})
	if err != nil {
		return false, readError(err, "listing the pods of node %s", node)
	}
	for _, pod := range pods {
		if !isPlaceholderOf(&pod, s.record.object.UID) && !podFinished(&pod) && !everyNodes(&pod) {
			return false, nil
		}
	}
	return complete, nil
}

// everyNodes reports a pod of a DaemonSet, or one that the kubelet runs by itself.
func everyNodes(pod *corev1.Pod) bool {
	for _, owner := range pod.OwnerReferences {
		set := owner.Kind == "DaemonSet" && owner.APIVersion == "apps/v1" && owner.Controller != nil && *owner.Controller
		if set || owner.Kind == "Node" {
			return true
		}
	}
	return pod.Annotations[corev1.MirrorPodAnnotationKey] != ""
}
