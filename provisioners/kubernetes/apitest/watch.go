//go:build clouds

package apitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// change is what a watch tells of.
type change struct {
	version int64
	kind    watch.EventType
	key     string
	object  object
}

// mostChanges is how many are known; the real server forgets those of some minutes ago.
const mostChanges = 5000

func (s *Server) addChange(kind watch.EventType, key string, o object) {
	s.changes = append(s.changes, change{s.version, kind, key, o})
	if len(s.changes) > mostChanges {
		s.forgotten = s.changes[0].version
		s.changes = s.changes[1:]
	}
}

// Forget forgets all changes until now, as etcd does when it compacts.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes, s.forgotten = nil, s.version
}

// OmitBookmarks makes watches end without saying where they were.
func (s *Server) OmitBookmarks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = true
}

// KnowOwnKindOnly makes watches know nothing of the versions of other kinds of object, as those
// of the real server do with an etcd before 3.4.25, while lists have the version of all
// changes: a watch that has told all is silent until its time is over.
func (s *Server) KnowOwnKindOnly() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.narrow = true
}

// events is the body of a watch, which mostly ends at once: where the real server would wait,
// this one says where it is.
type events struct {
	told []byte
	open time.Duration // for which it stays open
}

func (e events) writeTo(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Write(e.told)
	w.(http.Flusher).Flush()
	timer := time.NewTimer(e.open)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
}

func (s *Server) watchObjects(c call) answer {
	since, err := strconv.ParseInt(c.queryParam("resourceVersion"), 10, 64)
	if err != nil {
		return refusalAnswer(http.StatusBadRequest, metav1.StatusReasonBadRequest, "invalid resource version", c)
	}
	if since < s.forgotten {
		return refusalAnswer(http.StatusGone, metav1.StatusReasonExpired,
			fmt.Sprintf("too old resource version: %d (%d)", since, s.forgotten), c)
	}
	var told bytes.Buffer
	encoder := json.NewEncoder(&told)
	tell := func(kind watch.EventType, o any) {
		if err := encoder.Encode(map[string]any{"type": kind, "object": o}); err != nil {
			panic(err) // it was made from JSON
		}
	}
	for _, one := range s.changes {
		if one.version > since && strings.HasPrefix(one.key, c.group+"/"+c.resource+"/") {
			tell(one.kind, withKind(one.object, s.kinds[c.resource], c))
		}
	}
	if s.silent {
		return answer{http.StatusOK, events{told: told.Bytes()}}
	}
	if s.narrow {
		seconds, err := strconv.Atoi(c.queryParam("timeoutSeconds"))
		if err != nil {
			return refusalAnswer(http.StatusBadRequest, metav1.StatusReasonBadRequest, "it would stay open for ever", c)
		}
		return answer{http.StatusOK, events{told.Bytes(), time.Duration(seconds) * time.Second}}
	}
	tell(watch.Bookmark, map[string]any{"kind": s.kinds[c.resource], "apiVersion": c.version,
		"metadata": map[string]any{"resourceVersion": strconv.FormatInt(s.version, 10)}})
	return answer{http.StatusOK, events{told: told.Bytes()}}
}

// withKind is the object as a watch tells it, which says what it is.
func withKind(o object, kind string, c call) object {
	told := object{o.DeepCopy()}
	told.SetKind(kind)
	told.SetAPIVersion(strings.TrimPrefix(c.group+"/"+c.version, "/"))
	return told
}
