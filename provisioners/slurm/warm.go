package slurm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// Create takes a node into keeping: one that is up and idle, else a cold one, which is
// powered up. As with placeholders, the token's heartbeats are looked for first, and
// of two processes that choose a node at the same moment the older job's wins.
func (o *Observed) Create(ctx context.Context, token string, spec provisioners.Spec) (provisioners.Instance, error) {
	done, err := o.takeTurn(ctx)
	if err != nil {
		return provisioners.Instance{}, err
	}
	defer done()
	offer, err := o.checkRequest(token, spec)
	if err != nil {
		return provisioners.Instance{}, err
	}
	remembered, known := o.memory.byToken(token)
	v, err := o.look(ctx)
	if err != nil {
		return provisioners.Instance{}, err
	}
	if found := v.byToken(token); found != nil {
		return o.confirm(ctx, v, *found, spec)
	}
	if err := v.proveAbsence(o.config.tokenMark(token)); err != nil {
		return provisioners.Instance{}, err
	}
	if known {
		if fresh, still := o.memory.byToken(token); still {
			remembered = fresh
		}
		return checkSameRequest(remembered.portInstance(), spec)
	}
	if ended, found, err := o.findAccounted(ctx, token, spec); found || err != nil {
		return ended, err
	}
	return o.warmNode(ctx, v, keeping{tags: tagsOf(token, spec)}, offer)
}

func (o *Observed) checkRequest(token string, spec provisioners.Spec) (Offer, error) {
	if err := spec.Check(token); err != nil {
		return Offer{}, err
	}
	offer, known := o.config.findOffer(spec.Type)
	if !known || spec.Region != "" && spec.Region != o.config.Region {
		return Offer{}, provisioners.Errorf(provisioners.KindBadSpec, "no type %q in region %q", spec.Type, spec.Region)
	}
	const mostHost = 64 // Slurm's own limit of a host name
	comment := o.config.beatComment(keeping{tags: tagsOf(token, spec), created: o.clock.Now()})
	if len(comment)+mostHost > mostComment {
		return Offer{}, provisioners.Errorf(provisioners.KindBadSpec,
			"the tags take %d characters of the heartbeat's comment, and %d are left for them: shorten owner or name",
			len(comment), mostComment-mostHost)
	}
	return offer, nil
}

func (v keepings) proveAbsence(mark string) error {
	if !v.whole {
		return provisioners.Errorf(provisioners.KindUnknown, "squeue's list of heartbeats is cut")
	}
	if slices.Contains(v.strange, mark) {
		return provisioners.Errorf(provisioners.KindUnknown,
			"a job named forewarm-%s-… has another comment than it was made with", mark)
	}
	return nil
}

// findAccounted answers the token's ended keeping from accounting.
func (o *Observed) findAccounted(ctx context.Context, token string,
	spec provisioners.Spec) (provisioners.Instance, bool, error) {
	if !o.config.Accounting {
		return provisioners.Instance{}, false, nil
	}
	rows, err := o.accountedBeats(ctx, o.config.tokenMark(token))
	if err != nil || len(rows) == 0 {
		return provisioners.Instance{}, false, err
	}
	first, last := rows[0], rows[len(rows)-1]
	return provisioners.Instance{
		ID: keepingIDOf(o.config.tokenMark(token)), Token: token, Owner: spec.Owner, NodeID: spec.NodeID,
		Type: spec.Type, Phase: provisioners.Terminated, CreatedAt: first.submitted, EndedAt: last.end,
	}, true, nil
}

// confirm answers a keeping that was found, once it is remembered, and completes what an
// earlier call may have left undone.
func (o *Observed) confirm(ctx context.Context, v keepings, k keeping,
	spec provisioners.Spec) (provisioners.Instance, error) {
	if v.unsaved != nil {
		return provisioners.Instance{}, &provisioners.Error{Kind: provisioners.KindUnknown,
			Message: "remembering the node in keeping", Err: v.unsaved}
	}
	instance, err := checkSameRequest(o.config.portKeeping(k), spec)
	if err != nil || !k.isLive() {
		return instance, err
	}
	if err := o.completeWarming(ctx, k); err != nil {
		return provisioners.Instance{}, unknownError(k, err)
	}
	return instance, nil
}

// unknownError is an error after which the keeping may exist.
func unknownError(k keeping, err error) error {
	return &provisioners.Error{Kind: provisioners.KindUnknown, Scope: k.host, Message: "warming the node", Err: err}
}

// completeWarming makes what a keeping needs and does not have: the power of its node,
// and the heartbeat ahead.
func (o *Observed) completeWarming(ctx context.Context, k keeping) error {
	has := func(sort beatSort) bool {
		return slices.ContainsFunc(k.beats, func(b heartbeat) bool { return b.sort == sort && b.isLive() })
	}
	if k.state == provisioners.NodeCold && !has(bootBeat) {
		if err := o.powerUp(ctx, k); err != nil {
			return err
		}
	}
	if has(aheadBeat) {
		return nil
	}
	delay, err := o.firstDelay(ctx, k)
	if err != nil {
		return err
	}
	return o.submitBeat(ctx, k, aheadBeat, delay)
}

// firstDelay is how long from now the heartbeat ahead of a node begins.
func (o *Observed) firstDelay(ctx context.Context, k keeping) (time.Duration, error) {
	set, err := o.readSettings(ctx)
	if err != nil {
		return 0, err
	}
	offer, _ := o.config.findOffer(k.tags.kind)
	set = set.of(offer.Partition)
	if k.state == provisioners.NodeIdle && set.beats() {
		return max(0, k.node.idleSince().Add(set.interval()).Sub(o.clusterNow())), nil
	}
	return set.interval(), nil
}

