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
)

// object is never changed once it is kept: a change keeps a copy.
type object struct{ *unstructured.Unstructured }

// snapshot is the world as it was from a moment on.
type snapshot struct {
	from    time.Time
	objects map[string]object
}

const mostPast = 400 // snapshots: more than a lagging list looks back

func (s *Server) keep(key string, o object) object {
	s.version++
	o.SetResourceVersion(strconv.FormatInt(s.version, 10))
	s.objects[key] = o
	s.remember()
	return o
}

func (s *Server) drop(key string) {
	s.version++
	delete(s.objects, key)
	s.remember()
}

func (s *Server) remember() {
	s.past = append(s.past, snapshot{s.clock.Now(), maps.Clone(s.objects)})
	if len(s.past) > mostPast {
		s.past = s.past[1:]
	}
}

// shown is what lists are made of.
func (s *Server) shown(c call) map[string]object {
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

func (s *Server) get(c call) answer {
	o, found := s.objects[c.key()]
	if !found {
		return notFound(c)
	}
	return answer{http.StatusOK, o}
}

func notFound(c call) answer {
	return refusal(http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%s %q not found", c.resource, c.name),
		c)
}

func (s *Server) create(c call) answer {
	o, err := decode(c.body)
	if err != nil {
		return refusal(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error(), c)
	}
	if c.name = o.GetName(); c.name == "" {
		c.name = o.GetGenerateName() + strconv.FormatInt(s.version, 36)
	}
	if _, taken := s.objects[c.key()]; taken {
		return refusal(http.StatusConflict, metav1.StatusReasonAlreadyExists,
			fmt.Sprintf("%s %q already exists", c.resource, c.name), c)
	}
	o.SetName(c.name)
	o.SetNamespace(c.namespace)
	o.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", s.version+1)))
	o.SetCreationTimestamp(metav1.NewTime(s.clock.Now().Truncate(time.Second)))
	if c.resource == "pods" {
		born(o)
	}
	return answer{http.StatusCreated, s.keep(c.key(), o)}
}

func decode(body []byte) (object, error) {
	o := object{&unstructured.Unstructured{}}
	err := json.Unmarshal(body, &o.Object)
	return o, err
}

// stale refuses a write that names another object or version than is kept.
func stale(c call, kept object, uid types.UID, version string) (answer, bool) {
	if (uid == "" || uid == kept.GetUID()) && (version == "" || version == kept.GetResourceVersion()) {
		return answer{}, false
	}
	return refusal(http.StatusConflict, metav1.StatusReasonConflict,
			fmt.Sprintf("Operation cannot be fulfilled on %s %q: the object has been modified", c.resource, c.name), c),
		true
}

func (s *Server) update(c call) answer {
	kept, found := s.objects[c.key()]
	if !found {
		return notFound(c)
	}
	o, err := decode(c.body)
	if err != nil {
		return refusal(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error(), c)
	}
	if no, is := stale(c, kept, o.GetUID(), o.GetResourceVersion()); is {
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
	return answer{http.StatusOK, s.keep(c.key(), next)}
}

// patch is a JSON merge patch, the only kind that it knows.
func (s *Server) patch(c call) answer {
	kept, found := s.objects[c.key()]
	if !found {
		return notFound(c)
	}
	change, err := decode(c.body)
	if err != nil {
		return refusal(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error(), c)
	}
	if no, is := stale(c, kept, change.GetUID(), change.GetResourceVersion()); is {
		return no
	}
	next := object{kept.DeepCopy()}
	merge(next.Object, change.Object)
	return answer{http.StatusOK, s.keep(c.key(), next)}
}

func merge(into, change map[string]any) {
	for field, value := range change {
		inner, nested := value.(map[string]any)
		old, was := into[field].(map[string]any)
		switch {
		case value == nil:
			delete(into, field)
		case nested && was:
			merge(old, inner)
		default:
			into[field] = value
		}
	}
}

func (s *Server) remove(c call, fault Fault) answer {
	kept, found := s.objects[c.key()]
	if !found {
		return notFound(c)
	}
	var options metav1.DeleteOptions
	if len(c.body) > 0 && json.Unmarshal(c.body, &options) != nil {
		return refusal(http.StatusBadRequest, metav1.StatusReasonBadRequest, "no DeleteOptions", c)
	}
	if p := options.Preconditions; p != nil {
		if no, is := stale(c, kept, value(p.UID), value(p.ResourceVersion)); is {
			return no
		}
	}
	if fault.Ignore {
		return answer{http.StatusOK, kept}
	}
	if c.resource == "pods" {
		return s.endPod(c, kept, options.GracePeriodSeconds)
	}
	s.drop(c.key())
	return answer{http.StatusOK, kept}
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

const lost = "bG9zdA" // the continue token of a page that has expired

func (s *Server) list(c call, fault Fault) answer {
	if c.param("continue") == lost {
		return refusal(http.StatusGone, metav1.StatusReasonExpired, "The provided continue parameter is too old", c)
	}
	keys, err := s.matching(c)
	if err != nil {
		return refusal(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error(), c)
	}
	more := ""
	if limit, _ := strconv.Atoi(c.param("limit")); limit > 0 && len(keys) > limit {
		keys = keys[:limit]
		more = base64.RawURLEncoding.EncodeToString([]byte(keys[limit-1]))
	}
	if fault.Lose {
		keys, more = nil, lost
	}
	items := []any{}
	for _, key := range keys {
		items = append(items, s.shown(c)[key].Object)
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

// matching returns the keys of what the list shows, in order.
func (s *Server) matching(c call) ([]string, error) {
	byLabel, err := labels.Parse(c.param("labelSelector"))
	if err != nil {
		return nil, err
	}
	byField, err := fields.ParseSelector(c.param("fieldSelector"))
	if err != nil {
		return nil, err
	}
	after, err := base64.RawURLEncoding.DecodeString(c.param("continue"))
	if err != nil {
		return nil, err
	}
	prefix := c.group + "/" + c.resource + "/"
	if c.namespace != "" {
		prefix += c.namespace + "/"
	}
	var keys []string
	for key, o := range s.shown(c) {
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
