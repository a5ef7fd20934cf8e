//go:build clouds

package kubernetes

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// patience is how long the autoscaler's first no is not taken for an answer: it
// also says no while another of its node groups is about to say yes.
const patience = time.Minute

// scaleUpRefusal says why no node will come for a placeholder that waits for one; empty
// while one may.
func (c *Cluster) scaleUpRefusal(ctx context.Context, s seen) (string, error) {
	waited := c.clock.Now().Sub(s.pod.CreationTimestamp.Time)
	if waited >= c.config.PendingTimeout {
		return fmt.Sprintf("no node in %v: %s", c.config.PendingTimeout, unschedulableMessage(s.pod)), nil
	}
	if s.record.Want.Request {
		why, err := c.api.requestRefused(ctx, s)
		if why != "" || err != nil {
			return why, err
		}
	}
	if waited < patience {
		return "", nil
	}
	return c.api.autoscalerSaysNo(ctx, s.pod)
}

func unschedulableMessage(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			return condition.Message
		}
	}
	return "the scheduler has said nothing"
}

// autoscalerSaysNo returns the cluster autoscaler's reason where its last word
// about the pod was that it will not scale up.
func (a api) autoscalerSaysNo(ctx context.Context, pod *corev1.Pod) (string, error) {
	events, err := a.core.Events(pod.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "involvedObject.uid=" + string(pod.UID), Limit: pageSize,
	})
	if err != nil {
		return "", readError(err, "listing the events of pod %s/%s", pod.Namespace, pod.Name)
	}
	var last corev1.Event
	for _, event := range events.Items {
		if (event.Reason == "NotTriggerScaleUp" || event.Reason == "TriggeredScaleUp") &&
			!eventTime(event).Before(eventTime(last)) {
			last = event
		}
	}
	if last.Reason != "NotTriggerScaleUp" {
		return "", nil
	}
	return last.Message, nil
}

func eventTime(event corev1.Event) time.Time {
	if event.Series != nil {
		return event.Series.LastObservedTime.Time
	}
	if !event.LastTimestamp.IsZero() {
		return event.LastTimestamp.Time
	}
	return event.EventTime.Time
}
