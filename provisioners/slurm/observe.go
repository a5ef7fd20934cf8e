package slurm

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// markPattern is a mark: until when, in seconds since 1970, work was looked at.
var markPattern = regexp.MustCompile(`^slurm1-([1-9][0-9]{0,10})$`)

// markSlack is by how much two looks overlap: Slurm's times are whole seconds.
const markSlack = 2 * time.Second

func markAt(at time.Time) provisioners.Mark {
	return provisioners.Mark("slurm1-" + strconv.FormatInt(at.Unix(), 10))
}

func parseMark(mark provisioners.Mark) (time.Time, error) {
	if mark == "" {
		return time.Time{}, nil
	}
	parts := markPattern.FindStringSubmatch(string(mark))
	if parts == nil {
		return time.Time{}, provisioners.Errorf(provisioners.KindBadSpec, "the mark %.40q was not made here", mark)
	}
	return parseInstant(parts[1])
}

// Observe looks at all jobs and nodes. squeue shows a job for MinJobAge after its end;
// what ended before that is known where accounting is.
func (o *Observed) Observe(ctx context.Context, since provisioners.Mark) (provisioners.Observation, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return provisioners.Observation{}, err
	}
	from, err := parseMark(since)
	if err != nil {
		return provisioners.Observation{}, err
	}
	set, err := o.readSettings(ctx)
	if err != nil {
		return provisioners.Observation{}, err
	}
	at := o.clock.Now()
	queue, err := o.listQueue(ctx)
	if err != nil {
		return provisioners.Observation{}, err
	}
	if err := o.addHistory(ctx, &queue, set, from, at); err != nil {
		return provisioners.Observation{}, err
	}
	beats, err := o.listBeats(ctx) // after the queue, so that it has all of ours that the queue has
	if err != nil {
		return provisioners.Observation{}, err
	}
	nodes, err := o.listElasticNodes(ctx)
	if err != nil {
		return provisioners.Observation{}, err
	}
	seen := o.describe(queue, beats, nodes, from)
	seen.At, seen.Mark, seen.KeepWithin = at, markAt(at), set.hastiest(o.config.Offers).keepWithin()
	seen.Complete = queue.whole && !queue.missed && beats.isComplete() && !(set.hides("jobs") && seen.isHidden())
	if !queue.whole && since != "" {
		seen.Mark = since // the next look may see what this one did not
	}
	return seen.Observation, nil
}

// keepWithin lets every heartbeat of a node with work be moved before it runs.
func (s settings) keepWithin() time.Duration {
	return s.interval() / 2
}

// queueView is what was seen of everybody's jobs.
type queueView struct {
	rows   []workRow
	whole  bool // every row was read and understood
	missed bool // jobs may have come and gone unseen
}

func (c commands) listQueue(ctx context.Context) (queueView, error) {
	output, err := c.askSlurm(ctx, provisioners.KindTransient, "", "squeue", "--all", "--array", "--noheader",
		"--states=all", "--Format="+formatColumns(workColumns))
	if err != nil {
		return queueView{}, fmt.Errorf("listing jobs: %w", err)
	}
	table, whole := cutRows(output, len(workColumns))
	q := queueView{whole: whole}
	for _, row := range table {
		r, err := parseWorkRow(row)
		if err != nil {
			q.whole = false
			continue
		}
		q.rows = append(q.rows, r)
	}
	return q, nil
}

// describe puts what was seen into the port's words.
func (o *Observed) describe(q queueView, beats beatView, nodes []elasticNode, from time.Time) described {
	byName := map[string]elasticNode{}
	for _, n := range nodes {
		byName[n.name] = n
	}
	own := map[string]ownUse{}
	var d described
	for _, r := range q.rows {
		r.placeOn(o.config.Offers, byName)
		if r.isOwn(beats.user) {
			addOwnUse(own, r)
			continue
		}
		over := !r.work.EndedAt.IsZero() || phaseIsOver(r.state)
		if r.work.GPUs > 0 && (!over || !from.IsZero() && !r.work.EndedAt.Before(from.Add(-markSlack))) {
			d.Work = append(d.Work, r.work)
		}
	}
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
	if r.state != "RUNNING" && r.state != "CONFIGURING" && r.state != "COMPLETING" {
		return
	}
	for _, n := range r.work.Nodes {
		use := own[n.Name]
		own[n.Name] = ownUse{cpus: use.cpus + r.cpus, gpus: use.gpus + n.GPUs}
	}
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

// addHistory adds what ended and squeue does not show any more.
func (o *Observed) addHistory(ctx context.Context, q *queueView, set settings, from, at time.Time) error {
	if from.IsZero() || at.Sub(from)+markSlack < set.minJobAge {
		return nil
	}
	if !o.config.Accounting || !set.tracksGPUs {
		q.missed = true
		return nil
	}
	rows, whole, err := o.accountedWork(ctx, at.Sub(from)+markSlack)
	if err != nil {
		return err
	}
	q.whole = q.whole && whole
	shown := map[string]bool{}
	for _, r := range q.rows {
		shown[r.work.ID] = true
	}
	for _, r := range rows {
		if !shown[r.work.ID] {
			q.rows = append(q.rows, r)
		}
	}
	return nil
}
