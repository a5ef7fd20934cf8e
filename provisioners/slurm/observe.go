package slurm

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// Observe looks at all jobs and nodes. squeue shows a job for MinJobAge after its end;
// what ended before that is known where accounting is, and told an hour's worth a call.
func (o *Observed) Observe(ctx context.Context, since provisioners.Mark) (provisioners.Observation, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return provisioners.Observation{}, err
	}
	told, err := parseMark(since)
	if err != nil {
		return provisioners.Observation{}, err
	}
	set, err := o.readSettings(ctx)
	if err != nil {
		return provisioners.Observation{}, err
	}
	at := o.clusterNow()
	queue, err := o.listQueue(ctx)
	if err != nil {
		return provisioners.Observation{}, err
	}
	beats, err := o.listBeats(ctx) // after the queue, so that it has all of ours that the queue has
	if err != nil {
		return provisioners.Observation{}, err
	}
	queue.markOwn(beats)
	o.mu.Lock()
	s := newSpan(told, at, set, o.config.Accounting, o.portion)
	o.mu.Unlock()
	if s.accounted {
		o.addHistory(ctx, &queue, beats.user, &s)
	}
	nodes, err := o.listElasticNodes(ctx)
	if err != nil {
		return provisioners.Observation{}, err
	}
	seen := o.describe(queue, beats, nodes, &s)
	seen.At, seen.Mark, seen.KeepWithin = at, s.mark(), set.hastiest(o.config.Offers).keepWithin()
	seen.More = s.hasMore()
	if queue.cut && since != "" {
		seen.Mark, seen.More = since, false // the next look may see what this one did not
	}
	if !beats.isComplete() {
		queue.note("not all of our own heartbeats were understood")
	}
	if set.hides("jobs") && seen.isHidden() {
		queue.note("jobs of other users are hidden (PrivateData)")
	}
	seen.Gap = strings.Join(append(queue.gaps, s.gaps...), "; ")
	seen.Complete = seen.Gap == ""
	return seen.Observation, nil
}

// keepWithin lets every heartbeat of a node with work be moved before it runs.
func (s settings) keepWithin() time.Duration {
	return s.interval() / 2
}

// describe puts what was seen into the port's words.
func (o *Observed) describe(q queueView, beats beatView, nodes []elasticNode, s *span) described {
	byName := map[string]elasticNode{}
	for _, n := range nodes {
		byName[n.name] = n
	}
	own := map[string]ownUse{}
	var d described
	var over []provisioners.Work
	told := map[string]bool{}
	for _, r := range q.rows {
		r.placeOn(o.config.Offers, byName)
		switch {
		case r.own:
			addOwnUse(own, r)
		case r.work.GPUs == 0 || told[r.work.ID]:
		case !r.work.EndedAt.IsZero() || phaseIsOver(r.state):
			over = append(over, r.work)
		default:
			d.Work = append(d.Work, r.work)
		}
		told[r.work.ID] = true
	}
	d.Work = append(d.Work, s.choose(over)...)
	slices.SortFunc(d.Work, func(a, b provisioners.Work) int { return strings.Compare(a.ID, b.ID) })
	all, _ := groupBeats(beats.beats)
	for _, n := range nodes {
		if types := o.config.typesOf(n); len(types) > 0 {
			d.Nodes = append(d.Nodes, portNode(n, types, own[n.name], o.keeperOf(all, n, own[n.name])))
		}
	}
	return d
}

func phaseIsOver(state string) bool {
	return phases[state] == provisioners.Terminated || phases[state] == provisioners.Terminating
}

// described is an observation in the making.
type described struct{ provisioners.Observation }

// isHidden reports whether nodes have GPUs taken that no job explains.
func (d described) isHidden() bool {
	explained := map[string]int{}
	for _, w := range d.Work {
		for _, n := range w.Nodes {
			explained[n.Name] += n.GPUs
		}
	}
	return slices.ContainsFunc(d.Nodes, func(n provisioners.ObservedNode) bool { return n.GPUsTaken > explained[n.Name] })
}

// ownUse is what our own jobs have of a node.
type ownUse struct{ cpus, gpus int }

func addOwnUse(own map[string]ownUse, r workRow) {
	if !holdsNode(r.state) {
		return
	}
	for _, n := range r.work.Nodes {
		use := own[n.Name]
		own[n.Name] = ownUse{cpus: use.cpus + r.cpus, gpus: use.gpus + n.GPUs}
	}
}

// holdsNode reports whether a job in the state has its nodes.
func holdsNode(state string) bool {
	return state == "RUNNING" || state == "CONFIGURING" || state == "COMPLETING"
}

// typesOf are the types of the offers that the node can serve.
func (c Config) typesOf(n elasticNode) []string {
	var types []string
	for _, offer := range c.Offers {
		if n.canServe(offer) {
			types = append(types, offer.Type)
		}
	}
	slices.Sort(types)
	return types
}

// keeperOf is the id of the instance that keeps the node.
func (o *Observed) keeperOf(all []keeping, n elasticNode, own ownUse) string {
	for _, k := range all {
		if k.host != n.name {
			continue
		}
		k.node, k.state = n, n.portState(own)
		if o.settlePhase(&k); k.isLive() {
			return keepingIDOf(o.config.tokenMark(k.tags.token))
		}
	}
	return ""
}

func portNode(n elasticNode, types []string, own ownUse, keeper string) provisioners.ObservedNode {
	node := provisioners.ObservedNode{
		Name: n.name, InstanceID: keeper, Types: types, State: n.portState(own), GPUs: countResource(n.gres, "gpu"),
		GPUsTaken: max(0, countResource(n.used, "gpu")-own.gpus),
		CPUs:      n.cpus, CPUsTaken: max(0, n.cpusTaken-own.cpus), Since: n.idleSince(),
	}
	if node.State == provisioners.NodeUnavailable {
		node.Message = n.message()
	}
	return node
}
