//go:build clouds

package kubernetes

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forewarm/forewarm/provisioners"
)

// Create takes a node into keeping: one that is up and idle, else one that the autoscaler
// boots. The record is written first, as for a placeholder that is reserved; then the
// node is claimed, if there is one, and then comes what keeps or boots it.
func (o *Observed) Create(ctx context.Context, token string, asked provisioners.Spec) (provisioners.Instance, error) {
	return untilItStays(func() (provisioners.Instance, error) { return o.createOnce(ctx, token, asked) })
}

func (o *Observed) createOnce(ctx context.Context, token string, asked provisioners.Spec) (
	provisioners.Instance, error) {
	offer, err := o.cluster.checkRequest(ctx, token, asked)
	if err != nil {
		return provisioners.Instance{}, err
	}
	s, err := o.cluster.ensureRecord(ctx, token, asked, offer)
	if err != nil {
		return provisioners.Instance{}, err
	}
	if s.Ended || s.Way != "" {
		return o.settle(ctx, s.instanceKey())
	}
	way, err := o.chooseWay(ctx)
	if err != nil {
		return provisioners.Instance{}, err
	}
	v, err := o.lookAround(ctx)
	if err != nil {
		return provisioners.Instance{}, err
	}
	node, err := o.claims.claimFree(ctx, v, s, offer)
	if err != nil {
		return provisioners.Instance{}, err
	}
	if way == WarmBuffer {
		return o.warmByBuffer(ctx, s, node)
	}
	return o.warmByPlaceholder(ctx, s, node)
}

// chooseWay is what warms nodes in this cluster.
func (o *Observed) chooseWay(ctx context.Context) (WarmWith, error) {
	if o.config().WarmWith == WarmPlaceholder {
		return WarmPlaceholder, nil
	}
	_, has, err := o.findKind(ctx, bufferKind)
	switch {
	case err != nil:
		return "", err
	case has && (o.config().WarmWith == WarmBuffer || !o.knowsUnserved()):
		return WarmBuffer, nil
	case o.config().WarmWith == WarmBuffer:
		return "", provisioners.Errorf(provisioners.KindBadSpec, "the cluster has no CapacityBuffer of %s/%s",
			bufferKind.group, bufferKind.versions)
	}
	return WarmPlaceholder, nil
}

// warmByPlaceholder makes the placeholder, on the node if there is one. What is refused
// then has made nothing, and gives the node back.
func (o *Observed) warmByPlaceholder(ctx context.Context, s *stored, node *corev1.Node) (
	provisioners.Instance, error) {
	until := o.keepUntil(node != nil)
	pod, made, err := o.ensureKeeper(ctx, s, node, until)
	if err != nil {
		if node != nil && provisioners.Final(err) {
			err = errors.Join(err, o.claims.releaseNode(ctx, s, node.UID))
		}
		return provisioners.Instance{}, err
	}
	if !made {
		if node, err = o.placeOfKeeper(ctx, s, pod, node); err != nil {
			return provisioners.Instance{}, mayExist(err)
		}
	}
	next := func(r record) record {
		r.Way, r.PodUID, r.KeptUntil = WarmPlaceholder, pod.UID, until
		return r.placedOn(node, o.cluster)
	}
	undo := func() error {
		if made {
			return o.api().deletePod(ctx, pod)
		}
		return nil
	}
	return o.recordWarming(ctx, s, next, undo)
}

// placeOfKeeper is the node that an earlier call has bound its placeholder to, instead of
// the one that was claimed now. A placeholder that is bound to none finds its own.
func (o *Observed) placeOfKeeper(ctx context.Context, s *stored, pod *corev1.Pod, claimed *corev1.Node) (
	*corev1.Node, error) {
	name := boundTo(pod)
	if claimed != nil && claimed.Name == name {
		return claimed, nil
	}
	if claimed != nil {
		if err := o.claims.releaseNode(ctx, s, claimed.UID); err != nil {
			return nil, err
		}
	}
	if name == "" {
		return nil, nil
	}
	node, err := o.api().getNode(ctx, name)
	if err != nil || node == nil {
		return nil, err
	}
	if took, err := o.claims.claimNode(ctx, s, node); !took {
		return nil, err
	}
	return node, nil
}

// placedOn returns the record of a keeping that has its node; nil changes nothing.
func (r record) placedOn(node *corev1.Node, c *Cluster) record {
	if node != nil {
		s := seen{record: &stored{}}
		c.recordPlace(&s, node)
		r.Place = &place{Node: node.Name, UID: node.UID, Address: s.address}
	}
	return r
}

// ensureKeeper makes the record's placeholder, or returns the one that is there. made
// says that it was not.
func (o *Observed) ensureKeeper(ctx context.Context, s *stored, node *corev1.Node, until time.Time) (
	pod *corev1.Pod, made bool, err error) {
	offer, err := o.config().findOffer(provisioners.Spec{Type: s.Spec.Type, Region: s.Spec.Region})
	if err != nil {
		return nil, false, err
	}
	job, err := o.guards.ensureGuard(ctx, o.config().placeholderGuard(s, offer))
	if err != nil {
		return nil, false, err
	}
	wanted := o.config().newKeeper(s, offer, node, until)
	// Its guard alone owns it: the cluster collects what none of its owners is left of.
	wanted.OwnerReferences = []metav1.OwnerReference{guardedBy(job)}
	pod, err = o.api().core.Pods(s.object.Namespace).Create(ctx, wanted, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		pod, err = o.api().getPlaceholder(ctx, s)
		return pod, false, err
	case err == nil && pod.Spec.Priority != nil && *pod.Spec.Priority >= 0:
		err = provisioners.Errorf(provisioners.KindBadSpec,
			"PriorityClass %s has the value %d: work takes the place of placeholders only where theirs is below 0",
			pod.Spec.PriorityClassName, *pod.Spec.Priority)
		if evicting := o.api().deletePod(ctx, pod); evicting != nil {
			err = mayExist(errors.Join(err, evicting))
		}
		return nil, false, err
	case err != nil:
		return nil, false, refusedMachine(err, "making pod %s/%s", s.object.Namespace, s.object.Name)
	}
	return pod, true, nil
}

// recordWarming writes that the node is being warmed. Where the record has meanwhile
// ended, or another call has done the same, what was made for nothing is undone.
func (o *Observed) recordWarming(ctx context.Context, s *stored, next func(record) record, undo func() error) (
	provisioners.Instance, error) {
	k := s.instanceKey()
	for range attempts {
		err := o.api().updateRecord(ctx, s, next(s.record))
		if err == nil {
			return o.settle(ctx, k)
		}
		if !errors.Is(err, errChanged) {
			return provisioners.Instance{}, mayExist(err)
		}
		s, err = o.api().getRecord(ctx, k.namespace, k.name)
		switch {
		case err != nil:
			return provisioners.Instance{}, mayExist(err)
		case s == nil || s.instanceKey() != k:
			return provisioners.Instance{}, mayExist(errChanged)
		case s.Ended || s.Way != "":
			if err := undo(); err != nil {
				return provisioners.Instance{}, mayExist(err)
			}
			return o.settle(ctx, k)
		}
	}
	return provisioners.Instance{}, mayExist(errChanged)
}
