//go:build clouds

package kubernetes

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forewarm/forewarm/provisioners"
)

const (
	pageSize  = 500
	mostPages = 200 // a hundred thousand machines: more is an answer without an end
)

// List returns the owner's machines, those that have ended within the last days
// among them. It promotes none: a machine that became usable since the last Get
// is still Booting here.
func (c *Cluster) List(ctx context.Context, owner string) (provisioners.List, error) {
	if err := provisioners.Ended(ctx); err != nil {
		return provisioners.List{}, err
	}
	if !labelValue(owner) {
		return provisioners.List{Complete: true}, nil // Create makes none for such an owner
	}
	all, complete, err := c.readOwned(ctx, owner)
	if err != nil {
		return provisioners.List{}, err
	}
	list := provisioners.List{Complete: complete}
	for _, s := range all {
		if s.awaitsPlaceholder() {
			continue
		}
		if i := c.renderWithNotice(s); i.Token != "" {
			list.Instances = append(list.Instances, i)
		} else {
			list.Complete = false
		}
	}
	if complete {
		c.recordEnds(ctx, all)
	}
	slices.SortFunc(list.Instances, func(a, b provisioners.Instance) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

// readOwned reads everything of the owner. Records come first: a machine whose
// record is in the answer and whose pod is not has lost it, while a pod without
// its record is of a Create in between, and says by itself whose it is.
func (c *Cluster) readOwned(ctx context.Context, owner string) (all []seen, complete bool, err error) {
	records, complete, err := c.listRecords(ctx, labelOwner+"="+owner+",")
	if err != nil {
		return nil, false, err
	}
	pods, whole, err := c.api.listPods(ctx, c.config.Namespace, labelOwner+"="+owner+","+labelRole+"="+rolePlaceholder)
	if err != nil {
		return nil, false, err
	}
	all = pairRecords(records, pods)
	if err := c.lookAtWork(ctx, all); err != nil {
		return nil, false, err
	}
	if err := c.lookAtNodes(ctx, all); err != nil {
		return nil, false, err
	}
	return all, complete && whole, nil
}

// pairRecords pairs records with their pods.
func pairRecords(records []*stored, pods []corev1.Pod) (all []seen) {
	left := map[types.UID]*corev1.Pod{} // by the uid of its record
	for i := range pods {
		if uid := recordOf(&pods[i]); isPlaceholderOf(&pods[i], uid) {
			left[uid] = &pods[i]
		}
	}
	for _, record := range records {
		s := seen{key: record.instanceKey(), record: record, pod: left[record.object.UID]}
		delete(left, record.object.UID)
		all = append(all, s)
	}
	for uid, pod := range left {
		all = append(all, seen{key: key{pod.Namespace, pod.Name, uid}, pod: pod})
	}
	return all
}

// lookAtWork finds the machines whose placeholder made way for a pod of its user.
func (c *Cluster) lookAtWork(ctx context.Context, all []seen) error {
	vacant := func(s seen) bool {
		return !s.hasPlaceholder() && s.record != nil && !s.hasEnded() && s.record.Place != nil
	}
	if !slices.ContainsFunc(all, vacant) {
		return nil
	}
	working := map[string][]corev1.Pod{} // by node id
	unread := false
	for _, namespace := range c.config.workNamespaces() {
		pods, complete, err := c.api.listPods(ctx, namespace, labelNode+","+labelRole+"!="+rolePlaceholder)
		if err != nil {
			return err
		}
		unread = unread || !complete
		for _, pod := range pods {
			working[pod.Labels[labelNode]] = append(working[pod.Labels[labelNode]], pod)
		}
	}
	for i := range all {
		if s := &all[i]; vacant(*s) {
			s.work = unread || slices.ContainsFunc(working[s.record.Spec.NodeID], func(pod corev1.Pod) bool {
				return s.takesOver(&pod)
			})
		}
	}
	return nil
}

// lookAtNodes reads each node of a running machine once.
func (c *Cluster) lookAtNodes(ctx context.Context, all []seen) error {
	nodes := map[string]*corev1.Node{} // nil: read, and not there
	for i := range all {
		s := &all[i]
		if !s.holdsNode() || s.record == nil || s.record.Place == nil {
			continue
		}
		node, read := nodes[s.record.Place.Node]
		if !read {
			var err error
			if node, err = c.api.getNode(ctx, s.record.Place.Node); err != nil {
				return err
			}
			nodes[s.record.Place.Node] = node
		}
		c.recordPlace(s, node)
		s.work = s.work && !s.nodeGone
	}
	return nil
}

// mostTidied bounds what one List does beside its job.
const mostTidied = 100

// recordEnds writes down the ends that were seen and removes records that are old
// enough. What fails is there to be done by the next List.
func (c *Cluster) recordEnds(ctx context.Context, all []seen) {
	now, left := c.clock.Now(), mostTidied
	for _, s := range all {
		if left == 0 {
			return
		}
		if s.record == nil {
			continue
		}
		next, changed := s.nextRecord(now)
		switch {
		case s.hasPlaceholder():
			continue
		case s.isForgettable(now):
			_ = c.api.deleteRecord(ctx, s.record)
		case changed && !s.awaitsPlaceholder():
			_ = c.api.updateRecord(ctx, s.record, next)
		default:
			continue
		}
		left--
	}
}

// deleteRecord removes a record, unless it has changed since it was read. Whatever it
// owns goes with it.
func (a api) deleteRecord(ctx context.Context, s *stored) error {
	return a.core.ConfigMaps(s.object.Namespace).Delete(ctx, s.object.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &s.object.UID, ResourceVersion: &s.object.ResourceVersion},
	})
}

