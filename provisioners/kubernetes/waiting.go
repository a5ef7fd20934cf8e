//go:build clouds

package kubernetes

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forewarm/forewarm/provisioners"
)

// bootWords are the reasons of events by which autoscalers say of a pod that a node comes
// for it, or that none does: the cluster autoscaler's two, and Karpenter's.
var bootWords = []struct {
	reason string
	boots  bool
}{{"TriggeredScaleUp", true}, {"Nominated", true}, {"NotTriggerScaleUp", false}}

// boots are the pods that an autoscaler boots a node for.
type boots map[types.UID]bool

// readBoots asks what an autoscaler has said last of pods, where any finds no place.
func (e *eyes) readBoots(ctx context.Context, pods []podView) (boots, error) {
	if !slices.ContainsFunc(pods, func(p podView) bool { return p.unschedulable && !p.finished }) {
		return nil, nil
	}
	last := map[types.UID]time.Time{}
	said := boots{}
	for _, word := range bootWords {
		options := metav1.ListOptions{FieldSelector: "involvedObject.kind=Pod,reason=" + word.reason}
		_, err := eachPage(options, func(options metav1.ListOptions) (string, error) {
			page, err := e.api().core.Events(metav1.NamespaceAll).List(ctx, options)
			if err != nil {
				return "", err
			}
			for _, event := range page.Items {
				if pod := event.InvolvedObject.UID; !eventTime(event).Before(last[pod]) {
					last[pod], said[pod] = eventTime(event), word.boots
				}
			}
			return page.Continue, nil
		})
		if err != nil {
			return nil, readError(err, "listing what autoscalers say of pods")
		}
	}
	return said, nil
}

// waitsFor is why a pod waits that has no node.
func (e *eyes) waitsFor(p podView, w *workload, said boots, nodes []corev1.Node) provisioners.Reason {
	switch {
	case w != nil && w.admitted.IsZero():
		return w.waiting
	case p.isGatedBy(kueueGroup):
		return provisioners.WaitLimits
	case len(p.gates) > 0:
		return provisioners.WaitDependencies
	case p.nominated != "":
		return nominatedFor(p.nominated, nodes)
	case !p.unschedulable:
		return provisioners.WaitOther
	case said[p.uid]:
		return provisioners.WaitBoot
	}
	return provisioners.WaitResources
}

// nominatedFor is what a pod waits for that was promised a node: the node's boot, or the
// end of what it takes the place of.
func nominatedFor(name string, nodes []corev1.Node) provisioners.Reason {
	for i := range nodes {
		if nodes[i].Name == name && unwellCondition(&nodes[i]) == nil {
			return provisioners.WaitOther
		}
	}
	return provisioners.WaitBoot
}
