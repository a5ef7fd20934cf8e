//go:build clouds

package apitest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/forewarm/forewarm/internal/clock"
)

// Server is an http.Handler. It is safe for concurrent use.
type Server struct {
	clock clock.Clock

	mu    sync.Mutex
	kinds map[string]string // by resource: what is served
	// versions are those of the defined resources: "group/version" of each.
	versions map[string][]string
	objects  map[string]object
	past     []snapshot
	changes  []change
	// forgotten is the version up to which no watch can begin any more.
	forgotten int64
	silent    bool // watches have no bookmarks
	narrow    bool // they know nothing of the versions of other kinds of object
	lag       time.Duration
	suspends  bool          // Jobs that are made
	priority  int32         // the value of the class of placeholders
	ahead     time.Duration // by how much its clock goes before that of its clients
	version   int64
	faults    []*Fault
	logs      map[string]string
	used      map[Use]int
}

// Use is something that the user agent "forewarm" has done.
type Use struct{ Verb, Group, Resource string }

// clusters counts the servers: each is a cluster of its own.
var clusters atomic.Int64

// New makes a server that keeps nothing yet but the namespace kube-system, which is
// another object in each server.
func New(clock clock.Clock) *Server {
	s := &Server{
		clock: clock, version: 1, objects: map[string]object{}, logs: map[string]string{}, used: map[Use]int{},
		kinds: map[string]string{
			"pods": "Pod", "configmaps": "ConfigMap", "nodes": "Node", "events": "Event", "podtemplates": "PodTemplate",
			"secrets": "Secret",
			"jobs":    "Job", "leases": "Lease", "namespaces": "Namespace",
		},
		versions: map[string][]string{}, priority: lowPriority,
	}
	system := object{&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}}
	system.SetName(metav1.NamespaceSystem)
	system.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-9000-%012d", clusters.Add(1))))
	system.SetResourceVersion("1")
	s.objects[call{resource: "namespaces", name: metav1.NamespaceSystem}.objectKey()] = system
	return s
}

// Define adds a kind in those versions ("group/version"), as a CustomResourceDefinition
// does.
func (s *Server) Define(resource, kind string, versions ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds[resource], s.versions[resource] = kind, versions
}

// FillPods creates many pods at once, without the past that lists may lag into.
func (s *Server) FillPods(count int, one func(int) any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range count {
		text, err := json.Marshal(one(i))
		if err != nil {
			panic(err) // it is a test's own
		}
		o, err := decodeObject(text)
		if err != nil {
			panic(err)
		}
		s.version++
		o.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", s.version)))
		o.SetCreationTimestamp(metav1.NewTime(s.clock.Now().Truncate(time.Second)))
		o.SetResourceVersion(strconv.FormatInt(s.version, 10))
		s.initializePod(o)
		key := call{resource: "pods", namespace: o.GetNamespace(), name: o.GetName()}.objectKey()
		s.objects[key] = o
		s.addChange(watch.Added, key, o)
	}
}

// SetLog is what the pod's container has written.
func (s *Server) SetLog(namespace, pod, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs[namespace+"/"+pod] = text
}

// Used returns everything that was done.
func (s *Server) Used() map[Use]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := map[Use]bool{}
	for use := range s.used {
		used[use] = true
	}
	return used
}

// CountUses is how often that was asked for.
func (s *Server) CountUses(of Use) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used[of]
}

// call is one request, taken apart.
type call struct {
	verb, group, version, resource, namespace, name, sub string

	query map[string][]string
	body  []byte
	ours  bool // of the adapter under test
}

func (c call) queryParam(name string) string {
	if len(c.query[name]) == 0 {
		return ""
	}
	return c.query[name][0]
}

// objectKey is where the object of the call is kept.
func (c call) objectKey() string {
	return c.group + "/" + c.resource + "/" + c.namespace + "/" + c.name
}

const mostBody = 3 << 20 // as the real one

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, mostBody))
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Date", s.clock.Now().Add(s.ahead).UTC().Format(http.TimeFormat))
	if answer, is := s.discover(r.URL.Path); is {
		answer.writeTo(w)
		return
	}
	c, ok := parseCall(r, body)
	if !ok {
		http.NotFound(w, r)
		return
	}
	var fault Fault
	if c.ours = strings.HasPrefix(r.UserAgent(), "forewarm"); c.ours {
		fault = s.takeFault(c)
		s.used[Use{c.verb, c.group, c.fullResource()}]++
	}
	if fault.Refuse != nil {
		fault.writeRefusal(w)
		return
	}
	if s.kinds[c.resource] == "" {
		http.NotFound(w, r) // a bare one, as the real server's
		return
	}
	answer := s.answerCall(c, fault)
	if fault.Cut {
		panic(http.ErrAbortHandler) // which closes the connection without an answer
	}
	if told, are := answer.body.(events); are {
		s.mu.Unlock() // others are answered while it is open
		defer s.mu.Lock()
		told.writeTo(w, r)
		return
	}
	answer.writeTo(w)
}

func (c call) fullResource() string {
	if c.sub == "" {
		return c.resource
	}
	return c.resource + "/" + c.sub
}

func (s *Server) answerCall(c call, fault Fault) answer {
	switch {
	case c.sub == "log":
		return s.podLog(c)
	case c.sub == "binding":
		return s.bindPod(c)
	}
	switch c.verb {
	case "list":
		return s.listObjects(c, fault)
	case "watch":
		return s.watchObjects(c)
	case "get":
		return s.getObject(c)
	case "create":
		return s.createObject(c)
	case "update":
		return s.updateObject(c)
	case "patch":
		return s.patchObject(c)
	default:
		return s.deleteObject(c, fault)
	}
}

// parseCall understands /api/v1/… and /apis/group/version/….
func parseCall(r *http.Request, body []byte) (call, bool) {
	c := call{query: r.URL.Query(), body: body}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		c.version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		c.group, c.version, parts = parts[1], parts[2], parts[3:]
	default:
		return c, false
	}
	if parts[0] == "namespaces" && len(parts) >= 3 {
		c.namespace, parts = parts[1], parts[2:]
	}
	parts = append(parts, "", "")
	c.resource, c.name, c.sub = parts[0], parts[1], parts[2]
	c.verb = verbs[r.Method]
	if c.verb == "get" && c.name == "" {
		c.verb = "list"
		if c.queryParam("watch") == "true" || c.queryParam("watch") == "1" {
			c.verb = "watch"
		}
	}
	return c, c.verb != ""
}

var verbs = map[string]string{
	http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch",
	http.MethodDelete: "delete",
}

// answer is what goes out.
type answer struct {
	code int
	body any
}

func (a answer) writeTo(w http.ResponseWriter) {
	if text, plain := a.body.(string); plain {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(a.code)
		w.Write([]byte(text))
		return
	}
	body, err := json.Marshal(a.body)
	if err != nil {
		panic(err) // it was made from JSON
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.code)
	w.Write(body)
}

// refusalAnswer is a Status as the real server writes it.
func refusalAnswer(code int, reason metav1.StatusReason, message string, c call) answer {
	return answer{code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message,
		Details: &metav1.StatusDetails{Name: c.name, Group: c.group, Kind: c.resource},
	}}
}
