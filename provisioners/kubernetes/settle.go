//go:build clouds

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/provisioners"
)

// settle looks at a keeping until its record has nothing new to say.
func (o *Observed) settle(ctx context.Context, k key) (provisioners.Instance, error) {
	s, err := o.settled(ctx, k)
	if err != nil {
		return provisioners.Instance{}, err
	}
	return o.portInstance(s), nil
}

// settled is the keeping as it is then. KindNotFound means that there is none.
func (o *Observed) settled(ctx context.Context, k key) (seen, error) {
	for range attempts {
		s, err := o.seeKeeping(ctx, k)
		switch {
		case err != nil:
			return s, err
		case s.hasEnded():
			return s, o.leaveNode(ctx, s)
		case s.record == nil || s.record.Way == "" && s.pod == nil:
			return s, notFound(k.instanceID())
		}
		next, changed, err := o.nextKeeping(ctx, s)
		if err != nil || !changed {
			return s, err
		}
		if err := o.api().updateRecord(ctx, s.record, next); err != nil && !errors.Is(err, errChanged) {
			return s, err
		} else if err == nil && s.unserved && s.record.Way == WarmPlaceholder {
			if err := o.replaceBuffer(ctx, s); err != nil {
				return s, err
			}
		}
	}
	return seen{}, provisioners.Errorf(provisioners.KindTransient, "machine %s kept changing", k.instanceID())
}

// seeKeeping reads what says how the keeping is.
func (o *Observed) seeKeeping(ctx context.Context, k key) (seen, error) {
	s, err := o.api().readPair(ctx, k)
	if err != nil || s.record == nil || s.hasEnded() {
		return s, err
	}
	if err := o.cluster.lookAtNode(ctx, &s); err != nil {
		return s, err
	}
	if s.record.Way == WarmBuffer {
		if s.unserved, err = o.buffers.isUnserved(ctx, s.record.Spec); err != nil || s.unserved {
			return s, err
		}
	}
	if s.record.Place == nil && s.record.Way == WarmPlaceholder {
		s.refusal, err = o.bootRefusal(ctx, s)
	} else if s.record.Place == nil && s.record.Way == WarmBuffer {
		s.refusal, err = o.bufferRefusal(ctx, s)
	}
	return s, err
}

// replaceBuffer makes the placeholder of a keeping whose buffer nobody serves.
func (o *Observed) replaceBuffer(ctx context.Context, s seen) error {
	look := &keepLook{eyes: o.eyes}
	return errors.Join(o.remakePlaceholder(ctx, s, look), o.buffers.sizeBuffer(ctx, s.record.Spec, look))
}

// waitedTooLong says that no node has come in time; empty while one may.
func (o *Observed) waitedTooLong(s seen) string {
	if o.now().Sub(s.record.object.CreationTimestamp.Time) < o.config().PendingTimeout {
		return ""
	}
	return fmt.Sprintf("no node in %v", o.config().PendingTimeout)
}

// bootRefusal says why no node will come for the placeholder; empty while one may.
func (o *Observed) bootRefusal(ctx context.Context, s seen) (string, error) {
	if why := o.waitedTooLong(s); why != "" {
		if s.pod != nil {
			why += ": " + unschedulableMessage(s.pod)
		}
		return why, nil
	}
	if !awaitsNode(s) || o.now().Sub(s.pod.CreationTimestamp.Time) < patience {
		return "", nil
	}
	return o.api().autoscalerSaysNo(ctx, s.pod)
}

// bufferRefusal says why no node will come for the buffer; empty while one may.
func (o *Observed) bufferRefusal(ctx context.Context, s seen) (string, error) {
	why := o.waitedTooLong(s)
	if why == "" {
		return "", nil
	}
	said, err := o.buffers.saidOf(ctx, s.record.Spec)
	return why + ": " + said, err
}

