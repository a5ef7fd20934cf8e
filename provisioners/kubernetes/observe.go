//go:build clouds

package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// Observe lists the pods of all namespaces, and has the API server tell of those that
// were deleted since the mark.
func (o *Observed) Observe(ctx context.Context, since provisioners.Mark) (provisioners.Observation, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return provisioners.Observation{}, err
	}
	from, err := parseMark(since)
	if err != nil {
		return provisioners.Observation{}, err
	}
	l := look{observed: o, from: from.version}
	if err := l.read(ctx, from); err != nil {
		return provisioners.Observation{}, err
	}
	seen := provisioners.Observation{At: l.at, Mark: mark{l.cluster, l.until}.portMark(),
		KeepWithin: o.config().keepWithin(), Nodes: l.portNodes(), Work: l.portWork()}
	behind := l.from > 0 && !l.past.lost && l.past.told < l.until
	switch {
	case !l.view.whole && since != "":
		seen.Mark = since // the next look may see what this one did not
	case behind: // the next look begins where the API server was for sure
		seen.Mark = mark{l.cluster, l.past.told}.portMark()
	}
	if l.from > 0 && l.past.lost {
		l.gaps = append(l.gaps, "the API server has not told all changes since the mark")
	} else if behind && !l.past.settled { // it did not say that it has told everything
		l.gaps = append(l.gaps, fmt.Sprintf("the API server has told changes up to version %d of %d", l.past.told, l.until))
	}
	seen.Gap = strings.Join(append(l.gaps, l.view.gaps...), "; ")
	seen.Complete = seen.Gap == ""
	return seen, nil
}

// look is one look at a cluster.
type look struct {
	observed    *Observed
	from, until uint64 // versions: the mark's, and that of the list of pods
	cluster     string // the hash of its identity
	at          time.Time

	view  clusterView
	past  pastChanges
	queue workloads
	said  boots
	gaps  []string // what it has not seen, beside those of the view
}

// read looks at the cluster. The time of the look is the API server's own: that of its
// first answer, which is before everything that is read.
func (l *look) read(ctx context.Context, from mark) (err error) {
	ctx, date := withServerDate(ctx)
	if l.cluster, err = l.observed.clusterHash(ctx); err != nil {
		return err
	}
	if l.at = date.orElse(l.observed.now()); from.isOfAnother(l.cluster) {
		return foreignMark(from.portMark())
	}
	if l.from == 0 {
		return l.readNow(ctx)
	}
	changes, err := l.observed.startChanges(ctx, l.from)
	if err != nil {
		return err
	}
	defer changes.stop()
	if err := l.readNow(ctx); err != nil {
		return err
	}
	if l.until < l.from { // versions only grow: it is a cluster that was restored from a copy
		return foreignMark(from.portMark())
	}
	l.past = changes.finish(l.until)
	return nil
}

func (l *look) readNow(ctx context.Context) (err error) {
	if l.queue, err = l.observed.readWorkloads(ctx); err != nil {
		l.gaps = append(l.gaps, err.Error()) // work is seen without them, only not since when it may start
	}
	if l.view, err = l.observed.lookAround(ctx); err != nil {
		return err
	}
	if l.until, err = strconv.ParseUint(l.view.version, 10, 64); err != nil || l.until == 0 {
		return provisioners.Errorf(provisioners.KindTransient, "the API server's version %.40q is no number",
			l.view.version)
	}
	var unread []string
	l.said, unread, err = l.observed.readBoots(ctx, l.view.pods)
	if len(unread) > 0 {
		l.gaps = append(l.gaps, fmt.Sprintf("events of the namespaces %s may not be read: whether a node boots for pods "+
			"there is not known", strings.Join(unread, ", ")))
	}
	return err
}

