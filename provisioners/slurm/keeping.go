package slurm

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/access"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/provisioners"
)

// keeping is one node in keeping, for one token, as its heartbeats tell.
type keeping struct {
	tags    tags
	host    string
	created time.Time // zero before the first job is submitted
	beats   []heartbeat
	phase   provisioners.Phase
	ended   time.Time
	node    elasticNode
	state   provisioners.NodeState
}

var keepingID = regexp.MustCompile(`^warm-([0-9a-f]{16})$`)

// keepingIDOf is the mark of the token, which is used once.
func keepingIDOf(mark string) string { return "warm-" + mark }

func (k keeping) isLive() bool {
	return k.phase == provisioners.Booting || k.phase == provisioners.Running
}

// keepings is what one look showed of all nodes in keeping.
type keepings struct {
	beatView
	all     []keeping
	unsaved error // see view.unsaved
}

func (v keepings) find(wanted func(keeping) bool) *keeping {
	if i := slices.IndexFunc(v.all, wanted); i >= 0 {
		return &v.all[i]
	}
	return nil
}

func (v keepings) byToken(token string) *keeping {
	return v.find(func(k keeping) bool { return k.tags.token == token })
}

// look lists what is in keeping, ends what must not stay, and remembers it.
func (o *Observed) look(ctx context.Context) (keepings, error) {
	begun := o.clock.Now()
	if _, err := o.readSettings(ctx); err != nil { // they have the cluster's clock
		return keepings{}, err
	}
	beats, err := o.listBeats(ctx)
	if err != nil {
		return keepings{}, err
	}
	v := keepings{beatView: beats}
	var surplus []heartbeat
	v.all, surplus = groupBeats(beats.beats)
	if err := o.readStates(ctx, v.all); err != nil {
		return keepings{}, err
	}
	for i := range v.all {
		if k := &v.all[i]; o.settlePhase(k) {
			surplus = append(surplus, k.beats...)
		} else {
			surplus = append(surplus, k.doneBoots()...)
		}
	}
	_ = o.cancelBeats(ctx, surplus) // what could not be ended is tried again at the next look
	v.unsaved = o.rememberKeepings(v, begun)
	return v, nil
}

// groupBeats sorts heartbeats by token. Of two nodes for one token, which two processes
// have chosen at the same moment, the older job's counts; the other's jobs are surplus.
func groupBeats(beats []heartbeat) (all []keeping, surplus []heartbeat) {
	slices.SortFunc(beats, func(a, b heartbeat) int { return a.id - b.id })
	index := map[string]int{}
	for _, b := range beats {
		i, seen := index[b.tags.token]
		if !seen {
			i = len(all)
			index[b.tags.token] = i
			all = append(all, keeping{tags: b.tags, host: b.host, created: cmp.Or(b.since, b.submitted)})
		}
		if all[i].host != b.host {
			surplus = append(surplus, b)
			continue
		}
		all[i].beats = append(all[i].beats, b)
	}
	return all, surplus
}