// nextKeeping is what the record should say, and whether that differs from what it says.
func (o *Observed) nextKeeping(ctx context.Context, s seen) (record, bool, error) {
	r, now := s.record.record, o.now()
	switch {
	case r.Way == "":
		return r, false, nil
	case r.Place != nil && s.nodeGone:
		return r.ended(now, now, "its node is gone"), true, nil
	case !o.isLive(s.record):
		return r.ended(r.KeptUntil, now, "nobody kept it any more"), true, nil
	case s.unserved:
		r.Way = WarmPlaceholder
		return r, true, nil
	case r.Place != nil:
		if why := s.stuckReason(now); why != "" {
			return r.ended(now, now, why).giveUp(), true, nil
		}
		return r, false, nil
	case s.refusal != "":
		o.cluster.ranOut(r.Spec)
		return r.ended(now, now, s.refusal).giveUp(), true, nil
	}
	node, err := o.findPlace(ctx, s)
	if err != nil || node == nil {
		return r, false, err
	}
	r = r.placedOn(node, o.cluster)
	r.KeptUntil = o.keepUntil(true)
	return r, true, nil
}

// findPlace finds the node that has come for a keeping, and claims it.
func (o *Observed) findPlace(ctx context.Context, s seen) (*corev1.Node, error) {
	if s.record.Way == WarmBuffer {
		return o.buffers.findBuffered(ctx, s)
	}
	if !s.hasPlaceholder() || s.node == nil || unwellCondition(s.node) != nil ||
		allocatableGPUs(s.node, s.record.Want) < s.record.Want.GPUs {
		return nil, nil
	}
	took, err := o.claims.claimNode(ctx, s.record, s.node)
	switch {
	case err != nil:
		return nil, err
	case took:
		return s.node, nil
	}
	// The scheduler has put it on a node that is in keeping. Keep makes another one: that
	// of the kept node comes back, too, and of two only one finds its place there.
	return nil, o.api().deletePod(ctx, s.pod)
}

// leaveNode takes away what an ended keeping has left behind.
func (o *Observed) leaveNode(ctx context.Context, s seen) error {
	var errs []error
	if s.pod != nil && s.pod.DeletionTimestamp == nil {
		errs = append(errs, o.api().deletePod(ctx, s.pod), o.guards.removeGuard(ctx, s.key.name))
	}
	if place := s.record.Place; place != nil {
		errs = append(errs, o.claims.releaseNode(ctx, s.record, place.UID))
	}
	return errors.Join(errs...)
}

// portInstance renders the keeping.
func (o *Observed) portInstance(s seen) provisioners.Instance {
	r := s.record
	i := provisioners.Instance{
		ID: s.key.instanceID(), Token: r.Token, Owner: r.Spec.Owner, NodeID: r.Spec.NodeID, Type: r.Spec.Type,
		CreatedAt: r.object.CreationTimestamp.UTC(), Phase: provisioners.Booting,
	}
	switch {
	case r.Ended:
		i.Phase, i.EndedAt = provisioners.Terminated, r.EndedAt
		if r.GivenUp {
			i.Notice = interruptionNotice(r.Reason)
		}
	case r.Place != nil:
		i.Phase, i.Address, i.Devices = provisioners.Running, r.Place.Address, keptDevices(s)
		i.Notice = o.cluster.noticeOf(s)
		return i
	}
	o.cluster.shortSince(s.key, false, time.Time{})
	return i
}

// keptDevices names the GPUs of a kept node. Nobody probes a node whose GPUs are free for
// others, so the names are made up: stable, and no two keepings share one.
func keptDevices(s seen) []capacity.Device {
	devices := make([]capacity.Device, s.record.Want.GPUs)
	for i := range devices {
		devices[i] = capacity.Device{Index: i, Model: s.record.Want.Model, MemoryMiB: s.record.Want.MemoryMiB,
			UUID: fmt.Sprintf("%s-%s-gpu-%d", s.record.Place.Node, strings.TrimPrefix(s.key.name, namePrefix)[:8], i)}
	}
	return devices
}
