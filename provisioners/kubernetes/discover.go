//go:build clouds

package kubernetes

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// optionalKind is a kind that a cluster may have, in one of the versions that are
// understood here, the best first.
type optionalKind struct {
	group, resource string
	versions        []string
}

var (
	bufferKind   = optionalKind{"autoscaling.x-k8s.io", "capacitybuffers", []string{"v1beta1", "v1alpha1"}}
	workloadKind = optionalKind{kueueGroup, "workloads", []string{"v1beta2", "v1beta1"}}
)

// servedKind is what discovery said of a kind.
type servedKind struct {
	version string // empty: the cluster does not have it
	asked   time.Time
}

// servedFor is how long discovery is believed: an autoscaler that is upgraded may bring a
// kind, or take a version away.
const servedFor = 10 * time.Minute

// findKind is the kind in the best version that the cluster serves; false where it serves
// none.
func (e *eyes) findKind(ctx context.Context, kind optionalKind) (schema.GroupVersionResource, bool, error) {
	name := kind.group + "/" + kind.resource
	e.mu.Lock()
	known := e.served[name]
	e.mu.Unlock()
	if known.asked.IsZero() || e.now().Sub(known.asked) > servedFor {
		version, err := e.api().discover(ctx, kind)
		if err != nil {
			return schema.GroupVersionResource{}, false, err
		}
		known = servedKind{version, e.now()}
		e.mu.Lock()
		e.served[name] = known
		e.mu.Unlock()
	}
	return schema.GroupVersionResource{Group: kind.group, Version: known.version, Resource: kind.resource},
		known.version != "", nil
}

// discover asks which version of the kind is served. A group has versions that not all
// its kinds have.
func (a api) discover(ctx context.Context, kind optionalKind) (string, error) {
	var groups metav1.APIGroupList
	if err := a.readPath(ctx, "/apis", &groups); err != nil {
		return "", err
	}
	served := map[string]bool{}
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			served[version.GroupVersion] = true
		}
	}
	for _, version := range kind.versions {
		path := kind.group + "/" + version
		if !served[path] {
			continue
		}
		var list metav1.APIResourceList
		if err := a.readPath(ctx, "/apis/"+path, &list); err != nil {
			return "", err
		}
		if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == kind.resource }) {
			return version, nil
		}
	}
	return "", nil
}

func (a api) readPath(ctx context.Context, path string, into any) error {
	raw, err := a.core.RESTClient().Get().AbsPath(path).Do(ctx).Raw()
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return readError(err, "reading what %s serves", path)
	}
	return nil
}
