//go:build clouds

package apitest

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fault is something that goes wrong, once for each of Times requests that are
// one of On.
type Fault struct {
	On []Use // verb and resource; an empty list is every request
	// In limits it to requests in a namespace: "*" is one of all namespaces at once; empty:
	// no limit.
	In    string
	Times int
	// One of these.
	Refuse *Refusal // nothing is done
	Cut    bool     // it is done, and the connection breaks before the answer
	Ignore bool     // nothing is done, and the answer is as if it were
	Lose   bool     // the list ends in the middle: its next page has expired
}

// Refusal is an answer that refuses.
type Refusal struct {
	Code       int
	Reason     metav1.StatusReason
	Message    string
	RetryAfter int  // seconds, as a header
	Plain      bool // text, as of something between client and server
}

// Inject adds a fault.
func (s *Server) Inject(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	s.faults = append(s.faults, &f)
}

// Heal takes all faults away.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// Lag makes lists show the world as it was that long ago, from now on.
func (s *Server) Lag(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag = by
}

// SetClockAhead has the server's own clock go before that of its clients, in what it says
// of the time of its answers.
func (s *Server) SetClockAhead(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead = by
}

// SuspendJobs suspends the Jobs that are made from now on, as Kueue does with those that it
// manages.
func (s *Server) SuspendJobs() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.suspends = true
}

// SetPriority gives the class of placeholders another value.
func (s *Server) SetPriority(value int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.priority = value
}

// takeFault takes the first fault that the call hits.
func (s *Server) takeFault(c call) Fault {
	for _, f := range s.faults {
		use := Use{Verb: c.verb, Resource: c.fullResource()}
		if f.Times > 0 && (len(f.On) == 0 || slices.Contains(f.On, use)) && f.isIn(c.namespace) {
			f.Times--
			return *f
		}
	}
	return Fault{}
}

func (f Fault) isIn(namespace string) bool {
	return f.In == "" || f.In == namespace || f.In == "*" && namespace == ""
}

func (f Fault) writeRefusal(w http.ResponseWriter) {
	if f.Refuse.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.Refuse.RetryAfter))
	}
	if f.Refuse.Plain {
		answer{f.Refuse.Code, f.Refuse.Message}.writeTo(w)
		return
	}
	refusalAnswer(f.Refuse.Code, f.Refuse.Reason, f.Refuse.Message, call{}).writeTo(w)
}
