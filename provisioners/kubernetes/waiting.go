//go:build clouds

package kubernetes

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// saidBoots is what autoscalers have said last of pods.
type saidBoots struct {
	boots boots
	last  map[types.UID]time.Time
}

// readBoots asks what an autoscaler has said last of pods, where any finds no place. Who may
// not read the events of all namespaces reads those of the pods'; unread are the ones
// where that is refused as well.
func (e *eyes) readBoots(ctx context.Context, pods []podView) (said boots, unread []string, err error) {
	waiting := map[string]bool{} // namespaces
	for _, p := range pods {
		if p.unschedulable && !p.finished {
			waiting[p.namespace] = true
		}
	}
	if len(waiting) == 0 {
		return nil, nil, nil
	}
	all := saidBoots{boots{}, map[types.UID]time.Time{}}
	err = e.readWords(ctx, metav1.NamespaceAll, &all)
	if !apierrors.IsForbidden(err) {
		return all.boots, nil, err
	}
	for _, namespace := range slices.Sorted(maps.Keys(waiting)) {
		err := e.readWords(ctx, namespace, &all)
		switch {
		case apierrors.IsForbidden(err):
			unread = append(unread, namespace)
		case err != nil:
			return nil, nil, err
		}
	}
	return all.boots, unread, nil
}

// readWords reads the events of one namespace, or of all.
func (e *eyes) readWords(ctx context.Context, namespace string, said *saidBoots) error {
	for _, word := range bootWords {
		options := metav1.ListOptions{FieldSelector: "involvedObject.kind=Pod,reason=" + word.reason}
		_, err := eachPage(options, func(options metav1.ListOptions) (string, error) {
			page, err := e.api().core.Events(namespace).List(ctx, options)
			if err != nil {
				return "", err
			}
			for _, event := range page.Items {
				if pod := event.InvolvedObject.UID; !eventTime(event).Before(said.last[pod]) {
					said.last[pod], said.boots[pod] = eventTime(event), word.boots
				}
			}
			return page.Continue, nil
		})
		if err != nil {
			return readError(err, "listing what autoscalers say of pods")
		}
	}
	return nil
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
