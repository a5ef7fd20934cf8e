//go:build clouds

package apitest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// object is never changed once it is kept: a change keeps a copy.
type object struct{ *unstructured.Unstructured }

// snapshot is the world as it was from a moment on.
type snapshot struct {
	from    time.Time
	objects map[string]object
}

const mostPast = 400 // snapshots: more than a lagging list looks back

func (s *Server) putObject(key string, o object) object {
	s.version++
	o.SetResourceVersion(strconv.FormatInt(s.version, 10))
	kind := watch.Modified
	if _, was := s.objects[key]; !was {
		kind = watch.Added
	}
	s.objects[key] = o
	s.addChange(kind, key, o)
	s.saveSnapshot()
	return o
}

func (s *Server) dropObject(key string) {
	s.version++
	last := object{s.objects[key].DeepCopy()}
	last.SetResourceVersion(strconv.FormatInt(s.version, 10))
	s.addChange(watch.Deleted, key, last)
	delete(s.objects, key)
	s.saveSnapshot()
}

func (s *Server) saveSnapshot() {
	s.past = append(s.past, snapshot{s.clock.Now(), maps.Clone(s.objects)})
	if len(s.past) > mostPast {
		s.past = s.past[1:]
	}
}

// listedObjects is what lists are made of.
func (s *Server) listedObjects(c call) map[string]object {
	if s.lag == 0 || !c.ours {
		return s.objects
	}
	then := s.clock.Now().Add(-s.lag)
	var world map[string]object
	for _, p := range s.past {
		if !p.from.After(then) {
			world = p.objects
		}
	}
	return world
}

func (s *Server) getObject(c call) answer {
	o, found := s.objects[c.objectKey()]
	if !found {
		return notFound(c)
	}
	return answer{http.StatusOK, o}
}

func notFound(c call) answer {
	return refusalAnswer(http.StatusNotFound, metav1.StatusReasonNotFound,
		fmt.Sprintf("%s %q not found", c.resource, c.name),
		c)
}

func (s *Server) createObject(c call) answer {
	o, err := decodeObject(c.body)
	if err != nil {
		return refusalAnswer(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error(), c)
	}
	if c.name = o.GetName(); c.name == "" {
		c.name = o.GetGenerateName() + strconv.FormatInt(s.version, 36)
	}
	if _, taken := s.objects[c.objectKey()]; taken {
		return refusalAnswer(http.StatusConflict, metav1.StatusReasonAlreadyExists,
			fmt.Sprintf("%s %q already exists", c.resource, c.name), c)
	}
	o.SetName(c.name)
	o.SetNamespace(c.namespace)
	o.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", s.version+1)))
	o.SetCreationTimestamp(metav1.NewTime(s.clock.Now().Truncate(time.Second)))
	if c.resource == "pods" {
		s.initializePod(o)
	}
	if c.resource == "jobs" && s.suspends {
		_ = unstructured.SetNestedField(o.Object, true, "spec", "suspend")
	}
	return answer{http.StatusCreated, s.putObject(c.objectKey(), o)}
}

func decodeObject(body []byte) (object, error) {
	o := object{&unstructured.Unstructured{}}
	err := json.Unmarshal(body, &o.Object)
	return o, err
}

// checkPrecondition refuses a write that names another object or version than is kept.
func checkPrecondition(c call, kept object, uid types.UID, version string) (answer, bool) {
	if (uid == "" || uid == kept.GetUID()) && (version == "" || version == kept.GetResourceVersion()) {
		return answer{}, false
	}
	return refusalAnswer(http.StatusConflict, metav1.StatusReasonConflict,
			fmt.Sprintf("Operation cannot be fulfilled on %s %q: the object has been modified", c.resource, c.name), c),
		true
}

func (s *Server) updateObject(c call) answer {
	kept, found := s.objects[c.objectKey()]
	if !found {
		return notFound(c)
	}
	o, err := decodeObject(c.body)
	if err != nil {
		return refusalAnswer(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error(), c)
	}
	if no, is := checkPrecondition(c, kept, o.GetUID(), o.GetResourceVersion()); is {
		return no
	}
	next := object{kept.DeepCopy()}
	for field, value := range o.Object {
		if (field == "status") == (c.sub == "status") {
			next.Object[field] = value
		}
	}
	next.SetUID(kept.GetUID())
	next.SetCreationTimestamp(kept.GetCreationTimestamp())
	return answer{http.StatusOK, s.putObject(c.objectKey(), next)}
}