// readStates reads the nodes of all that may live.
func (o *Observed) readStates(ctx context.Context, all []keeping) error {
	var names []string
	for _, k := range all {
		if !slices.Contains(names, k.host) {
			names = append(names, k.host)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	nodes, err := o.listElasticNodes(ctx, names...)
	if provisioners.KindOf(err) == provisioners.KindBadSpec { // one of them is hidden, or out of slurm.conf by now
		nodes, err = o.listElasticNodes(ctx)
	}
	if err != nil {
		return err
	}
	for i := range all {
		k := &all[i]
		k.state = provisioners.NodeCold // what Slurm does not show when asked for all has no power
		for _, n := range nodes {
			if n.name == k.host {
				k.node, k.state = n, n.portState(ownUse{cpus: runningCPUs(k.beats)})
			}
		}
	}
	return nil
}

// runningCPUs is how many processors of their node the heartbeats take.
func runningCPUs(beats []heartbeat) int {
	cpus := 0
	for _, b := range beats {
		if b.state == "RUNNING" || b.state == "CONFIGURING" || b.state == "COMPLETING" {
			cpus += b.cpus
		}
	}
	return cpus
}

// freshFor is how long a node that is to be powered up may still look cold.
const freshFor = time.Minute

// settlePhase decides in what phase the keeping is, and whether its heartbeats must be
// ended because the node is.
func (o *Observed) settlePhase(k *keeping) (cancel bool) {
	live := slices.ContainsFunc(k.beats, heartbeat.isLive)
	if !live {
		o.settleEnded(k)
		return false
	}
	boots := slices.ContainsFunc(k.beats, func(b heartbeat) bool { return b.sort == bootBeat && b.isLive() })
	age := o.clusterNow().Sub(k.created)
	switch k.state {
	case provisioners.NodeIdle, provisioners.NodeTaken:
		k.phase = provisioners.Running
	case provisioners.NodePoweringUp:
		k.phase = provisioners.Booting
	case provisioners.NodeUnavailable:
		if k.phase = provisioners.Running; !k.isSilent() {
			k.phase = provisioners.Terminated
		}
	default: // without power
		k.phase = provisioners.Terminated
		if boots && age <= o.config.PendingTimeout || age <= freshFor {
			k.phase = provisioners.Booting
		}
	}
	return k.phase == provisioners.Terminated
}

// doneBoots are the heartbeats that have booted the node and do not run yet: slurmctld
// launches what waited for a boot in a round of its own, one each 30 s, and until then
// nobody can have the node for themselves. Without them the node's idle time begins anew.
// They stay where no heartbeat is ahead, which keeps the node and has its tags.
func (k keeping) doneBoots() []heartbeat {
	up := k.state == provisioners.NodeIdle || k.state == provisioners.NodeTaken
	if !up || !slices.ContainsFunc(k.beats, heartbeat.isAhead) {
		return nil
	}
	var done []heartbeat
	for _, b := range k.beats {
		if b.sort == bootBeat && b.state == "CONFIGURING" {
			done = append(done, b)
		}
	}
	return done
}

// isSilent reports whether the node does not answer, for whatever time: Slurm has not given
// it up yet.
func (k keeping) isSilent() bool {
	return k.state == provisioners.NodeUnavailable && !k.node.isGone() &&
		slices.ContainsFunc(k.node.state, func(s string) bool { return s == "not_responding" || s == "no_respond" })
}

func (n elasticNode) isGone() bool {
	return slices.ContainsFunc(n.state, func(s string) bool { return slices.Contains(goneStates, s) })
}

// settleEnded decides about a keeping of which no heartbeat lives: its last one may have
// run well just now, before the next one was submitted. How one that booted the node ended
// says nothing where another one followed: it is cancelled once it has.
func (o *Observed) settleEnded(k *keeping) {
	last := slices.MaxFunc(k.beats, func(a, b heartbeat) int {
		return cmp.Or(strings.Compare(string(a.sort), string(b.sort)), a.ended.Compare(b.ended), a.id-b.id)
	})
	k.phase, k.ended = provisioners.Terminated, last.ended
	wellRun := last.state == "COMPLETED" || last.state == "COMPLETING" || last.state == "TIMEOUT"
	up := k.state == provisioners.NodeIdle || k.state == provisioners.NodeTaken || k.isSilent()
	if known, found := o.memory.byToken(k.tags.token); wellRun && up && !(found && !known.Gone.IsZero()) {
		k.phase, k.ended = provisioners.Running, time.Time{}
	}
}

// portInstance is the kept node as a machine.
func (c Config) portKeeping(k keeping) provisioners.Instance {
	mark := c.tokenMark(k.tags.token)
	instance := provisioners.Instance{
		ID: keepingIDOf(mark), Token: k.tags.token, Owner: k.tags.owner, NodeID: k.tags.node, Type: k.tags.kind,
		Phase: k.phase, CreatedAt: k.created, EndedAt: k.ended,
	}
	if k.state == provisioners.NodeUnavailable { // also of one that is over: it says why
		instance.Notice = &provisioners.Notice{Kind: provisioners.NoticeDegraded, Message: k.node.message()}
	}
	if k.phase != provisioners.Running {
		return instance
	}
	instance.Address = access.Address{Kind: access.Slurm, Host: k.host}.String()
	offer, _ := c.findOffer(k.tags.kind)
	for i := range offer.GPUs { // nobody probes a node on which we have no GPU
		instance.Devices = append(instance.Devices, capacity.Device{UUID: c.unprobedUUID(k.host, i), Index: i,
			Model: offer.Model, MemoryMiB: offer.MemoryMiB})
	}
	return instance
}

// rememberKeepings takes in what a look showed.
func (o *Observed) rememberKeepings(v keepings, begun time.Time) error {
	memos := make([]memo, len(v.all))
	for i, k := range v.all {
		memos[i] = memo{ID: keepingIDOf(o.config.tokenMark(k.tags.token)), Token: k.tags.token,
			Owner: k.tags.owner, NodeID: k.tags.node, Type: k.tags.kind, Created: k.created, Ended: k.ended}
		if !k.isLive() {
			memos[i].Gone = o.clock.Now()
		}
	}
	err := o.memory.rememberMemos(memos)
	if err == nil && v.isComplete() {
		err = o.memory.endUnlisted(begun, func(id string) bool {
			return slices.ContainsFunc(memos, func(m memo) bool { return m.ID == id })
		})
	}
	return err
}

// departed is the answer for a keeping that no heartbeat tells of any more.
func (m *memory) departed(id string) (provisioners.Instance, error) {
	known, found := m.byID(id)
	if !found {
		return provisioners.Instance{}, notFoundError(id)
	}
	return known.portInstance(), nil
}

// Get returns one node in keeping.
func (o *Observed) Get(ctx context.Context, id string) (provisioners.Instance, error) {
	done, err := o.takeTurn(ctx)
	if err != nil {
		return provisioners.Instance{}, err
	}
	defer done()
	v, err := o.look(ctx)
	if err != nil {
		return provisioners.Instance{}, err
	}
	k, err := v.byID(id)
	if provisioners.KindOf(err) == provisioners.KindNotFound {
		return o.memory.departed(id)
	}
	if err != nil {
		return provisioners.Instance{}, err
	}
	return o.config.portKeeping(*k), nil
}

// findKeeping finds an instance in the view. KindNotFound means that Slurm knows of none.
func (v keepings) byID(id string) (*keeping, error) {
	parts := keepingID.FindStringSubmatch(id)
	if parts == nil {
		return nil, notFoundError(id)
	}
	if k := v.find(func(k keeping) bool { return keepingIDOf(k.beats[0].mark) == id }); k != nil {
		return k, nil
	}
	switch {
	case slices.Contains(v.strange, parts[1]):
		return nil, provisioners.Errorf(provisioners.KindUnknown, "the heartbeats of %s are not understood", id)
	case !v.whole:
		return nil, provisioners.Errorf(provisioners.KindTransient, "squeue's list of heartbeats is cut")
	}
	return nil, notFoundError(id)
}

// List returns the owner's nodes in keeping, those included that ended in the last
// minutes.
func (o *Observed) List(ctx context.Context, owner string) (provisioners.List, error) {
	done, err := o.takeTurn(ctx)
	if err != nil {
		return provisioners.List{}, err
	}
	defer done()
	v, err := o.look(ctx)
	if err != nil {
		return provisioners.List{}, err
	}
	list := provisioners.List{Complete: v.isComplete()}
	for _, k := range v.all {
		if k.tags.owner == owner {
			list.Instances = append(list.Instances, o.config.portKeeping(k))
		}
	}
	return list, nil
}

// Delete cools: it ends the heartbeats. Slurm suspends the node once it has been idle.
func (o *Observed) Delete(ctx context.Context, id string) error {
	done, err := o.takeTurn(ctx)
	if err != nil {
		return err
	}
	defer done()
	v, err := o.look(ctx)
	if err != nil {
		return err
	}
	k, err := v.byID(id)
	if provisioners.KindOf(err) == provisioners.KindNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if err := o.cancelBeats(ctx, k.beats); err != nil {
		return fmt.Errorf("cooling %s: %w", id, err)
	}
	if known, found := o.memory.byID(id); found {
		return o.memory.rememberGone(known)
	}
	return nil
}
