package slurm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// Keep sees to it that each node has its heartbeat ahead: at the right time while the
// node is idle, pushed ahead while it has work, so that none runs beside it.
func (o *Observed) Keep(ctx context.Context, ids []string) error {
	done, err := o.takeTurn(ctx)
	if err != nil {
		return err
	}
	defer done()
	set, err := o.readSettings(ctx)
	if err != nil {
		return err
	}
	v, err := o.look(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		if err := o.keepInstance(ctx, v, set, id); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// keepInstance keeps one node. Its error has the id as its scope.
func (o *Observed) keepInstance(ctx context.Context, v keepings, set settings, id string) error {
	k, err := v.byID(id)
	if err == nil && !k.isLive() {
		err = notFoundError(id)
	}
	if err == nil {
		err = o.keepNode(ctx, *k, set)
	}
	if err == nil {
		return nil
	}
	failure := &provisioners.Error{Kind: provisioners.KindOf(err), Scope: id, Message: "keeping the node", Err: err}
	if cause, typed := errors.AsType[*provisioners.Error](err); typed {
		failure.RetryAfter = cause.RetryAfter
	}
	return failure
}

func (o *Observed) keepNode(ctx context.Context, k keeping, set settings) error {
	offer, _ := o.config.findOffer(k.tags.kind)
	set = set.of(offer.Partition)
	var ahead []heartbeat
	for _, b := range k.beats {
		if b.isAhead() {
			ahead = append(ahead, b)
		}
	}
	slices.SortFunc(ahead, func(a, b heartbeat) int { return a.begin.Compare(b.begin) })
	if k.state == provisioners.NodeIdle && set.beats() {
		return o.keepIdle(ctx, k, set, ahead)
	}
	return o.pushAhead(ctx, k, set, ahead)
}

// keepIdle submits the next heartbeat shortly before the one ahead runs, so that the
// cluster always has a record of the keeping.
func (o *Observed) keepIdle(ctx context.Context, k keeping, set settings, ahead []heartbeat) error {
	now := o.clusterNow()
	switch len(ahead) {
	case 0:
		return o.submitBeat(ctx, k, aheadBeat, k.node.idleSince().Add(set.interval()).Sub(now))
	case 1:
		if left := ahead[0].begin.Sub(now); left <= set.interval()/2 {
			return errors.Join(checkWaiting(ahead[0], set, now),
				o.submitBeat(ctx, k, aheadBeat, max(left, 0)+set.interval()))
		}
	}
	return checkWaiting(ahead[0], set, now)
}

// checkWaiting returns an error for a heartbeat that should have run long ago: the node
// will be suspended.
func checkWaiting(b heartbeat, set settings, now time.Time) error {
	if now.Sub(b.begin) < set.interval() {
		return nil
	}
	kind := provisioners.KindTransient
	if reasonOf(b.reason) == provisioners.WaitLimits {
		kind = provisioners.KindQuota
	}
	return &provisioners.Error{Kind: kind, Scope: b.host,
		Message: fmt.Sprintf("heartbeat %d has waited since %s: %s", b.id, b.begin.UTC().Format(time.TimeOnly),
			strings.ReplaceAll(b.reason, "_", " "))}
}

// pushAhead keeps the heartbeat from running on a node that has work or boots, and on one
// that is never suspended.
func (o *Observed) pushAhead(ctx context.Context, k keeping, set settings, ahead []heartbeat) error {
	if len(ahead) == 0 {
		return o.submitBeat(ctx, k, aheadBeat, set.interval())
	}
	last := len(ahead) - 1
	err := o.cancelBeats(ctx, ahead[:last])
	if ahead[last].begin.Sub(o.clusterNow()) < set.interval()*3/4 {
		err = errors.Join(err, o.moveBeat(ctx, ahead[last], set.interval()))
	}
	return err
}