// listRecords lists our records, those that the selector chooses; one that is not empty
// ends with a comma.
func (c *Cluster) listRecords(ctx context.Context, selector string) (all []*stored, complete bool, err error) {
	records, err := c.readRecords(ctx, selector)
	return records.all, records.whole && len(records.damaged) == 0, err
}

// recordList is what a list of records has shown.
type recordList struct {
	all     []*stored
	damaged []string // the names of those that cannot be read
	whole   bool     // no page is missing
}

func (c *Cluster) readRecords(ctx context.Context, selector string) (list recordList, err error) {
	client := c.api.core.ConfigMaps(c.config.Namespace)
	objects, whole, err := readPages(selector+labelRole+"="+c.api.role,
		func(options metav1.ListOptions) ([]corev1.ConfigMap, string, error) {
			page, err := client.List(ctx, options)
			return page.Items, page.Continue, err
		})
	if err != nil {
		return list, readError(err, "listing records with %s", selector)
	}
	for i := range objects {
		record, err := parseRecord(&objects[i])
		if err != nil {
			list.damaged = append(list.damaged, objects[i].Name)
			continue
		}
		list.all = append(list.all, record)
	}
	list.whole = whole
	return list, nil
}

func (a api) listPods(ctx context.Context, namespace, selector string) ([]corev1.Pod, bool, error) {
	all, complete, err := readPages(selector, func(options metav1.ListOptions) ([]corev1.Pod, string, error) {
		page, err := a.core.Pods(namespace).List(ctx, options)
		return page.Items, page.Continue, err
	})
	if err != nil {
		return nil, false, readError(err, "listing pods with %s", selector)
	}
	return all, complete, nil
}

// readPages reads a list to its end. The server may forget where a list was while it
// is read; what was read until then is returned as incomplete.
func readPages[T any](selector string,
	read func(metav1.ListOptions) ([]T, string, error)) (all []T, complete bool, err error) {
	complete, err = eachPage(metav1.ListOptions{LabelSelector: selector}, func(o metav1.ListOptions) (string, error) {
		items, more, err := read(o)
		all = append(all, items...)
		return more, err
	})
	return all, complete, err
}

// eachPage has a list read page by page. It is not complete when the server forgot where
// it was, or when it does not end.
func eachPage(options metav1.ListOptions, read func(metav1.ListOptions) (more string, err error)) (bool, error) {
	options.Limit = pageSize
	for range mostPages {
		more, err := read(options)
		switch {
		case options.Continue != "" && (apierrors.IsResourceExpired(err) || apierrors.IsGone(err)):
			return false, nil
		case err != nil:
			return false, err
		case more == "":
			return true, nil
		}
		options.Continue = more
	}
	return false, nil
}
