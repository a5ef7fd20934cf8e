//go:build clouds

package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/forewarm/forewarm/provisioners"
)

// Get returns the keeping as it is now. What it says for the first time it writes into
// the record before.
func (o *Observed) Get(ctx context.Context, id string) (provisioners.Instance, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return provisioners.Instance{}, err
	}
	k, ok := parseID(id)
	if !ok {
		return provisioners.Instance{}, notFound(id)
	}
	return o.settle(ctx, k)
}

// Delete cools: it writes the end into the record, and removes the placeholder and
// nothing else. The autoscaler takes the node when it finds it unneeded.
func (o *Observed) Delete(ctx context.Context, id string) error {
	if err := provisioners.Ended(ctx); err != nil {
		return err
	}
	k, ok := parseID(id)
	if !ok {
		return nil
	}
	s, err := o.cluster.recordEnd(ctx, k)
	if err != nil || s.record == nil {
		return err
	}
	if err := o.leaveNode(ctx, s); err != nil || s.record.Way != WarmBuffer {
		return err
	}
	err = o.buffers.sizeBuffer(ctx, s.record.Spec, &keepLook{eyes: o.eyes})
	if provisioners.KindOf(err) == provisioners.KindBadSpec {
		return nil // of an offer that is not configured any more: its guard ends it
	}
	return err
}

// List returns the owner's keepings, those that have ended within the last days among
// them. A keeping whose node came since the last Get is still Booting here.
func (o *Observed) List(ctx context.Context, owner string) (provisioners.List, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return provisioners.List{}, err
	}
	if !labelValue(owner) {
		return provisioners.List{Complete: true}, nil // Create makes none for such an owner
	}
	c := o.cluster
	records, whole, err := c.listRecords(ctx, labelOwner+"="+owner+",")
	if err != nil {
		return provisioners.List{}, err
	}
	pods, all, err := c.api.listPods(ctx, c.config.Namespace, labelOwner+"="+owner+","+labelRole+"="+rolePlaceholder)
	if err != nil {
		return provisioners.List{}, err
	}
	keepings := pairRecords(records, pods)
	if err := o.lookAtPlaces(ctx, keepings); err != nil {
		return provisioners.List{}, err
	}
	list := provisioners.List{Complete: whole && all}
	for _, s := range keepings {
		switch {
		case s.record == nil: // its record is another use's, or gone: the cluster collects it
		case s.record.Way != "" || s.pod != nil:
			list.Instances = append(list.Instances, o.portInstance(s))
		}
	}
	if list.Complete {
		o.forgetOld(ctx, keepings)
	}
	slices.SortFunc(list.Instances, func(a, b provisioners.Instance) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

// lookAtPlaces reads the nodes of all that have one, and ends those that have lost it.
func (o *Observed) lookAtPlaces(ctx context.Context, keepings []seen) error {
	for i := range keepings {
		s := &keepings[i]
		if s.record == nil || s.record.Place == nil || s.hasEnded() {
			continue
		}
		if err := o.cluster.lookAtNode(ctx, s); err != nil {
			return err
		}
		if !s.nodeGone && o.isLive(s.record) {
			continue
		}
		next, changed, err := o.nextKeeping(ctx, *s)
		if err != nil || !changed {
			return err
		}
		if err := o.api().updateRecord(ctx, s.record, next); err != nil && !errors.Is(err, errChanged) {
			return err
		}
	}
	return nil
}

// forgetOld removes records that are old enough. What fails is there to be done by the
// next List.
func (o *Observed) forgetOld(ctx context.Context, keepings []seen) {
	now, left := o.now(), mostTidied
	for _, s := range keepings {
		if s.record == nil || left == 0 {
			continue
		}
		neverMade := s.record.Way == "" && s.pod == nil && now.Sub(s.record.object.CreationTimestamp.Time) > remembered
		if neverMade || s.hasEnded() && now.After(s.record.ForgetAt) {
			_ = o.api().deleteRecord(ctx, s.record)
			left--
		}
	}
}

// Keep moves the end of each keeping, and makes the placeholder again where it has gone
// and the node is idle: work that took its place is over.
func (o *Observed) Keep(ctx context.Context, ids []string) error {
	if err := provisioners.Ended(ctx); err != nil {
		return err
	}
	var errs []error
	buffers := map[spec][]string{} // their keepings
	var keepings []seen
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		s, err := o.findKeeping(ctx, id)
		if err != nil {
			errs = append(errs, scoped(id, err))
			continue
		}
		keepings = append(keepings, s)
	}
	// Those that have a node come first, so that their placeholders are back on it before
	// another keeping's looks for one.
	slices.SortStableFunc(keepings, func(a, b seen) int {
		return cmp.Compare(isPlaced(b), isPlaced(a))
	})
	look := &keepLook{eyes: o.eyes}
	for _, s := range keepings {
		if err := o.keepInstance(ctx, s, buffers, look); err != nil {
			errs = append(errs, scoped(s.key.instanceID(), err))
		}
	}
	for s, of := range buffers {
		if err := o.buffers.keepBuffer(ctx, s, look); err != nil {
			for _, id := range of {
				errs = append(errs, scoped(id, err))
			}
		}
	}
	return errors.Join(errs...)
}

