//go:build clouds

package kubernetes

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forewarm/forewarm/provisioners"
)

const (
	kueueGroup    = "kueue.x-k8s.io"
	kueueWorkload = kueueGroup + "/workload" // the annotation that some pods have
)

// workload is what counts of a Workload of Kueue, which admits pods as one.
type workload struct {
	key      string // namespace and name
	queue    string // the LocalQueue
	admitted time.Time
	waiting  provisioners.Reason // while it is not admitted
}

// workloads are those of the cluster, by whose they are.
type workloads struct {
	byOwner map[types.UID]*workload
	byName  map[string]*workload
}

// readWorkloads reads the Workloads where the cluster has Kueue. They only tell when work
// was admitted, so that a list that is cut misses no work.
func (e *eyes) readWorkloads(ctx context.Context) (workloads, error) {
	all := workloads{map[types.UID]*workload{}, map[string]*workload{}}
	kind, has, err := e.findKind(ctx, workloadKind)
	if err != nil || !has {
		return all, err
	}
	_, err = eachPage(metav1.ListOptions{}, func(options metav1.ListOptions) (string, error) {
		page, err := e.api().open.Resource(kind).List(ctx, options)
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			all.add(&page.Items[i])
		}
		return page.GetContinue(), nil
	})
	if err != nil {
		return all, readError(err, "listing the Workloads of Kueue")
	}
	return all, nil
}

func (w workloads) add(object *unstructured.Unstructured) {
	one := &workload{key: object.GetNamespace() + "/" + object.GetName(), waiting: provisioners.WaitLimits}
	one.queue, _, _ = unstructured.NestedString(object.Object, "spec", "queueName")
	for _, c := range conditionsOf(object) {
		switch {
		case c.Type == "Admitted" && c.Status == metav1.ConditionTrue:
			one.admitted = c.LastTransitionTime.UTC()
		case c.Type == "Evicted" && c.Status == metav1.ConditionTrue && c.Reason == "Preempted":
			one.waiting = provisioners.WaitPriority
		}
	}
	w.byName[one.key] = one
	for _, owner := range object.GetOwnerReferences() {
		w.byOwner[owner.UID] = one
	}
}

// conditionsOf reads the conditions of an object; what is none is left out.
func conditionsOf(object *unstructured.Unstructured) (conditions []metav1.Condition) {
	entries, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)
		text := func(name string) string {
			s, _ := fields[name].(string)
			return s
		}
		c := metav1.Condition{Type: text("type"), Status: metav1.ConditionStatus(text("status")), Reason: text("reason"),
			Message: text("message")}
		if at, err := time.Parse(time.RFC3339, text("lastTransitionTime")); err == nil {
			c.LastTransitionTime = metav1.NewTime(at)
		}
		conditions = append(conditions, c)
	}
	return conditions
}

// of is the Workload that the pod belongs to: its own, that of what owns it, or the one
// that it names; nil for none.
func (w workloads) of(p podView) *workload {
	if one := w.byOwner[p.uid]; one != nil {
		return one
	}
	for _, owner := range p.owners {
		if one := w.byOwner[owner]; one != nil {
			return one
		}
	}
	if p.workload == "" {
		return nil
	}
	return w.byName[p.namespace+"/"+p.workload]
}