// portNodes renders the nodes, and those that boot for a keeping and have no name yet:
// they go by that of the placeholder.
func (l *look) portNodes() []provisioners.ObservedNode {
	o, kept := l.observed, map[string]bool{}
	var nodes []provisioners.ObservedNode
	for i := range l.view.nodes {
		node := &l.view.nodes[i]
		keeper := ""
		if s := o.keeperOf(l.view, node.UID); s != nil {
			keeper = s.instanceKey().instanceID()
			kept[keeper] = true
		}
		out := o.portNode(node, o.config().typesOf(node), l.view.useOf(node.Name), keeper)
		if len(out.Types) == 0 {
			out = strandedNode(out, o.keeperOf(l.view, node.UID))
		}
		nodes = append(nodes, out)
	}
	for _, s := range l.view.keepings {
		if id := s.instanceKey().instanceID(); s.Place == nil && s.Way != "" && o.isLive(s) && !kept[id] {
			nodes = append(nodes, provisioners.ObservedNode{Name: s.object.Name, InstanceID: id,
				Types: []string{s.Spec.Type}, State: provisioners.NodePoweringUp, GPUs: s.Want.GPUs})
		}
	}
	slices.SortFunc(nodes, func(a, b provisioners.ObservedNode) int { return cmp.Compare(a.Name, b.Name) })
	return nodes
}

// strandedNode is a node in keeping that serves no offer any more.
func strandedNode(out provisioners.ObservedNode, s *stored) provisioners.ObservedNode {
	out.Types, out.GPUs = []string{s.Spec.Type}, s.Want.GPUs
	if out.State != provisioners.NodePoweringDown && !strings.Contains(out.Message, "kubectl") {
		out.State, out.GPUsTaken = provisioners.NodeUnavailable, 0
		out.Message = fmt.Sprintf("node %s is kept and serves no offer any more: see its labels and taints with "+
			"kubectl describe node %s", out.Name, out.Name)
	}
	return out
}

// portWork renders what waits, runs, or has ended since the mark.
func (l *look) portWork() []provisioners.Work {
	var pods []podView
	for _, p := range l.view.pods {
		delete(l.past.deleted, p.uid) // after the list was read
		if !p.finished || l.from > 0 && (p.version > l.from || p.version == 0) {
			pods = append(pods, p)
		}
	}
	pods = slices.AppendSeq(pods, maps.Values(l.past.deleted))
	work := make([]provisioners.Work, len(pods))
	for i, p := range pods {
		work[i] = l.portPod(p)
	}
	holdGangs(pods, l.queue, work)
	slices.SortFunc(work, func(a, b provisioners.Work) int { return cmp.Compare(a.ID, b.ID) })
	return work
}

// portPod renders a pod. It has started when it was given its node, which is up by then:
// how long its image takes to come is no boot.
func (l *look) portPod(p podView) provisioners.Work {
	w := provisioners.Work{ID: string(p.uid), Namespace: p.namespace, GPUs: p.gpus, Type: l.typeOf(p),
		SubmittedAt: p.created, StartedAt: p.scheduled}
	admission := l.queue.of(p)
	if admission != nil {
		w.Queue, w.EligibleAt = admission.queue, admission.admitted
	}
	if p.node != "" {
		w.Nodes = []provisioners.WorkNode{{Name: p.node, GPUs: p.gpus}}
	} else {
		w.StartedAt = time.Time{}
	}
	switch {
	case p.finished:
		if w.EndedAt = p.ended; w.EndedAt.IsZero() {
			w.EndedAt = l.at
		}
	case p.node == "":
		w.Waiting = l.observed.waitsFor(p, admission, l.said, l.view.nodes)
	}
	return w
}

// typeOf is the offer that serves the pod: of those that fit, one that its node can serve.
func (l *look) typeOf(p podView) string {
	offers := l.observed.config().Offers
	for i := range l.view.nodes {
		if node := &l.view.nodes[i]; node.Name == p.node {
			for _, fit := range p.fits {
				if offers[fit].canServe(node) {
					return offers[fit].Type
				}
			}
		}
	}
	if len(p.fits) > 0 {
		return offers[p.fits[0]].Type
	}
	return ""
}