// scoped is the failure to keep one instance. Its Scope is the id.
func scoped(id string, err error) error {
	failure := &provisioners.Error{Kind: provisioners.KindOf(err), Scope: id, Message: "keeping the node", Err: err}
	var cause *provisioners.Error
	if errors.As(err, &cause) {
		failure.RetryAfter = cause.RetryAfter
	}
	return failure
}

// isPlaced is 1 for a keeping that has its node.
func isPlaced(s seen) int {
	if s.record.Place != nil {
		return 1
	}
	return 0
}

// findKeeping finds a keeping that is to be kept.
func (o *Observed) findKeeping(ctx context.Context, id string) (seen, error) {
	k, ok := parseID(id)
	if !ok {
		return seen{}, notFound(id)
	}
	s, err := o.settled(ctx, k)
	if err == nil && s.hasEnded() {
		err = notFound(id)
	}
	return s, err
}

func (o *Observed) keepInstance(ctx context.Context, s seen, buffers map[spec][]string, look *keepLook) error {
	if s.record.Way == "" { // its Create was cut off, and goes on when it is repeated
		return nil
	}
	if err := o.renewKeeping(ctx, &s); err != nil {
		return err
	}
	if s.record.Way == WarmBuffer {
		of := s.record.Spec.ofBuffer()
		buffers[of] = append(buffers[of], s.key.instanceID())
		return nil
	}
	return o.keepPlaceholder(ctx, s, look)
}

// renewKeeping moves the end of the keeping, at most as often as it must be moved.
func (o *Observed) renewKeeping(ctx context.Context, s *seen) error {
	left := s.record.KeptUntil.Sub(o.now())
	if s.record.Place == nil || left > o.config().KeepFor-o.config().keepWithin()/2 {
		return nil
	}
	next := s.record.record
	next.KeptUntil = o.keepUntil(true)
	err := o.api().updateRecord(ctx, s.record, next)
	if errors.Is(err, errChanged) {
		return provisioners.Errorf(provisioners.KindTransient, "record %s was changed by another process", s.key.name)
	}
	return err
}

// keepPlaceholder gives the placeholder the record's end, or makes it again. It removes one
// that is in the way of a pod which cannot end it by itself.
func (o *Observed) keepPlaceholder(ctx context.Context, s seen, look *keepLook) error {
	if err := o.guards.renewGuard(ctx, s.key.name); err != nil {
		return err
	}
	if s.node != nil {
		if yields, err := look.yields(ctx, s.node.UID); err != nil || yields {
			if s.pod != nil && err == nil {
				err = o.api().deletePod(ctx, s.pod)
			}
			return err
		}
	}
	switch {
	case s.pod != nil && s.pod.DeletionTimestamp != nil: // it makes way, or is on its way out
		return nil
	case s.pod != nil && podFinished(s.pod):
		if err := o.api().deletePod(ctx, s.pod); err != nil {
			return err
		}
	case s.pod != nil:
		if !isLater(s.pod, s.record.KeptUntil) {
			return nil
		}
		return tolerable(o.api().prolongPod(ctx, s.pod, s.record.KeptUntil), s.key.name)
	}
	return o.remakePlaceholder(ctx, s, look)
}

// remakePlaceholder makes a placeholder again: on its node once that is idle, or, while
// it waits for one, for any that has no placeholder.
func (o *Observed) remakePlaceholder(ctx context.Context, s seen, look *keepLook) error {
	if s.record.Place == nil {
		_, _, err := o.ensureKeeper(ctx, s.record, nil, s.record.KeptUntil)
		return err
	}
	v, err := look.get(ctx)
	if err != nil {
		return err
	}
	state, _ := o.portState(s.node, v.useOf(s.node.Name))
	if !v.whole || state != provisioners.NodeIdle {
		return nil
	}
	_, _, err = o.ensureKeeper(ctx, s.record, s.node, s.record.KeptUntil)
	return err
}

// tolerable takes the pod's own end, or another's change, out of an error: the next Keep
// sees it.
func tolerable(err error, name string) error {
	if apierrors.IsConflict(err) || isNotFound(err, name) {
		return nil
	}
	return err
}