// idleSince is when the node was last busy, or booted.
func (n elasticNode) idleSince() time.Time {
	if n.bootNow.After(n.lastBusy) {
		return n.bootNow
	}
	return n.lastBusy
}

// warmNode chooses a node for a new keeping, and warms it.
func (o *Observed) warmNode(ctx context.Context, v keepings, k keeping, offer Offer) (provisioners.Instance, error) {
	set, err := o.readSettings(ctx)
	if err == nil {
		err = set.of(offer.Partition).checkPace()
	}
	if err != nil {
		return provisioners.Instance{}, err
	}
	node, err := o.chooseNode(ctx, v, offer)
	if err != nil {
		return provisioners.Instance{}, err
	}
	k.host, k.node, k.state = node.name, node, node.portState(ownUse{})
	if err := o.beginKeeping(ctx, k); err != nil {
		return provisioners.Instance{}, err
	}
	v, err = o.look(ctx)
	if err != nil {
		return provisioners.Instance{}, unknownError(k, err)
	}
	found := v.byToken(k.tags.token)
	if found == nil {
		return provisioners.Instance{}, unknownError(k, errors.New("squeue does not show the heartbeat that was submitted"))
	}
	return o.confirm(ctx, v, *found, provisioners.Spec{Type: k.tags.kind, Owner: k.tags.owner, NodeID: k.tags.node})
}

// beginKeeping submits the first heartbeat. A cold node's is the one that boots it, where
// we cannot power it up: what is refused then has made nothing. Whatever else the
// node needs, confirm makes.
func (o *Observed) beginKeeping(ctx context.Context, k keeping) error {
	if k.state == provisioners.NodeCold && !o.mayPowerUp() {
		return o.submitBeat(ctx, k, bootBeat, 0)
	}
	delay, err := o.firstDelay(ctx, k)
	if err != nil {
		return err
	}
	return o.submitBeat(ctx, k, aheadBeat, delay)
}

// chooseNode chooses an idle node, the one that is idle for the shortest time, or else a
// cold one.
func (o *Observed) chooseNode(ctx context.Context, v keepings, offer Offer) (elasticNode, error) {
	if err := o.checkPartition(ctx, offer.Partition); err != nil {
		return elasticNode{}, err
	}
	nodes, err := o.listElasticNodes(ctx)
	if err != nil {
		return elasticNode{}, err
	}
	set, err := o.readSettings(ctx)
	if err != nil {
		return elasticNode{}, err
	}
	var idle, cold []elasticNode
	var down string
	serving := 0
	for _, n := range nodes {
		kept := v.elsewhere[n.name] ||
			v.find(func(k keeping) bool { return k.host == n.name && k.isLive() }) != nil
		if !n.canServe(offer) {
			continue
		}
		serving++
		switch state := n.portState(ownUse{}); {
		case state == provisioners.NodeUnavailable:
			down += "; " + n.message()
		case kept || n.isReserved() && offer.Reservation == "":
		case state == provisioners.NodeIdle:
			idle = append(idle, n)
		case state == provisioners.NodeCold && set.saves():
			cold = append(cold, n)
		}
	}
	slices.SortStableFunc(idle, func(a, b elasticNode) int { return b.idleSince().Compare(a.idleSince()) })
	if usable := append(idle, cold...); len(usable) > 0 {
		return usable[0], nil
	}
	return elasticNode{}, o.noNodeError(ctx, offer, nodes, serving, down)
}

// checkPartition returns KindCapacity for a partition that is closed.
func (o *Observed) checkPartition(ctx context.Context, partition string) error {
	_, err := o.countHidden(ctx, partition, 0)
	return err
}

// noNodeError says why no node can be warmed.
func (o *Observed) noNodeError(ctx context.Context, offer Offer, nodes []elasticNode, serving int, down string) error {
	set, err := o.readSettings(ctx)
	if err != nil {
		return err
	}
	shown := 0
	for _, n := range nodes {
		if slices.Contains(n.partitions, offer.Partition) {
			shown++
		}
	}
	hidden, err := o.countHidden(ctx, offer.Partition, shown)
	if err != nil {
		return err
	}
	switch {
	case hidden > 0 && !set.hides("cloud"):
		return &provisioners.Error{Kind: provisioners.KindBadSpec, Scope: offer.Partition,
			Message: fmt.Sprintf("Slurm hides %d nodes without power of the partition: set PrivateData=cloud in slurm.conf, "+
				"which shows them", hidden)}
	case serving == 0:
		return provisioners.Errorf(provisioners.KindBadSpec, "no node of partition %s has %d of %s%s", offer.Partition,
			offer.GPUs, offer.Gres, describeConstraint(offer))
	case !set.saves():
		return &provisioners.Error{Kind: provisioners.KindBadSpec, Scope: offer.Partition,
			Message: "no node of the partition is idle, and Slurm powers none up: SuspendTime is infinite, which turns " +
				"its power saving off; set it for the partition or the cluster"}
	}
	return &provisioners.Error{Kind: provisioners.KindCapacity, Scope: offer.Partition,
		Message: "no node of the partition is idle or cold" + down}
}

func describeConstraint(o Offer) string {
	if o.Constraint == "" {
		return ""
	}
	return " and " + o.Constraint
}

// countHidden counts the nodes of a partition of which that many are shown.
func (o *Observed) countHidden(ctx context.Context, partition string, shown int) (int, error) {
	reserved := &Cluster{commands: o.commands, config: o.config, clock: o.clock, memory: o.memory}
	total, err := reserved.countHiddenNodes(ctx, partition, nil)
	return max(0, total-shown), err
}
