//go:build clouds

package kubernetes

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forewarm/forewarm/provisioners"
)

// clusterView is what one look showed of the whole cluster.
type clusterView struct {
	nodes    []corev1.Node
	pods     []podView
	use      map[string]*nodeUse // by node name
	keepings []*stored           // of every deployment
	// foreign are the names of nodes that another installation's placeholder is on.
	foreign map[string]bool
	version string   // of the list of pods
	whole   bool     // every page was read
	gaps    []string // what is not known of it, for people
}

// lookAround reads records, then pods, then nodes: a node that a record or a pod names is
// gone if it is not there afterwards.
func (e *eyes) lookAround(ctx context.Context) (v clusterView, err error) {
	v.use, v.foreign = map[string]*nodeUse{}, map[string]bool{}
	var whole [3]bool
	records, err := e.cluster.readRecords(ctx, "")
	if err != nil {
		return v, err
	}
	v.keepings, whole[0] = records.all, records.whole
	for _, name := range records.damaged {
		v.gaps = append(v.gaps, fmt.Sprintf("record %s is damaged; remove that ConfigMap", name))
	}
	if whole[1], err = e.readPods(ctx, &v); err != nil {
		return v, err
	}
	if whole[2], err = e.readNodes(ctx, &v); err != nil {
		return v, err
	}
	v.whole = whole[0] && whole[1] && whole[2]
	for i, list := range []string{"records", "pods", "nodes"} {
		if !whole[i] {
			v.gaps = append(v.gaps, "the list of "+list+" is cut")
		}
	}
	return v, nil
}

// readPods reads the pods of all namespaces.
func (e *eyes) readPods(ctx context.Context, v *clusterView) (bool, error) {
	whole, err := eachPage(metav1.ListOptions{}, func(options metav1.ListOptions) (string, error) {
		page, err := e.api().core.Pods(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return "", err
		}
		v.version = page.ResourceVersion
		for i := range page.Items {
			e.addPod(v, &page.Items[i])
		}
		return page.Continue, nil
	})
	if err != nil {
		return false, readError(err, "listing the pods of all namespaces")
	}
	return whole, nil
}

func (e *eyes) addPod(v *clusterView, pod *corev1.Pod) {
	p := e.config().viewPod(pod)
	if p.holdsNode() {
		if v.use[p.node] == nil {
			v.use[p.node] = &nodeUse{}
		}
		v.use[p.node].add(p)
		if p.own && p.namespace != e.config().Namespace {
			v.foreign[p.node] = true
		}
	}
	if p.isWork() {
		v.pods = append(v.pods, p)
	}
}

// readNodes reads the nodes that can serve an offer, or are in keeping.
func (e *eyes) readNodes(ctx context.Context, v *clusterView) (bool, error) {
	whole, err := eachPage(metav1.ListOptions{}, func(options metav1.ListOptions) (string, error) {
		page, err := e.api().core.Nodes().List(ctx, options)
		if err != nil {
			return "", err
		}
		for _, node := range page.Items {
			if len(e.config().typesOf(&node)) > 0 || e.keeperOf(*v, node.UID) != nil {
				v.nodes = append(v.nodes, node)
			}
		}
		return page.Continue, nil
	})
	if err != nil {
		return false, readError(err, "listing nodes")
	}
	return whole, nil
}

// useOf is what runs on the node.
func (v clusterView) useOf(node string) nodeUse {
	if use := v.use[node]; use != nil {
		return *use
	}
	return nodeUse{}
}

// keeperOf is the living record that keeps the node.
func (e *eyes) keeperOf(v clusterView, node types.UID) *stored {
	for _, s := range v.keepings {
		if s.Place != nil && s.Place.UID == node && e.isLive(s) {
			return s
		}
	}
	return nil
}

// freeNodes are the idle nodes of the offer that nobody keeps, the youngest first.
func (e *eyes) freeNodes(v clusterView, offer Offer) []*corev1.Node {
	var free []*corev1.Node
	for i := range v.nodes {
		node := &v.nodes[i]
		use := v.useOf(node.Name)
		state, _ := e.portState(node, use)
		if offer.canServe(node) && state == provisioners.NodeIdle && use.leavesRoom(node, offer) && !v.foreign[node.Name] &&
			e.keeperOf(v, node.UID) == nil {
			free = append(free, node)
		}
	}
	slices.SortStableFunc(free, freshness)
	return free
}
