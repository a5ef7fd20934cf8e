package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/forewarm/forewarm/contract"
)

// jobServer tells of one job what a test wants: what no real server says at a moment of the test's
// choice. The real one is in the conversations.
type jobServer struct {
	t      *testing.T
	mu     sync.Mutex
	looks  []contract.Job // what each look shows; the last one goes on
	old    bool           // it was submitted before what lists tell of
	output map[string]func(http.ResponseWriter)
	asked  []string
	sent   contract.JobCreate
}

// newJobServer puts a server with one job in front of a town's commands.
func newJobServer(t *testing.T, looks ...contract.Job) (*town, *jobServer) {
	t.Helper()
	s := &jobServer{t: t, looks: looks, output: map[string]func(http.ResponseWriter){}}
	listening := httptest.NewServer(s)
	t.Cleanup(listening.Close)
	w := newTown(t)
	w.onPause = func() {}
	w.env["FOREWARM_API"] = listening.URL
	return w, s
}

func (s *jobServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.Method+" "+r.URL.RequestURI())
	answer := any(s.looks[0])
	stream := s.output[r.URL.RawQuery]
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/v1/jobs":
		s.sent = contract.JobCreate{}
		_ = json.NewDecoder(r.Body).Decode(&s.sent)
		submitted := contract.JobsSubmitted{Jobs: s.looks[:1]}
		if s.sent.Array != nil {
			submitted.ArrayID = "arr_1"
		}
		answer = submitted
	case strings.HasSuffix(r.URL.Path, "/explain"):
		answer = contract.Explanation{Blockers: []contract.BlockedBy{{Code: "no_daemon", Message: "No daemon is there."}}}
	case r.Method == http.MethodGet && r.URL.Path == "/v1/jobs":
		answer = contract.List[contract.Job]{Items: s.looks[:1]}
		if s.old {
			answer = contract.List[contract.Job]{Items: []contract.Job{}}
		}
	case r.URL.Path == "/v1/allocations":
		answer = contract.List[contract.Allocation]{Items: []contract.Allocation{{ID: "alc_1", JobID: "job_1"}}}
	case strings.HasSuffix(r.URL.Path, "/output"):
		s.mu.Unlock()
		if stream != nil {
			stream(w)
		}
		return
	case r.Method == http.MethodGet && len(s.looks) > 1:
		s.looks = s.looks[1:]
		answer = s.looks[0]
	}
	s.mu.Unlock()
	_ = json.NewEncoder(w).Encode(answer)
}

// pieces is a stream that brings pieces, each as stream, text, and ends.
func pieces(attempt, rank int, from int64, all ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		at := from
		for i := 0; i < len(all); i += 2 {
			_ = json.NewEncoder(w).Encode(contract.JobOutput{Attempt: attempt, Rank: rank, Offset: at, Stream: all[i],
				Data: []byte(all[i+1])})
			at += int64(len(all[i+1]))
		}
	}
}

// cutAfter cuts the connection of a stream.
func cutAfter(stream func(http.ResponseWriter)) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		stream(w)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// newJob is a job in a state.
func newJob(state string, attempt int) contract.Job {
	return contract.Job{ID: "job_1", State: state, Attempt: attempt, GPUs: 2, Nodes: 1, PoolName: "lab",
		Cost: contract.Money{Amount: "0", Currency: contract.Currency}}
}

// endedWith is a job that ended with an exit code.
func endedWith(attempt, code int) contract.Job {
	x := newJob(contract.JobCompleted, attempt)
	if code != 0 {
		x.State, x.Reason = contract.JobFailed, "exit"
	}
	x.ExitCode, x.StartedAt, x.EndedAt = &code, monday, monday.Add(90_000_000_000)
	return x
}
