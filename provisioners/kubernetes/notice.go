//go:build clouds

package kubernetes

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/forewarm/forewarm/provisioners"
)

// endTaints are the taints by which those that remove nodes say so first.
var endTaints = []string{
	corev1.TaintNodeOutOfService,
	"ToBeDeletedByClusterAutoscaler",
	"karpenter.sh/disrupted",
	"karpenter.sh/disruption",
	"aws-node-termination-handler/spot-itn",
	"aws-node-termination-handler/asg-lifecycle-termination",
	"aws-node-termination-handler/scheduled-maintenance",
	"cloud.google.com/impending-node-termination",
	"node.cloudprovider.kubernetes.io/shutdown",
}

// rebalance warns of a spot interruption that may come.
const rebalance = "aws-node-termination-handler/rebalance-recommendation"

// noticeOf is what the node of a running machine announces. The sooner end wins.
func (c *Cluster) noticeOf(s seen) *provisioners.Notice {
	switch {
	case s.nodeGone:
		return interruptionNotice("the node is not in the cluster any more")
	case s.node == nil:
		return nil
	case s.node.DeletionTimestamp != nil:
		n := interruptionNotice("the node is being deleted")
		n.At = s.node.DeletionTimestamp.UTC()
		return n
	}
	for _, taint := range s.node.Spec.Taints {
		if slices.Contains(endTaints, taint.Key) || slices.Contains(c.config.InterruptionTaints, taint.Key) {
			return interruptionNotice("taint " + taint.ToString())
		}
	}
	return c.degradedNotice(s)
}

func interruptionNotice(message string) *provisioners.Notice {
	return &provisioners.Notice{Kind: provisioners.NoticeInterruption, Message: message}
}

// lasting is how long a node may be unwell before that is worth a notice, which
// drains it. A kubelet or device plugin that restarts takes less.
const lasting = 2 * time.Minute

func (c *Cluster) degradedNotice(s seen) *provisioners.Notice {
	var why string
	now, has := c.clock.Now(), allocatableGPUs(s.node, s.record.Want)
	sick, short := unwellCondition(s.node), c.shortSince(s.key, has < s.record.Want.GPUs, now)
	switch {
	case sick != nil && now.Sub(sick.LastTransitionTime.Time) >= lasting:
		why = fmt.Sprintf("condition %s is %s: %s", sick.Type, sick.Status, sick.Message)
	case !short.IsZero() && now.Sub(short) >= lasting:
		why = fmt.Sprintf("the device plugin stands by %d of %d %s", has, s.record.Want.GPUs, s.record.Want.Resource)
	case s.node.Spec.Unschedulable:
		why = "the node is cordoned"
	case slices.ContainsFunc(s.node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == rebalance }):
		why = "taint " + rebalance
	default:
		return nil
	}
	return &provisioners.Notice{Kind: provisioners.NoticeDegraded, Message: why}
}

// shortSince is since when the machine's node has had too few GPUs, as far as
// this process has seen; zero when it has enough. The API does not tell.
func (c *Cluster) shortSince(k key, short bool, now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !short {
		delete(c.sparse, k)
		return time.Time{}
	}
	if c.sparse[k].IsZero() {
		c.sparse[k] = now
	}
	return c.sparse[k]
}

// unwellCondition returns the condition by which the node is not well, nil when it is. The
// GPUs' own condition is that of the EKS node monitoring agent.
func unwellCondition(node *corev1.Node) *corev1.NodeCondition {
	missing := &corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Message: "not reported"}
	for i := range node.Status.Conditions {
		condition := &node.Status.Conditions[i]
		if condition.Type == corev1.NodeReady {
			missing = nil
		}
		if (condition.Type == corev1.NodeReady || condition.Type == "AcceleratedHardwareReady") &&
			condition.Status != corev1.ConditionTrue {
			return condition
		}
	}
	return missing
}