// patchObject is a JSON merge patch, the only kind that it knows.
func (s *Server) patchObject(c call) answer {
	kept, found := s.objects[c.objectKey()]
	if !found {
		return notFound(c)
	}
	change, err := decodeObject(c.body)
	if err != nil {
		return refusalAnswer(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error(), c)
	}
	if no, is := checkPrecondition(c, kept, change.GetUID(), change.GetResourceVersion()); is {
		return no
	}
	next := object{kept.DeepCopy()}
	mergePatch(next.Object, change.Object)
	return answer{http.StatusOK, s.putObject(c.objectKey(), next)}
}

func mergePatch(into, change map[string]any) {
	for field, value := range change {
		inner, nested := value.(map[string]any)
		old, was := into[field].(map[string]any)
		switch {
		case value == nil:
			delete(into, field)
		case nested && was:
			mergePatch(old, inner)
		default:
			into[field] = value
		}
	}
}

func (s *Server) deleteObject(c call, fault Fault) answer {
	kept, found := s.objects[c.objectKey()]
	if !found {
		return notFound(c)
	}
	var options metav1.DeleteOptions
	if len(c.body) > 0 && json.Unmarshal(c.body, &options) != nil {
		return refusalAnswer(http.StatusBadRequest, metav1.StatusReasonBadRequest, "no DeleteOptions", c)
	}
	if p := options.Preconditions; p != nil {
		if no, is := checkPrecondition(c, kept, valueOf(p.UID), valueOf(p.ResourceVersion)); is {
			return no
		}
	}
	if fault.Ignore {
		return answer{http.StatusOK, kept}
	}
	if c.resource == "pods" {
		return s.endPod(c, kept, options.GracePeriodSeconds)
	}
	s.dropObject(c.objectKey())
	return answer{http.StatusOK, kept}
}

func valueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

const lost = "bG9zdA" // the continue token of a page that has expired

func (s *Server) listObjects(c call, fault Fault) answer {
	if c.queryParam("continue") == lost {
		return refusalAnswer(http.StatusGone, metav1.StatusReasonExpired,
			"The provided continue parameter is too old", c)
	}
	keys, err := s.matchingKeys(c)
	if err != nil {
		return refusalAnswer(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error(), c)
	}
	more := ""
	if limit, _ := strconv.Atoi(c.queryParam("limit")); limit > 0 && len(keys) > limit {
		keys = keys[:limit]
		more = base64.RawURLEncoding.EncodeToString([]byte(keys[limit-1]))
	}
	if fault.Lose {
		keys, more = nil, lost
	}
	items := []any{}
	for _, key := range keys {
		items = append(items, s.listedObjects(c)[key].Object)
	}
	version := c.version
	if c.group != "" {
		version = c.group + "/" + c.version
	}
	return answer{http.StatusOK, map[string]any{
		"kind": s.kinds[c.resource] + "List", "apiVersion": version,
		"metadata": map[string]any{"resourceVersion": strconv.FormatInt(s.version, 10), "continue": more},
		"items":    items,
	}}
}

// matchingKeys returns the keys of what the list shows, in order.
func (s *Server) matchingKeys(c call) ([]string, error) {
	byLabel, err := labels.Parse(c.queryParam("labelSelector"))
	if err != nil {
		return nil, err
	}
	byField, err := fields.ParseSelector(c.queryParam("fieldSelector"))
	if err != nil {
		return nil, err
	}
	after, err := base64.RawURLEncoding.DecodeString(c.queryParam("continue"))
	if err != nil {
		return nil, err
	}
	prefix := c.group + "/" + c.resource + "/"
	if c.namespace != "" {
		prefix += c.namespace + "/"
	}
	var keys []string
	for key, o := range s.listedObjects(c) {
		if strings.HasPrefix(key, prefix) && key > string(after) && byLabel.Matches(labels.Set(o.GetLabels())) &&
			byField.Matches(pathSet(o.Object)) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

// pathSet finds a field of an object by its dotted path.
type pathSet map[string]any

// Has implements fields.Fields.
func (p pathSet) Has(path string) bool { return p.Get(path) != "" }

// Get implements fields.Fields.
func (p pathSet) Get(path string) string {
	text, _, _ := unstructured.NestedString(p, strings.Split(path, ".")...)
	return text
}
